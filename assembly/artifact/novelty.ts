/** Which parts of the picture are new, gone, or as they were three frames before. */

import { apart, sum8 } from "../lanes";
import { put } from "./measures";

/*
 * A fine cell (the mean of 4x4 luma samples, 80x45 of them) is new by as many levels as it lies outside the
 * range of the 3x3 cells around it in the frame before: what moved by up to a cell is not new. It is gone by
 * as many as the cell of the frame before lies outside the range of the 3x3 cells in this frame. At the ends
 * of a row the range has cells of the rows beside it.
 */

const WIDTH: i32 = 80;
const HEIGHT: i32 = 45;
const CELLS: i32 = 80 * 45;

/**
 * A cell in a strip is new by this at least, while the cells two rows above and below are by that at most.
 */
const STRIP: i8 = 9;
const STRIP_BESIDE: i8 = 2;
/** Levels from which on a cell is much new. */
export const MUCH: u8 = 13;
/**
 * Levels: a cell is new or gone from the first on, much so from the second; it has returned that changed by
 * the third or more, and differs from an older one by the fourth at most.
 */
// deno-fmt-ignore
const LIMITS: usize = memory.data<u8>([
  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH,
  11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11,
  2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
], 16);

/** The largest and the least of the 3x3 cells, of two frames (frame i in slot i % 2). */
const HIGHEST: usize = memory.data(2 * 3600, 16);
const LOWEST: usize = memory.data(2 * 3600, 16);
/** The same of 3x1 cells, with 16 bytes before and behind. */
const TALL_HIGHEST: usize = memory.data(3600 + 32, 16);
const TALL_LOWEST: usize = memory.data(3600 + 32, 16);
/** By how much each cell is new, with two rows before and behind. */
const NEW: usize = memory.data(3600 + 320, 16);

/** How many cells of the newest frame are new by MUCH levels or more. */
export let muchNew: i32 = 0;

/** By how much each of the 80x45 cells of the newest frame is new, in levels. */
export function newCells(): usize {
  return NEW + 2 * WIDTH;
}

/**
 * Measures 23 to 29. The planes of cells are those of the newest frame, of the last one, and of the third one
 * before it.
 */
export function measureNovelty(
  slot: i32,
  own: usize,
  last: usize,
  third: usize,
): void {
  const highest = HIGHEST + slot * CELLS, lowest = LOWEST + slot * CELLS;
  const highestBefore = HIGHEST + (slot ^ 1) * CELLS, lowestBefore = LOWEST + (slot ^ 1) * CELLS;
  findRanges(own, highest, lowest);
  if (own == last) {
    memory.copy(highestBefore, highest, CELLS);
    memory.copy(lowestBefore, lowest, CELLS);
  }
  const some = v128.load(LIMITS), much = v128.load(LIMITS, 16);
  const change = v128.load(LIMITS, 32), left = v128.load(LIMITS, 48);
  // 225 vectors: the counts of a lane fit a byte.
  let newSome = i8x16.splat(0), newMuch = newSome, goneSome = newSome, goneMuch = newSome;
  let returned = newSome;
  for (let i = 0; i < CELLS; i += 16) {
    const cells = v128.load(own + i), before = v128.load(last + i);
    const added = outside(cells, v128.load(highestBefore + i), v128.load(lowestBefore + i));
    const gone = outside(before, v128.load(highest + i), v128.load(lowest + i));
    v128.store(NEW + 2 * WIDTH + i, added);
    // A true lane is -1.
    newSome = i8x16.sub(newSome, i8x16.ge_u(added, some));
    newMuch = i8x16.sub(newMuch, i8x16.ge_u(added, much));
    goneSome = i8x16.sub(goneSome, i8x16.ge_u(gone, some));
    goneMuch = i8x16.sub(goneMuch, i8x16.ge_u(gone, much));
    const hasChanged = i8x16.ge_u(apart(cells, before), change);
    if (!v128.any_true(hasChanged)) continue;
    const isAsBefore = i8x16.le_u(apart(cells, v128.load(third + i)), left);
    returned = i8x16.sub(returned, v128.and(hasChanged, isAsBefore));
  }
  putShare(23, lanesOf(newSome));
  muchNew = lanesOf(newMuch);
  putShare(24, muchNew);
  putShare(25, lanesOf(goneSome));
  putShare(26, lanesOf(goneMuch));
  measureStrips();
  putShare(29, lanesOf(returned));
}

/** Measures 27 and 28: new cells between rows that are not new, on both sides, or on one. */
function measureStrips(): void {
  let between = 0, beside = 0;
  const strip = i8x16.splat(STRIP), calm = i8x16.splat(STRIP_BESIDE);
  for (let i = 0; i < CELLS; i += 16) {
    const isNew = i8x16.ge_u(v128.load(NEW + 2 * WIDTH + i), strip);
    if (!v128.any_true(isNew)) continue;
    const above = i8x16.le_u(v128.load(NEW + i), calm);
    const below = i8x16.le_u(v128.load(NEW + 4 * WIDTH + i), calm);
    between += places(v128.and(isNew, v128.and(above, below)));
    beside += places(v128.and(isNew, v128.or(above, below)));
  }
  putShare(27, between);
  putShare(28, beside);
}

function findRanges(cells: usize, highest: usize, lowest: usize): void {
  memory.fill(TALL_LOWEST, 255, 16);
  memory.fill(TALL_LOWEST + 16 + CELLS, 255, 16);
  for (let row = 0; row < HEIGHT; row++) {
    const own = cells + row * WIDTH;
    const above = row > 0 ? own - WIDTH : own, below = row < HEIGHT - 1 ? own + WIDTH : own;
    const at = 16 + row * WIDTH;
    for (let x = 0; x < WIDTH; x += 16) {
      const a = v128.load(above + x), b = v128.load(own + x), c = v128.load(below + x);
      v128.store(TALL_HIGHEST + at + x, i8x16.max_u(a, i8x16.max_u(b, c)));
      v128.store(TALL_LOWEST + at + x, i8x16.min_u(a, i8x16.min_u(b, c)));
    }
  }
  for (let i = 0; i < CELLS; i += 16) {
    const high = TALL_HIGHEST + 16 + i, low = TALL_LOWEST + 16 + i;
    v128.store(
      highest + i,
      i8x16.max_u(v128.load(high), i8x16.max_u(v128.load(high - 1), v128.load(high + 1))),
    );
    v128.store(lowest + i, i8x16.min_u(v128.load(low), i8x16.min_u(v128.load(low - 1), v128.load(low + 1))));
  }
}

/** By how much cells lie outside a range. */
function outside(cells: v128, highest: v128, lowest: v128): v128 {
  return v128.or(i8x16.sub_sat_u(cells, highest), i8x16.sub_sat_u(lowest, cells));
}

/** The sum of the lanes of counts. */
function lanesOf(counts: v128): i32 {
  return sum8(i16x8.extadd_pairwise_i8x16_u(counts));
}

function places(mask: v128): i32 {
  return popcnt<i32>(i8x16.bitmask(mask));
}

/** In thousandths of the picture. */
function putShare(index: i32, cells: i32): void {
  put(index, <f32> cells * (1000 / <f32> CELLS));
}
