/** Keeps a pulled live source coming: asks for it again when it gives no more, and says so on the timeline. */

import type { World } from "../../base/world.ts";
import type { SessionOrder } from "../../live/worker_pool.ts";
import type { MediaInput } from "../../media/input.ts";
import type { MediaInfo } from "../../media/probe.ts";
import { event } from "../../model/events/event_table.ts";
import type { LiveJournal, SessionIdentity } from "./journal.ts";

/** Waits before a source is asked again: doubled each time in vain. */
const WAIT_FIRST_MS = 1_000;
const WAIT_LONGEST_MS = 30_000;

/** A source that gave something to look at. Disposing it closes the way to it. */
export interface FoundSource extends AsyncDisposable {
  readonly input: MediaInput;
  readonly info: MediaInfo;
}

/** Opens the source and looks into it; rejects with why not. The way to it is closed with `signal` at the latest. */
export type FindSource = (signal: AbortSignal) => Promise<FoundSource>;

/** The session that is fed. */
export interface PulledSession {
  readonly identity: SessionIdentity;
  readonly timeline: LiveJournal;
  readonly world: World;
  readonly send: (order: Omit<Extract<SessionOrder, { kind: "pull" }>, "settings">) => void;
}

/** From when on nothing came, and how often the source was asked since. */
interface Gap {
  readonly sinceMs: number;
  attempts: number;
}

export class Reconnector implements AsyncDisposable {
  /** What the session begins with. */
  readonly first: Pick<FoundSource, "input" | "info">;
  readonly #find: FindSource;
  readonly #life: AbortController;
  #current: FoundSource | null;
  #gap: Gap | null = null;
  /** Resolved by each report of a gap: another attempt is due. */
  #due = Promise.withResolvers<void>();

  private constructor(find: FindSource, life: AbortController, first: FoundSource) {
    this.#find = find;
    this.#life = life;
    this.#current = first;
    this.first = first;
  }

  /** Finds the source for the first time; `signal` ends only that. Rejects like `find`. */
  static async open(find: FindSource, signal: AbortSignal): Promise<Reconnector> {
    const life = new AbortController();
    const giveUp = () => life.abort(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      return new Reconnector(find, life, await find(life.signal));
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** The Worker has no input any more. */
  lost({ timeline, world, identity: { runId, sessionId } }: PulledSession, gap: {
    readonly reason: string;
    readonly lastPtsMs: number | null;
  }): void {
    if (!this.#gap) {
      this.#gap = { sinceMs: world.monotonicMs(), attempts: 0 };
      const { reason, lastPtsMs: pts_ms } = gap;
      timeline.append([event("source_gap", runId, { session_id: sessionId, reason, pts_ms })]);
    }
    this.#due.resolve();
  }

  resumed({ timeline, world, identity: { runId, sessionId } }: PulledSession): void {
    if (!this.#gap) return;
    const { sinceMs, attempts } = this.#gap;
    this.#gap = null;
    timeline.append([
      event("source_resumed", runId, {
        session_id: sessionId,
        gap_ms: Math.round(world.monotonicMs() - sinceMs),
        attempts: Math.max(1, attempts),
      }),
    ]);
  }

  /** Runs until the signal aborts, and rejects with its reason. */
  async keep({ world, send }: PulledSession, signal: AbortSignal): Promise<never> {
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => aborted.reject(signal.reason), { once: true });
    while (true) {
      signal.throwIfAborted();
      await Promise.race([this.#due.promise, aborted.promise]);
      this.#due = Promise.withResolvers<void>();
      await this.#letGo();
      while (this.#gap && !this.#current) {
        const waitMs = Math.min(WAIT_LONGEST_MS, WAIT_FIRST_MS * 2 ** Math.min(10, this.#gap.attempts));
        await world.sleep(waitMs, signal);
        this.#gap.attempts++;
        this.#current = await this.#find(AbortSignal.any([this.#life.signal, signal])).catch(() => null);
        if (this.#current) send({ kind: "pull", input: this.#current.input, info: this.#current.info });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#letGo();
    this.#life.abort();
  }

  async #letGo(): Promise<void> {
    const source = this.#current;
    this.#current = null;
    await source?.[Symbol.asyncDispose]();
  }
}
