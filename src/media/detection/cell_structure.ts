/** How much two frames differ by their cells, and how alike their structure is: the steps from each luma cell to the next one. */

import {
  CELL_SAMPLES,
  CELLS,
  type FrameHistory,
  LUMA_CELLS,
  LUMA_COLUMNS,
  LUMA_ROWS,
} from "./frame_history.ts";

/** Root of the mean squared steps between neighbouring cells of a frame, in levels; 0 for a picture of one brightness. */
export function roughnessOf(history: FrameHistory, frame: number): number {
  const at = history.cellsAt(frame);
  return Math.sqrt(stepsBetween(history.sums, at, at, 0, 0) / LUMA_CELLS);
}

/** How much the structure of two frames is alike, in [-1,1]; steps of a level count little. */
export function likenessOf(history: FrameHistory, one: number, other: number): number {
  return likenessWithin(history, one, other, 0, 0);
}

/** The same for the best of places up to `across` cells sideways and `along` up or down; may be a little more than 1. */
export function likenessWithin(
  history: FrameHistory,
  one: number,
  other: number,
  across: number,
  along: number,
): number {
  const { sums } = history;
  const a = history.cellsAt(one), b = history.cellsAt(other);
  const size = Math.sqrt(
    (stepsBetween(sums, a, a, 0, 0) + LUMA_CELLS) * (stepsBetween(sums, b, b, 0, 0) + LUMA_CELLS),
  );
  let best = -1;
  for (let down = -along; down <= along; down++) {
    for (let right = -across; right <= across; right++) {
      const whole = LUMA_CELLS / ((LUMA_COLUMNS - Math.abs(right)) * (LUMA_ROWS - Math.abs(down)));
      best = Math.max(best, whole * stepsBetween(sums, a, b, right, down) / size);
    }
  }
  return best;
}

/** Mean absolute difference of the cells of two frames, luma and chroma, in levels. */
export function distanceOf(history: FrameHistory, one: number, other: number): number {
  return history.apart(one, other) / (CELLS * CELL_SAMPLES);
}

/** How many cells of two frames, luma and chroma, differ by more than `levels`. */
export function changedCells(history: FrameHistory, one: number, other: number, levels: number): number {
  const { sums } = history;
  const a = history.cellsAt(one), b = history.cellsAt(other);
  const most = levels * CELL_SAMPLES;
  let changed = 0;
  for (let cell = 0; cell < CELLS; cell++) if (Math.abs(sums[a + cell]! - sums[b + cell]!) > most) changed++;
  return changed;
}

/** The sum of products of the steps to the right and downwards of two frames, in levels; the other frame is moved. */
function stepsBetween(sums: Uint16Array, one: number, other: number, right: number, down: number): number {
  let product = 0;
  const lastColumn = LUMA_COLUMNS - 1 - Math.max(0, right), lastRow = LUMA_ROWS - 1 - Math.max(0, down);
  const move = down * LUMA_COLUMNS + right;
  for (let row = Math.max(0, -down); row <= lastRow; row++) {
    for (let column = Math.max(0, -right); column <= lastColumn; column++) {
      const a = one + row * LUMA_COLUMNS + column;
      const b = other + row * LUMA_COLUMNS + column + move;
      if (column < lastColumn) product += (sums[a + 1]! - sums[a]!) * (sums[b + 1]! - sums[b]!);
      if (row < lastRow) {
        product += (sums[a + LUMA_COLUMNS]! - sums[a]!) * (sums[b + LUMA_COLUMNS]! - sums[b]!);
      }
    }
  }
  return product / (CELL_SAMPLES * CELL_SAMPLES);
}
