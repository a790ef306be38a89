/** Stores the segments that a session records, for its source: one that cannot be stored is lost and counted,
 * and the camera goes on.
 */

import type { Metrics } from "../../contract/metrics.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { MadeSegment } from "../../live/messages/messages.ts";
import type { RecordingPlan } from "../../model/sources/recording_plan.ts";
import type { Recordings } from "../../store/recordings/recordings.ts";

export interface SegmentRecorderOptions {
  /** The name of the source. */
  readonly source: string;
  readonly plan: RecordingPlan;
  readonly runId: string;
  readonly recordings: Recordings;
  readonly metrics: Metrics;
  readonly world: Pick<World, "now">;
}

/** A run that the session had, or has. */
interface RunSpan {
  readonly runId: string;
  /** Epoch milliseconds. */
  readonly fromMs: number;
}

export class SegmentRecorder {
  readonly #options: SegmentRecorderOptions;
  /** Oldest first; the last one is open. */
  #runs: readonly RunSpan[];

  constructor(options: SegmentRecorderOptions) {
    this.#options = options;
    this.#runs = [{ runId: options.runId, fromMs: -Infinity }];
  }

  /** The session goes on in another run. */
  rolledOver(runId: string): void {
    this.#runs = [...this.#runs, { runId, fromMs: this.#options.world.now() }];
  }

  async store(segment: MadeSegment): Promise<void> {
    const { source, plan: { hours }, recordings, metrics } = this.#options;
    const { mp4, ...facts } = segment;
    const runId = this.#runAt(segment.startMs);
    try {
      await recordings.write(source, { ...facts, runId, hours, sizeBytes: mp4.length }, mp4);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return this.lost();
    }
    metrics.add("service_recording_segments_stored_total");
    metrics.add("service_recording_bytes_total", mp4.length);
  }

  lost(): void {
    this.#options.metrics.add("service_recording_segments_lost_total");
  }

  /** The run that was open when the segment began; those before it are not needed any more. */
  #runAt(startMs: number): string {
    const at = Math.max(0, this.#runs.findLastIndex(({ fromMs }) => fromMs <= startMs));
    this.#runs = this.#runs.slice(at);
    return this.#runs[0]!.runId;
  }
}
