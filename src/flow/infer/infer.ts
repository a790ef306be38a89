/** Direct inference: one question or a batch of them, each with its event when it belongs to a run. Interface 4.6. */

import { utf8Length } from "../../base/bytes.ts";
import { type FieldFault, Refusal, refuse } from "../../base/refusal.ts";
import type { World } from "../../base/world.ts";
import type { InferBatchBody, InferBody } from "../../model/api/infer.ts";
import type { CatalogEntry } from "../../model/infer/catalog.ts";
import { event } from "../../model/events/event_table.ts";
import { checkedSchema } from "../../model/schema_field.ts";
import { FieldRules, quoted } from "../../model/field_rules.ts";
import { isRunId } from "../../model/identifiers.ts";
import {
  type InferenceAnswer,
  InferenceFailed,
  type InferenceFailure,
  type InferenceRequest,
  PROVIDER_KINDS,
  type ProviderKind,
  type TokenCounts,
} from "../../model/infer/inference.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import type { Inference } from "./inference.ts";
import { actionableRun, stillActionableRun } from "../runs/ownership.ts";
import { RunEnded, type RunWork } from "../runs/run_work.ts";

export interface InferOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly work: RunWork;
  readonly inference: Inference;
  readonly streamTtlMs: number;
  /** Calls that one principal may have under way. */
  readonly perPrincipalLimit: number;
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

/** Contract 7.1: what `error.code` of an item may be. */
export type ItemErrorCode =
  | "validation_error"
  | "provider_http_status"
  | "provider_transport"
  | "provider_invalid_response"
  | "provider_saturated"
  | "deadline_missed"
  | "request_budget_exceeded"
  | "internal_error";

/** One of `result` and `error` is null. */
export interface BatchItem {
  readonly index: number;
  readonly ok: boolean;
  readonly result: InferAnswer | null;
  readonly error: { readonly code: ItemErrorCode; readonly message: string } | null;
}

export interface BatchAnswer {
  readonly request_id: string;
  readonly processed: number;
  readonly succeeded: number;
  readonly failed: number;
  /** By index. */
  readonly results: readonly BatchItem[];
}

/** A request whose fields were checked. */
interface CheckedRequest {
  readonly runId: string | null;
  readonly request: InferenceRequest;
  readonly timeoutMs: number;
  readonly primaryProvider: ProviderKind;
}

/** Contract 7.6: a direct inference is taken to need so long, or a little less than it may take. */
const SERVICE_ESTIMATE_MS = 1000;

export class Infer {
  readonly #options: InferOptions;

  constructor(options: InferOptions) {
    this.#options = options;
  }

  /**
   * Errors: 500 without any backend; 422 with the fields, `model` too when no backend serves it, and `request` when it is
   * larger than a whole budget; 404 and 409 for the run; 503 `provider_saturated` and `deadline_missed`; 500 when the
   * provider fails.
   */
  async one(caller: Caller, body: InferBody): Promise<InferAnswer> {
    this.#requireProvider();
    const rules = new FieldRules();
    const question = checked(body, rules);
    rules.check();
    this.#checkRun(caller, question);
    try {
      return await this.#answer(caller, question);
    } catch (error) {
      if (caller.signal.aborted) throw hungUp();
      throw error instanceof InferenceFailed ? asRefusal(error) : error;
    }
  }

