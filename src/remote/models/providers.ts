/** All model backends of the service: which of them are asked for a model, in which order, and which are skipped. */

import type { Log } from "../../base/log.ts";
import { inSpan } from "../../base/tracing.ts";
import type { World } from "../../base/world.ts";
import type { BackendSettings } from "../../model/infer/backend_file.ts";
import { canonicalModel, CATALOG, catalogEntries, type CatalogEntry } from "../../model/infer/catalog.ts";
import {
  type InferenceAnswer,
  InferenceFailed,
  type InferenceRequest,
  isRetryable,
  type ProviderKind,
} from "../../model/infer/inference.ts";
import { spokenText } from "../../model/infer/spoken_text.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Backend, BackendAnswer } from "./backend.ts";
import { CircuitBreaker, type CircuitCall, type CircuitLook } from "./circuit_breaker.ts";
import { Gemini } from "./gemini.ts";
import { Base64 } from "./json_body.ts";
import { LatencyAlarm } from "./latency_alarm.ts";
import { OpenaiCompat } from "./openai_compat.ts";
import type { TrustedOutbound } from "../guard/outbound.ts";
import { PinnedAgent } from "../guard/pinned_agent.ts";

export interface ProvidersOptions {
  readonly backends: readonly BackendSettings[];
  readonly world: World;
  /** The operator names the backends, so their addresses are not restricted; their certificates are verified. */
  readonly outbound: TrustedOutbound;
}

/** A backend as an operator sees it. */
export interface BackendLook {
  readonly name: string;
  readonly kind: ProviderKind;
  /** The one model that it serves; null for every model. */
  readonly model: string | null;
  readonly circuit: CircuitLook["state"];
  /** When an open circuit lets a call through again, epoch milliseconds; else null. */
  readonly probeMs: number | null;
}

interface Candidate {
  readonly model: string | null;
  readonly backend: Backend;
  readonly circuit: CircuitBreaker;
}

/** See docs/models.md#backends. */
export class Providers implements AsyncDisposable {
  /** Whether any backend is configured. */
  readonly isConfigured: boolean;
  readonly #world: World;
  readonly #agent: PinnedAgent | null;
  readonly #candidates: readonly Candidate[];
  /** By canonical id, in the order in which they are asked. */
  readonly #byModel: ReadonlyMap<string, readonly Candidate[]>;
  readonly #alarm = new LatencyAlarm();
  readonly #log: Log;

  constructor({ backends, world, outbound }: ProvidersOptions) {
    const { roots, reroute, resolve } = outbound;
    this.isConfigured = backends.length > 0;
    this.#world = world;
    this.#log = world.log.child("providers");
    const agent = this.isConfigured
      ? new PinnedAgent({ roots, freeSocketsMax: FREE_SOCKETS_MAX, ...(reroute && { reroute }) })
      : null;
    this.#agent = agent;
    const configured = backends.map((settings) => {
      const context = { world, agent: agent!, ...(resolve && { resolve }) };
      const backend = settings.type === "gemini"
        ? new Gemini(settings, context)
        : new OpenaiCompat(settings, context);
      return { settings, candidate: { model: settings.model, backend, circuit: new CircuitBreaker() } };
    });
    this.#candidates = configured.map(({ candidate }) => candidate);
    this.#byModel = new Map(CATALOG.map(({ id }) => [id, servingModel(id, configured)]));
  }

