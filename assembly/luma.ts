/** Measures a 320x180 luma plane in one pass: the exact sum, the sum of squares, and a 32x36 grid of box sums. */

import { sum4 } from "./lanes";

/*
 * The plane is divided into 36 bands of 5 rows, and each band into 32 cells of 10x5 pixels. So every pixel is in
 * exactly one cell, and no weights are needed:
 *
 *   5 rows of 320 bytes  ->  160 sums of 2x5 pixels (u16)  ->  32 sums of 10x5 pixels (u16, at most 12750)
 *
 *   PAIRS  160 x u16   the current band, and 8 unused bytes, because a cell is read as 4 + 1 lanes
 *   CELLS  36 x 32 x i16   cell sum - 6375: centred, so that the hash can use signed 16-bit multiplications
 */

export const PLANE_BYTES: usize = 320 * 180;
export const CELL_COLUMNS: usize = 32;
export const CELL_ROWS: usize = 36;
export const CELLS: usize = memory.data(32 * 36 * 2, 16);

const PAIRS: usize = memory.data(160 * 2 + 8, 16);
const ROW_BYTES: usize = 320;
const BAND_BYTES: usize = 5 * 320;
const HALF_CELL: i32 = 6375;

let sum: u32 = 0;
let squareSum: u32 = 0;

/** Sum of all samples of the last plane, at most 14,688,000. */
export function lumaSum(): u32 {
  return sum;
}

/** Sum of the squares of all samples of the last plane, at most 3,745,440,000. */
export function lumaSquareSum(): u32 {
  return squareSum;
}

/** Measures the plane at address `plane` (any alignment) and fills CELLS. */
export function measurePlane(plane: usize): void {
  let squares = i32x4.splat(0);
  let total: u32 = 0;
  for (let band: usize = 0; band < CELL_ROWS; band++) {
    squares = i32x4.add(squares, sumBand(plane + band * BAND_BYTES));
    total += foldBand(CELLS + band * CELL_COLUMNS * 2);
  }
  sum = total;
  // At most 3.75e9, which needs all bits of a u32.
  squareSum = <u32> sum4(squares);
}

/** Fills PAIRS from five rows and returns the sum of their squared samples, in four lanes. */
function sumBand(rows: usize): v128 {
  let squares = i32x4.splat(0);
  for (let x: usize = 0; x < ROW_BYTES; x += 16) {
    const first = v128.load(rows + x);
    const second = v128.load(rows + x + ROW_BYTES);
    const third = v128.load(rows + x + 2 * ROW_BYTES);
    const fourth = v128.load(rows + x + 3 * ROW_BYTES);
    const fifth = v128.load(rows + x + 4 * ROW_BYTES);
    const upper = i16x8.add(pairSums(first), pairSums(second));
    const lower = i16x8.add(pairSums(third), pairSums(fourth));
    v128.store(PAIRS + x, i16x8.add(i16x8.add(upper, lower), pairSums(fifth)));
    squares = i32x4.add(squares, i32x4.add(squareSums(first), squareSums(second)));
    squares = i32x4.add(squares, i32x4.add(squareSums(third), squareSums(fourth)));
    squares = i32x4.add(squares, squareSums(fifth));
  }
  return squares;
}

/** 16 samples -> 8 sums of two horizontal neighbours. */
function pairSums(samples: v128): v128 {
  return i16x8.add(evenSamples(samples), oddSamples(samples));
}

/** 16 samples -> 4 partial sums of their squares. */
function squareSums(samples: v128): v128 {
  const even = evenSamples(samples);
  const odd = oddSamples(samples);
  return i32x4.add(i32x4.dot_i16x8_s(even, even), i32x4.dot_i16x8_s(odd, odd));
}

/** Samples 0, 2, 4 and so on, one in each 16-bit lane. */
function evenSamples(samples: v128): v128 {
  return v128.and(samples, i16x8.splat(0xff));
}

/** Samples 1, 3, 5 and so on. */
function oddSamples(samples: v128): v128 {
  return i16x8.shr_u(samples, 8);
}

/** Writes the band's 32 centred cells and returns the sum of its samples. */
function foldBand(cells: usize): u32 {
  let total: u32 = 0;
  for (let cell: usize = 0; cell < CELL_COLUMNS; cell++) {
    const pairs = PAIRS + cell * 10;
    // One multiplication sums four u16 lanes: the top lane of x * 0x0001000100010001 is their sum.
    const four = <u32> ((load<u64>(pairs) * 0x0001000100010001) >> 48);
    const cellSum = four + <u32> load<u16>(pairs + 8);
    store<i16>(cells + cell * 2, <i16> (<i32> cellSum - HALF_CELL));
    total += cellSum;
  }
  return total;
}