  /**
   * An item that is wrong refuses the whole batch before any provider is asked; an item that fails later fails alone.
   * Errors: 500 without any backend; 422 on `requests`, `max_parallel` and the fields of an item; 404 and 409 for the run
   * of an item.
   */
  async batch(caller: Caller, body: InferBatchBody): Promise<BatchAnswer> {
    this.#requireProvider();
    const { questions, maxParallel } = checkedBatch(body);
    for (const [index, question] of questions.entries()) {
      atItem(index, () => this.#checkRun(caller, question));
    }

    // More at once than the principal may have would only wait in the queue, each against its own timeout, and a
    // large batch would saturate itself.
    const workers = Math.min(maxParallel, this.#options.perPrincipalLimit, questions.length);
    const results: BatchItem[] = new Array(questions.length);
    const remaining = questions.entries();
    await Promise.all(Array.from({ length: workers }, async () => {
      for (const [index, question] of remaining) results[index] = await this.#item(caller, index, question);
    }));
    const succeeded = results.filter(({ ok }) => ok).length;
    return {
      request_id: caller.requestId,
      processed: results.length,
      succeeded,
      failed: results.length - succeeded,
      results,
    };
  }

  /** Every model of the contract, and whether a backend for it answers right now. */
  models(caller: Caller): Promise<CatalogEntry[]> {
    return this.#options.inference.catalog(caller.signal);
  }

  /** Throws only when the caller hung up, which ends the whole batch. */
  async #item(caller: Caller, index: number, question: CheckedRequest): Promise<BatchItem> {
    try {
      return { index, ok: true, result: await this.#answer(caller, question), error: null };
    } catch (error) {
      if (caller.signal.aborted) throw hungUp();
      return { index, ok: false, result: null, error: this.#itemError(caller, error) };
    }
  }

  #itemError(caller: Caller, error: unknown): NonNullable<BatchItem["error"]> {
    if (error instanceof InferenceFailed) return TOLD[error.failure];
    // The run ended while its item was under way, or the disk refused the event.
    if (error instanceof Refusal) {
      const code = error.status < 500 ? "validation_error" : "internal_error";
      return { code, message: error.message };
    }
    // A bug must not take the answers of the other items with it.
    this.#options.world.log.error("an item of a batch failed", {
      request_id: caller.requestId,
      error: error instanceof Error ? error.stack ?? error.message : String(error),
    });
    return { code: "internal_error", message: "An internal error occurred" };
  }

  /** Throws InferenceFailed, a Refusal when the run ended meanwhile, or whatever a caller who hung up left behind. */
  async #answer(caller: Caller, question: CheckedRequest): Promise<InferAnswer> {
    const { runId } = question;
    if (runId === null) return answerOf(caller, question, await this.#ask(caller, question, caller.signal));
    // An item of a batch may have had its turn only after its run ended.
    stillActionableRun(this.#options.timeline.view, caller, runId, "infer for");
    using handle = this.#options.work.begin(runId, caller.signal);
    try {
      const answer = await this.#ask(caller, question, handle.signal);
      this.#commit(caller, runId, question, answer);
      return answerOf(caller, question, answer);
    } catch (error) {
      if (!(handle.signal.reason instanceof RunEnded)) throw error;
      // A run that ended meanwhile explains the failure better than the failure does.
      stillActionableRun(this.#options.timeline.view, caller, runId, "infer for");
      throw new InferenceFailed("saturated", "the service is closing");
    }
  }

  async #ask(caller: Caller, question: CheckedRequest, signal: AbortSignal): Promise<InferenceAnswer> {
    const { request, timeoutMs, primaryProvider, runId } = question;
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
        // The caller is told nothing of it, so the log is.
        const { failure, provider, status } = error;
        const fields = { request_id: caller.requestId, failure, provider, status, error: error.message };
        this.#options.world.log.warn("inference failed", fields);
      }
      throw error;
    }
  }

  #commit(caller: Caller, runId: string, { request }: CheckedRequest, answer: InferenceAnswer): void {
    this.#options.timeline.commit((view) => {
      stillActionableRun(view, caller, runId, "infer for");
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

  /** Contract 7.1: said before any field is looked at, as no request can succeed. */
  #requireProvider(): void {
    if (this.#options.inference.isConfigured) return;
    throw refuse.because("internal_error", "No inference provider is configured");
  }

  #checkRun(caller: Caller, { runId }: CheckedRequest): void {
    if (runId === null) return;
    const { timeline, world, streamTtlMs } = this.#options;
    actionableRun(timeline.view, caller, runId, { nowMs: world.now(), ttlMs: streamTtlMs }, "infer for");
  }
}

