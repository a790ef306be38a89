/** Finds stretches of black frames. */

import type { FrameHistory } from "./frame_history.ts";
import { CELL_SAMPLES, CELLS, LUMA_CELLS } from "./frame_history.ts";
import type { RangeSink } from "./range_sink.ts";

/** Mean luma of a black frame at most; black is 16, or 0 at full range, and cheap recordings lift it a little. */
const MEAN_MAX = 23;
/** Luma levels between the darkest and the brightest cell: more is the end of a fade, or a dark scene. */
const CELL_RANGE_MAX = 4;
/** Samples above 28, of 57,600: more is something bright in the dark. */
const BRIGHT_SAMPLES_MAX = 17;
/** Levels from neutral that the chroma of a cell may be. */
const CHROMA_MAX = 6;

/** A frame is black on its own, so that a range is exact to the frame and a live stream knows at once. */
export class BlackDetector {
  readonly #sink: RangeSink;
  #start = -1;
  #startMs = 0;
  #darkness = 0;

  constructor(sink: RangeSink) {
    this.#sink = sink;
  }

  /** First frame of black that lasts until now; -1 if there is none. */
  get open(): number {
    return this.#start;
  }

  reset(): void {
    this.#start = -1;
  }

  push(history: FrameHistory): void {
    const frame = history.count - 1;
    const darkness = darknessOf(history, frame);
    if (darkness < 0) return this.finish(history, frame - 1);
    if (this.#start < 0) {
      this.#start = frame;
      this.#startMs = history.ptsMs(frame);
      this.#darkness = darkness;
    }
    this.#darkness = Math.min(this.#darkness, darkness);
  }

  finish(history: FrameHistory, last = history.count - 1): void {
    if (this.#start < 0) return;
    const confidence = 0.5 + 0.5 * this.#darkness;
    this.#sink.add("black", this.#start, last, this.#startMs, history.ptsMs(last), confidence);
    this.#start = -1;
  }
}

/** How far from the bounds a black frame is, in [0,1]; -1 for a frame that is not black. */
function darknessOf(history: FrameHistory, frame: number): number {
  const mean = history.lumaMean(frame);
  if (mean > MEAN_MAX) return -1;
  const range = history.brightest(frame) - history.darkest(frame);
  const bright = history.brightSamples(frame);
  if (range > CELL_RANGE_MAX || bright > BRIGHT_SAMPLES_MAX) return -1;
  const { sums } = history;
  const at = history.cellsAt(frame);
  for (let cell = LUMA_CELLS; cell < CELLS; cell++) {
    if (Math.abs(sums[at + cell]! / CELL_SAMPLES - 128) > CHROMA_MAX) return -1;
  }
  return Math.min(
    1,
    (MEAN_MAX - mean) / 4,
    1 - range / CELL_RANGE_MAX,
    1 - bright / (BRIGHT_SAMPLES_MAX + 1),
  );
}
