/** All model backends of the service: which of them are asked for a model, in which order, and which are
 * skipped.
 */

import type { IdentifyModel } from "../../model/field_rules.ts";
import { utf8Length } from "../../base/bytes.ts";
import type { Log } from "../../base/log.ts";
import { inSpan } from "../../base/tracing.ts";
import type { World } from "../../base/world.ts";
import type { BackendSettings } from "../../model/infer/backend_file.ts";
import {
  asciiLowerCase,
  canonicalModel,
  CATALOG,
  catalogEntries,
  type CatalogEntry,
} from "../../model/infer/catalog.ts";
import {
  type InferenceAnswer,
  InferenceFailed,
  type InferenceRequest,
  isBusy,
  isRetryable,
  type ProviderKind,
} from "../../model/infer/inference.ts";
import { spokenText } from "../../model/infer/spoken_text.ts";
import { answersQuestions, unknownModelText } from "../../model/infer/model_list.ts";
import { LIMITS } from "../../contract/limits.ts";
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
  /**
   * The operator names the backends, so their addresses are not restricted; their certificates are verified.
   */
  readonly outbound: TrustedOutbound;
}

/** A backend, as an operator sees it. */
export interface BackendLook {
  readonly name: string;
  readonly kind: ProviderKind;
  /** The one model that it serves; null for every model. */
  readonly model: string | null;
  readonly circuit: CircuitLook["state"];
  /** When an open circuit lets a call through again, epoch milliseconds; else null. */
  readonly probeMs: number | null;
  /**
   * Why the backend could not be asked for its models just now; null where it could, and where it has not
   * been asked.
   */
  readonly fault: string | null;
  /** The models of the backend's server, as it said last; null where it does not say. */
  readonly models: readonly string[] | null;
  /** Whether too many of the last calls of its kind were slow. */
  readonly isSlow: boolean;
}

/** A model that none of its servers knows. */
export interface UnknownModel {
  readonly model: string;
  /** What the servers have. */
  readonly has: readonly string[];
}

interface Candidate {
  readonly settings: BackendSettings;
  readonly backend: Backend;
  readonly circuit: CircuitBreaker;
}

/** All backends. See docs/models.md#backends. */
export class Providers implements AsyncDisposable {
  /** Whether any backend is configured. */
  readonly isConfigured: boolean;
  readonly #world: World;
  readonly #agent: PinnedAgent | null;
  readonly #candidates: readonly Candidate[];
  /** When a question was refused last because of a model that its server does not know. */
  readonly #refusedMs = new Map<string, number>();
  readonly #alarm = new LatencyAlarm();
  readonly #log: Log;
  readonly #logged = new Set<string>();
  /** What each backend said that refused its last call. */
  readonly #refusals = new Map<Candidate, string>();

