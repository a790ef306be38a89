/** Semantic novelty: whether a keyframe needs a new description, by its embedding. See
 * docs/live/events.md#novelty.
 */

/** The settings SERVICE_NOVELTY_*. */
export interface NoveltySettings {
  /** The distance up to which the last description is reused, [0,1). */
  readonly reuseThreshold: number;
  /** The media time after which the description is made anew in any case; 0 turns reuse off. */
  readonly maxReuseMs: number;
  /** The sum of the distances of reused frames after which it is made anew in any case; above 0. */
  readonly maxCumulativeDrift: number;
  /** The share of the reuses for which the model is asked all the same, [0,1]. */
  readonly shadowSampleRate: number;
}

/**
 * `run`: the picture is new, ask the model. `forced`: it looks the same, but the description is too old or
 * the drift too large, so ask the model. `reuse`: keep the description. `shadow`: a reuse, but the model is
 * asked for comparison and its answer is not written.
 */
export type NoveltyVerdict = "run" | "forced" | "reuse" | "shadow";

/** The direction of an embedding, in a quarter of its memory. */
export type Quantized = Int8Array;

const STEPS = 127;

/**
 * The novelty of one session. The frame of the last committed description is the anchor with which later
 * frames are compared.
 *
 * ```
 *   decide(frame) ─▶ run │ forced ─▶ ask the model ─▶ a description? ─▶ commit(frame), the new anchor
 *                 └▶ reuse │ shadow: drift += distance
 * ```
 */
export class Novelty {
  readonly #settings: NoveltySettings;
  #anchor: { readonly embedding: Quantized; readonly ptsMs: number } | null = null;
  #lastPtsMs = -Infinity;
  #drift = 0;
  #reuses = 0;

  constructor(settings: NoveltySettings) {
    this.#settings = settings;
  }

  /** Decides about the next frame. The first one always runs. `ptsMs` is media time. */
  decide(embedding: Quantized, ptsMs: number): NoveltyVerdict {
    const wentBack = ptsMs < this.#lastPtsMs;
    this.#lastPtsMs = ptsMs;
    if (!this.#anchor) return "run";
    const { reuseThreshold, maxReuseMs, maxCumulativeDrift, shadowSampleRate } = this.#settings;
    const distance = cosineDistance(embedding, this.#anchor.embedding);
    if (distance > reuseThreshold) return "run";
    const drift = this.#drift + distance;
    if (wentBack || ptsMs - this.#anchor.ptsMs >= maxReuseMs || drift >= maxCumulativeDrift) return "forced";
    this.#drift = drift;
    this.#reuses += 1;
    return isSampled(this.#reuses, shadowSampleRate) ? "shadow" : "reuse";
  }

  /** Called when the frame got a description that is not blank. */
  commit(embedding: Quantized, ptsMs: number): void {
    this.#anchor = { embedding, ptsMs };
    this.#drift = 0;
  }
}

/**
 * Whether a reuse is a sample: the last one of every 1/rate reuses, so that the share is exact and the same
 * input gives the same samples.
 */
function isSampled(reuse: number, rate: number): boolean {
  return Math.floor(reuse * rate) > Math.floor((reuse - 1) * rate);
}

/**
 * The direction of an embedding in 8 bits for each number, scaled so that the largest becomes 127. Without
 * scaling most of the 768 numbers of a unit vector would be below 5, and rounding alone would come near the
 * usual threshold. Null for an embedding without a direction and for one with a number that is not finite.
 */
export function quantized(embedding: Float32Array): Quantized | null {
  let largest = 0;
  for (const value of embedding) {
    if (!Number.isFinite(value)) return null;
    largest = Math.max(largest, Math.abs(value));
  }
  return largest === 0 ? null : Int8Array.from(embedding, (value) => Math.round(value / largest * STEPS));
}

/** The distance of two directions: 1 - cosine, clamped to [0,1]; 1 for vectors of different lengths. */
export function cosineDistance(one: Quantized, other: Quantized): number {
  if (one.length !== other.length) return 1;
  let dot = 0;
  let oneSquares = 0;
  let otherSquares = 0;
  for (let at = 0; at < one.length; at++) {
    const a = one[at]!;
    const b = other[at]!;
    dot += a * b;
    oneSquares += a * a;
    otherSquares += b * b;
  }
  if (oneSquares === 0 || otherSquares === 0) return 1;
  return Math.min(1, Math.max(0, 1 - dot / Math.sqrt(oneSquares * otherSquares)));
}
