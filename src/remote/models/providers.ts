/** All model backends of the service: who is asked for a model, in which order, and who is left alone. Contract 7.2. */

import type { Log } from "../../base/log.ts";
import type { World } from "../../base/world.ts";
import type { BackendSettings } from "../../model/infer/backend_file.ts";
import { CATALOG, catalogEntries, type CatalogEntry } from "../../model/infer/catalog.ts";
import {
  type InferenceAnswer,
  InferenceFailed,
  type InferenceRequest,
  isRetryable,
} from "../../model/infer/inference.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Backend, BackendAnswer } from "./backend.ts";
import { Circuit, type CircuitPass } from "./circuit_breaker.ts";
import { Gemini } from "./gemini.ts";
import { Base64 } from "./json_body.ts";
import { LatencyAlarm } from "./latency_alarm.ts";
import { OpenaiCompat } from "./openai_compat.ts";
import type { Outbound } from "../guard/outbound.ts";
import { PinnedAgent } from "../guard/pinned_agent.ts";

export interface ProvidersOptions {
  readonly backends: readonly BackendSettings[];
  readonly world: World;
  /** A backend lies wherever the operator says, so its address is not guarded; its certificate is verified. */
  readonly outbound: Pick<Outbound, "resolve" | "reroute"> & { readonly roots: readonly string[] };
}

interface Candidate {
  readonly backend: Backend;
  readonly circuit: Circuit;
}

export class Providers implements AsyncDisposable {
  /** Whether there is any backend at all. */
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
    const rows = backends.map((settings) => {
      const context = { world, agent: agent!, ...(resolve && { resolve }) };
      const backend = settings.type === "gemini"
        ? new Gemini(settings, context)
        : new OpenaiCompat(settings, context);
      return { settings, candidate: { backend, circuit: new Circuit() } };
    });
    this.#candidates = rows.map(({ candidate }) => candidate);
    this.#byModel = new Map(CATALOG.map(({ id }) => [id, servingModel(id, rows)]));
  }

  /**
   * The answer of the first backend that gives one. The deadline is one for all attempts, and each has what is left of
   * it. Errors: `InferenceFailed` of the last attempt, or the reason of `signal`.
   */
  async infer(
    request: InferenceRequest,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<InferenceAnswer> {
    const serving = this.#serving(request.model);
    const allowed = request.allowFallback ? serving : serving.slice(0, 1);
    const startedMs = this.#world.monotonicMs();
    // With nobody better to ask, one that has failed is still worth a try.
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
          inferenceLatencyMs: Math.round(this.#world.monotonicMs() - startedMs),
        };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof InferenceFailed && isRetryable(error))) throw error;
        failure = error;
      }
    }
    throw failure!; // at least one was asked
  }

  /** What admission must set aside: output tokens, and bytes of media as base64 pictures or as clips are. */
  reservation(request: InferenceRequest): { tokens: number; bytes: number } {
    const [first] = this.#byModel.get(request.model) ?? [];
    const imageBytes = request.images.reduce((bytes, jpeg) => bytes + Base64.lengthOf(jpeg), 0);
    return {
      tokens: first?.backend.reservedTokens(request) ?? request.maxTokens,
      bytes: imageBytes + (request.video?.bytes.length ?? 0),
    };
  }

  /** Errors: `InferenceFailed`, `no_provider` or `unsupported_model`, unless a backend serves `model`, up or down. */
  requireServed(model: string): void {
    this.#serving(model);
  }

  /** Whether the backend that would serve `model` takes a clip as a file of its own. */
  hasBinaryMedia(model: string): boolean {
    return this.#byModel.get(model)?.[0]?.backend.hasBinaryMedia ?? false;
  }

  /** Every model, by what each backend says now. Errors: the reason of `signal`. */
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

  /** Waits for the little that is done after answers, then closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#candidates.map(({ backend }) => backend.close()));
    this.#agent?.[Symbol.dispose]();
  }

  #serving(model: string): readonly Candidate[] {
    const serving = this.#byModel.get(model) ?? [];
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
    const pass = circuit.enter(startedMs);
    try {
      const answer = await backend.ask(request, { timeoutMs, signal });
      this.#settle(candidate, () => pass.succeeded());
      this.#record(backend, startedMs);
      return answer;
    } catch (error) {
      if (error instanceof InferenceFailed && !signal.aborted) {
        this.#settle(candidate, (nowMs) => judge(error, pass, { nowMs, timeoutMs }), error);
        if (error.failure !== "transport") this.#record(backend, startedMs, error);
      }
      throw error;
    } finally {
      pass.released();
    }
  }

  /** Tells the operator when a backend is left alone and when it is back, which a fallback hides from callers. */
  #settle({ backend, circuit }: Candidate, settle: (nowMs: number) => void, error?: InferenceFailed): void {
    const nowMs = this.#world.monotonicMs();
    const wasOpen = circuit.isOpen(nowMs);
    settle(nowMs);
    const isOpen = circuit.isOpen(nowMs);
    if (isOpen && !wasOpen) this.#log.warn(`left alone for now: ${error?.message}`);
    if (!isOpen && wasOpen) this.#log.info(`backend ${backend.name} answers again`);
  }

  /** Nobody knows how long a call would have taken that was given up before the alarm's limit. */
  #record({ kind }: Backend, startedMs: number, error?: InferenceFailed): void {
    const nowMs = this.#world.monotonicMs();
    const latencyMs = nowMs - startedMs;
    if (error?.failure === "deadline_missed" && latencyMs <= LIMITS.backend.alarmLatencyMs) return;
    this.#alarm.record(kind, latencyMs, nowMs);
  }
}

/** As many calls as the admission lets through at once by default, and some. */
const FREE_SOCKETS_MAX = 16;
/** Whoever gives a model less time than this must not be surprised, and learns nothing of the backend. */
const FAIR_TIMEOUT_MS = 1_000;

/** What a failure says of the backend: that it is down, that it works, or nothing. */
function judge(
  error: InferenceFailed,
  pass: CircuitPass,
  { nowMs, timeoutMs }: { readonly nowMs: number; readonly timeoutMs: number },
): void {
  const isLate = error.failure === "deadline_missed";
  if (isRetryable(error) || error.isQuotaSpent) pass.failed(nowMs, error.isQuotaSpent);
  else if (isLate && timeoutMs >= FAIR_TIMEOUT_MS) pass.failed(nowMs, false);
  else if (!isLate) pass.succeeded();
}

interface Row {
  readonly settings: BackendSettings;
  readonly candidate: Candidate;
}

/** Contract 7.2: a gemini backend has its model for itself; the others serve one model or all, by priority. */
function servingModel(model: string, rows: readonly Row[]): readonly Candidate[] {
  const byPriority = rows.toSorted((one, other) => one.settings.priority - other.settings.priority);
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
