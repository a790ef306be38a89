/**
 * Measures a 320x180 luma plane in one pass: the exact sum, the sum of squares, a 32x36 grid of box sums, the fine cells that cuts are
 * found by, and how much each cell of the ranges moved.
 */

import { apart, LOW_BYTES, ONE_WORDS, sum4, sums4 } from "./lanes";

/*
 * The plane is read in strips of 16x15 samples, of which all measures are made at once:
 *
 *   3 x 5 rows of 320 bytes  ->  160 sums of 2x5 samples (u16)  ->  32 sums of 10x5 samples (u16, at most 12750)
 *   5 x 3 rows of 320 bytes  ->  160 sums of 2x3 samples        ->  80 sums of 4x3 samples (i16, at most 3060)
 *   15 rows beside those of BEFORE  ->  20 sums of 16x15 differences (u16, at most 61200)
 *
 *   PAIRS       3 x 160 x u16   of the current 15 rows, and 32 unused bytes, because a cell is read as a whole vector
 *   CELLS       36 x 32 x i16   cell sum - 6375: centred, so that the hash can use signed 16-bit multiplications
 *   CELL_MOVES  12 x 20 x u16   sum of the absolute differences to the frame before, of cells of 16x15 samples; 0 at first
 *   BEFORE                      Y of the frame before
 */

export const PLANE_BYTES: usize = 320 * 180;
export const CELL_COLUMNS: usize = 32;
export const CELL_ROWS: usize = 36;
export const CELLS: usize = memory.data(32 * 36 * 2, 16);
export const CELL_MOVES: usize = memory.data(240 * 2, 16);

const BEFORE: usize = memory.data(57_600, 16);
const PAIRS: usize = memory.data(3 * 160 * 2 + 32, 16);
const PAIRS_BYTES: usize = 160 * 2;
/** Four partial sums of the moves of each cell of the current 15 rows. */
const MOVES: usize = memory.data(20 * 16, 16);
const ROW_BYTES: usize = 320;
const BAND_BYTES: usize = 15 * 320;
const BANDS: usize = 12;
const FINE_ROW_BYTES: usize = 160;
const HALF_CELL: i16 = 6375;

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

/**
 * Measures the plane at address `plane` (any alignment), fills CELLS and CELL_MOVES, and writes the 60 x 80 x i16 sums of 4x3 samples to
 * `fine`. Keeps the plane for the next one.
 */
export function measurePlane(plane: usize, fine: usize, isFirst: bool): void {
  if (isFirst) memory.copy(BEFORE, plane, PLANE_BYTES);
  let squares = i32x4.splat(0);
  let totals = i32x4.splat(0);
  for (let band: usize = 0; band < BANDS; band++) {
    const at = band * BAND_BYTES;
    squares = i32x4.add(squares, sumStrips(plane + at, BEFORE + at, fine + band * 5 * FINE_ROW_BYTES));
    for (let row: usize = 0; row < 3; row++) {
      totals = i32x4.add(
        totals,
        foldRow(PAIRS + row * PAIRS_BYTES, CELLS + (band * 3 + row) * CELL_COLUMNS * 2),
      );
    }
    foldMoves(CELL_MOVES + band * 40);
  }
  sum = sum4(totals);
  // At most 3.75e9, which needs all bits of a u32.
  squareSum = <u32> sum4(squares);
}

/** Fills PAIRS, MOVES and five rows of fine cells from 15 rows; returns the sum of their squared samples, in four lanes. */
function sumStrips(rows: usize, before: usize, fine: usize): v128 {
  const ones = v128.load(ONE_WORDS), low = v128.load(LOW_BYTES);
  let squares = i32x4.splat(0);
  for (let x: usize = 0; x < ROW_BYTES; x += 32) {
    const strip = rows + x;
    let left = i16x8.splat(0), right = left;
    let old = before + x;
    for (let at = strip; at < strip + BAND_BYTES; at += 3 * ROW_BYTES) {
      let one = v128.load(at), other = v128.load(at, 16);
      left = i16x8.add(left, pairSums(apart(one, v128.load(old))));
      right = i16x8.add(right, pairSums(apart(other, v128.load(old, 16))));
      v128.store(old, one);
      v128.store(old, other, 16);
      squares = i32x4.add(squares, i32x4.add(squareSums(one, low), squareSums(other, low)));
      one = v128.load(at, 320), other = v128.load(at, 336);
      left = i16x8.add(left, pairSums(apart(one, v128.load(old, 320))));
      right = i16x8.add(right, pairSums(apart(other, v128.load(old, 336))));
      v128.store(old, one, 320);
      v128.store(old, other, 336);
      squares = i32x4.add(squares, i32x4.add(squareSums(one, low), squareSums(other, low)));
      one = v128.load(at, 640), other = v128.load(at, 656);
      left = i16x8.add(left, pairSums(apart(one, v128.load(old, 640))));
      right = i16x8.add(right, pairSums(apart(other, v128.load(old, 656))));
      v128.store(old, one, 640);
      v128.store(old, other, 656);
      squares = i32x4.add(squares, i32x4.add(squareSums(one, low), squareSums(other, low)));
      old += 3 * ROW_BYTES;
    }
    v128.store(MOVES + x, i32x4.dot_i16x8_s(left, ones));
    v128.store(MOVES + x, i32x4.dot_i16x8_s(right, ones), 16);
    sumRows(strip, PAIRS + x, fine + (x >> 1), ones);
    sumRows(strip + 16, PAIRS + x + 16, fine + (x >> 1) + 8, ones);
  }
  return squares;
}

