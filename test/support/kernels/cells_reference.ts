/** The slow twins of assembly/ranges: what is measured of the cells of frames, cell by cell. */

import { CELLS, type HistoryKernel, LUMA_CELLS } from "../../../src/media/kernels/history_kernel.ts";

const COLUMNS = 20;
const ROWS = 12;
const CELL_SAMPLES = 240;
const WAY_POINTS = 20;

export function cellsOf(history: HistoryKernel, frame: number): number[] {
  const at = frame % history.frames * CELLS;
  return Array.from(history.cells.subarray(at, at + CELLS));
}

export function changed(history: HistoryKernel, one: number, other: number, most: number): number {
  const a = cellsOf(history, one), b = cellsOf(history, other);
  return a.filter((cell, at) => Math.abs(cell - b[at]!) > most).length;
}

/** Numbers in the order of WAYS. */
export function ways(history: HistoryKernel, one: number, other: number, most: number): number[] {
  const points = Math.min(WAY_POINTS, other - one);
  const places = Array.from({ length: points + 1 }, (_, n) => one + Math.round((other - one) * n / points));
  const cells = places.map((place) => cellsOf(history, place));
  let count = 0, straight = 0, sudden = 0, color = 0, all = 0;
  for (let cell = 0; cell < CELLS; cell++) {
    const apart = Math.abs(cells[points]![cell]! - cells[0]![cell]!);
    all += apart;
    if (cell >= LUMA_CELLS) color += apart;
    if (apart <= most) continue;
    const steps = cells.slice(1).map((after, n) => Math.abs(after[cell]! - cells[n]![cell]!));
    const way = steps.reduce((sum, step) => sum + step);
    count++;
    sudden += Math.max(...steps) / way;
    if (apart >= 0.8 * way) straight++;
  }
  return [count, straight, sudden, color, all];
}

/** Numbers in the order of MIXES. */
export function mixes(history: HistoryKernel, one: number, other: number): number[] {
  const quarters = [0, 1, 2, 3, 4].map((part) => one + Math.round((other - one) * part / 4));
  const cells = quarters.map((frame) => cellsOf(history, frame));
  const a = cells[0]!, b = cells[4]!;
  const way = a.map((cell, at) => b[at]! - cell);
  const square = way.reduce((sum, step) => sum + step * step, 0);
  const distance = way.reduce((sum, step) => sum + Math.abs(step), 0);
  let fromMix = 0, fromParts = 0, fromTime = 0, bends = 0;
  for (let part = 1; part < 4; part++) {
    const x = cells[part]!;
    const along = x.reduce((sum, cell, at) => sum + (cell - a[at]!) * way[at]!, 0) / square;
    let offMix = 0, offParts = 0;
    for (let at = 0; at < CELLS; at++) {
      offMix += Math.abs(x[at]! - a[at]! - along * way[at]!);
      offParts += Math.min(Math.abs(x[at]! - a[at]!), Math.abs(x[at]! - b[at]!));
      bends += Math.abs(cells[part - 1]![at]! - 2 * x[at]! + cells[part + 1]![at]!);
    }
    fromMix = Math.max(fromMix, offMix / distance);
    fromParts = Math.max(fromParts, offParts / distance);
    fromTime = Math.max(fromTime, Math.abs(along - (quarters[part]! - one) / (other - one)));
  }
  return [fromMix, fromParts, fromTime, bends / distance];
}

export function roughness(history: HistoryKernel, frame: number): number {
  const cells = cellsOf(history, frame);
  return Math.sqrt(stepsBetween(cells, cells, 0, 0) / LUMA_CELLS);
}

export function likeness(history: HistoryKernel, one: number, other: number, across: number, along: number) {
  const a = cellsOf(history, one), b = cellsOf(history, other);
  const size = Math.sqrt(
    (stepsBetween(a, a, 0, 0) + LUMA_CELLS) * (stepsBetween(b, b, 0, 0) + LUMA_CELLS),
  );
  let best = -1;
  for (let down = -along; down <= along; down++) {
    for (let right = -across; right <= across; right++) {
      const whole = LUMA_CELLS / ((COLUMNS - Math.abs(right)) * (ROWS - Math.abs(down)));
      best = Math.max(best, whole * stepsBetween(a, b, right, down) / size);
    }
  }
  return best;
}

/**
 * The sum of products of the steps to the right and downwards of two frames, in levels; the other frame is
 * moved.
 */
function stepsBetween(a: readonly number[], b: readonly number[], right: number, down: number): number {
  const place = (row: number, column: number) => row * COLUMNS + column;
  let product = 0;
  for (let row = 0; row < ROWS; row++) {
    for (let column = 0; column < COLUMNS; column++) {
      const y = row + down, x = column + right;
      if (y < 0 || y >= ROWS || x < 0 || x >= COLUMNS) continue;
      const own = a[place(row, column)]!, other = b[place(y, x)]!;
      if (Math.max(column, x) < COLUMNS - 1) {
        product += (a[place(row, column + 1)]! - own) * (b[place(y, x + 1)]! - other);
      }
      if (Math.max(row, y) < ROWS - 1) {
        product += (a[place(row + 1, column)]! - own) * (b[place(y + 1, x)]! - other);
      }
    }
  }
  return product / (CELL_SAMPLES * CELL_SAMPLES);
}
