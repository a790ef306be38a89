/** Every call of a model: waits for admission, asks the providers, and counts the outcome. */

import type { IdentifyModel } from "../../model/field_rules.ts";
import {
  type AdmissionLimits,
  type AdmissionPermit,
  AdmissionQueue,
  AdmissionRefused,
  LATENCY_CLASSES,
  type LatencyClass,
} from "../../sharing/admission.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { inSpan } from "../../base/tracing.ts";
import { abortWith } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { CatalogEntry } from "../../model/infer/catalog.ts";
import {
  type InferenceAnswer,
  InferenceFailed,
  type InferenceFailure,
  type InferenceRequest,
  PROVIDER_KINDS,
  type ProviderKind,
} from "../../model/infer/inference.ts";
import type { BackendLook, Providers, UnknownModel } from "../../remote/models/providers.ts";

export interface InferenceOptions {
  readonly providers: Providers;
  readonly limits: AdmissionLimits;
  readonly metrics: Metrics;
  readonly world: World;
}

/** How one call is admitted, and for whom. See docs/models.md#admission. */
export interface InferenceCall {
  readonly principalKey: string;
  /** Admission alternates between streams: the run id, or the request id where there is no run. */
  readonly streamKey: string;
  readonly latencyClass: LatencyClass;
  /** Longest time of all provider calls together. */
  readonly timeoutMs: number;
  /** Longest time in total, the wait for admission included. */
  readonly deadlineMs: number;
  /** How long the provider probably takes: with less time left, admission refuses the call. */
  readonly serviceEstimateMs: number;
  readonly signal: AbortSignal;
  /** The provider whose error is counted when no backend was called; `vllm` unless given. */
  readonly primaryProvider?: ProviderKind;
}

/** The fraction of calls that is meant to succeed; the error budget is measured against it. */
const SLO_TARGET_RATIO = 0.99;

/** All calls of models go through this class, as it holds the process-wide limits. */
export class Inference implements Disposable {
  readonly #options: InferenceOptions;
  readonly #admission: AdmissionQueue;
  /** The calls that wait or are under way, aborted together when the service closes. */
  readonly #underWay = new Set<AbortController>();
  /** Calls that have succeeded and failed, for the error budget of each provider. */
  readonly #ended = new Map(PROVIDER_KINDS.map((provider) => [provider, { ok: 0, failed: 0 }]));

  constructor(options: InferenceOptions) {
    this.#options = options;
    this.#admission = new AdmissionQueue(options.limits, options.world);
    this.#readAdmission();
    for (const [provider, ended] of this.#ended) {
      options.metrics.set("service_infer_slo_target_ratio", { provider }, SLO_TARGET_RATIO);
      options.metrics.observeValue(
        "service_infer_error_budget_remaining_ratio",
        { provider },
        () => errorBudgetRemaining(ended),
      );
    }
  }

  /** Whether there is any backend. */
  get isConfigured(): boolean {
    return this.#options.providers.isConfigured;
  }

  /**
   * What knows the ids that callers mean. Where `models` has one that only a server's list can tell, the
   * servers are asked first. Errors: the reason of the signal.
   */
  async identify(models: readonly string[], signal: AbortSignal): Promise<IdentifyModel> {
    return await this.#options.providers.identify(models, signal);
  }

  /** The ids that a backend serves as far as is known. */
  get served(): readonly string[] {
    return this.#options.providers.served;
  }

  /** Whether the backend that would serve `model` takes binary clips. */
  hasBinaryMedia(model: string): boolean {
    return this.#options.providers.hasBinaryMedia(model);
  }

  /** Every model with the state of its backends as of now. */
  catalog(signal: AbortSignal): Promise<CatalogEntry[]> {
    return this.#options.providers.catalog(signal);
  }

  /**
   * Asks the servers for their models whose lists are older than a minute. Errors: the reason of the signal.
   */
  renewModels(signal: AbortSignal): Promise<void> {
    return this.#options.providers.renew(signal);
  }

  /** See {@link Providers.unknown}. */
  unknown(model: string): UnknownModel | null {
    return this.#options.providers.unknown(model);
  }

  /** See {@link Providers.knows}. */
  knows(model: string): boolean | null {
    return this.#options.providers.knows(model);
  }

  /** See {@link Providers.refused}. */
  refused(withinMs: number): readonly UnknownModel[] {
    return this.#options.providers.refused(withinMs);
  }

  /** See {@link Providers.choose}. */
  choose(usual: string): string {
    return this.#options.providers.choose(usual);
  }

  /** Whether a backend serves `model` as far as is known. */
  serves(model: string): boolean {
    return this.#options.providers.serves(model);
  }

  /** The backends, and whether they are skipped now. */
  backends(): BackendLook[] {
    return this.#options.providers.look();
  }

  /**
   * Throws {@link InferenceFailed} (`saturated`, `deadline_missed` and `budget_exceeded` may come from
   * admission), or the reason of the signal.
   */
  async ask(request: InferenceRequest, options: InferenceCall): Promise<InferenceAnswer> {
    const { providers, world } = this.#options;
    providers.requireServed(request.model); // before admission, as no waiting helps
    const call = new AbortController();
    const { signal } = call;
    using _following = abortWith(options.signal, call);
    this.#underWay.add(call);
    try {
      using permit = await this.#admitted(request, options, signal);
      const timeoutMs = Math.min(options.timeoutMs, options.deadlineMs - permit.waitedMs);
      const startedMs = world.monotonicMs();
      try {
        const answer = await providers.infer(request, { timeoutMs, signal });
        this.#countAnswer(answer);
        return answer;
      } catch (error) {
        if (
          error instanceof InferenceFailed &&
          (!FAULTS_OF_THE_CALLER.includes(error.failure) || error.provider !== null)
        ) {
          const provider = failedProvider(error, options);
          const tookMs = world.monotonicMs() - startedMs;
          this.#options.metrics.observe("service_infer_latency_ms", { provider }, tookMs);
        }
        throw error;
      }
    } catch (error) {
      const isClosing = signal.reason instanceof InferenceFailed;
      if (error instanceof InferenceFailed && !isClosing) this.#countFailure(error, options);
      throw error;
    } finally {
      this.#underWay.delete(call);
    }
  }