/** What is wrong goes to `rules`; then the question is not to be used. */
function checked(body: InferBody, rules: FieldRules): CheckedRequest {
  const prompt = body.prompt.trim();
  const promptBytes = utf8Length(prompt);
  const maxTokens = body.max_tokens ?? LIMITS.infer.maxTokensDefault;
  const temperature = body.temperature ?? LIMITS.infer.temperatureDefault;
  const timeoutMs = body.timeout_ms ?? LIMITS.infer.timeoutMsDefault;
  const primaryProvider = PROVIDER_KINDS.find((kind) =>
    kind === (body.primary_provider ?? "vllm").toLowerCase()
  );
  if (body.run_id != null && !isRunId(body.run_id)) {
    rules.fault("run_id", "must be run- followed by 32 hexadecimal digits");
  }
  const model = rules.model(body.model);
  const { minimum, maximum } = LIMITS.infer.promptBytes;
  if (promptBytes < minimum || promptBytes > maximum) {
    rules.fault("prompt", `must have ${minimum} to ${maximum} bytes when trimmed: got ${promptBytes}`);
  }
  rules.range("max_tokens", maxTokens, LIMITS.infer.maxTokens);
  rules.range("temperature", temperature, LIMITS.infer.temperature);
  rules.range("timeout_ms", timeoutMs, LIMITS.infer.timeoutMs);
  if (!primaryProvider) {
    const got = quoted(body.primary_provider!);
    rules.fault("primary_provider", `must be ${PROVIDER_KINDS.join(", ")}: got ${got}`);
  }
  const schema = body.output_schema != null
    ? checkedSchema("output_schema", body.output_schema, rules)
    : undefined;
  return {
    runId: body.run_id ?? null,
    request: {
      model,
      prompt,
      images: [],
      maxTokens,
      temperature,
      ...(schema && { outputSchema: { name: "output", schema } }),
      allowFallback: body.allow_fallback ?? true,
    },
    timeoutMs,
    primaryProvider: primaryProvider ?? "vllm",
  };
}

/** The first item at fault is told, with its place: contract 7.1 names the fields as in a single request. */
function checkedBatch(body: InferBatchBody): { questions: CheckedRequest[]; maxParallel: number } {
  const sizes = LIMITS.infer.batchRequests;
  const { length } = body.requests;
  const maxParallel = body.max_parallel ?? LIMITS.infer.batchParallelDefault;
  const rules = new FieldRules();
  if (length < sizes.minimum || length > sizes.maximum) {
    rules.fault("requests", `must be ${sizes.minimum} to ${sizes.maximum} items: got ${length}`);
  }
  rules.range("max_parallel", maxParallel, LIMITS.infer.batchParallel);
  rules.check();
  const questions = body.requests.map((item, index) => {
    const ofItem = new FieldRules();
    const question = checked(item, ofItem);
    atItem(index, () => ofItem.check());
    return question;
  });
  return { questions, maxParallel };
}

/** What `check` refuses is told with the place of the item. */
function atItem(index: number, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const placed = ({ field, message }: FieldFault) => ({ field, message: `requests[${index}]: ${message}` });
    throw new Refusal(error.kind, `requests[${index}]: ${error.message}`, error.details.map(placed));
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

/** What a caller is told of each failure: never a word of the provider's own. */
const TOLD: Readonly<Record<InferenceFailure, { readonly code: ItemErrorCode; readonly message: string }>> = {
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

/** Contract 7.1. */
function asRefusal({ failure }: InferenceFailed): Refusal {
  const { message } = TOLD[failure];
  switch (failure) {
    case "unsupported_model":
      return refuse.invalid("model", "is served by no configured backend");
    case "budget_exceeded":
      return refuse.invalid("request", "is larger than a whole inference budget of this service");
    case "saturated":
      return refuse.because("provider_saturated", message);
    case "deadline_missed":
      return refuse.because("deadline_missed", message);
    default:
      return refuse.because("internal_error", "The inference provider failed");
  }
}

/** Nobody hears it; a refusal, as it is no bug that belongs in the log. */
function hungUp(): Refusal {
  return refuse.because("internal_error", "The caller hung up");
}
