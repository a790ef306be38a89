/** What the deterministic analysis knows about frames: columns of signals, and the gate's decision for each. */

/**
 * Signals of consecutive sampled frames, one array a signal, all of length `count`. Contract 3.1, D6, D7.
 * Columns and not objects, because a file has up to 500,000 sampled frames.
 */
export interface SignalColumns {
  readonly count: number;
  /** Media time, milliseconds from the first frame, never decreasing. */
  readonly ptsMs: Float64Array;
  /** Unsigned 64-bit DCT hash of the luma plane; 0 for a uniform frame. */
  readonly perceptualHash: BigUint64Array;
  /** Mean luma / 255, [0,1]. */
  readonly lumaMean: Float32Array;
  /** |luma mean - previous luma mean|, [0,1]; 0 for the first frame. */
  readonly flickerScore: Float32Array;
  /** Hamming distance to the previous hash / 64, [0,1]; 0 for the first frame. */
  readonly ghostingScore: Float32Array;
  /** min(1, luma variance / 4096). */
  readonly noiseVarianceScore: Float32Array;
  /** How surely this frame is the first of a new shot, [0,1]; absent where nobody measured it. */
  readonly cutScore?: Float32Array;
}

/** Gate reasons in priority order; the index is the reason code of contract 3.2. */
export const GATE_REASONS = [
  "initial_frame",
  "scene_cut",
  "periodic_keepalive",
  "exposure_shift",
  "flicker_suspected",
  "ghosting_suspected",
  "noise_variance_spike",
  "no_trigger",
] as const;

export type GateReason = typeof GATE_REASONS[number];

/** Contract 3.2, SERVICE_GATE_*. */
export interface GateThresholds {
  readonly keepaliveEveryFrames: number;
  readonly sceneCutHammingThreshold: number;
  readonly lumaShiftThreshold: number;
  readonly flickerThreshold: number;
  readonly ghostingThreshold: number;
  readonly noiseVarianceThreshold: number;
}

/** What the gate and the context pass say of each frame, contract 3.2 and 3.3. Columns of length `count`. */
export interface GateColumns {
  readonly count: number;
  /** Index into GATE_REASONS. */
  readonly reason: Uint8Array;
  readonly gateConfidence: Float64Array;
  readonly novelty: Float64Array;
  readonly temporalStability: Float64Array;
  readonly motion: Float64Array;
  /** The context confidence that rows, markers and live events report. */
  readonly confidence: Float64Array;
}

/** A cut score from here on decides the `scene_cut` reason (D7). */
export const CUT_SCORE_THRESHOLD = 0.5;
