/** The measures of the newest frames, which all detectors of ranges read. Allocates nothing per frame. */

import type { RangeMeasures } from "../../kernels/frame_filter.ts";
import { CELLS, HistoryKernel, LUMA_CELLS, PROFILE_VALUES, STATS } from "../../kernels/history_kernel.ts";

/** Cells of one frame: 20x12 of luma, then 10x6 of each chroma plane; each has 240 samples. */
export { CELLS, LUMA_CELLS };
/**
 * Mean luma of 80 columns in three bands, then of 60 rows in four bands with 64 values each, the last four
 * empty.
 */
export { PROFILE_VALUES };
export const LUMA_COLUMNS = 20;
export const LUMA_ROWS = 12;
export const CELL_SAMPLES = 240;
const LUMA_SAMPLES = LUMA_CELLS * CELL_SAMPLES;

/** Frames that are kept: over four seconds at 60 frames per second. */
export const HISTORY_FRAMES = 256;

/**
 * The newest frames. Frame i is in slot i % HISTORY_FRAMES; the caller does not ask for older ones. A frame
 * that only shows the one before again is a part of that one, so that a film is judged alike at its own rate
 * and at a higher one; `first` and `last` say what its number is among all frames of the stream.
 */
export class FrameHistory {
  /** Frames since the start. */
  count = 0;
  /** What sums over the cells of the frames that are kept; it takes frames by their number. */
  readonly kernel = new HistoryKernel();
  readonly #ptsMs = new Float64Array(HISTORY_FRAMES);
  readonly #lastMs = new Float64Array(HISTORY_FRAMES);
  readonly #first = new Float64Array(HISTORY_FRAMES);
  readonly #last = new Float64Array(HISTORY_FRAMES);
  readonly #lumaMean = new Float64Array(HISTORY_FRAMES);
  readonly #moved = new Float64Array(HISTORY_FRAMES);
  readonly #step = new Float64Array(HISTORY_FRAMES);
  readonly #largestChange = new Float64Array(HISTORY_FRAMES);
  readonly #darkest = new Float64Array(HISTORY_FRAMES);
  readonly #brightest = new Float64Array(HISTORY_FRAMES);
  readonly #brightSamples = new Int32Array(HISTORY_FRAMES);

  /** Adds a frame; `number` is its number among all frames of the stream. */
  push({ cellSums, cellMoves, brightSamples, profiles }: RangeMeasures, ptsMs: number, number: number): void {
    const slot = this.count % HISTORY_FRAMES;
    const { kernel } = this, { stats } = kernel;
    kernel.cells.set(cellSums, slot * CELLS);
    kernel.moves.set(cellMoves, slot * LUMA_CELLS);
    kernel.profiles.set(profiles, slot * PROFILE_VALUES);
    kernel.measure(this.count, Math.max(0, this.count - 1));
    this.#ptsMs[slot] = this.#lastMs[slot] = ptsMs;
    this.#first[slot] = this.#last[slot] = number;
    this.#lumaMean[slot] = stats[STATS.sum]! / LUMA_SAMPLES;
    this.#moved[slot] = stats[STATS.moved]! / LUMA_SAMPLES;
    this.#step[slot] = stats[STATS.step]! / (CELLS * CELL_SAMPLES);
    this.#largestChange[slot] = stats[STATS.change]! / CELL_SAMPLES;
    this.#darkest[slot] = stats[STATS.least]! / CELL_SAMPLES;
    this.#brightest[slot] = stats[STATS.most]! / CELL_SAMPLES;
    this.#brightSamples[slot] = brightSamples[0]!;
    this.count++;
  }

  /** A frame that shows the newest one again. */
  extend(ptsMs: number, number: number): void {
    const slot = (this.count - 1) % HISTORY_FRAMES;
    this.#lastMs[slot] = ptsMs;
    this.#last[slot] = number;
  }

  reset(): void {
    this.count = 0;
  }

  /** The oldest frame that is kept. */
  get oldest(): number {
    return Math.max(0, this.count - HISTORY_FRAMES);
  }

  ptsMs(frame: number): number {
    return this.#ptsMs[frame % HISTORY_FRAMES]!;
  }

  /** The time of the last frame that shows it. */
  lastMs(frame: number): number {
    return this.#lastMs[frame % HISTORY_FRAMES]!;
  }

  /** The number among all frames of the stream of the first frame that shows it. */
  first(frame: number): number {
    return this.#first[frame % HISTORY_FRAMES]!;
  }

  /** The number among all frames of the stream of the last frame that shows it. */
  last(frame: number): number {
    return this.#last[frame % HISTORY_FRAMES]!;
  }

  lumaMean(frame: number): number {
    return this.#lumaMean[frame % HISTORY_FRAMES]!;
  }

  /** Mean absolute difference of luma samples to the frame before. */
  moved(frame: number): number {
    return this.#moved[frame % HISTORY_FRAMES]!;
  }

  /** Mean absolute change of the means of all cells since the frame before. */
  step(frame: number): number {
    return this.#step[frame % HISTORY_FRAMES]!;
  }

  /** The largest change of the mean of a cell, luma or chroma, since the frame before. */
  largestChange(frame: number): number {
    return this.#largestChange[frame % HISTORY_FRAMES]!;
  }

  /** Mean luma of the darkest cell. */
  darkest(frame: number): number {
    return this.#darkest[frame % HISTORY_FRAMES]!;
  }

  /** Mean luma of the brightest cell. */
  brightest(frame: number): number {
    return this.#brightest[frame % HISTORY_FRAMES]!;
  }

  brightSamples(frame: number): number {
    return this.#brightSamples[frame % HISTORY_FRAMES]!;
  }

  /** Where `sums` has the cells of a frame. */
  cellsAt(frame: number): number {
    return frame % HISTORY_FRAMES * CELLS;
  }

  /** Where `moves` has the luma cells of a frame. */
  movesAt(frame: number): number {
    return frame % HISTORY_FRAMES * LUMA_CELLS;
  }

  /** Where `profiles` has the profiles of a frame. */
  profilesAt(frame: number): number {
    return frame % HISTORY_FRAMES * PROFILE_VALUES;
  }

  /** The sum of the differences of all cells of two frames. */
  apart(one: number, other: number): number {
    return this.kernel.apart(one, other);
  }

  get profiles(): Int16Array {
    return this.kernel.profiles;
  }

  get sums(): Uint16Array {
    return this.kernel.cells;
  }

  get moves(): Uint16Array {
    return this.kernel.moves;
  }
}