  /** Refuses waiting and new calls, and aborts the calls under way. */
  close(): void {
    this.#admission.close();
    const reason = new InferenceFailed("saturated", "the service is closing");
    for (const controller of this.#underWay) controller.abort(reason);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #admitted(
    request: InferenceRequest,
    options: InferenceCall,
    signal: AbortSignal,
  ): Promise<AdmissionPermit> {
    const { principalKey, streamKey, latencyClass, deadlineMs, serviceEstimateMs: estimateMs } = options;
    const { providers, world } = this.#options;
    const { tokens, bytes } = providers.reservation(request);
    const attributes = { "service.latency_class": latencyClass };
    try {
      return await inSpan(world.tracing, "admission wait", { attributes }, () =>
        this.#admission.acquire({
          principalKey,
          streamKey,
          latencyClass,
          tokens,
          bytes,
          deadlineMs,
          estimateMs,
          signal,
        }));
    } catch (error) {
      throw error instanceof AdmissionRefused ? new InferenceFailed(error.reason, error.message) : error;
    }
  }

  #countAnswer({ provider, tokens, fallbackUsed, inferenceLatencyMs }: InferenceAnswer): void {
    const { metrics } = this.#options;
    this.#ended.get(provider)!.ok += 1;
    metrics.add("service_infer_requests_total", { provider, status: "ok" });
    if (fallbackUsed) metrics.add("service_infer_fallback_total", { provider });
    metrics.add("service_infer_tokens_total", { provider, kind: "prompt" }, tokens.prompt_tokens);
    metrics.add("service_infer_tokens_total", { provider, kind: "completion" }, tokens.completion_tokens);
    metrics.add("service_infer_tokens_total", { provider, kind: "thinking" }, tokens.thinking_tokens);
    metrics.observe("service_infer_latency_ms", { provider }, inferenceLatencyMs);
  }

  #countFailure(error: InferenceFailed, call: InferenceCall): void {
    // A server that was asked and does not know the model is a fault of the operator.
    if (FAULTS_OF_THE_CALLER.includes(error.failure) && error.provider === null) return;
    const provider = failedProvider(error, call);
    this.#ended.get(provider)!.failed += 1;
    this.#options.metrics.add("service_infer_requests_total", { provider, status: "error" });
  }

  /** The admission queue counts its own calls; a scrape of the metrics reads them. */
  #readAdmission(): void {
    const { metrics, limits } = this.#options;
    const admission = this.#admission;
    const { stats } = admission;
    metrics.set("service_infer_admission_active_limit", limits.globalLimit);
    metrics.set("service_infer_admission_waiting_limit", limits.waiterLimit);
    metrics.set("service_infer_admission_token_limit", limits.tokenBudget);
    metrics.set("service_infer_admission_byte_limit", limits.byteBudget);
    metrics.observeValue("service_infer_admission_active", () => admission.active);
    metrics.observeValue("service_infer_admission_waiting", () => admission.waiting);
    metrics.observeValue("service_infer_admission_active_tokens", () => admission.activeTokens);
    metrics.observeValue("service_infer_admission_active_bytes", () => admission.activeBytes);
    const acquired = () => LATENCY_CLASSES.reduce((sum, name) => sum + stats.acquired[name], 0);
    metrics.observeValue("service_infer_admission_acquired_total", acquired);
    for (const name of LATENCY_CLASSES) {
      const labels = { class: name };
      metrics.observeValue(
        "service_infer_admission_acquired_by_class_total",
        labels,
        () => stats.acquired[name],
      );
    }
    for (const limit of ["global", "principal"] as const) {
      metrics.observeValue("service_infer_admission_timeouts_total", { limit }, () => stats.timeouts[limit]);
    }
    metrics.observeValue("service_infer_admission_waiter_rejections_total", () => stats.waiterRejections);
    metrics.observeValue("service_infer_admission_deadline_missed_total", () => stats.deadlineMissed);
    metrics.observeValue("service_infer_admission_budget_rejections_total", () => stats.budgetRejections);
    metrics.observeValue("service_infer_admission_wait_duration_us_count", () => stats.waits);
    metrics.observeValue(
      "service_infer_admission_wait_duration_us_sum",
      () => Math.round(stats.waitedMs * 1000),
    );
  }
}

/** Failures that no backend could avoid, so they do not count against the error budget. */
const FAULTS_OF_THE_CALLER: readonly InferenceFailure[] = ["unsupported_model", "budget_exceeded"];

/** The provider whose failure a call without an answer is. */
function failedProvider({ provider }: InferenceFailed, { primaryProvider = "vllm" }: InferenceCall) {
  return provider ?? primaryProvider;
}

/** 1 while every call succeeds, 0 when as many calls have failed as the target allows. */
function errorBudgetRemaining({ ok, failed }: { readonly ok: number; readonly failed: number }): number {
  if (failed === 0) return 1;
  return Math.max(0, 1 - failed / (ok + failed) / (1 - SLO_TARGET_RATIO));
}
