/** What the detectors of ranges need of each frame: sums of cells, differences to the frame before, darkness. */

import { COLOR_CELLS, FINE_ROW_BYTES, ROW_BYTES } from "./cut/layout";
import { apart, sum8, sums4 } from "./lanes";

/*
 * Luma is divided into 20x12 cells of 16x15 samples, each chroma plane into 10x6 cells of 16x15 samples, so every cell
 * has 240 samples, is 4x5 of the fine cells that cuts are found by, and one row of a cell is one vector. All numbers are exact.
 *
 *   CELL_SUMS       360 x u16   sum of the samples of each cell, at most 61,200: 240 of Y, then 60 of U, 60 of V
 *   CELL_MOVES      240 x u16   sum of the absolute differences to the frame before, of the cells of Y; 0 at first
 *   BRIGHT_SAMPLES  i32         samples of Y above BRIGHT; all of them, uncounted, for a frame that is not dark
 *   BEFORE                      Y of the frame before
 */

export const CELL_SUMS: usize = memory.data(360 * 2, 16);
export const CELL_MOVES: usize = memory.data(240 * 2, 16);
export const BRIGHT_SAMPLES: usize = memory.data(4, 16);

const BEFORE: usize = memory.data(57_600, 16);
const LUMA_BYTES: usize = 57_600;
const CELL_ROWS: usize = 15;
const LUMA_CELL_ROWS: usize = 12;
const CHROMA_CELL_ROWS: usize = 6;
const LUMA_STRIDE: usize = 320;

const BRIGHT: u8 = 28;
/** The luma sum of a frame whose mean is 32. */
const DARK_SUM: u32 = 32 * 57_600;
/** So many vectors are counted in bytes. */
const COUNTED_AT_ONCE: usize = 200 * 16;

/**
 * Measures the newest frame that cuts were looked for in: Y at address `plane`, any alignment, the samples of which add up to
 * `lumaSum`, and its fine cells of luma at `fine`. Keeps Y for the next one.
 */
export function measureRanges(plane: usize, fine: usize, lumaSum: u32, isFirst: bool): void {
  if (isFirst) memory.copy(BEFORE, plane, LUMA_BYTES);
  measureMoves(plane);
  store<i32>(BRIGHT_SAMPLES, lumaSum < DARK_SUM ? countBright(plane) : <i32> LUMA_BYTES);
  sumCells(fine, FINE_ROW_BYTES, LUMA_CELL_ROWS, CELL_SUMS);
  // The rows of U, and then those of V.
  sumCells(COLOR_CELLS, ROW_BYTES, 2 * CHROMA_CELL_ROWS, CELL_SUMS + 240 * 2);
}

/** Four cells at a time, as wide as a line of the processor's cache. */
function measureMoves(plane: usize): void {
  let cell = CELL_MOVES;
  for (let row: usize = 0; row < LUMA_CELL_ROWS; row++) {
    for (let column: usize = 0; column < LUMA_STRIDE; column += 64) {
      const from = row * CELL_ROWS * LUMA_STRIDE + column;
      let first = i16x8.splat(0), second = first, third = first, fourth = first;
      for (let at = from; at < from + CELL_ROWS * LUMA_STRIDE; at += LUMA_STRIDE) {
        first = i16x8.add(first, movedAt(plane + at, BEFORE + at));
        second = i16x8.add(second, movedAt(plane + at + 16, BEFORE + at + 16));
        third = i16x8.add(third, movedAt(plane + at + 32, BEFORE + at + 32));
        fourth = i16x8.add(fourth, movedAt(plane + at + 48, BEFORE + at + 48));
      }
      const sums = sums4(pairsOf(first), pairsOf(second), pairsOf(third), pairsOf(fourth));
      v128.store64_lane(cell, i16x8.narrow_i32x4_u(sums, sums), 0);
      cell += 8;
    }
  }
}

function movedAt(plane: usize, before: usize): v128 {
  const now = v128.load(plane);
  const change = apart(now, v128.load(before));
  v128.store(before, now);
  return i16x8.extadd_pairwise_i8x16_u(change);
}

function pairsOf(words: v128): v128 {
  return i32x4.extadd_pairwise_i16x8_u(words);
}

/** Adds up 4x5 fine cells of at most 3060, so five of them and two of those sums fit an i16, and a cell a u16. */
function sumCells(fine: usize, stride: usize, rows: usize, sums: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    for (let x: usize = 0; x < stride; x += 16) {
      const at = fine + row * 5 * stride + x;
      let columns = i16x8.add(v128.load(at), v128.load(at + stride));
      columns = i16x8.add(columns, i16x8.add(v128.load(at + 2 * stride), v128.load(at + 3 * stride)));
      columns = i16x8.add(columns, v128.load(at + 4 * stride));
      const pairs = i32x4.dot_i16x8_s(columns, i16x8.splat(1));
      const cells = i32x4.extadd_pairwise_i16x8_u(i16x8.narrow_i32x4_u(pairs, pairs));
      v128.store32_lane(sums, i16x8.narrow_i32x4_u(cells, cells), 0);
      sums += 4;
    }
  }
}

function countBright(plane: usize): i32 {
  let total = 0;
  for (let from = plane; from < plane + LUMA_BYTES; from += COUNTED_AT_ONCE) {
    let counts = i8x16.splat(0);
    for (let at = from; at < from + COUNTED_AT_ONCE; at += 16) {
      // A true lane is -1.
      counts = i8x16.sub(counts, i8x16.gt_u(v128.load(at), i8x16.splat(BRIGHT)));
    }
    total += sum8(i16x8.extadd_pairwise_i8x16_u(counts));
  }
  return total;
}
