/** One question to a model and what comes of it: what flows ask, what backends answer, how it fails. Contract 7. */

/** Kinds of backend; what events and answers call `provider`. */
export const PROVIDER_KINDS = ["vllm", "sglang", "gemini", "mlx"] as const;
export type ProviderKind = typeof PROVIDER_KINDS[number];

/** Contract 6.7: the four counts that events and answers carry; a backend that reports none has zeros. */
export interface TokenCounts {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly thinking_tokens: number;
  readonly total_tokens: number;
}

export const NO_TOKENS: TokenCounts = {
  prompt_tokens: 0,
  completion_tokens: 0,
  thinking_tokens: 0,
  total_tokens: 0,
};

/** A clip in binary: backends that cannot upload send it inside the request. */
export interface InferenceVideo {
  /** A whole MP4 file. */
  readonly bytes: Uint8Array;
  /** How closely the model looks; the backend's default when absent. */
  readonly resolution?: "low" | "medium" | "high";
}

export interface InferenceRequest {
  /** A canonical id of the model contract, or any other id: then no backend serves it. */
  readonly model: string;
  readonly prompt: string;
  /** Whole JPEG files, in the order in which the model sees them. */
  readonly images: readonly Uint8Array[];
  readonly video?: InferenceVideo;
  readonly maxTokens: number;
  readonly temperature: number;
  /** The answer is asked to be JSON of this schema. */
  readonly outputSchema?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> };
  /** Whether a later backend may answer when the first fails in a way that may pass. */
  readonly allowFallback: boolean;
}

export interface InferenceAnswer {
  readonly provider: ProviderKind;
  /** The canonical id that was asked for. */
  readonly model: string;
  /** A later backend than the first answered. */
  readonly fallbackUsed: boolean;
  readonly outputText: string;
  readonly finishReason: string | null;
  readonly tokens: TokenCounts;
  /** Of the provider calls, failed attempts included; without the wait for admission. */
  readonly inferenceLatencyMs: number;
}

/** Why there is no answer. `http_status`: the provider said no; `invalid_response`: it said something unreadable. */
export const INFERENCE_FAILURES = [
  "no_provider",
  "unsupported_model",
  "http_status",
  "transport",
  "invalid_response",
  "saturated",
  "deadline_missed",
  "budget_exceeded",
] as const;
export type InferenceFailure = typeof INFERENCE_FAILURES[number];

/** A question without an answer. The message names the backend and the rule, never a key, a prompt or an answer. */
export class InferenceFailed extends Error {
  override readonly name = "InferenceFailed";
  /** Of `http_status`. */
  readonly status: number | null;
  /** The backend that failed last; null when none was called. */
  readonly provider: ProviderKind | null;
  /** The backend says that what was paid for is used up, so it will refuse the next question too. */
  readonly isQuotaSpent: boolean;

  constructor(
    readonly failure: InferenceFailure,
    message: string,
    { status = null, provider = null, isQuotaSpent = false }: {
      status?: number | null;
      provider?: ProviderKind | null;
      isQuotaSpent?: boolean;
    } = {},
  ) {
    super(message);
    this.status = status;
    this.provider = provider;
    this.isQuotaSpent = isQuotaSpent;
  }
}

/** Contract 7.2: whether another backend may do better. */
export function isRetryable({ failure, status }: InferenceFailed): boolean {
  if (failure === "http_status") return status === 408 || status === 429 || status! >= 500;
  return failure === "transport" || failure === "saturated";
}

/** Contract 6.6: what `semantic_error` of a chunk says. */
export function semanticErrorOf({ failure, status }: InferenceFailed): string {
  switch (failure) {
    case "http_status":
      return `http_status_${status}`;
    case "transport":
    case "no_provider":
      return "transport_error";
    case "saturated":
      return "provider_saturated";
    case "budget_exceeded":
      return "request_budget_exceeded";
    default:
      return failure;
  }
}