  constructor({ backends, world, outbound }: ProvidersOptions) {
    const { roots, reroute, resolve } = outbound;
    this.isConfigured = backends.length > 0;
    this.#world = world;
    this.#log = world.log.child("providers");
    const agent = this.isConfigured
      ? new PinnedAgent({ roots, freeSocketsMax: FREE_SOCKETS_MAX, ...(reroute && { reroute }) })
      : null;
    this.#agent = agent;
    this.#candidates = backends.map((settings) => {
      const context = { world, agent: agent!, ...(resolve && { resolve }) };
      const backend = settings.type === "gemini"
        ? new Gemini(settings, context)
        : new OpenaiCompat(settings, context);
      return { settings, backend, circuit: new CircuitBreaker() };
    });
  }

  /**
   * The answer of the first backend that gives one. All attempts share one deadline: each has the time that
   * is left. Errors: `InferenceFailed` of the last attempt, or the reason of `signal`. See
   * docs/models.md#infer.
   */
  async infer(
    asked: InferenceRequest,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<InferenceAnswer> {
    const request = { ...asked, model: this.#named(asked.model) };
    const serving = this.#required(request.model);
    const allowed = request.allowFallback ? serving : serving.slice(0, 1);
    const startedMs = this.#world.monotonicMs();
    const endMs = startedMs + timeoutMs;
    for (let round = 0;; round++) {
      const { by, answer, failure } = await this.#round(allowed, request, endMs, signal);
      if (answer) {
        return {
          provider: by.backend.kind,
          model: request.model,
          fallbackUsed: by !== serving[0],
          ...answer,
          outputText: spokenText(answer.outputText),
          inferenceLatencyMs: Math.round(this.#world.monotonicMs() - startedMs),
        };
      }
      const pauseMs = pauseBefore(round, failure);
      if (pauseMs === null || this.#world.monotonicMs() + pauseMs >= endMs) throw failure;
      await this.#world.sleep(pauseMs, signal);
    }
  }

  /** Asks each backend once, until one answers. */
  async #round(
    allowed: readonly Candidate[],
    request: InferenceRequest,
    endMs: number,
    signal: AbortSignal,
  ): Promise<Round> {
    // If every circuit breaker is open, the backends are asked all the same.
    const startedMs = this.#world.monotonicMs();
    const isForced = allowed.every(({ circuit }) => circuit.isOpen(startedMs));
    let failure: InferenceFailed | undefined;
    for (const by of allowed) {
      const nowMs = this.#world.monotonicMs();
      const leftMs = endMs - nowMs;
      if (failure && leftMs <= 0) break;
      if (!isForced && by.circuit.isOpen(nowMs)) continue;
      try {
        const answer = await this.#attemptAsSpelled(by, request, leftMs, signal);
        this.#refusedMs.delete(request.model);
        return { by, answer };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof InferenceFailed)) throw error;
        failure = this.#explained(error, by, request.model);
        this.#logRefusal(by, failure);
        if (!isRetryable(failure) && failure.failure !== "unsupported_model") throw failure;
      }
    }
    return { failure: failure! }; // at least one backend was asked
  }

  /**
   * What admission must reserve: output tokens, and bytes of media, for pictures in base64. See
   * docs/models.md#admission.
   */
  reservation(request: InferenceRequest): { tokens: number; bytes: number } {
    const [first] = this.#serving(this.#named(request.model));
    const imageBytes = request.images.reduce((bytes, jpeg) => bytes + Base64.lengthOf(jpeg), 0);
    return {
      tokens: first?.backend.reservedTokens(request) ?? request.maxTokens,
      bytes: imageBytes + (request.video?.bytes.length ?? 0),
    };
  }

  /** The ids that a backend serves as far as is known: those of the catalog in its order, then the others. */
  get served(): readonly string[] {
    const catalog = CATALOG.map(({ id }) => id).filter((id) => this.#serving(id).length > 0);
    return [...catalog, ...this.#others];
  }

  /** Whether a backend serves `model` as far as is known. */
  serves(model: string): boolean {
    return this.#serving(this.#named(model)).length > 0;
  }

  /**
   * Throws `InferenceFailed` (`no_provider`, `unsupported_model`) unless a backend serves `model` as far as
   * is known.
   */
  requireServed(model: string): void {
    this.#required(this.#named(model));
  }

  /**
   * Gives what knows the ids that callers mean: those of the catalog, of the configuration, or of a server's
   * list. Where only a list can tell of one of `models`, servers whose lists are old are asked first. Errors:
   * the reason of `signal`.
   */
  async identify(models: readonly string[], signal: AbortSignal): Promise<IdentifyModel> {
    const isUnknown = (model: string) =>
      this.#identified(model) === undefined && utf8Length(model) <= LIMITS.name.bytesMax;
    if (models.some(isUnknown)) await this.renew(signal);
    return (model) => this.#identified(model);
  }

  /**
   * Asks the servers for their models whose lists are older than a minute. Errors: the reason of `signal`.
   */
  async renew(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#candidates.map(({ backend }) => backend.models.renew(signal)));
  }

  /** Whether the backend that would serve `model` takes a clip as a file of its own. */
  hasBinaryMedia(model: string): boolean {
    return this.#serving(this.#named(model))[0]?.backend.hasBinaryMedia ?? false;
  }

  /**
   * Every model, with the backends that have it and are reachable now. Errors: the reason of `signal`. See
   * docs/models.md#catalog.
   */
  async catalog(signal: AbortSignal): Promise<CatalogEntry[]> {
    await Promise.all(this.#candidates.map(({ backend }) => backend.models.refresh(signal)));
    return catalogEntries({
      others: this.#others,
      reachable: (model) =>
        new Set(
          this.#serving(model)
            .filter((one) => one.backend.models.last?.fault === null && hasModel(one, model) !== false)
            .map((one) => one.backend.kind),
        ),
      alarmed: this.#alarm.alarmed(this.#world.monotonicMs()),
    });
  }

  /**
   * Says what the servers have instead of `model`, where none has it: all that would serve it say that they
   * do not have it, or none serves it. Null where a server may have it, and where no server says what it has.
   */
  unknown(model: string): UnknownModel | null {
    const id = this.#named(model);
    const serving = this.#serving(id);
    if (serving.some((one) => hasModel(one, id) !== false)) return null;
    const has = uniqueIds(serving.length > 0 ? serving : this.#candidates);
    return has.length > 0 ? { model: id, has } : null;
  }

  /** Whether a server has the model; null where none says so, and one may have it. */
  knows(model: string): boolean | null {
    const id = this.#named(model);
    if (this.#serving(id).some((one) => hasModel(one, id) === true)) return true;
    return this.unknown(id) === null ? null : false;
  }

  /** Models of which a question was refused within `withinMs`, as their servers do not know them. */
  refused(withinMs: number): readonly UnknownModel[] {
    const nowMs = this.#world.monotonicMs();
    return [...this.#refusedMs].filter(([, atMs]) => nowMs - atMs < withinMs)
      .flatMap(([model]) => this.unknown(model) ?? []);
  }

  /**
   * The model for a question whose caller names none: `usual`, unless the servers say that none of them has
   * it. Then the only model of the catalog that they have, or the only model at all. See
   * docs/models.md#no-model-named.
   */
  choose(usual: string): string {
    if (this.unknown(usual) === null) return usual;
    const ids = this.#candidates.flatMap(offeredBy).filter(answersQuestions);
    const ofCatalog = new Set(ids.flatMap((id) => canonicalModel(id) ?? []));
    const all = new Set(ids.map((id) => canonicalModel(id) ?? id));
    const [only] = ofCatalog.size === 1 ? ofCatalog : all.size === 1 ? all : [];
    return only ?? usual;
  }

  /** The backends in the order of the configuration, and whether they are skipped now. Asks none of them. */
  look(): BackendLook[] {
    const nowMs = this.#world.monotonicMs();
    const alarmed = this.#alarm.alarmed(nowMs);
    return this.#candidates.map((candidate) => {
      const { settings: { model }, backend: { name, kind, models }, circuit } = candidate;
      const { state, untilMs } = circuit.look(nowMs);
      const probeMs = state === "open" ? Math.round(this.#world.now() + untilMs - nowMs) : null;
      return {
        ...{ name, kind, model, circuit: state, probeMs },
        fault: models.last?.fault ?? this.#refusals.get(candidate) ?? null,
        models: models.list?.ids ?? null,
        isSlow: alarmed.has(kind),
      };
    });
  }

  /** Waits for requests that follow answers, such as the deletion of clips, then closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#candidates.map(({ backend }) => backend.close()));
    this.#agent?.[Symbol.dispose]();
  }

  /** Ids beside the catalog: those of the configuration and of the lists, in the order of the backends. */
  get #others(): readonly string[] {
    const offered = this.#candidates.flatMap(offeredBy);
    return [...new Set(offered)].filter((id) => canonicalModel(id) === undefined);
  }

  #identified(model: string): string | undefined {
    const id = canonicalModel(model);
    if (id !== undefined) return id;
    const others = this.#others;
    if (others.includes(model)) return model;
    const wanted = asciiLowerCase(model);
    return others.find((other) => asciiLowerCase(other) === wanted) ??
      others.find((other) => asciiLowerCase(other) === `${wanted}:latest`);
  }

  /**
   * The id of a model in events, for an alias or another case. Every path to a model goes through here. An id
   * that nobody knows stays as it is, and no backend serves it.
   */
  #named(model: string): string {
    return this.#identified(model) ?? model;
  }

  #serving(model: string): readonly Candidate[] {
    return servingModel(model, this.#candidates);
  }

  #required(model: string): readonly Candidate[] {
    if (!this.isConfigured) throw new InferenceFailed("no_provider", "no model backend is configured");
    const serving = this.#serving(model);
    if (serving.length === 0) {
      const unknown = this.unknown(model);
      const told = unknown && unknownModelText(unknown.model, unknown.has);
      throw new InferenceFailed("unsupported_model", told ?? "no configured backend serves this model", {
        told,
      });
    }
    return serving;
  }

  /**
   * Asks a backend. A server that refuses the model, and whose list has it in another spelling, is asked once
   * more with that one.
   */
  async #attemptAsSpelled(
    candidate: Candidate,
    request: InferenceRequest,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<BackendAnswer> {
    const { models } = candidate.backend;
    const endMs = this.#world.monotonicMs() + timeoutMs;
    const name = nameAt(candidate, request.model);
    const asked = models.spelling(name);
    try {
      return await this.#attempt(candidate, request, timeoutMs, signal);
    } catch (error) {
      if (!isOfUnknownModel(error)) throw error;
      models.refused(name);
      await models.renew(signal);
      if (models.spelling(name) === asked) throw error;
      return await this.#attempt(candidate, request, endMs - this.#world.monotonicMs(), signal);
    }
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
      backend.models.answered(nameAt(candidate, request.model));
      this.#refusals.delete(candidate);
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
   * The error to tell of a refusal: a server that says that it does not have the model gives
   * `unsupported_model`, with what it has.
   */
  #explained(error: InferenceFailed, candidate: Candidate, model: string): InferenceFailed {
    if (!isOfUnknownModel(error) || hasModel(candidate, model) !== false) return error;
    const { name, kind } = candidate.backend;
    const text = unknownModelText(nameAt(candidate, model), idsOf(candidate));
    if (!this.#refusedMs.has(model)) this.#log.warn(`backend ${name}: ${text}`);
    if (this.#refusedMs.size >= LIMITS.backend.modelsMax) this.#refusedMs.clear();
    this.#refusedMs.set(model, this.#world.monotonicMs());
    return new InferenceFailed("unsupported_model", text, {
      ...{ status: error.status, provider: kind, told: text },
    });
  }

  /**
   * Logs when a backend is skipped from now on, and when it is used again, because a fallback hides that from
   * callers.
   */
  #report({ backend, circuit }: Candidate, report: (nowMs: number) => void, error?: InferenceFailed): void {
    const nowMs = this.#world.monotonicMs();
    const wasOpen = circuit.isOpen(nowMs);
    report(nowMs);
    const isOpen = circuit.isOpen(nowMs);
    if (isOpen && !wasOpen) this.#log.warn(`skipped for now: ${error?.message}`);
    if (!isOpen && wasOpen) this.#log.info(`backend ${backend.name} answers again`);
  }

  /**
   * Logs the words of a server once for each reason; the last ones are for its operator until it answers
   * again.
   */
  #logRefusal(candidate: Candidate, error: InferenceFailed): void {
    if (error.failure !== "http_status") return;
    if (!isBusy(error)) this.#refusals.set(candidate, error.message);
    if (this.#logged.has(error.message)) return;
    if (this.#logged.size >= MESSAGES_MAX) this.#logged.clear();
    this.#logged.add(error.message);
    this.#log.warn(error.message);
  }

  /**
   * Records the time of a call. One that missed its deadline before the alarm's limit is left out: its real
   * latency is unknown.
   */
  #record({ kind }: Backend, startedMs: number, error?: InferenceFailed): void {
    const nowMs = this.#world.monotonicMs();
    const latencyMs = nowMs - startedMs;
    if (error?.failure === "deadline_missed" && latencyMs <= LIMITS.backend.alarmLatencyMs) return;
    this.#alarm.record(kind, latencyMs, nowMs);
  }
}

type Round =
  | { readonly by: Candidate; readonly answer: BackendAnswer; readonly failure?: undefined }
  | { readonly failure: InferenceFailed; readonly answer?: undefined; readonly by?: undefined };

/** The waits for a backend that is busy and does not say for how long. */
const PAUSES_MS = [250, 1_000, 2_000];

/** How long to wait for a backend that is busy before all are asked again; null where that would not help. */
function pauseBefore(round: number, failure: InferenceFailed): number | null {
  if (!isBusy(failure)) return null;
  const askedMs = failure.retryAfterMs;
  return askedMs === null ? PAUSES_MS[round] ?? null : Math.max(askedMs, PAUSES_MS[0]!);
}

/** Messages that are remembered, so that each is logged once. */
const MESSAGES_MAX = 256;

/** Connections that are kept open: somewhat more than the calls that admission allows at once by default. */
const FREE_SOCKETS_MAX = 16;
/** The shortest fair timeout: a call with a shorter one that misses it is no failure of the backend. */
const FAIR_TIMEOUT_MS = 1_000;

/**
 * Reports to the circuit breaker whether the failure means that the backend is down, that it works, or
 * neither.
 */
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

/**
 * The backends for `model`, in the order in which they are asked. A model with a gemini backend is served by
 * that backend alone; the others serve one model, or all of the catalog and of their server, by priority.
 * Backends that say that they do not have it come last. See docs/models.md#backends.
 */
function servingModel(model: string, candidates: readonly Candidate[]): readonly Candidate[] {
  const byPriority = candidates.toSorted((one, other) => one.settings.priority - other.settings.priority);
  const own = byPriority
    .filter(({ settings }) => settings.type === "gemini" && settings.model === model)
    .toSorted((one, other) =>
      one.settings.priority - other.settings.priority || (one.settings.name < other.settings.name ? -1 : 1)
    );
  if (own.length > 0) return [own[0]!];
  const isOfCatalog = canonicalModel(model) !== undefined;
  return byPriority
    .filter(({ settings, backend }) =>
      settings.type === "openai_compat" &&
      (settings.model === null ? isOfCatalog || backend.models.has(model) === true : settings.model === model)
    )
    .map((candidate) => ({ candidate, isLast: hasModel(candidate, model) === false }))
    .toSorted((one, other) => Number(one.isLast) - Number(other.isLast))
    .map(({ candidate }) => candidate);
}

/** What the backend calls the model. */
function nameAt({ settings }: Candidate, model: string): string {
  return settings.type === "openai_compat" ? settings.upstreamModel ?? model : model;
}

/** Whether the backend has the model; null where it does not say. */
function hasModel(candidate: Candidate, model: string): boolean | null {
  return candidate.backend.models.has(nameAt(candidate, model));
}

/** What the backend says that it has. */
function idsOf({ backend }: Candidate): readonly string[] {
  return backend.models.list?.ids ?? [];
}

/** What callers may name of the backend: its one model, or what it says that it has. */
function offeredBy(candidate: Candidate): readonly string[] {
  return candidate.settings.model === null ? idsOf(candidate) : [candidate.settings.model];
}

function uniqueIds(candidates: readonly Candidate[]): readonly string[] {
  return [...new Set(candidates.flatMap(idsOf))];
}

/**
 * Statuses with which servers answer a question to a model that they do not know; each may mean another fault
 * as well.
 */
const OF_UNKNOWN_MODELS: readonly number[] = [400, 404, 422];

function isOfUnknownModel(error: unknown): error is InferenceFailed {
  return error instanceof InferenceFailed && error.status !== null &&
    OF_UNKNOWN_MODELS.includes(error.status);
}
