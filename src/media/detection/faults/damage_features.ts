/** The numbers that damaged parts of the picture are decided on: measures of a frame beside those of the shot
 * around it, 0 to 255 each.
 */

import { MEASURES } from "./artifact_measures.ts";
import { MEASURE_COUNT } from "../../kernels/frame_filter.ts";
import { CODE_STRIDE, DamageKernel, PER_MEASURE } from "../../kernels/damage_kernel.ts";

/**
 * The measures, by their place, and what they are multiplied with so that 1 is about the least amount that
 * matters.
 */
const SCALES: readonly (readonly [index: number, scale: number])[] = [
  [MEASURES.edgesAcross, 1],
  [MEASURES.edgesAcrossNew, 1],
  [MEASURES.edgesAcrossGone, 1],
  [MEASURES.edgesDown, 1],
  [MEASURES.edgesDownGone, 1],
  [MEASURES.novel, 1],
  [MEASURES.novelMuch, 1],
  [MEASURES.gone, 1],
  [MEASURES.goneMuch, 1],
  [MEASURES.strips, 1],
  [MEASURES.stripsBeside, 1],
  [MEASURES.returned, 1],
  [MEASURES.spikesAcross, 50],
  [MEASURES.spikesDown, 50],
  [MEASURES.newLine, 10],
  [MEASURES.luma1, 4],
  [MEASURES.luma3, 4],
  [MEASURES.chroma1, 8],
  [MEASURES.unexplained, 8],
  [MEASURES.flat, 500],
  [MEASURES.lumaMean, 4],
  [MEASURES.contrast, 4],
  [MEASURES.correlation, -400],
  [MEASURES.borders, 1],
  [MEASURES.borderGrid, 50],
  [MEASURES.heldBorders, 1],
  [MEASURES.heldGrid, 50],
  [MEASURES.lostBorders, 1],
];

/** Places of the codes of a few measures. */
const [BORDER_GRID, HELD, LOST] = ([MEASURES.borderGrid, MEASURES.heldBorders, MEASURES.lostBorders] as const)
  .map((measure) => SCALES.findIndex(([index]) => index === measure)) as [number, number, number];

/**
 * Damage heals where at least this many borders that were held are missing at once, which are HEALED_SHARE of
 * all held ones, and no new ones come on a grid.
 */
const HEALED_BORDERS = 8;
const HEALED_SHARE = 0.6;
const HEALED_GRID_MAX = 1.5;

/** Bytes of the codes of a frame. */
export const DAMAGE_CODES = SCALES.length;
/** How many numbers the trees get for a frame. */
export const DAMAGE_FEATURES = DAMAGE_CODES * PER_MEASURE + 1;
/** Frames that are looked at behind a frame, and before it. */
export const DAMAGE_REACH = 3;

const LONGEST_SINCE_CUT = 60;
/**
 * Codes for one unit of a measure. The root is taken of the measure first, so that a difference of codes
 * matters alike where there is much and where there is little.
 */
const CODES = 8;
const INDEXES = Uint8Array.from(SCALES, ([index]) => index);
const FACTORS = Float64Array.from(SCALES, ([, scale]) => scale);

/** The newest frames as codes, a byte for each measure. Allocates nothing per frame. */
export class DamageHistory {
  /** Frames since the start. */
  count = 0;
  /** The DAMAGE_FEATURES numbers of the frame that was measured last. */
  readonly numbers: Uint8Array;
  readonly #kernel: DamageKernel;
  readonly #codes: Uint8Array;

  constructor(kernel = new DamageKernel()) {
    this.#kernel = kernel;
    this.#codes = kernel.codes;
    this.numbers = kernel.features.subarray(0, DAMAGE_FEATURES);
  }

  reset(): void {
    this.count = 0;
  }

  /** Adds the measures of the next frame. */
  push(measures: Float32Array): void {
    if (measures.length !== MEASURE_COUNT) {
      throw new RangeError(`Not the measures of a frame: ${measures.length}`);
    }
    const at = this.#placeOf(this.count);
    for (let i = 0; i < DAMAGE_CODES; i++) {
      const measure = measures[INDEXES[i]!]!, scale = FACTORS[i]!;
      // A correlation counts by what is missing to 1.
      const amount = scale < 0 ? (measure - 1) * scale : measure * scale;
      this.#codes[at + i] = Math.min(255, Math.floor(CODES * Math.sqrt(Math.max(0, amount))));
    }
    this.count++;
  }

  /** Adds a frame that was coded before, from `codes` at `from` on. */
  pushCodes(codes: Uint8Array, from: number): void {
    const at = this.#placeOf(this.count);
    for (let i = 0; i < DAMAGE_CODES; i++) this.#codes[at + i] = codes[from + i]!;
    this.count++;
  }

  /** Copies the codes of the newest frame. */
  newest(): Uint8Array {
    const at = this.#placeOf(this.count - 1);
    return this.#codes.slice(at, at + DAMAGE_CODES);
  }

  /**
   * Makes `numbers` those of a frame of the shot that began with `shotStart`. Frames that have not come yet
   * count as the newest one.
   */
  measure(frame: number, shotStart: number): void {
    this.#kernel.measureFeatures(frame, shotStart, this.count);
    this.numbers[DAMAGE_FEATURES - 1] = Math.min(LONGEST_SINCE_CUT, frame - shotStart);
  }

  #placeOf(frame: number): number {
    return frame % this.#kernel.kept * CODE_STRIDE;
  }

  /** Whether the borders of damaged blocks are missing from this frame on. */
  heals(frame: number): boolean {
    const lost = (this.#at(frame, LOST) / CODES) ** 2, held = (this.#at(frame, HELD) / CODES) ** 2;
    const grid = (this.#at(frame, BORDER_GRID) / CODES) ** 2 / SCALES[BORDER_GRID]![1];
    return lost >= HEALED_BORDERS - 0.5 && lost >= HEALED_SHARE * (lost + held) && grid < HEALED_GRID_MAX;
  }

  /** A code of a frame; outside the stream that of the first or the newest frame. */
  #at(frame: number, index: number): number {
    return this.#codes[this.#placeOf(Math.max(0, Math.min(frame, this.count - 1))) + index]!;
  }
}
