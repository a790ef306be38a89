/** The live sessions of the process: which are open, which have ended lately, and how many more may start. */

import { SharedBudget } from "../../sharing/fair_share.ts";
import { Refusal, refuse } from "../../contract/refusal.ts";
import { NEVER_ABORTED } from "../../base/wait.ts";
import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Caller } from "../caller.ts";
import type { OpenSessions, PromptableSession } from "../policies/open_sessions.ts";
import type { RunWork, RunWorkHandle } from "../runs/run_work.ts";
import type { LiveSession } from "./session.ts";

export interface LiveRegistryOptions {
  readonly work: RunWork;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
  readonly metrics: Metrics;
  readonly world: World;
}

/** A session of another principal, for a caller who is told that it is there. */
export class ForeignSession extends Refusal {
  constructor() {
    super("not_found", "the session belongs to another principal");
  }
}

/** A session that has ended; ending it again succeeds as long as it is remembered. */
interface EndedSession {
  readonly principalKey: string;
  readonly untilMs: number;
}

export class LiveRegistry implements OpenSessions {
  readonly #options: LiveRegistryOptions;
  readonly #sessions = new Map<string, LiveSession>();
  /** For each session the handle that ends it together with its run. */
  readonly #work = new Map<string, RunWorkHandle>();
  /** In the order in which they ended. */
  readonly #ended = new Map<string, EndedSession>();
  readonly #closing = new AbortController();
  readonly #slots: SharedBudget;
  #generations = 0;

  constructor(options: LiveRegistryOptions) {
    this.#options = options;
    this.#slots = new SharedBudget({ limit: LIMITS.whip.sessionsMax, isShared: options.isShared });
    const { metrics, world } = options;
    metrics.observeValue("service_pipeline_generations_active", () => this.#sessions.size);
    metrics.observeValue(
      "service_live_view_viewers",
      () => this.#sessions.values().reduce((sum, { view }) => sum + view.viewers, 0),
    );
    const sources = (isLost: boolean) => () =>
      this.#pulledSources().filter(({ gap }) => (gap !== null) === isLost).length;
    metrics.observeValue("service_pipeline_pulled_sources", { state: "receiving" }, sources(false));
    metrics.observeValue("service_pipeline_pulled_sources", { state: "lost" }, sources(true));
    metrics.observeValue("service_pipeline_pulled_source_lost_seconds", () => {
      const nowMs = world.now();
      return Math.max(0, ...this.#pulledSources().map(({ gap }) => nowMs - (gap?.sinceMs ?? nowMs))) / 1000;
    });
  }

  /** Aborts when the service closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * A new number, process-wide from 1. Each request for a session takes one, even a request that is refused.
   */
  nextGeneration(): number {
    return ++this.#generations;
  }

  /**
   * Refuses (`provider_saturated`) where all slots or the principal's share of them are taken, or the service
   * is closing.
   */
  takeSlot(principalKey: string): Disposable {
    if (this.#closing.signal.aborted) throw saturated("the service is closing");
    const fault = this.#slots.faultOf(principalKey, 1);
    if (fault === "exhausted") {
      throw saturated(`the limit of ${this.#slots.limit} live sessions is reached`);
    }
    if (fault !== null) {
      throw saturated("the live sessions that are left are kept for other callers");
    }
    return this.#slots.take(principalKey, 1);
  }

  /** A random id. Refuses where it collides with the id of a known session. */
  newSessionId(): string {
    const sessionId = `sess-${this.#options.world.randomBytes(8).toHex()}`;
    if (this.#sessions.has(sessionId) || this.#ended.has(sessionId)) {
      throw saturated("no session id could be found");
    }
    return sessionId;
  }

  /** From here on the session is found, and it ends with its run. */
  add(session: LiveSession): void {
    const { runId, sessionId } = session;
    this.#sessions.set(sessionId, session);
    const work = this.#options.work.begin(runId, NEVER_ABORTED);
    this.#work.set(sessionId, work);
    work.signal.addEventListener("abort", () => void session.ending.endWithRun(), { once: true });
  }

  /** The session has another run from here on, with which it ends. */
  rolledOver(session: LiveSession): void {
    this.#work.get(session.sessionId)?.[Symbol.dispose]();
    this.add(session);
  }

  /** Called when the session has ended and its Worker has released it. */
  remove({ identity: { sessionId, principalKey } }: LiveSession): void {
    if (!this.#sessions.delete(sessionId)) return;
    this.#work.get(sessionId)?.[Symbol.dispose]();
    this.#work.delete(sessionId);
    this.#forgetOld();
    const untilMs = this.#options.world.now() + LIMITS.whip.rememberedSessionsMs;
    this.#ended.set(sessionId, { principalKey, untilMs });
  }

  find(runId: string): PromptableSession | null {
    const session = this.ofRun(runId);
    return session?.ending.hasBegun ? null : session;
  }

  /** The session of the run, even one that is ending. */
  ofRun(runId: string): LiveSession | null {
    return this.#sessions.values().find((session) => session.runId === runId) ?? null;
  }

  /** The sessions of a principal, the oldest first. */
  ofPrincipal(principalKey: string): LiveSession[] {
    return [...this.#sessions.values().filter(({ identity }) => identity.principalKey === principalKey)];
  }

  /** Sessions whose Worker has not released them in time. */
  get detached(): number {
    return this.#sessions.values().filter(({ ending }) => ending.isDetached).reduce((count) => count + 1, 0);
  }

  /**
   * The caller's session; null for one that has ended and is still remembered. Errors: `not_found` for an
   * unknown session and for one of another principal alike; {@link ForeignSession} for the latter with
   * `tellsForeign`.
   */
  session(
    { principalKey }: Pick<Caller, "principalKey">,
    sessionId: string,
    { tellsForeign = false } = {},
  ): LiveSession | null {
    this.#forgetOld();
    const session = this.#sessions.get(sessionId);
    const owner = session?.identity.principalKey ?? this.#ended.get(sessionId)?.principalKey;
    if (owner === principalKey) return session ?? null;
    if (owner !== undefined && tellsForeign) {
      throw new ForeignSession();
    }
    throw refuse.because("not_found", "no such session");
  }

  /** Ends every session; resolves when their last events are written. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(Array.from(this.#sessions.values(), (session) => session.ending.endForShutdown()));
  }

  #pulledSources(): LiveSession[] {
    return [...this.#sessions.values()].filter(({ identity }) => identity.source === "live");
  }

  #forgetOld(): void {
    const nowMs = this.#options.world.now();
    for (const [sessionId, { untilMs }] of this.#ended) {
      if (untilMs > nowMs && this.#ended.size < LIMITS.whip.rememberedSessionsMax) return;
      this.#ended.delete(sessionId);
    }
  }
}

/** There is no place for a live session now. */
export function saturated(why: string): Refusal {
  return refuse.because("provider_saturated", why);
}
