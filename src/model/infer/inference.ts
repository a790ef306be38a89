/** One inference: the request, the answer, and the reasons why there is none. See docs/models.md#infer. */

/** Kinds of backends; the field `provider` of events and answers. */
export const PROVIDER_KINDS = ["vllm", "sglang", "gemini", "mlx"] as const;
export type ProviderKind = typeof PROVIDER_KINDS[number];

/** The counts of tokens, the four of events and answers; zeros for a backend that reports none. */
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

/** A clip; a backend without uploads sends it inside the request. */
export interface InferenceVideo {
  /** A whole MP4 file. */
  readonly bytes: Uint8Array;
  /** The resolution at which the model reads the clip; the default of the backend when absent. */
  readonly resolution?: "low" | "medium" | "high";
}

export interface InferenceRequest {
  /** The model: an id or alias of the catalog in any case, or any other id, which no backend serves. */
  readonly model: string;
  readonly prompt: string;
  /** Pictures: whole JPEG files, in the order in which the model gets them. */
  readonly images: readonly Uint8Array[];
  readonly video?: InferenceVideo;
  readonly maxTokens: number;
  readonly temperature: number;
  /** The schema of the JSON for which the backend is asked. */
  readonly outputSchema?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> };
  /** Whether a later backend may be asked when an earlier one fails with a retryable error. */
  readonly allowFallback: boolean;
}

export interface InferenceAnswer {
  readonly provider: ProviderKind;
  /** The canonical id of the request. */
  readonly model: string;
  /** Whether another backend than the first one answered. */
  readonly fallbackUsed: boolean;
  readonly outputText: string;
  readonly finishReason: string | null;
  readonly tokens: TokenCounts;
  /** Duration of the calls, failed attempts included, without the wait for admission. */
  readonly inferenceLatencyMs: number;
}

/**
 * Why there is no answer. `http_status`: the backend answered with an error; `invalid_response`: an
 * unreadable answer.
 */
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

/** A failed inference. The message names the backend and the rule, never a key, a prompt or an answer. */
export class InferenceFailed extends Error {
  override readonly name = "InferenceFailed";
  /** The HTTP status of the backend for `http_status`, else null. */
  readonly status: number | null;
  /** The backend that failed last; null when none was called. */
  readonly provider: ProviderKind | null;
  /** Whether the backend reports that its quota is used up, so it will refuse the next request as well. */
  readonly isQuotaSpent: boolean;
  /** When the backend, which is busy, wants to be asked again; null where it does not say. */
  readonly retryAfterMs: number | null;
  /**
   * What callers may read of the failure, a sentence without its full stop: for an unknown model, which
   * models there are. Else null.
   */
  readonly told: string | null;

  constructor(
    readonly failure: InferenceFailure,
    message: string,
    { status = null, provider = null, isQuotaSpent = false, retryAfterMs = null, told = null }: {
      status?: number | null;
      provider?: ProviderKind | null;
      isQuotaSpent?: boolean;
      retryAfterMs?: number | null;
      told?: string | null;
    } = {},
  ) {
    super(message);
    this.status = status;
    this.provider = provider;
    this.isQuotaSpent = isQuotaSpent;
    this.retryAfterMs = retryAfterMs;
    this.told = told;
  }
}

/** Whether the backend is busy, so that it may answer the same question later. */
export function isBusy({ failure, status, isQuotaSpent, retryAfterMs }: InferenceFailed): boolean {
  if (failure !== "http_status" || isQuotaSpent) return false;
  return BUSY.includes(status!) || status! >= 500 && retryAfterMs !== null;
}

/** Statuses of a busy backend; 529 is that of servers which are overloaded. */
const BUSY: readonly number[] = [429, 503, 529];

/** Whether another backend may be asked. */
export function isRetryable({ failure, status }: InferenceFailed): boolean {
  if (failure === "http_status") return status === 408 || status === 429 || status! >= 500;
  return failure === "transport" || failure === "saturated";
}

/** The value of `semantic_error` of a chunk. See docs/reason.md#failed-chunks. */
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
