/** The measures of the newest frames that faults are decided on, by name. Allocates nothing per frame. */

/** What the kernel measures of a frame, in its order; see assembly/artifact.ts. */
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
  /** Straight edges along rows: all, those that are new, and those that are gone; in thousandths of the places. */
  edgesAcross: 17,
  edgesAcrossNew: 18,
  edgesAcrossGone: 19,
  /** The same down columns. */
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
  /** Short straight borders where the picture is new: how many, and how clearly they lie on a grid of blocks; 1 is chance. */
  borders: 30,
  borderGrid: 31,
  /** Such borders of frames before that are still there, how clearly they lie on a grid, and how many are newly missing. */
  heldBorders: 32,
  heldGrid: 33,
  lostBorders: 34,
  /** Mean of how far neighbouring lines go up and down in turn, in levels; 0 where no lines were measured. */
  alternation: 35,
  /**
   * Where lines alternate: how much more the one field differs from an older frame than the other does, as a share of what the fields
   * differ by, positive where the other field is the older one; and by how much less both differ from the frame before than from each other.
   */
  fieldsApart: 36,
  fieldsBefore: 37,
} as const;

/** One of MEASURES: a number, as a name would be looked up anew at each use. */
export type Measure = (typeof MEASURES)[keyof typeof MEASURES];

export const MEASURE_COUNT = 38;

/** Frames of which the usual change is taken. */
const USUAL = 4;
/** Three steps lead at least so many times as far as one where the camera is not shaken, and does not stand still: least change in levels. */
const ONWARD = 1.65;
const MOVES = 1.5;

/** Frames of which the share of light is taken, and levels that each counts as at least. */
const LIT_FRAMES = 10;
const LIT_STEP_MIN = 1;

/** How many frames are kept, a power of two: the longest look back and the look-ahead. */
const KEPT = 64;

/** Frame i is in slot i % KEPT. */
export class ArtifactMeasures {
  /** Frames since the start. */
  count = 0;
  readonly #values = new Float64Array(KEPT * MEASURE_COUNT);

  /** Adds the next frame. */
  push(measures: Float32Array): void {
    this.#values.set(measures, (this.count % KEPT) * MEASURE_COUNT);
    this.count++;
  }

  reset(): void {
    this.count = 0;
  }

  /** A measure of a frame; of one outside the stream that of the first or the newest frame. */
  at(measure: Measure, frame: number): number {
    const known = Math.max(0, Math.min(frame, this.count - 1));
    return this.#values[(known % KEPT) * MEASURE_COUNT + measure]!;
  }

  /** Change of luma and chroma to the frame before. */
  change(frame: number): number {
    return this.at(MEASURES.luma1, frame) + this.at(MEASURES.chroma1, frame);
  }

  /** By how much a frame is brighter than the one before: below 0 where it is darker. */
  lift(frame: number): number {
    return this.at(MEASURES.lumaMean, frame) - this.at(MEASURES.lumaMean, frame - 1);
  }

  /** The mean of the middle two of the values of four frames from `first` on. */
  usual(measure: Measure, first: number): number {
    let sum = 0, least = Infinity, largest = -Infinity;
    for (let frame = first; frame < first + USUAL; frame++) {
      const value = this.at(measure, frame);
      sum += value;
      least = Math.min(least, value);
      largest = Math.max(largest, value);
    }
    return (sum - least - largest) / (USUAL - 2);
  }

  /** Whether the motion of the four frames before leads onward: a shaken camera goes back. */
  movesOnward(frame: number): boolean {
    return this.usual(MEASURES.luma3, frame - USUAL) >= ONWARD * this.usual(MEASURES.luma1, frame - USUAL);
  }

  /** Whether the picture of the four frames before moved to and fro. */
  isShaken(frame: number): boolean {
    return this.usual(MEASURES.luma1, frame - USUAL) > MOVES && !this.movesOnward(frame);
  }

  /** The part of what changed before a frame, in the shot that began with `first`, that light explains, on average; 0 where nothing was before. */
  lightBefore(frame: number, first: number): number {
    const from = Math.max(first + 1, frame - LIT_FRAMES);
    let light = 0;
    for (let at = from; at < frame; at++) {
      light += Math.abs(this.lift(at)) / Math.max(LIT_STEP_MIN, this.at(MEASURES.luma1, at));
    }
    return light / Math.max(1, frame - from);
  }

  /** The largest value in the frames before `frame`. */
  largestBefore(measure: Measure, frame: number, frames: number): number {
    let largest = -Infinity;
    for (let back = 1; back <= frames; back++) largest = Math.max(largest, this.at(measure, frame - back));
    return largest;
  }

  /** The smallest value in the frames before `frame`. */
  leastBefore(measure: Measure, frame: number, frames: number): number {
    let least = Infinity;
    for (let back = 1; back <= frames; back++) least = Math.min(least, this.at(measure, frame - back));
    return least;
  }
}
