/** How a live session ends: for which reason, in which order, and what is waited for. */

import type { Metrics } from "../../contract/metrics.ts";
import { OutOfTime, pause, within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { ReportOf } from "../../live/messages/messages.ts";
import type { Enricher } from "./describing/enricher.ts";
import type { FaultStage, SessionFaults } from "./faults.ts";
import type { Ending, LiveJournal } from "./journal/journal.ts";

/** How long the Worker may take to release everything it holds for the session. */
const JOIN_MS = 10_000;
/** How long a publisher that closed its connection may take to say with a DELETE that this was the end. */
const GOODBYE_GRACE_MS = 2_000;

const PEER_CLOSED = "peer_closed";

export interface SessionEndingOptions {
  readonly sessionId: string;
  readonly journal: LiveJournal;
  readonly faults: SessionFaults;
  /** Null where no event of the session is explained. */
  readonly enricher: Enricher | null;
  /** Aborts the work under way. */
  readonly aborting: AbortController;
  /** Aborts when the service closes. */
  readonly closing: AbortSignal;
  /** Called first: nothing new begins from here on. */
  readonly stop: () => void;
  readonly closeWorker: () => Promise<void>;
  /** Ends the stages; resolves when they have worked off what was reported. */
  readonly finishStages: () => Promise<void>;
  /** Called when the Worker holds nothing of the session any more: frees its reservation. */
  readonly release: () => void;
  readonly metrics: Metrics;
  readonly world: World;
}

/**
 * ```
 *   end(why) ─▶ the Worker closes ─▶ the stages finish ─▶ wait for a DELETE ─▶ terminal event ─▶ released
 *                  └ takes too long: detached ──────────────────────────────▶ released when it has closed
 * ```
 * The Worker closes first, as it may still report what it has. The terminal event has the reason of the
 * highest rank so far.
 */
export class SessionEnding {
  readonly #options: SessionEndingOptions;
  readonly #ended = Promise.withResolvers<void>();
  #why: Ending | null = null;
  #isOnTimeline = false;
  #isDetached = false;
  /** Resolves when a closed connection is no longer waited for; null without one. */
  #goodbyeGrace: Promise<unknown> | null = null;
  readonly #endGrace = new AbortController();

  constructor(options: SessionEndingOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#why !== null;
  }

  /** The session has ended, but its Worker has not released it in time: its reservation is still held. */
  get isDetached(): boolean {
    return this.#isDetached;
  }

  /** Resolves when the session has ended; its Worker may still hold it then. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** The run of the session is on the timeline, and wants a terminal event. */
  hasRun(): void {
    this.#isOnTimeline = true;
  }

  /**
   * Resolves when the session has ended. A reason of a higher rank replaces the first one until the terminal
   * event is written.
   */
  end(why: Ending): Promise<void> {
    const isFirst = this.#why === null;
    const isWeightier = !isFirst && why.rank > this.#why!.rank;
    if (isFirst || isWeightier) this.#why = why;
    if (isWeightier) this.#endGrace.abort();
    if (why.why === "run_ended") this.#options.aborting.abort();
    if (isFirst) void this.#tearDown();
    return this.#ended.promise;
  }

  /**
   * Ends a session without a terminal event: its run was never created, or has its terminal event already.
   */
  discard(): Promise<void> {
    return this.end({ rank: 3, why: "run_ended" });
  }

  /** All work of the run is cancelled: it was stopped or deleted, or the service closes. */
  endWithRun(): Promise<void> {
    return this.#options.journal.isOpen ? this.endForShutdown() : this.discard();
  }

  /** The service closes: fails the run and aborts the work under way. */
  endForShutdown(): Promise<void> {
    const ended = this.end({ rank: 1, why: "failed", reason: "service_stopped" });
    this.#options.aborting.abort();
    this.#endGrace.abort();
    return ended;
  }

  /**
   * The Worker has ended the session. Its fault closes the peer connection, so the run fails with
   * `peer_closed`.
   */
  onEnded({ cause, message, fault }: ReportOf<"ended">): void {
    const { sessionId, faults, world } = this.#options;
    world.log.info("live session ended", { session_id: sessionId, cause, message });
    if (cause === "worker_fault") faults.count(fault?.stage ?? "decode", fault?.reason ?? "unexpected_exit");
    if (cause === PEER_CLOSED && !this.hasBegun) {
      this.#goodbyeGrace = pause(world, GOODBYE_GRACE_MS, this.#endGrace.signal);
    }
    void this.end(
      cause === "source_ended"
        ? { rank: 2, why: "completed", reason: cause }
        : { rank: 1, why: "failed", reason: cause === "worker_fault" ? PEER_CLOSED : cause },
    );
  }

  /** Ends this session, and no other, after an unexpected error. */
  onBug(stage: FaultStage, error: unknown): void {
    this.#options.faults.onBug(stage, error);
    void this.end({ rank: 1, why: "failed", reason: PEER_CLOSED });
  }

  async #tearDown(): Promise<void> {
    const { sessionId, journal, enricher, aborting, closing, stop, finishStages, world } = this.#options;
    let hasFailed = false;
    try {
      stop();
      if (this.#isOnTimeline && !journal.isOpen) aborting.abort();
      await this.#closeWorker();
      await finishStages();
      await this.#goodbyeGrace;
      await enricher?.finish(closing);
      if (this.#isOnTimeline) await journal.finish(this.#why!, closing);
    } catch (error) {
      hasFailed = true;
      world.log.error("live session failed while it ended", {
        session_id: sessionId,
        error: String(error),
      });
    } finally {
      this.#count(hasFailed);
      if (!this.#isDetached) this.#options.release();
      this.#ended.resolve();
    }
  }

  async #closeWorker(): Promise<void> {
    const { closeWorker, faults, metrics, release, world } = this.#options;
    const closed = closeWorker();
    try {
      await within(world, JOIN_MS, closed);
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error;
      this.#isDetached = true;
      faults.count("decode", "join_deadline");
      metrics.add("service_pipeline_detached_workers_total");
      closed.then(() => {
        this.#isDetached = false;
        release();
      });
    }
  }

  /**
   * What went wrong before is counted already; it does not matter for a session that its caller ended and
   * that let go.
   */
  #count(hasFailed: boolean): void {
    const { faults, metrics } = this.#options;
    const isFaulty = hasFailed || (faults.hasAny && this.#why!.why !== "completed");
    const outcome = this.#isDetached ? "forced" : isFaulty ? "faulted" : "clean";
    metrics.add("service_pipeline_generation_shutdown_total", { outcome });
    if (this.#isOnTimeline) metrics.add("service_pipeline_sessions_removed_total");
  }
}
