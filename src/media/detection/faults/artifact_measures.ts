/** The measures of the newest frames by name, on which faults are decided. Allocates nothing per frame. */

import { MEASURE_COUNT } from "../../kernels/frame_filter.ts";

/**
 * What the kernel measures of a frame, in its order, see assembly/artifact.ts; and the last two, which are
 * made of those.
 */
export const MEASURES = {
  /** Mean of how far luma samples stick out of both neighbours, along rows and down columns. */
  spikesAcross: 0,
  spikesDown: 1,
  lumaMean: 2,
  /** Standard deviation of luma. */
  contrast: 3,
  /** Shares of the picture: decoder gray, the green of a lost plane, blocks without any texture. */
  gray: 4,
  green: 5,
  flat: 6,
  /** Mean differences to the frame 1, 2 and 3 before. */
  luma1: 7,
  luma2: 8,
  luma3: 9,
  chroma1: 10,
  chroma2: 11,
  chroma3: 12,
  /** Correlation of luma with the frame before, [-1,1]. */
  correlation: 13,
  /** Share of the blocks whose texture grew a lot. */
  grown: 14,
  /** The strongest step between two rows of samples that was not there before. */
  newLine: 15,
  /** Difference of luma to the frame before that motion does not explain. */
  unexplained: 16,
  /**
   * Straight edges along rows: all, those that are new, and those that are gone; in thousandths of the
   * places.
   */
  edgesAcross: 17,
  edgesAcrossNew: 18,
  edgesAcrossGone: 19,
  /**
   * Straight edges down columns: all, those that are new, and those that are gone; in thousandths of the
   * places.
   */
  edgesDown: 20,
  edgesDownNew: 21,
  edgesDownGone: 22,
  /** Thousandths of the picture that are new by more than 6 and 12 levels, or gone. */
  novel: 23,
  novelMuch: 24,
  gone: 25,
  goneMuch: 26,
  /** Thousandths that are new between rows that are not, on both sides, or on one. */
  strips: 27,
  stripsBeside: 28,
  /** Thousandths that changed, and are as three frames before. */
  returned: 29,
  /**
   * Short straight borders where the picture is new: how many, and how clearly they lie on a grid of blocks;
   * 1 is chance.
   */
  borders: 30,
  borderGrid: 31,
  /**
   * Short straight borders of earlier frames: how many are still there, how clearly these lie on a grid, and
   * how many are newly missing.
   */
  heldBorders: 32,
  heldGrid: 33,
  lostBorders: 34,
  /** Mean of how far neighbouring lines go up and down in turn, in levels; 0 where no lines were measured. */
  alternation: 35,
  /**
   * Where lines alternate: how much more the one field differs from an older frame than the other does, as a
   * share of what the fields differ by, positive where the other field is the older one. The next measure is
   * how much less both differ from the frame before than from each other.
   */
  fieldsApart: 36,
  fieldsBefore: 37,
  /** Change of luma and chroma to the frame before. */
  change: 38,
  /** By how much a frame is brighter than the one before: below 0 where it is darker. */
  lift: 39,
} as const;

/** The place of one of MEASURES, as a number: a name would be looked up anew at each use. */
export type Measure = (typeof MEASURES)[keyof typeof MEASURES];

/** Values in the row of a frame: all measures, with the two that are made of the kernel's. */
const ROW = 40;

/** Frames before a frame whose changes say what is usual there. */
const USUAL = 4;
/**
 * Three steps lead at least this many times as far as one where the camera is not shaken. MOVES is the least
 * change, in levels, of a picture that does not stand still.
 */
const ONWARD = 1.65;
const MOVES = 1.5;

/**
 * Frames before a frame over which the share of light is averaged. LIT_STEP_MIN is the least change, in
 * levels, that each of them counts with.
 */
const LIT_FRAMES = 10;
const LIT_STEP_MIN = 1;

/** How many frames are kept, a power of two: the longest look back and the look-ahead. */
const KEPT = 64;

/**
 * The measures of the newest frames; frame i is in row i % KEPT.
 *
 * The engine makes an object of each number with a fraction that a function takes or returns, unless the
 * function becomes a part of its caller, which seldom happens with functions that seldom run. So the rules
 * read `values` themselves, and functions give places in it, tell what is true, or leave numbers in fields.
 * Such a field begins with NaN: one that begins with a whole number is laid out anew when it gets a fraction,
 * and what was compiled for it is lost.
 */
