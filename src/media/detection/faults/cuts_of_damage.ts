/** Cuts that are none: where lost parts of the picture appear, and where the picture from before them comes
 * back.
 */

import { CELLS, LUMA_CELLS } from "../ranges/frame_history.ts";

/** How many frames are kept, a power of two: those that wait for their decision, and the one before. */
const KEPT = 16;
/**
 * The picture is back where its difference to the frame before the damage is at most this part of what the
 * cut changes.
 */
const BACK = 0.5;
/** Least correlation with the cells of the frame before the damage, where the picture is back. */
const ALIKE = 0.85;

/**
 * Tells which cuts are none. Frame i is in slot i % KEPT; frames are pushed in order and judged in order.
 * Allocates nothing per frame.
 */
export class CutsOfDamage {
  #count = 0;
  #wasDamaged = false;
  readonly #cells = new Uint16Array(KEPT * CELLS);
  /** The luma cells of the last frame before the damage. */
  readonly #before = new Uint16Array(LUMA_CELLS);

  reset(): void {
    this.#count = 0;
    this.#wasDamaged = false;
  }

  /** Takes the cells of the next frame; those of luma, which come first, are compared. */
  push(cellSums: Uint16Array): void {
    this.#cells.set(cellSums, (this.#count++ % KEPT) * CELLS);
  }

  /** Whether a cut at the frame is none. `isLost`: it is the first one with lost parts. */
  isNone(frame: number, isCut: boolean, isDamaged: boolean, isLost: boolean): boolean {
    const isBegin = isDamaged && !this.#wasDamaged;
    const isEnd = isCut && this.#wasDamaged && !isDamaged;
    this.#wasDamaged = isDamaged;
    if (isBegin && frame > 0) {
      const at = ((frame - 1) % KEPT) * CELLS;
      for (let cell = 0; cell < LUMA_CELLS; cell++) this.#before[cell] = this.#cells[at + cell]!;
    }
    return isCut && (isBegin && isLost || isEnd && this.#isBack(frame));
  }

  #isBack(frame: number): boolean {
    const at = (frame % KEPT) * CELLS, last = ((frame - 1) % KEPT) * CELLS;
    let step = 0, rest = 0, sum = 0, sumBefore = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      const value = this.#cells[at + cell]!, before = this.#before[cell]!;
      step += Math.abs(value - this.#cells[last + cell]!);
      rest += Math.abs(value - before);
      sum += value;
      sumBefore += before;
    }
    if (rest > BACK * step) return false;
    const mean = sum / LUMA_CELLS, meanBefore = sumBefore / LUMA_CELLS;
    let both = 0, squares = 0, squaresBefore = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      const value = this.#cells[at + cell]! - mean, before = this.#before[cell]! - meanBefore;
      both += value * before;
      squares += value * value;
      squaresBefore += before * before;
    }
    return both > 0 && both * both >= ALIKE * ALIKE * squares * squaresBefore;
  }
}
