/** How alike the structure of two frames is: the steps from each luma cell to the next one. */

import { CELL_SAMPLES, cellsOf, LUMA_CELLS } from "./layout";

const COLUMNS: i32 = 20;
const ROWS: i32 = 12;
/** Steps in a row: those of the 20 cells, the last of which has none, and two that stay 0. */
const ROW_STEPS: usize = 22;
const ROW_BYTES: usize = 22 * 8;
const AREA: f64 = <f64> (CELL_SAMPLES * CELL_SAMPLES);

/** Of each luma cell of two frames the step to the cell on its right, and to the one below; f64. */
const RIGHT_A: usize = memory.data(12 * 22 * 8, 16);
const DOWN_A: usize = memory.data(12 * 22 * 8, 16);
const RIGHT_B: usize = memory.data(12 * 22 * 8, 16);
const DOWN_B: usize = memory.data(12 * 22 * 8, 16);

/** Root of the mean squared steps between neighbouring cells, in levels. */
export function roughness(frame: i32): f64 {
  readSteps(frame, RIGHT_A, DOWN_A);
  return sqrt<f64>(products(RIGHT_A, DOWN_A, RIGHT_A, DOWN_A, 0, 0) / <f64> LUMA_CELLS);
}

/**
 * How much the structure of two frames is alike for the best of places up to `across` cells sideways and
 * `along` up or down: 1 where it is the same, at most a little more; steps of a level count little.
 */
export function likeness(one: i32, other: i32, across: i32, along: i32): f64 {
  readSteps(one, RIGHT_A, DOWN_A);
  readSteps(other, RIGHT_B, DOWN_B);
  const own = products(RIGHT_A, DOWN_A, RIGHT_A, DOWN_A, 0, 0) + <f64> LUMA_CELLS;
  const others = products(RIGHT_B, DOWN_B, RIGHT_B, DOWN_B, 0, 0) + <f64> LUMA_CELLS;
  const size = sqrt<f64>(own * others);
  let best: f64 = -1;
  for (let down = -along; down <= along; down++) {
    for (let right = -across; right <= across; right++) {
      const whole = <f64> LUMA_CELLS / <f64> ((COLUMNS - abs(right)) * (ROWS - abs(down)));
      best = max(best, whole * products(RIGHT_A, DOWN_A, RIGHT_B, DOWN_B, right, down) / size);
    }
  }
  return best;
}

function readSteps(frame: i32, rights: usize, downs: usize): void {
  const cells = cellsOf(frame);
  for (let row = 0; row < ROWS; row++) {
    let at = cells + row * COLUMNS * 2;
    let right = rights + row * ROW_BYTES, down = downs + row * ROW_BYTES;
    for (let column = 0; column < COLUMNS; column += 4) {
      const own = v128.load16x4_u(at);
      storeSteps(right, i32x4.sub(v128.load16x4_u(at, 2), own));
      if (row < ROWS - 1) storeSteps(down, i32x4.sub(v128.load16x4_u(at, COLUMNS * 2), own));
      at += 8;
      right += 32;
      down += 32;
    }
    // The last cell of a row has none to its right.
    store<f64>(rights + row * ROW_BYTES, 0, (COLUMNS - 1) * 8);
  }
}

function storeSteps(to: usize, steps: v128): void {
  v128.store(to, f64x2.convert_low_i32x4_s(steps));
  v128.store(to, f64x2.convert_low_i32x4_s(v128.shuffle<i32>(steps, steps, 2, 3, 2, 3)), 16);
}

/**
 * The sum of the products of the steps of two frames, of which the second is moved, in levels. The steps are
 * whole numbers, so that an f64 holds their sum exactly. Where there is no step there is a 0, so rows are
 * read to their end.
 */
function products(right: usize, down: usize, otherRight: usize, otherDown: usize, x: i32, y: i32): f64 {
  let across = f64x2.splat(0), along = across;
  const first = max(0, -x), pairs = (COLUMNS - abs(x) + 1) >> 1;
  const last = ROWS - 1 - max(0, y);
  for (let row = max(0, -y); row <= last; row++) {
    let at = (row * <i32> ROW_STEPS + first) << 3;
    const end = at + (pairs << 4), moved = (y * <i32> ROW_STEPS + x) << 3;
    for (; at < end; at += 16) {
      across = f64x2.add(across, f64x2.mul(v128.load(right + at), v128.load(otherRight + at + moved)));
      along = f64x2.add(along, f64x2.mul(v128.load(down + at), v128.load(otherDown + at + moved)));
    }
  }
  const sums = f64x2.add(across, along);
  return (f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1)) / AREA;
}
