/** How far a picture that stands still drifts away from what it was: it does in slow motion, and where a
 * codec mends it.
 */

import { CELL_SAMPLES, CELLS, type FrameHistory } from "../ranges/frame_history.ts";

export class PictureDrift {
  /** The largest drift so far, as the mean of all cells, in levels. */
  mean = 0;
  /** The largest drift so far of any cell, in levels. */
  largest = 0;
  readonly #anchor = new Uint16Array(CELLS);
  #hasAnchor = false;

  reset(): void {
    this.mean = this.largest = 0;
    this.#hasAnchor = false;
  }

  /** Makes `frame` the one from which drift counts, unless there is one. */
  anchor(history: FrameHistory, frame: number): void {
    if (this.#hasAnchor) return;
    const at = history.cellsAt(frame);
    for (let cell = 0; cell < CELLS; cell++) this.#anchor[cell] = history.sums[at + cell]!;
    this.#hasAnchor = true;
  }

  /** Takes the drift from the anchor to `frame`, and drops the anchor. */
  measure(history: FrameHistory, frame: number): void {
    if (!this.#hasAnchor) return;
    this.#hasAnchor = false;
    const at = history.cellsAt(frame);
    let sum = 0, most = 0;
    for (let cell = 0; cell < CELLS; cell++) {
      const change = Math.abs(history.sums[at + cell]! - this.#anchor[cell]!);
      sum += change;
      if (change > most) most = change;
    }
    this.mean = Math.max(this.mean, sum / (CELLS * CELL_SAMPLES));
    this.largest = Math.max(this.largest, most / CELL_SAMPLES);
  }
}
