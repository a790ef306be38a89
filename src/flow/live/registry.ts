/** The live sessions of the process: who is there, who was there, and how many more may come. Contract 11.1. */

import { NEVER_ABORTED } from "../../base/wait.ts";
import type { Metrics } from "../../base/metrics.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Caller } from "../caller.ts";
import type { LiveSession } from "./session.ts";
import { LiveRefused } from "./refused.ts";
import type { OpenSessions, PromptableSession } from "./session_commands.ts";
import type { RunWork, RunWorkHandle } from "../runs/run_work.ts";

export interface LiveRegistryOptions {
  readonly work: RunWork;
  readonly metrics: Metrics;
  readonly world: World;
}

/** A session that is over; whoever ends it again is told that all is well. */
interface Remembered {
  readonly principalKey: string;
  readonly untilMs: number;
}

export class LiveRegistry implements OpenSessions {
  readonly #options: LiveRegistryOptions;
  readonly #sessions = new Map<string, LiveSession>();
  /** What ends each of them with its run. */
  readonly #work = new Map<string, RunWorkHandle>();
  /** In the order in which they ended. */
  readonly #remembered = new Map<string, Remembered>();
  readonly #closing = new AbortController();
  #slotsTaken = 0;
  #generations = 0;

  constructor(options: LiveRegistryOptions) {
    this.#options = options;
    options.metrics.read("service_pipeline_generations_active", () => this.#sessions.size);
  }

  /** Aborts when the service closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Contract 10: process-wide from 1, one for each session that somebody asks for, whatever becomes of it. */
  nextGeneration(): number {
    return ++this.#generations;
  }

  /** Throws LiveRefused (503) where all slots are taken, or the service is closing. */
  takeSlot(): Disposable {
    if (this.#closing.signal.aborted) throw new LiveRefused(503, "the service is closing");
    if (this.#slotsTaken >= LIMITS.whip.sessionsMax) {
      throw new LiveRefused(503, `the limit of ${LIMITS.whip.sessionsMax} live sessions is reached`);
    }
    this.#slotsTaken++;
    return { [Symbol.dispose]: () => void this.#slotsTaken-- };
  }

  /** Contract 1.1. Throws LiveRefused (503) for one that is known already. */
  newSessionId(): string {
    const sessionId = `sess-${this.#options.world.randomBytes(8).toHex()}`;
    if (this.#sessions.has(sessionId) || this.#remembered.has(sessionId)) {
      throw new LiveRefused(503, "no session id could be found");
    }
    return sessionId;
  }

  /** From here on the session is found, and it ends with its run. */
  add(generation: LiveSession): void {
    const { runId, sessionId } = generation.identity;
    this.#sessions.set(sessionId, generation);
    const work = this.#options.work.begin(runId, NEVER_ABORTED);
    this.#work.set(sessionId, work);
    work.signal.addEventListener("abort", () => void generation.endWithRun(), { once: true });
  }

  /** The session is over. */
  remove({ identity: { sessionId, principalKey } }: LiveSession): void {
    if (!this.#sessions.delete(sessionId)) return;
    this.#work.get(sessionId)?.[Symbol.dispose]();
    this.#work.delete(sessionId);
    this.#forgetOld();
    const untilMs = this.#options.world.now() + LIMITS.whip.rememberedSessionsMs;
    this.#remembered.set(sessionId, { principalKey, untilMs });
  }

  find(runId: string): PromptableSession | null {
    const generation = this.ofRun(runId);
    return generation?.isEnding ? null : generation;
  }

  /** The session of the run, even one that is ending. */
  ofRun(runId: string): LiveSession | null {
    return this.#sessions.values().find(({ identity }) => identity.runId === runId) ?? null;
  }

  /**
   * The caller's session; null for one that is over, as long as it is remembered. Throws LiveRefused: 404 for one that
   * nobody knows, 403 for somebody else's.
   */
  session({ principalKey }: Pick<Caller, "principalKey">, sessionId: string): LiveSession | null {
    this.#forgetOld();
    const generation = this.#sessions.get(sessionId);
    const owner = generation?.identity.principalKey ?? this.#remembered.get(sessionId)?.principalKey;
    if (owner === undefined) throw new LiveRefused(404, "no such session");
    if (owner !== principalKey) throw new LiveRefused(403, "the session belongs to another principal");
    return generation ?? null;
  }

  /** Ends every session; resolves when their last events are written. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(Array.from(this.#sessions.values(), (generation) => generation.abandon()));
  }

  #forgetOld(): void {
    const nowMs = this.#options.world.now();
    for (const [sessionId, { untilMs }] of this.#remembered) {
      if (untilMs > nowMs && this.#remembered.size < LIMITS.whip.rememberedSessionsMax) return;
      this.#remembered.delete(sessionId);
    }
  }
}
