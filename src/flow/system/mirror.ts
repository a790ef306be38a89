/** Copies feedback and the descriptions of live sessions into the mirror database, in sequence order, from a
 * cursor on the disk.
 */

import { errorText, type Log } from "../../base/log.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { Deadline, pause, within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import { MIRRORED_KINDS, type MirrorRow, mirrorRow } from "../../model/mirror/rows.ts";
import type { RunView } from "../../model/runs/run.ts";
import { MirrorDatabase, MirrorFault } from "../../remote/mirror_database.ts";
import type { MirrorCursor } from "../../store/mirror_cursor.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";

export interface MirrorOptions {
  readonly timeline: Timeline;
  readonly cursor: MirrorCursor;
  /** Rejects with {@link MirrorFault}, or with the reason of the signal. */
  readonly connect: (signal: AbortSignal) => Promise<MirrorDatabase>;
  readonly world: World;
  readonly metrics: Metrics;
}

/** What an operator sees of the mirror. */
export interface MirrorLook {
  readonly state: "connecting" | "up" | "down";
  /** Since when it is in this state, epoch milliseconds. */
  readonly since_ms: number;
  /** Every event up to here is in the database, or was refused by it. */
  readonly mirrored_seq: number;
  /** How long the oldest event that is missing there has waited; 0 when none is. */
  readonly lag_ms: number;
}

/** Events in one transaction, unless the last one took too long. */
const BATCH_EVENTS = 256;
const CLOSE_DEADLINE_MS = 2_000;

/**
 * ```
 *   connecting ──► up: a batch past the cursor ──► its rows, one transaction ──► the cursor ──► … wait for more
 *       ▲           │ the connection ends, an attempt fails or takes too long
 *       └── delay ◄─┴─► down: one log line
 * ```
 *
 * The queue is the timeline itself: nothing is kept in memory while the database is away. A row is written
 * before the cursor is moved past it, so a process that is killed in between writes it again, which changes
 * nothing. No request waits for the database, but for feedback that is answered with whether it is there, see
 * `has`.
 */
export class Mirror implements AsyncDisposable {
  readonly #options: MirrorOptions;
  readonly #log: Log;
  readonly #tasks = new TaskGroup();
  readonly #observing: Disposable;
  /** The last event before this process. */
  readonly #openedAtSeq: number;
  /** The latest event that belongs into the database; the ones before the start are looked for in the log. */
  #latestSeq = Infinity;
  #wake = Promise.withResolvers<void>();
  #state: MirrorLook["state"] = "connecting";
  #sinceMs: number;
  /** Why the database is away, as the log has it. */
  #loggedReason = "";
  /** When the oldest event was written that is missing in the database; null where none is. */
  #waitingSinceMs: number | null = null;
  /** Whether the last exchange was so quick that an answer may wait for the next one. */
  #isQuick = false;
  #batchEvents = BATCH_EVENTS;
  /** Whether the database was asked for what it has of this instance. */
  #isCompared = false;
  /** Requests that wait for their row, by its number. */
  readonly #waiters = new Map<number, (isMirrored: boolean) => void>();

  constructor(options: MirrorOptions) {
    this.#options = options;
    const { timeline, cursor, world, metrics } = options;
    this.#log = world.log.child("mirror");
    this.#openedAtSeq = timeline.view.lastSeq;
    this.#sinceMs = world.now();
    if (cursor.seq > this.#openedAtSeq) this.#startOver();
    this.#observing = timeline.observe((_run, seq, kind) => {
      if (!MIRRORED_KINDS.has(kind)) return;
      this.#latestSeq = seq;
      this.#waitingSinceMs ??= world.now();
      this.#wake.resolve();
    });
    metrics.observeValue("service_mirror_up", () => this.#state === "up" ? 1 : 0);
    metrics.observeValue("service_mirror_lag_seconds", () => this.look().lag_ms / 1000);
    this.#tasks.start((signal) => this.#run(signal));
  }

