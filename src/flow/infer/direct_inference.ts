/** One direct inference: asks the model, writes the event where there is a run, and chooses the error that
 * the caller gets.
 */

import { utf8Length } from "../../base/bytes.ts";
import { type Refusal, RefusalForNow, refuse } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import { event } from "../../model/events/event_table.ts";
import {
  type InferenceAnswer,
  InferenceFailed,
  type InferenceFailure,
  isBusy,
  type ProviderKind,
  type TokenCounts,
} from "../../model/infer/inference.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { actionableRun, explainedFailure, stillActionableRun } from "../runs/ownership.ts";
import type { RunWork } from "../runs/run_work.ts";
import type { CheckedRequest } from "./checked_request.ts";
import type { Inference } from "./inference.ts";

export interface DirectInferenceOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly work: RunWork;
  readonly inference: Inference;
  readonly streamTtlMs: number;
}

export interface InferAnswer {
  readonly request_id: string;
  readonly run_id: string | null;
  readonly provider: ProviderKind;
  readonly model: string;
  readonly fallback_used: boolean;
  readonly output_text: string;
  readonly finish_reason: string | null;
  readonly inference_latency_ms: number;
  readonly tokens: TokenCounts;
}

/** The values of `error.code` of a batch item. See docs/models.md#batch. */
export type ItemErrorCode =
  | "validation_error"
  | "provider_http_status"
  | "provider_transport"
  | "provider_invalid_response"
  | "provider_saturated"
  | "deadline_missed"
  | "request_budget_exceeded"
  | "internal_error";

/** How long a direct inference takes in the estimate of admission; a shorter timeout lowers the estimate. */
const SERVICE_ESTIMATE_MS = 1000;
/** What the caller tried to do with the run, used in error messages. */
const ACTION = "infer for";

/** Why a provider gave no answer, as a log line has it. */
export interface ProviderFault {
  readonly request_id: string;
  readonly failure: InferenceFailed["failure"];
  readonly provider: InferenceFailed["provider"];
  readonly status: InferenceFailed["status"];
  readonly error: string;
}

export class DirectInference {
  readonly #options: DirectInferenceOptions;

  constructor(options: DirectInferenceOptions) {
    this.#options = options;
  }

  /** 500 without any backend. Checked before the fields, as no request can succeed. */
  requireProvider(): void {
    if (this.#options.inference.isConfigured) return;
    throw refuse.because("internal_error", "No inference provider is configured");
  }

  /** 404, 409 and 507 where the request names a run, which gets an event. */
  checkRun(caller: Caller, { runId }: CheckedRequest): void {
    if (runId === null) return;
    const { timeline, world, streamTtlMs } = this.#options;
    actionableRun(timeline.view, caller, runId, { nowMs: world.now(), ttlMs: streamTtlMs }, ACTION);
    timeline.requireRoom(caller.principalKey);
  }

  /**
   * Throws InferenceFailed, a Refusal when the run ended meanwhile, or any error after the client has
   * disconnected.
   */
  async answer(
    caller: Caller,
    request: CheckedRequest,
    onFault: (fault: ProviderFault) => void = (fault) => this.logFault(fault),
  ): Promise<InferAnswer> {
    const { runId } = request;
    if (runId === null) {
      return answerOf(caller, request, await this.#ask(caller, request, caller.signal, onFault));
    }
    const { timeline, work } = this.#options;
    // Checked again, as the run of a batch item may have ended before the item was started.
    stillActionableRun(timeline.view, caller, runId, ACTION);
    using handle = work.begin(runId, caller.signal);
    try {
      const answer = await this.#ask(caller, request, handle.signal, onFault);
      this.#commit(caller, runId, request, answer);
      return answerOf(caller, request, answer);
    } catch (error) {
      throw explainedFailure(error, handle.signal, {
        view: timeline.view,
        caller,
        runId,
        action: ACTION,
        whenClosing: () => new InferenceFailed("saturated", "the service is closing"),
      });
    }
  }

  /**
   * The response has no detail of the provider's fault, so it is logged. `items` is of how many items of a
   * batch.
   */
  logFault(fault: ProviderFault, items?: number): void {
    const fields = items === undefined ? fault : { ...fault, items };
    this.#options.world.log.warn("inference failed", { ...fields });
  }

  async #ask(
    caller: Caller,
    checked: CheckedRequest,
    signal: AbortSignal,
    onFault: (fault: ProviderFault) => void,
  ): Promise<InferenceAnswer> {
    const { request, timeoutMs, primaryProvider, runId } = checked;
    try {
      return await this.#options.inference.ask(request, {
        principalKey: caller.principalKey,
        streamKey: runId ?? caller.requestId,
        latencyClass: "live",
        timeoutMs,
        deadlineMs: timeoutMs,
        serviceEstimateMs: Math.min(timeoutMs - 1, SERVICE_ESTIMATE_MS),
        signal,
        primaryProvider,
      });
    } catch (error) {
      if (error instanceof InferenceFailed && FAULTS_OF_PROVIDERS.includes(error.failure)) {
        const { failure, provider, status } = error;
        onFault({ request_id: caller.requestId, failure, provider, status, error: error.message });
      }
      throw error;
    }
  }

  #commit(caller: Caller, runId: string, { request }: CheckedRequest, answer: InferenceAnswer): void {
    this.#options.timeline.commit((view) => {
      stillActionableRun(view, caller, runId, ACTION);
      return [event("inference_completed", runId, {
        request_id: caller.requestId,
        provider: answer.provider,
        model: answer.model,
        fallback_used: answer.fallbackUsed,
        prompt_bytes: utf8Length(request.prompt),
        output_bytes: utf8Length(answer.outputText),
      })];
    });
  }
}

