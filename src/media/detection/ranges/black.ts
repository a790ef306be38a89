/** Finds stretches of black frames. */

import type { FrameHistory } from "./frame_history.ts";
import { CELL_SAMPLES, CELLS, LUMA_CELLS } from "./frame_history.ts";
import { confidenceOf, type RangeDetector, type RangeSink } from "./range_sink.ts";

/**
 * Highest mean luma of a frame that begins a black stretch. Black is 16, or 0 at full range, and cheap
 * recordings lift it a little.
 */
const MEAN_MAX = 23;
/**
 * Most luma levels between the darkest and the brightest cell: where there are more, a fade is ending, or the
 * scene is only dark.
 */
const CELL_RANGE_MAX = 4;
/**
 * Levels that MEAN_MAX and CELL_RANGE_MAX grow by once black has begun, as a codec rounds a level up and
 * down.
 */
const MEAN_KEPT = 2;
const CELL_RANGE_KEPT = 1;
/**
 * CELL_RANGE_MAX where the picture stands still, and below it the most levels by which a cell may change
 * there.
 */
const STILL_RANGE_MAX = 7;
const STILL_CHANGE_MAX = 0.6;
/** Samples above 28, of 57,600: more is something bright in the dark. */
const BRIGHT_SAMPLES_MAX = 8;
/** Levels from neutral that the chroma of a cell may be. */
const CHROMA_MAX = 6;

/**
 * Finds black stretches. A frame is black on its own, so that a range is exact to the frame and a live stream
 * knows at once.
 */
export class BlackDetector implements RangeDetector {
  readonly #sink: RangeSink;
  /** The number of the first black frame among all frames of the stream; -1 for none. */
  #start = -1;
  #startMs = 0;
  #darkness = 0;
  /** First frame of those that are dark and may be black if they stand still; -1 for none. */
  #dark = -1;

  constructor(sink: RangeSink) {
    this.#sink = sink;
  }

  reset(): void {
    this.#start = this.#dark = -1;
  }

  push(history: FrameHistory): void {
    const frame = history.count - 1;
    const goesOn = this.#start >= 0;
    const darkness = darknessOf(history, frame, goesOn ? MEAN_MAX + MEAN_KEPT : MEAN_MAX);
    const rangeMax = goesOn ? CELL_RANGE_MAX + CELL_RANGE_KEPT : CELL_RANGE_MAX;
    const isPlain = history.brightest(frame) - history.darkest(frame) <= rangeMax;
    const isStill = this.#dark >= 0 && history.largestChange(frame) <= STILL_CHANGE_MAX;
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

/** How far inside the bounds of black a frame is, in [0,1]; -1 for a frame that is not black. */
function darknessOf(history: FrameHistory, frame: number, meanMax: number): number {
  const mean = history.lumaMean(frame);
  if (mean > meanMax) return -1;
  const range = history.brightest(frame) - history.darkest(frame);
  const bright = history.brightSamples(frame);
  if (range > STILL_RANGE_MAX || bright > BRIGHT_SAMPLES_MAX) return -1;
  const { sums } = history;
  const at = history.cellsAt(frame);
  for (let cell = LUMA_CELLS; cell < CELLS; cell++) {
    if (Math.abs(sums[at + cell]! / CELL_SAMPLES - 128) > CHROMA_MAX) return -1;
  }
  return Math.min(
    Math.max(0, MEAN_MAX - mean) / 4,
    1 - range / STILL_RANGE_MAX,
    1 - bright / (BRIGHT_SAMPLES_MAX + 1),
  );
}