/** The sums of three and of five rows of a strip: rows 3 and 4 are in both, and so on. */
function sumRows(strip: usize, pairs: usize, fine: usize, ones: v128): void {
  const upper = sumOfThree(v128.load(strip), v128.load(strip, 320), v128.load(strip, 640));
  const fourth = i16x8.add(pairSums(v128.load(strip, 960)), pairSums(v128.load(strip, 1280)));
  const sixth = pairSums(v128.load(strip, 1600));
  v128.store(pairs, i16x8.add(upper, fourth));
  storeFine(fine, upper, ones);
  storeFine(fine + 160, i16x8.add(fourth, sixth), ones);
  const middle = sumOfThree(v128.load(strip, 1920), v128.load(strip, 2240), v128.load(strip, 2560));
  const tenth = pairSums(v128.load(strip, 2880));
  v128.store(pairs, i16x8.add(i16x8.add(sixth, middle), tenth), 320);
  storeFine(fine + 320, middle, ones);
  const eleventh = i16x8.add(pairSums(v128.load(strip, 3200)), pairSums(v128.load(strip, 3520)));
  const lower = sumOfThree(v128.load(strip, 3840), v128.load(strip, 4160), v128.load(strip, 4480));
  v128.store(pairs, i16x8.add(eleventh, lower), 640);
  storeFine(fine + 480, i16x8.add(tenth, eleventh), ones);
  storeFine(fine + 640, lower, ones);
}

function sumOfThree(first: v128, second: v128, third: v128): v128 {
  return i16x8.add(i16x8.add(pairSums(first), pairSums(second)), pairSums(third));
}

/** Eight sums of 2x3 samples -> four fine cells. */
function storeFine(fine: usize, sums: v128, ones: v128): void {
  const cells = i32x4.dot_i16x8_s(sums, ones);
  v128.store64_lane(fine, i16x8.narrow_i32x4_s(cells, cells), 0);
}

/** 16 samples -> 8 sums of two horizontal neighbours. */
function pairSums(samples: v128): v128 {
  return i16x8.extadd_pairwise_i8x16_u(samples);
}

/** 16 samples -> 4 partial sums of their squares. */
function squareSums(samples: v128, low: v128): v128 {
  const even = v128.and(samples, low);
  const odd = i16x8.shr_u(samples, 8);
  return i32x4.add(i32x4.dot_i16x8_s(even, even), i32x4.dot_i16x8_s(odd, odd));
}

/** Writes 32 centred cells from 160 pairs and returns the sum of their samples, in four lanes. */
function foldRow(pairs: usize, cells: usize): v128 {
  let total = i32x4.splat(0);
  for (let group = 0; group < 4; group++) {
    const left = fourCells(pairs), right = fourCells(pairs + 40);
    total = i32x4.add(total, i32x4.add(left, right));
    v128.store(cells, i16x8.sub(i16x8.narrow_i32x4_s(left, right), i16x8.splat(HALF_CELL)));
    pairs += 80;
    cells += 16;
  }
  return total;
}

/** The sums of four times five pairs. */
function fourCells(pairs: usize): v128 {
  const five = i16x8(1, 1, 1, 1, 1, 0, 0, 0);
  return sums4(
    i32x4.dot_i16x8_s(v128.load(pairs), five),
    i32x4.dot_i16x8_s(v128.load(pairs, 10), five),
    i32x4.dot_i16x8_s(v128.load(pairs, 20), five),
    i32x4.dot_i16x8_s(v128.load(pairs, 30), five),
  );
}

/** The 20 moves of a row of cells. */
function foldMoves(cells: usize): void {
  for (let at = MOVES; at < MOVES + 320; at += 64) {
    const sums = sums4(v128.load(at), v128.load(at, 16), v128.load(at, 32), v128.load(at, 48));
    v128.store64_lane(cells, i16x8.narrow_i32x4_u(sums, sums), 0);
    cells += 8;
  }
}
