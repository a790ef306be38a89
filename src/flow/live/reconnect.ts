/** Reconnects a pulled live source (a camera or an HLS stream) after each gap; `source_resumed` reports that
 * it is back.
 */

import { Refusal } from "../../contract/refusal.ts";
import { unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { SourceLoss } from "../../live/messages/messages.ts";
import type { SessionOrder } from "../../live/worker_pool.ts";
import type { MediaInput } from "../../media/input.ts";
import type { MediaInfo } from "../../media/media_info.ts";
import { sessionEvent } from "../../model/events/event_table.ts";
import type { LiveJournal, SessionIdentity } from "./journal/journal.ts";

/** A source that was opened and probed. Disposing it closes the connection to it. */
export interface FoundSource extends AsyncDisposable {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  /** Why it gives no more media, where its connection knows it: ffmpeg sees the end alone. */
  lossReason(): string | undefined;
}

/** Opens and probes the source; rejects where it cannot. `signal` closes the connection at the latest. */
export type FindSource = (signal: AbortSignal) => Promise<FoundSource>;

/** The session that the source feeds. */
export interface ReconnectedSession {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly world: World;
  readonly send: (order: Omit<Extract<SessionOrder, { kind: "pull" }>, "settings">) => void;
}

/** Since when the session has had no input, and how many attempts to reconnect there were since. */
interface Gap {
  readonly sinceMs: number;
  /** How long no frame had come by then. */
  readonly silentMs: number;
  /** `sinceMs` as epoch milliseconds. */
  readonly sinceEpochMs: number;
  attempts: number;
  /** When the next attempt begins, epoch milliseconds; null while one is under way. */
  nextAttemptMs: number | null;
  /** Why it began, or why the last attempt failed. */
  reason: string;
}

/** A gap as those see it who watch the session; times are epoch milliseconds. */
export interface SourceGap {
  readonly sinceMs: number;
  readonly attempts: number;
  readonly nextAttemptMs: number | null;
  readonly reason: string;
}

/**
 * ```
 *   Worker: "gap" ─▶ source_gap ─▶ wait, `reconnectWaitMs` ─▶ find the source ─▶ found: "pull" to the Worker
 *                                   ▲                          │ failed
 *                                   └──────────────────────────┘
 *   Worker: "resumed", the first frame after the gap ─▶ source_resumed: the camera is back
 * ```
 * A Worker that reports another gap before its first frame continues the same gap: there is one `source_gap`
 * and one `source_resumed`. See docs/live.md#pulled-sources.
 */
export class Reconnector implements AsyncDisposable {
  /** The source as it was when the session started. */
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
    // Alone, as a Worker gets it.
    this.first = { input: first.input, info: first.info };
  }

  /** Finds the source for the first time; `signal` ends only this attempt. Rejects like `find`. */
  static async open(find: FindSource, signal: AbortSignal): Promise<Reconnector> {
    const life = new AbortController();
    const onAbort = () => life.abort(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return new Reconnector(find, life, await find(life.signal));
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Null while the source gives frames. */
  get gap(): SourceGap | null {
    if (!this.#gap) return null;
    const { sinceEpochMs: sinceMs, attempts, nextAttemptMs, reason } = this.#gap;
    return { sinceMs, attempts, nextAttemptMs, reason };
  }

  /** The Worker has lost its input. */
  onGap({ journal, world, identity: { sessionId } }: ReconnectedSession, report: SourceLoss): void {
    const reason = this.#current?.lossReason() ?? report.reason;
    if (this.#gap) this.#gap.reason = reason;
    else {
      const sinceEpochMs = world.now();
      const { lastPtsMs: pts_ms, silentMs } = report;
      const sinceMs = world.monotonicMs();
      this.#gap = { sinceMs, silentMs, sinceEpochMs, attempts: 0, nextAttemptMs: null, reason };
      journal.append([sessionEvent("source_gap", { session_id: sessionId, reason, pts_ms })]);
      const where = { run_id: journal.runId, session_id: sessionId, reason };
      world.log.warn("a live source gives no more media", where);
    }
    this.#due.resolve();
  }

  /** The Worker has the first frame after a gap. */
  onResumed({ journal, world, identity: { sessionId } }: ReconnectedSession): void {
    if (!this.#gap) return;
    const { sinceMs, silentMs, attempts } = this.#gap;
    this.#gap = null;
    journal.append([
      sessionEvent("source_resumed", {
        session_id: sessionId,
        gap_ms: Math.round(world.monotonicMs() - sinceMs + silentMs),
        attempts: Math.max(1, attempts),
      }),
    ]);
  }

  /** Reconnects after each gap until the signal aborts; then rejects with its reason. */
  async run(session: ReconnectedSession, signal: AbortSignal): Promise<never> {
    // Once, as the runtime keeps such a signal for as long as those that it follows.
    const attempts = AbortSignal.any([this.#life.signal, signal]);
    while (true) {
      await unlessAborted(this.#due.promise, signal);
      this.#due = Promise.withResolvers<void>();
      await this.#closeCurrent();
      while (this.#gap && !this.#current) await this.#attempt(this.#gap, session, attempts);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeCurrent();
    this.#life.abort();
  }

  async #attempt(gap: Gap, { world, send }: ReconnectedSession, signal: AbortSignal): Promise<void> {
    const waitMs = Math.round(reconnectWaitMs(world, world.monotonicMs() - gap.sinceMs));
    gap.nextAttemptMs = world.now() + waitMs;
    await world.sleep(waitMs, signal);
    gap.nextAttemptMs = null;
    gap.attempts++;
    this.#current = await this.#find(signal).catch((error) => {
      if (error instanceof Refusal) gap.reason = error.details[0]?.message ?? error.message;
      return null;
    });
    if (this.#current) send({ kind: "pull", input: this.#current.input, info: this.#current.info });
  }

  async #closeCurrent(): Promise<void> {
    const source = this.#current;
    this.#current = null;
    await source?.[Symbol.asyncDispose]();
  }
}

const WAIT_SHORTEST_MS = 250;
const WAIT_LONGEST_MS = 30_000;

/**
 * How long to wait before the next attempt to reach a source that is lost since `lostMs`: a quarter of that,
 * from 0.25 to 30 s, so that a source that is back is found soon after a short loss, and rarely asked in a
 * long one. It varies by a quarter, so that all cameras behind one switch are not asked at once.
 */
export function reconnectWaitMs(world: Pick<World, "randomBytes">, lostMs: number): number {
  const waitMs = Math.min(WAIT_LONGEST_MS, Math.max(WAIT_SHORTEST_MS, lostMs / 4));
  return waitMs * (1 - world.randomBytes(1)[0]! / 1024);
}
