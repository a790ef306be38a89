/** The data of the deterministic analysis: columns of signals, and columns of the gate's decisions. */

/**
 * Signals of consecutive sampled frames, one array for each signal, all of length `count`. Columns instead of
 * objects, because a file has up to 500,000 sampled frames. See docs/frames.md#signals.
 */
export interface SignalColumns {
  readonly count: number;
  /** The media time of each frame, milliseconds from the first one, never decreasing. */
  readonly ptsMs: Float64Array;
  /** The hash of each frame: unsigned 64-bit DCT hash of the luma plane; 0 for a uniform frame. */
  readonly perceptualHash: BigUint64Array;
  /** The mean luma / 255, [0,1]. */
  readonly lumaMean: Float32Array;
  /** The change of the mean luma since the frame before, [0,1]; 0 for the first frame. */
  readonly flickerScore: Float32Array;
  /** The Hamming distance to the previous hash / 64, [0,1]; 0 for the first frame. */
  readonly ghostingScore: Float32Array;
  /** The variance of the luma as a score: min(1, luma variance / 4096). */
  readonly noiseVarianceScore: Float32Array;
  /**
   * How likely a new shot has begun since the sampled frame before, [0,1]; absent when it was not measured.
   */
  readonly cutScore?: Float32Array;
  /**
   * Media time of the cut behind `cutScore`, milliseconds from the first frame; NaN below
   * `CUT_SCORE_THRESHOLD`.
   */
  readonly cutPtsMs?: Float64Array;
  /** How likely the frame is faulty, [0,1]; absent when it was not measured. */
  readonly artifactScore?: Float32Array;
  /** What is wrong with the frame: 0 for nothing, else 1 + the index in ARTIFACT_KINDS. */
  readonly artifactKind?: Uint8Array;
}

/** Gate reasons in order of priority; the index is the reason code. See docs/frames.md#gate. */
export const GATE_REASONS = [
  "initial_frame",
  "scene_cut",
  "temporal_fault",
  "periodic_keepalive",
  "exposure_shift",
  "flicker_suspected",
  "ghosting_suspected",
  "noise_variance_spike",
  "no_trigger",
] as const;

export type GateReason = typeof GATE_REASONS[number];

/** The settings SERVICE_GATE_*. */
export interface GateThresholds {
  readonly keepaliveEveryFrames: number;
  readonly sceneCutHammingThreshold: number;
  readonly lumaShiftThreshold: number;
  readonly flickerThreshold: number;
  readonly ghostingThreshold: number;
  readonly noiseVarianceThreshold: number;
}

/**
 * The results of the gate and of the context pass for each frame. Columns of length `count`. See
 * docs/frames.md#context-pass.
 */
export interface GateColumns {
  readonly count: number;
  /** The reason of each frame: an index into GATE_REASONS. */
  readonly reason: Uint8Array;
  readonly gateConfidence: Float64Array;
  readonly novelty: Float64Array;
  readonly temporalStability: Float64Array;
  readonly motion: Float64Array;
  /** The context confidence that rows, markers and live events report. */
  readonly confidence: Float64Array;
}

/** The scores of the context pass under the names that triggers load. Columns of length `count`. */
export interface ContextScores {
  readonly motionScore: Float32Array;
  readonly noveltyScore: Float32Array;
  readonly contextConfidence: Float32Array;
}

/** A frame with at least this cut score has the reason `scene_cut`. See docs/frames.md#cut-score. */
export const CUT_SCORE_THRESHOLD = 0.5;

/**
 * A frame with at least this artifact score has the reason `temporal_fault`. See docs/detection/faults.md.
 */
export const ARTIFACT_SCORE_THRESHOLD = 0.5;
