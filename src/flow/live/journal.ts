/** What one live session writes: events as long as its run is open, pictures before the events that name them. */

import type { Metrics } from "../../base/metrics.ts";
import { Refusal } from "../../base/refusal.ts";
import type { World } from "../../base/world.ts";
import { event } from "../../model/events/event_table.ts";
import type { LiveSource } from "../../model/events/run_payloads.ts";
import { isTerminal, type NewEvent } from "../../model/runs/run.ts";
import type { BlobRef, Blobs } from "../../store/blobs.ts";
import type { CommittedEvent, Timeline } from "../../store/log/timeline.ts";

/** Who a session is, in its events. */
export interface SessionIdentity {
  readonly runId: string;
  readonly sessionId: string;
  /** Process-wide, from 1. */
  readonly generation: number;
  readonly principalKey: string;
  readonly source: LiveSource;
}

export interface LiveJournalOptions {
  readonly timeline: Timeline;
  readonly blobs: Blobs;
  readonly metrics: Metrics;
  readonly world: World;
  readonly identity: SessionIdentity;
}

/** How a session ended by itself, as opposed to a run that was stopped or deleted. */
export interface TerminalRecord {
  readonly kind: "run_completed" | "run_failed";
  readonly reason: string;
}

/** Waits between attempts to write the terminal record. Contract 11.6. */
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 1_000;

export class LiveJournal {
  readonly #options: LiveJournalOptions;

  constructor(options: LiveJournalOptions) {
    this.#options = options;
  }

  /** Whether the run takes events of its session still: it was neither deleted nor brought to an end. */
  get isOpen(): boolean {
    const run = this.#options.timeline.view.run(this.#options.identity.runId);
    return run !== undefined && !run.deleted && !isTerminal(run.state);
  }

  /**
   * Appends all of them, or none: to a run that has ended, or to a disk that refuses them (the timeline counts those). The
   * session goes on, as it has nobody to tell.
   */
  append(events: readonly NewEvent[]): readonly CommittedEvent[] {
    try {
      return this.#options.timeline.commit(() => this.isOpen ? events : []);
    } catch (error) {
      if (error instanceof Refusal) return [];
      throw error;
    }
  }

  /** Null where the disk refuses it. */
  async store(jpeg: Uint8Array): Promise<BlobRef | null> {
    const { blobs, metrics, world } = this.#options;
    const startedMs = world.monotonicMs();
    try {
      const ref = await blobs.put(jpeg, "jpeg");
      metrics.add(
        ref.created
          ? "service_pipeline_keyframe_blobs_written_total"
          : "service_pipeline_keyframe_blobs_reused_total",
      );
      metrics.add("service_pipeline_keyframe_blob_bytes_total", ref.sizeBytes);
      metrics.observe("service_pipeline_keyframe_blob_latency_ms", world.monotonicMs() - startedMs);
      return ref;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      metrics.add("service_pipeline_keyframe_blob_failures_total");
      return null;
    }
  }

  /**
   * The one terminal record of the session; none where the run has ended already. A disk that refuses it is asked again
   * until it takes it or `signal` aborts; then the next start of the service says what became of the run.
   */
  async finish({ kind, reason }: TerminalRecord, signal: AbortSignal): Promise<void> {
    const { timeline, world, identity: { runId, sessionId, source } } = this.#options;
    const record = event(kind, runId, { source, session_id: sessionId, reason });
    for (let waitMs = RETRY_FIRST_MS;; waitMs = Math.min(RETRY_LONGEST_MS, waitMs * 2)) {
      try {
        timeline.commit(() => this.isOpen ? [record] : []);
        return;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
      }
      try {
        await world.sleep(waitMs, signal);
      } catch {
        return;
      }
    }
  }
}