function answerOf(caller: Caller, { runId }: CheckedRequest, answer: InferenceAnswer): InferAnswer {
  return {
    request_id: caller.requestId,
    run_id: runId,
    provider: answer.provider,
    model: answer.model,
    fallback_used: answer.fallbackUsed,
    output_text: answer.outputText,
    finish_reason: answer.finishReason,
    inference_latency_ms: Math.round(answer.inferenceLatencyMs),
    tokens: answer.tokens,
  };
}

const FAULTS_OF_PROVIDERS: readonly InferenceFailure[] = ["http_status", "transport", "invalid_response"];

/** The error of a batch item for each failure. It never contains text of the provider. */
const ITEM_ERRORS: Readonly<
  Record<InferenceFailure, { readonly code: ItemErrorCode; readonly message: string }>
> = {
  no_provider: { code: "internal_error", message: "No inference provider is configured" },
  unsupported_model: { code: "validation_error", message: "No configured backend serves this model" },
  http_status: { code: "provider_http_status", message: "The inference provider refused the request" },
  transport: { code: "provider_transport", message: "The inference provider could not be reached" },
  invalid_response: { code: "provider_invalid_response", message: "The inference provider gave no answer" },
  saturated: { code: "provider_saturated", message: "Inference is saturated, try again later" },
  deadline_missed: { code: "deadline_missed", message: "The inference did not end within its deadline" },
  budget_exceeded: {
    code: "request_budget_exceeded",
    message: "The request is larger than a whole inference budget",
  },
};

/** The error of a batch item. Of a model that its server does not know, it names those that there are. */
export function itemErrorOf(error: InferenceFailed): (typeof ITEM_ERRORS)[InferenceFailure] {
  const known = ITEM_ERRORS[error.failure];
  const { told: message } = error;
  return message === null ? known : { ...known, message };
}

/** The error response of a single request for each failure. */
export function asRefusal(error: InferenceFailed): Refusal {
  const { failure, told } = error;
  const { message } = ITEM_ERRORS[failure];
  switch (failure) {
    case "unsupported_model":
      return refuse.invalid(
        "model",
        `is served by no configured backend${told === null ? "" : `: ${told}`}`,
      );
    case "budget_exceeded":
      return refuse.invalid("request", "is larger than a whole inference budget of this service");
    case "saturated":
      return refuse.because("provider_saturated", message);
    case "deadline_missed":
      return refuse.because("deadline_missed", message);
    case "http_status":
      if (isBusy(error)) return busyRefusal(error);
      return refuse.because("internal_error", "The inference provider failed");
    default:
      return refuse.because("internal_error", "The inference provider failed");
  }
}

/**
 * The status of the backend, with the seconds after which it wants to be asked again; one second where it
 * does not say.
 */
function busyRefusal({ status, retryAfterMs }: InferenceFailed): Refusal {
  const kind = status === 429 ? "rate_limited" : "provider_saturated";
  return new RefusalForNow(
    Math.max(1, Math.ceil((retryAfterMs ?? 0) / 1000)),
    kind,
    "The inference provider is busy, try again later",
  );
}
