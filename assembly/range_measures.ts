/** What the detectors of ranges need of each frame beside CELL_MOVES of luma.ts: sums of cells, darkness. */

import { COLOR_CELLS, FINE_ROW_BYTES, ROW_BYTES } from "./cut/layout";
import { ONE_WORDS, sum8 } from "./lanes";

/*
 * Luma is divided into 20x12 cells of 16x15 samples, each chroma plane into 10x6 cells of 16x15 samples, so
 * every cell has 240 samples, is 4x5 of the fine cells that cuts are found by, and one row of a cell is one
 * vector. All numbers are exact.
 *
 *   CELL_SUMS       360 x u16   sum of the samples of each cell, at most 61,200: 240 of Y, then 60 of U, 60 of V
 *   BRIGHT_SAMPLES  i32         samples of Y above BRIGHTEST; all of them, uncounted, for a frame that is not dark
 */

export const CELL_SUMS: usize = memory.data(360 * 2, 16);
export const BRIGHT_SAMPLES: usize = memory.data(4, 16);

const LUMA_BYTES: usize = 57_600;
const LUMA_CELL_ROWS: usize = 12;
const CHROMA_CELL_ROWS: usize = 6;

/** The brightest level of a dark sample. */
const BRIGHTEST: usize = memory.data<u8>(
  [28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28],
  16,
);
/** The luma sum of a frame whose mean is 32. */
const DARK_SUM: u32 = 32 * 57_600;
/** So many vectors are counted in bytes. */
const COUNTED_AT_ONCE: usize = 200 * 16;

/**
 * Measures the newest frame that cuts were looked for in: Y at address `plane`, any alignment, the samples of
 * which add up to `lumaSum`, and its fine cells of luma at `fine`.
 */
export function measureRanges(plane: usize, fine: usize, lumaSum: u32): void {
  store<i32>(BRIGHT_SAMPLES, lumaSum < DARK_SUM ? countBright(plane) : <i32> LUMA_BYTES);
  sumCells(fine, FINE_ROW_BYTES, LUMA_CELL_ROWS, CELL_SUMS);
  // The rows of U, and then those of V.
  sumCells(COLOR_CELLS, ROW_BYTES, 2 * CHROMA_CELL_ROWS, CELL_SUMS + 240 * 2);
}

/**
 * Adds up 4x5 fine cells of at most 3060, so five of them and two of those sums fit an i16, and a cell a u16.
 */
function sumCells(fine: usize, stride: usize, rows: usize, sums: usize): void {
  const ones = v128.load(ONE_WORDS);
  for (let row: usize = 0; row < rows; row++) {
    for (let x: usize = 0; x < stride; x += 16) {
      const at = fine + row * 5 * stride + x;
      let columns = i16x8.add(v128.load(at), v128.load(at + stride));
      columns = i16x8.add(columns, i16x8.add(v128.load(at + 2 * stride), v128.load(at + 3 * stride)));
      columns = i16x8.add(columns, v128.load(at + 4 * stride));
      const pairs = i32x4.dot_i16x8_s(columns, ones);
      const cells = i32x4.extadd_pairwise_i16x8_u(i16x8.narrow_i32x4_u(pairs, pairs));
      v128.store32_lane(sums, i16x8.narrow_i32x4_u(cells, cells), 0);
      sums += 4;
    }
  }
}

function countBright(plane: usize): i32 {
  const bright = v128.load(BRIGHTEST);
  let dark = 0;
  for (let from = plane; from < plane + LUMA_BYTES; from += COUNTED_AT_ONCE) {
    // A true lane is -1.
    let counts = i8x16.splat(0);
    for (let at = from; at < from + COUNTED_AT_ONCE; at += 64) {
      const left = i8x16.add(i8x16.le_u(v128.load(at), bright), i8x16.le_u(v128.load(at, 16), bright));
      const right = i8x16.add(i8x16.le_u(v128.load(at, 32), bright), i8x16.le_u(v128.load(at, 48), bright));
      counts = i8x16.add(counts, i8x16.add(left, right));
    }
    dark += sum8(i16x8.extadd_pairwise_i8x16_u(i8x16.neg(counts)));
  }
  return <i32> LUMA_BYTES - dark;
}
