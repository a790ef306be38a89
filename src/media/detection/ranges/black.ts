/** Finds stretches of black frames. */

import type { FrameHistory } from "./frame_history.ts";
import { CELL_SAMPLES, CELLS, LUMA_CELLS } from "./frame_history.ts";
import { type BoundsOf, confidenceOf, type RangeDetector, type RangeSink } from "./range_sink.ts";

/** What makes a frame black. */
export const BLACK_BOUNDS = {
  /**
   * Highest mean luma of a frame that begins a black stretch. Black is 16, or 0 at full range, and cheap
   * recordings lift it a little.
   */
  meanMax: 23,
  /**
   * Most luma levels between the darkest and the brightest cell: where there are more, a fade is ending, or
   * the scene is only dark.
   */
  cellRangeMax: 4,
  /**
   * Levels that `meanMax` and `cellRangeMax` grow by once black has begun, as a codec rounds a level up and
   * down.
   */
  meanKept: 2,
  cellRangeKept: 1,
  /**
   * `cellRangeMax` where the picture stands still, and below it the most levels by which a cell may change
   * there.
   */
  stillRangeMax: 7,
  stillChangeMax: 0.6,
  /** Samples above 28, of 57,600: more is something bright in the dark. */
  brightSamplesMax: 8,
  /** Levels from neutral that the chroma of a cell may be. */
  chromaMax: 6,
} as const;

export type BlackBounds = BoundsOf<typeof BLACK_BOUNDS>;

/**
 * Finds black stretches. A frame is black on its own, so that a range is exact to the frame and a live stream
 * knows at once.
 */
export class BlackDetector implements RangeDetector {
  readonly #sink: RangeSink;
  readonly #bounds: BlackBounds;
  /** The number of the first black frame among all frames of the stream; -1 for none. */
  #start = -1;
  #startMs = 0;
  #darkness = 0;
  /** First frame of those that are dark and may be black if they stand still; -1 for none. */
  #dark = -1;

  constructor(sink: RangeSink, bounds: BlackBounds = BLACK_BOUNDS) {
    this.#sink = sink;
    this.#bounds = bounds;
  }

  reset(): void {
    this.#start = this.#dark = -1;
  }

  push(history: FrameHistory): void {
    const bounds = this.#bounds;
    const frame = history.count - 1;
    const goesOn = this.#start >= 0;
    const darkness = darknessOf(history, frame, bounds, goesOn ? bounds.meanKept : 0);
    const rangeMax = goesOn ? bounds.cellRangeMax + bounds.cellRangeKept : bounds.cellRangeMax;
    const isPlain = history.brightest(frame) - history.darkest(frame) <= rangeMax;
    const isStill = this.#dark >= 0 && history.largestChange(frame) <= bounds.stillChangeMax;
    if (darkness < 0 || !isPlain && !isStill) {
      this.finish(history, frame - 1);
      this.#dark = darkness < 0 ? -1 : frame;
      return;
    }
    if (this.#start < 0) {
      const start = isStill ? this.#dark : frame;
      this.#start = history.first(start);
      this.#startMs = history.ptsMs(start);
      this.#darkness = darkness;
    }
    if (!isPlain) this.#dark = this.#dark < 0 ? frame : this.#dark;
    this.#darkness = Math.min(this.#darkness, darkness);
  }

  finish(history: FrameHistory, last = history.count - 1): void {
    if (this.#start < 0) return;
    const end = history.last(last), endMs = history.lastMs(last);
    this.#sink.add("black", this.#start, end, this.#startMs, endMs, confidenceOf(this.#darkness));
    this.#start = -1;
  }
}

/**
 * How far inside the bounds of black a frame is, in [0,1]; -1 for a frame that is not black. `meanKept` is
 * added to the highest mean luma.
 */
function darknessOf(
  history: FrameHistory,
  frame: number,
  { meanMax, stillRangeMax, brightSamplesMax, chromaMax }: BlackBounds,
  meanKept: number,
): number {
  const mean = history.lumaMean(frame);
  if (mean > meanMax + meanKept) return -1;
  const range = history.brightest(frame) - history.darkest(frame);
  const bright = history.brightSamples(frame);
  if (range > stillRangeMax || bright > brightSamplesMax) return -1;
  const { sums } = history;
  const at = history.cellsAt(frame);
  for (let cell = LUMA_CELLS; cell < CELLS; cell++) {
    if (Math.abs(sums[at + cell]! / CELL_SAMPLES - 128) > chromaMax) return -1;
  }
  return Math.min(
    Math.max(0, meanMax - mean) / 4,
    1 - range / stillRangeMax,
    1 - bright / (brightSamplesMax + 1),
  );
}