  /**
   * The answer of the first backend that gives one. All attempts share one deadline: each has the time that is left.
   * Errors: `InferenceFailed` of the last attempt, or the reason of `signal`. See docs/models.md#infer.
   */
  async infer(
    asked: InferenceRequest,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<InferenceAnswer> {
    const request = { ...asked, model: named(asked.model) };
    const serving = this.#serving(request.model);
    const allowed = request.allowFallback ? serving : serving.slice(0, 1);
    const startedMs = this.#world.monotonicMs();
    // If every circuit breaker is open, the backends are asked all the same.
    const isForced = allowed.every(({ circuit }) => circuit.isOpen(startedMs));
    let failure: InferenceFailed | undefined;
    for (const candidate of allowed) {
      const nowMs = this.#world.monotonicMs();
      const leftMs = startedMs + timeoutMs - nowMs;
      if (failure && leftMs <= 0) break;
      if (!isForced && candidate.circuit.isOpen(nowMs)) continue;
      try {
        const answer = await this.#attempt(candidate, request, leftMs, signal);
        return {
          provider: candidate.backend.kind,
          model: request.model,
          fallbackUsed: candidate !== serving[0],
          ...answer,
          outputText: spokenText(answer.outputText),
          inferenceLatencyMs: Math.round(this.#world.monotonicMs() - startedMs),
        };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof InferenceFailed && isRetryable(error))) throw error;
        failure = error;
      }
    }
    throw failure!; // at least one backend was asked
  }

  /**
   * What admission must reserve: output tokens, and bytes of media, for pictures in base64. See
   * docs/models.md#admission.
   */
  reservation(request: InferenceRequest): { tokens: number; bytes: number } {
    const [first] = this.#byModel.get(named(request.model)) ?? [];
    const imageBytes = request.images.reduce((bytes, jpeg) => bytes + Base64.lengthOf(jpeg), 0);
    return {
      tokens: first?.backend.reservedTokens(request) ?? request.maxTokens,
      bytes: imageBytes + (request.video?.bytes.length ?? 0),
    };
  }

  /** The canonical ids that a backend is configured for, in catalog order. */
  get served(): readonly string[] {
    return CATALOG.map(({ id }) => id).filter((id) => this.#byModel.get(id)!.length > 0);
  }

  /** Throws `InferenceFailed` (`no_provider`, `unsupported_model`) unless a backend is configured for `model`. */
  requireServed(model: string): void {
    this.#serving(model);
  }

  /** Whether the backend that would serve `model` takes a clip as a file of its own. */
  hasBinaryMedia(model: string): boolean {
    return this.#byModel.get(named(model))?.[0]?.backend.hasBinaryMedia ?? false;
  }

  /**
   * Every model, with the backends that are reachable now. Errors: the reason of `signal`. See docs/models.md#catalog.
   */
  async catalog(signal: AbortSignal): Promise<CatalogEntry[]> {
    const answers = await Promise.all(
      this.#candidates.map(async (candidate) =>
        [candidate, await candidate.backend.isReachable(signal)] as const
      ),
    );
    signal.throwIfAborted();
    const reachable = new Set(
      answers.filter(([, isReachable]) => isReachable).map(([candidate]) => candidate),
    );
    return catalogEntries(
      (model) =>
        new Set(this.#byModel.get(model)!.filter((one) => reachable.has(one)).map((one) => one.backend.kind)),
      this.#alarm.alarmed(this.#world.monotonicMs()),
    );
  }

  /** The backends in the order of the configuration, and whether they are skipped now. Asks none of them. */
  look(): BackendLook[] {
    const nowMs = this.#world.monotonicMs();
    return this.#candidates.map(({ backend: { name, kind }, model, circuit }) => {
      const { state, untilMs } = circuit.look(nowMs);
      const probeMs = state === "open" ? Math.round(this.#world.now() + untilMs - nowMs) : null;
      return { name, kind, model, circuit: state, probeMs };
    });
  }