  look(): MirrorLook {
    const { cursor, world } = this.#options;
    const waitingMs = this.#waitingSinceMs === null ? 0 : world.now() - this.#waitingSinceMs;
    return {
      state: this.#state,
      since_ms: Math.floor(this.#sinceMs),
      mirrored_seq: cursor.seq,
      lag_ms: Math.max(0, Math.floor(waitingMs)),
    };
  }

  /** Whether the database may lack events of the run. */
  isBehind({ lastSeq }: RunView): boolean {
    const isKnown = this.#latestSeq !== Infinity;
    return lastSeq > this.#options.cursor.seq && (this.#waitingSinceMs !== null || !isKnown);
  }

  /**
   * Whether the row of this event is in the database. Waits for it, but only where the database was quick
   * last time, at most `LIMITS.mirror.answerWaitMs`, and with few others: a database that is slow or away
   * slows no request.
   */
  async has(seq: number): Promise<boolean> {
    if (this.#state !== "up" || !this.#isQuick || this.#waiters.size >= LIMITS.mirror.answersWaiting) {
      return false;
    }
    const mirrored = new Promise<boolean>((resolve) => this.#waiters.set(seq, resolve));
    try {
      return await within(this.#options.world, LIMITS.mirror.answerWaitMs, mirrored);
    } catch {
      this.#isQuick = false;
      return false;
    } finally {
      this.#waiters.delete(seq);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#observing[Symbol.dispose]();
    try {
      await within(this.#options.world, CLOSE_DEADLINE_MS, this.#tasks.close());
    } catch (error) {
      this.#log.error("the mirror did not end as it should", { error: String(error) });
    } finally {
      this.#answer(false);
    }
  }

  /** Throws only the reason of `signal`. */
  async #run(signal: AbortSignal): Promise<void> {
    const { timeline, cursor, world, metrics } = this.#options;
    const [waiting] = timeline.readAll({ fromSeq: cursor.seq + 1, kinds: MIRRORED_KINDS, limit: 1 });
    this.#waitingSinceMs ??= waiting?.at(0)?.ptsMs ?? null;
    for (let failures = 0;;) {
      const isGood = () => void (failures = 0);
      try {
        await this.#follow(isGood, signal);
      } catch (error) {
        signal.throwIfAborted();
        metrics.add("service_mirror_failures_total");
        this.#goDown(error);
      }
      if (!await pause(world, this.#delayMs(failures++), signal)) signal.throwIfAborted();
    }
  }

  #delayMs(failures: number): number {
    const { minimum, maximum } = LIMITS.mirror.retryMs;
    return Math.min(maximum, minimum * 2 ** Math.min(failures, 30));
  }

  /** One connection, from its opening until it fails or ends. */
  async #follow(isGood: () => void, signal: AbortSignal): Promise<void> {
    const { connect, world } = this.#options;
    await using database = await withDeadline(world, LIMITS.mirror.connectTimeoutMs, signal, connect);
    const startedMs = world.monotonicMs();
    await this.#compare(database, signal);
    this.#measured(world.monotonicMs() - startedMs);
    this.#goUp();
    while (true) {
      this.#wake = Promise.withResolvers();
      if (await this.#mirrorBatch(database, signal)) {
        isGood();
        continue;
      }
      isGood();
      // Two events that end the wait, and no deadline; `signal` ends it too.
      const { promise: ended, resolve } = Promise.withResolvers<"ended">();
      const onAbort = () => resolve("ended");
      signal.addEventListener("abort", onAbort, { once: true });
      const why = await Promise.race([
        this.#wake.promise,
        database.ended.then(() => "lost" as const),
        ended,
      ]).finally(() => signal.removeEventListener("abort", onAbort));
      signal.throwIfAborted();
      if (why === "lost") throw new MirrorFault("the connection has ended", false);
    }
  }

  /**
   * After a power cut the timeline may have lost its last events. Their numbers are used again, and the
   * database may have rows with them: the rows that follow have another instance id.
   */
  async #compare(database: MirrorDatabase, signal: AbortSignal): Promise<void> {
    const { cursor, world } = this.#options;
    const lastSeq = await withDeadline(
      world,
      LIMITS.mirror.writeTimeoutMs,
      signal,
      (signal) => database.lastSeq(cursor.instanceId, signal),
    );
    if (this.#isCompared) return;
    if (lastSeq > this.#openedAtSeq) this.#startOver();
    this.#isCompared = true;
  }

  #startOver(): void {
    const { cursor } = this.#options;
    const lost = { instance_id: cursor.instanceId, last_seq: this.#openedAtSeq };
    cursor.startOver(this.#openedAtSeq);
    this.#log.warn("the mirror had events that the timeline has lost, and goes on under a new instance id", {
      ...lost,
      new_instance_id: cursor.instanceId,
    });
  }

  /** One batch of events past the cursor; false when there is none. */
  async #mirrorBatch(database: MirrorDatabase, signal: AbortSignal): Promise<boolean> {
    const { timeline, cursor } = this.#options;
    const endSeq = timeline.view.lastSeq;
    if (cursor.seq >= Math.min(endSeq, this.#latestSeq)) return this.#isComplete(endSeq);
    // An event is copied only when it is on the disk: after a power cut it must still exist. See
    // docs/deployment/data-directory.md#durability.
    await timeline.synced();
    const query = { fromSeq: cursor.seq + 1, toSeq: endSeq, kinds: MIRRORED_KINDS, limit: this.#batchEvents };
    const [events] = timeline.readAll(query);
    if (events === undefined) {
      cursor.moveTo(endSeq);
      return this.#isComplete(endSeq);
    }
    this.#waitingSinceMs = events[0]!.ptsMs;
    await this.#write(database, events.map(mirrorRow), signal);
    return true;
  }

  /** There is nothing to copy up to `endSeq`. Returns false. */
  #isComplete(endSeq: number): false {
    if (this.#latestSeq === Infinity) this.#latestSeq = endSeq;
    if (this.#latestSeq <= endSeq) this.#waitingSinceMs = null;
    return false;
  }

  async #write(database: MirrorDatabase, rows: readonly MirrorRow[], signal: AbortSignal): Promise<void> {
    const { cursor, world, metrics } = this.#options;
    const startedMs = world.monotonicMs();
    try {
      await withDeadline(
        world,
        LIMITS.mirror.writeTimeoutMs,
        signal,
        (signal) => database.write(cursor.instanceId, rows, signal),
      );
    } catch (error) {
      const isRefused = error instanceof MirrorFault && error.refusesRow;
      if (isRefused && rows.length === 1) return this.#skip(rows[0]!, error);
      // A slow database gets fewer rows next time, and of rows that are refused each comes alone.
      this.#batchEvents = isRefused ? 1 : Math.max(1, Math.ceil(rows.length / 2));
      if (!isRefused) throw error;
      return;
    }
    const tookMs = world.monotonicMs() - startedMs;
    metrics.observe("service_pipeline_mirror_emit_latency_ms", tookMs / rows.length);
    metrics.add("service_mirror_rows_total", rows.length);
    this.#measured(tookMs);
    this.#batchEvents = Math.min(BATCH_EVENTS, this.#batchEvents * 2);
    cursor.moveTo(rows.at(-1)!.seq);
    for (const { seq } of rows) this.#waiters.get(seq)?.(true);
  }

  /** A row that the database will never take must not keep back those after it. */
  #skip({ seq, table }: MirrorRow, { message: reason }: MirrorFault): void {
    this.#options.metrics.add("service_mirror_rows_refused_total");
    this.#log.error("the mirror database refuses a row, which is left out", { seq, table, reason });
    this.#options.cursor.moveTo(seq);
    this.#waiters.get(seq)?.(false);
  }

  #measured(tookMs: number): void {
    this.#isQuick = tookMs < LIMITS.mirror.answerWaitMs;
  }

  #goUp(): void {
    if (this.#state === "up") return;
    const { world, cursor } = this.#options;
    this.#log.info("the mirror database is there", {
      down_ms: Math.floor(world.now() - this.#sinceMs),
      mirrored_seq: cursor.seq,
    });
    this.#enter("up");
  }

  #goDown(error: unknown): void {
    this.#answer(false);
    const reason = errorText(error);
    if (this.#state === "down" && reason === this.#loggedReason) return;
    this.#loggedReason = reason;
    this.#log.warn("the mirror database is away, records wait in the timeline", {
      reason,
      mirrored_seq: this.#options.cursor.seq,
    });
    if (this.#state !== "down") this.#enter("down");
  }

  #enter(state: MirrorLook["state"]): void {
    this.#state = state;
    this.#sinceMs = this.#options.world.now();
  }

  #answer(isMirrored: boolean): void {
    for (const resolve of this.#waiters.values()) resolve(isMirrored);
  }
}

async function withDeadline<T>(
  world: World,
  timeoutMs: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using deadline = new Deadline(world, timeoutMs, parent);
  return await work(deadline.signal);
}