export class ArtifactMeasures {
  /** Frames since the start. */
  count = 0;
  /** The measures of a frame are from `placeOf` the frame on, in the order of MEASURES. */
  readonly values = new Float64Array(KEPT * ROW);
  /**
   * The usual change in the four frames before the one that was asked for last: to the frame before each, and
   * to the frame three before.
   */
  readonly #usual = new Float64Array(2);

  /** Adds the next frame. */
  push(measures: Float32Array): void {
    const { values } = this;
    const place = (this.count % KEPT) * ROW, before = this.count > 0 ? this.placeOf(this.count - 1) : place;
    for (let i = 0; i < MEASURE_COUNT; i++) values[place + i] = measures[i]!;
    values[place + MEASURES.change] = values[place + MEASURES.luma1]! + values[place + MEASURES.chroma1]!;
    values[place + MEASURES.lift] = values[place + MEASURES.lumaMean]! - values[before + MEASURES.lumaMean]!;
    this.count++;
  }

  reset(): void {
    this.count = 0;
  }

  /**
   * Where the measures of a frame begin; of one outside the stream those of the first or the newest frame.
   */
  placeOf(frame: number): number {
    return (Math.max(0, Math.min(frame, this.count - 1)) % KEPT) * ROW;
  }

  /** Whether the motion of the four frames before leads onward: a shaken camera goes back. */
  movesOnward(frame: number): boolean {
    this.#findUsual(0, MEASURES.luma1, frame);
    this.#findUsual(1, MEASURES.luma3, frame);
    return this.#usual[1]! >= ONWARD * this.#usual[0]!;
  }

  /** Whether the picture of the four frames before moved to and fro. */
  isShaken(frame: number): boolean {
    this.#findUsual(0, MEASURES.luma1, frame);
    return this.#usual[0]! > MOVES && !this.movesOnward(frame);
  }

  /** Fills a place of `#usual` with the mean of the middle two of four values. */
  #findUsual(place: 0 | 1, measure: Measure, frame: number): void {
    const { values } = this;
    const sum = values[this.placeOf(frame - 4) + measure]! + values[this.placeOf(frame - 3) + measure]! +
      values[this.placeOf(frame - 2) + measure]! + values[this.placeOf(frame - 1) + measure]!;
    const least = values[this.leastBefore(measure, frame, USUAL)]!;
    const largest = values[this.largestBefore(measure, frame, USUAL)]!;
    this.#usual[place] = (sum - least - largest) / (USUAL - 2);
  }

  /** The mean of the middle two of the values of four frames from `first` on. */
  usual(measure: Measure, first: number): number {
    let sum = 0, least = Infinity, largest = -Infinity;
    for (let frame = first; frame < first + USUAL; frame++) {
      const value = this.values[this.placeOf(frame) + measure]!;
      sum += value;
      least = Math.min(least, value);
      largest = Math.max(largest, value);
    }
    return (sum - least - largest) / (USUAL - 2);
  }

  /**
   * Whether light explains more than the part `most` of what changed before a frame, in the shot that began
   * with `first`, on average.
   */
  isLitBefore(frame: number, first: number, most: number): boolean {
    const { values } = this;
    const from = Math.max(first + 1, frame - LIT_FRAMES);
    let light = 0;
    for (let at = from; at < frame; at++) {
      const place = this.placeOf(at);
      light += Math.abs(values[place + MEASURES.lift]!) /
        Math.max(LIT_STEP_MIN, values[place + MEASURES.luma1]!);
    }
    return light / Math.max(1, frame - from) > most;
  }

  /** Place of the largest value in the `frames` frames before `frame`, at least one. */
  largestBefore(measure: Measure, frame: number, frames: number): number {
    let largest = this.placeOf(frame - 1) + measure;
    for (let back = 2; back <= frames; back++) {
      const place = this.placeOf(frame - back) + measure;
      if (this.values[place]! > this.values[largest]!) largest = place;
    }
    return largest;
  }

  /** Place of the smallest value in the `frames` frames before `frame`, at least one. */
  leastBefore(measure: Measure, frame: number, frames: number): number {
    let least = this.placeOf(frame - 1) + measure;
    for (let back = 2; back <= frames; back++) {
      const place = this.placeOf(frame - back) + measure;
      if (this.values[place]! < this.values[least]!) least = place;
    }
    return least;
  }
}
