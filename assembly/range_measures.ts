/** What the detectors of ranges need of each frame: sums of cells, differences to the frame before, darkness. */

import { apart, sum4, sum8 } from "./lanes";

/*
 * Luma is divided into 20x12 cells of 16x15 samples, each chroma plane into 10x6 cells of 16x15 samples, so every cell
 * has 240 samples and one row of a cell is one vector. All numbers are exact.
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
const CHROMA_BYTES: usize = 14_400;
const CELL_ROWS: usize = 15;
const LUMA_CELL_COLUMNS: usize = 20;
const LUMA_CELL_ROWS: usize = 12;
const CHROMA_CELL_COLUMNS: usize = 10;
const CHROMA_CELL_ROWS: usize = 6;
const LUMA_STRIDE: usize = 320;
const CHROMA_STRIDE: usize = 160;

const BRIGHT: u8 = 28;
/** The luma sum of a frame whose mean is 32. */
const DARK_SUM: u32 = 32 * 57_600;

/**
 * Measures the frame (Y, U, V) at address `frame`, any alignment, the samples of whose Y add up to `lumaSum`. Keeps its Y for
 * the next one.
 */
export function measureRanges(frame: usize, lumaSum: u32, isFirst: bool): void {
  if (isFirst) memory.copy(BEFORE, frame, LUMA_BYTES);
  measureLuma(frame);
  store<i32>(BRIGHT_SAMPLES, lumaSum < DARK_SUM ? countBright(frame) : <i32> LUMA_BYTES);
  sumChroma(frame + LUMA_BYTES, CELL_SUMS + 240 * 2);
  sumChroma(frame + LUMA_BYTES + CHROMA_BYTES, CELL_SUMS + 300 * 2);
}

function measureLuma(plane: usize): void {
  let cell: usize = 0;
  for (let row: usize = 0; row < LUMA_CELL_ROWS; row++) {
    for (let column: usize = 0; column < LUMA_CELL_COLUMNS; column++) {
      let offset = row * CELL_ROWS * LUMA_STRIDE + (column << 4);
      let total = i16x8.splat(0);
      let moved = total;
      for (let line: usize = 0; line < CELL_ROWS; line++) {
        const now = v128.load(plane + offset);
        const then = v128.load(BEFORE + offset);
        total = i16x8.add(total, i16x8.extadd_pairwise_i8x16_u(now));
        moved = i16x8.add(moved, i16x8.extadd_pairwise_i8x16_u(apart(now, then)));
        v128.store(BEFORE + offset, now);
        offset += LUMA_STRIDE;
      }
      store<u16>(CELL_SUMS + cell, <u16> sum8(total));
      store<u16>(CELL_MOVES + cell, <u16> sum8(moved));
      cell += 2;
    }
  }
}

function sumChroma(plane: usize, sums: usize): void {
  for (let row: usize = 0; row < CHROMA_CELL_ROWS; row++) {
    for (let column: usize = 0; column < CHROMA_CELL_COLUMNS; column++) {
      let at = plane + row * CELL_ROWS * CHROMA_STRIDE + (column << 4);
      let total = i16x8.splat(0);
      for (let line: usize = 0; line < CELL_ROWS; line++) {
        total = i16x8.add(total, i16x8.extadd_pairwise_i8x16_u(v128.load(at)));
        at += CHROMA_STRIDE;
      }
      store<u16>(sums, <u16> sum8(total));
      sums += 2;
    }
  }
}

function countBright(plane: usize): i32 {
  let total = i32x4.splat(0);
  for (let at: usize = 0; at < LUMA_BYTES; at += 16) {
    const above = i8x16.min_u(i8x16.sub_sat_u(v128.load(plane + at), i8x16.splat(BRIGHT)), i8x16.splat(1));
    total = i32x4.add(total, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(above)));
  }
  return sum4(total);
}