  /** Waits for requests that follow answers, such as the deletion of clips, then closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#candidates.map(({ backend }) => backend.close()));
    this.#agent?.[Symbol.dispose]();
  }

  #serving(model: string): readonly Candidate[] {
    const serving = this.#byModel.get(named(model)) ?? [];
    if (!this.isConfigured) throw new InferenceFailed("no_provider", "no model backend is configured");
    if (serving.length === 0) {
      throw new InferenceFailed("unsupported_model", "no configured backend serves this model");
    }
    return serving;
  }

  async #attempt(
    candidate: Candidate,
    request: InferenceRequest,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<BackendAnswer> {
    const { backend, circuit } = candidate;
    const startedMs = this.#world.monotonicMs();
    const call = circuit.enter(startedMs);
    try {
      const answer = await inSpan(this.#world.tracing, `chat ${request.model}`, {
        kind: "client",
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": backend.kind,
          "gen_ai.request.model": request.model,
        },
      }, async (span) => {
        const answer = await backend.ask(request, { timeoutMs, signal });
        span.set({
          "gen_ai.usage.input_tokens": answer.tokens.prompt_tokens,
          "gen_ai.usage.output_tokens": answer.tokens.completion_tokens,
        });
        return answer;
      });
      this.#report(candidate, () => call.succeeded());
      this.#record(backend, startedMs);
      return answer;
    } catch (error) {
      if (error instanceof InferenceFailed && !signal.aborted) {
        this.#report(candidate, (nowMs) => reportFailure(error, call, { nowMs, timeoutMs }), error);
        if (error.failure !== "transport") this.#record(backend, startedMs, error);
      }
      throw error;
    } finally {
      call.released();
    }
  }

  /**
   * Logs when a backend is skipped from now on, and when it is used again, because a fallback hides that from callers.
   */
  #report({ backend, circuit }: Candidate, report: (nowMs: number) => void, error?: InferenceFailed): void {
    const nowMs = this.#world.monotonicMs();
    const wasOpen = circuit.isOpen(nowMs);
    report(nowMs);
    const isOpen = circuit.isOpen(nowMs);
    if (isOpen && !wasOpen) this.#log.warn(`skipped for now: ${error?.message}`);
    if (!isOpen && wasOpen) this.#log.info(`backend ${backend.name} answers again`);
  }

  /** A call that missed its deadline before the alarm's limit is not recorded: its real latency is unknown. */
  #record({ kind }: Backend, startedMs: number, error?: InferenceFailed): void {
    const nowMs = this.#world.monotonicMs();
    const latencyMs = nowMs - startedMs;
    if (error?.failure === "deadline_missed" && latencyMs <= LIMITS.backend.alarmLatencyMs) return;
    this.#alarm.record(kind, latencyMs, nowMs);
  }
}

/**
 * Every path to a model goes through here, so this is where an alias or another case becomes the canonical id. An id that
 * the catalog does not have stays as it is, and no backend serves it.
 */
function named(model: string): string {
  return canonicalModel(model) ?? model;
}

/** Somewhat more than the calls that admission allows at once by default. */
const FREE_SOCKETS_MAX = 16;
/** A call with a shorter timeout that misses its deadline is no failure of the backend. */
const FAIR_TIMEOUT_MS = 1_000;

/** Reports to the circuit breaker whether the failure means that the backend is down, that it works, or neither. */
function reportFailure(
  error: InferenceFailed,
  call: CircuitCall,
  { nowMs, timeoutMs }: { readonly nowMs: number; readonly timeoutMs: number },
): void {
  const isLate = error.failure === "deadline_missed";
  if (isRetryable(error) || error.isQuotaSpent) call.failed(nowMs, error.isQuotaSpent);
  else if (isLate && timeoutMs >= FAIR_TIMEOUT_MS) call.failed(nowMs, false);
  else if (!isLate) call.succeeded();
}

interface ConfiguredBackend {
  readonly settings: BackendSettings;
  readonly candidate: Candidate;
}

/**
 * The backends for `model`, in the order in which they are asked. A model with a gemini backend is served by that
 * backend alone; the others serve one model or all, by priority. See docs/models.md#backends.
 */
function servingModel(model: string, configured: readonly ConfiguredBackend[]): readonly Candidate[] {
  const byPriority = configured.toSorted((one, other) => one.settings.priority - other.settings.priority);
  const own = byPriority
    .filter(({ settings }) => settings.type === "gemini" && settings.model === model)
    .toSorted((one, other) =>
      one.settings.priority - other.settings.priority || (one.settings.name < other.settings.name ? -1 : 1)
    );
  if (own.length > 0) return [own[0]!.candidate];
  return byPriority
    .filter(({ settings }) => settings.type === "openai_compat" && [null, model].includes(settings.model))
    .map(({ candidate }) => candidate);
}
