/** The sampled frames of one reason call: keeps only what rows and markers need of each frame. */

import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import type { GateKernel } from "../../media/kernels/gate_kernel.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import { isKept, type RowColumns } from "../../model/frames/frame_row.ts";
import { GATE_REASONS, type GateThresholds, type SignalColumns } from "../../model/frames/signals.ts";
import { asStored } from "../../model/frames/signals_json.ts";
import { clearTransitionReasons } from "../../model/frames/transition_faults.ts";

export interface ReasonFramesOptions {
  /** Used by this call alone, as its state continues from chunk to chunk. */
  readonly gate: GateKernel;
  readonly thresholds: GateThresholds;
  readonly windowSize: number;
  readonly metrics: Metrics;
  readonly world: World;
}

/**
 * Columns that grow by doubling. A frame takes 62 bytes, so that a long film fits into memory together with
 * its chunks.
 */
interface Columns {
  readonly frameIndex: Float64Array;
  readonly ptsMs: Float64Array;
  /** NaN where there is no cut. */
  readonly cutPtsMs: Float64Array;
  readonly artifactScore: Float32Array;
  readonly artifactKind: Uint8Array;
  readonly reason: Uint8Array;
  readonly novelty: Float64Array;
  readonly temporalStability: Float64Array;
  readonly motion: Float64Array;
  readonly confidence: Float64Array;
}

/** Rows before the first growth: a minute of video. */
const FIRST_ROWS = 2048;

export class ReasonFrames {
  readonly #options: ReasonFramesOptions;
  #columns = newColumns(FIRST_ROWS);
  #count = 0;

  constructor(options: ReasonFramesOptions) {
    this.#options = options;
  }

  /** Frames so far. */
  get count(): number {
    return this.#count;
  }

  /** Media time of the last frame, whole milliseconds; 0 before the first one. */
  get lastPtsMs(): number {
    return this.#count === 0 ? 0 : Math.round(this.#columns.ptsMs[this.#count - 1]!);
  }

  /** Has the gate decide on the next frames; their signals are not kept. */
  append(measured: SignalColumns): void {
    const { gate, thresholds, windowSize, world } = this.#options;
    const signals = asStored(measured);
    const start = this.#count;
    const frameIndex = Float64Array.from({ length: signals.count }, (_, row) => start + row);
    const startedMs = world.monotonicMs();
    const decided = gate.run(signals, frameIndex, thresholds, windowSize, { resume: start > 0 });
    this.#countGate(decided.reason, world.monotonicMs() - startedMs);
    this.#reserve(start + signals.count);
    const columns = this.#columns;
    columns.frameIndex.set(frameIndex, start);
    columns.ptsMs.set(signals.ptsMs, start);
    if (signals.cutPtsMs) columns.cutPtsMs.set(signals.cutPtsMs, start);
    else columns.cutPtsMs.fill(NaN, start, start + signals.count);
    if (signals.artifactScore) columns.artifactScore.set(signals.artifactScore, start);
    if (signals.artifactKind) columns.artifactKind.set(signals.artifactKind, start);
    columns.reason.set(decided.reason, start);
    columns.novelty.set(decided.novelty, start);
    columns.temporalStability.set(decided.temporalStability, start);
    columns.motion.set(decided.motion, start);
    columns.confidence.set(decided.confidence, start);
    this.#count += signals.count;
  }

  /** Takes back faults that are none, once all ranges are known. */
  clearFaultsIn(ranges: readonly DetectedRange[]): void {
    const { ptsMs, artifactScore, reason } = this.#columns;
    clearTransitionReasons(reason, { count: this.#count, ptsMs, artifactScore }, ranges);
  }

  /** All frames so far, as views of the columns. */
  get columns(): RowColumns {
    const count = this.#count;
    const {
      frameIndex,
      ptsMs,
      cutPtsMs,
      artifactKind,
      reason,
      novelty,
      temporalStability,
      motion,
      confidence,
    } = this.#columns;
    return {
      frameIndex: frameIndex.subarray(0, count),
      signals: {
        ptsMs: ptsMs.subarray(0, count),
        cutPtsMs: cutPtsMs.subarray(0, count),
        artifactKind: artifactKind.subarray(0, count),
      },
      gate: {
        count,
        reason: reason.subarray(0, count),
        novelty: novelty.subarray(0, count),
        temporalStability: temporalStability.subarray(0, count),
        motion: motion.subarray(0, count),
        confidence: confidence.subarray(0, count),
      },
    };
  }

  #reserve(rows: number): void {
    let capacity = this.#columns.reason.length;
    if (rows <= capacity) return;
    while (capacity < rows) capacity *= 2;
    const grown = newColumns(capacity);
    for (const name of Object.keys(grown) as (keyof Columns)[]) grown[name].set(this.#columns[name]);
    this.#columns = grown;
  }

  /**
   * Recorded media counts into the metrics of live media: the whole batch, and the average latency of a
   * frame.
   */
  #countGate(reasons: Uint8Array, tookMs: number): void {
    const { metrics } = this.#options;
    const kept = reasons.reduce((count, reason) => count + (isKept(GATE_REASONS[reason]!) ? 1 : 0), 0);
    metrics.add("service_pipeline_gate_frames_analyzed_total", reasons.length);
    metrics.add("service_pipeline_gate_keyframes_selected_total", kept);
    metrics.observe("service_pipeline_gate_latency_us", tookMs * 1000 / reasons.length);
  }
}

function newColumns(rows: number): Columns {
  return {
    frameIndex: new Float64Array(rows),
    ptsMs: new Float64Array(rows),
    cutPtsMs: new Float64Array(rows),
    artifactScore: new Float32Array(rows),
    artifactKind: new Uint8Array(rows),
    reason: new Uint8Array(rows),
    novelty: new Float64Array(rows),
    temporalStability: new Float64Array(rows),
    motion: new Float64Array(rows),
    confidence: new Float64Array(rows),
  };
}
