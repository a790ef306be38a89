/**
 * Measures a 320x180 luma plane in one pass: the exact sum, the sum of squares, a 32x36 grid of box sums, the
 * fine cells that cuts are found by, and how much each cell of the ranges moved.
 */

import { apart, LOW_BYTES, ONE_WORDS, sum4, sums4 } from "./lanes";

/*
 * The plane is read in strips of 32x15 samples. One that is equal to that of the frame before keeps its sums;
 * of any other one all measures are made at once:
 *
 *   15 rows beside those of BEFORE  ->  20 sums of 16x15 differences (u16, at most 61200)
 *   3 x 5 rows of 320 bytes  ->  160 sums of 2x5 samples (u16)  ->  32 sums of 10x5 samples (u16, at most 12750)
 *   5 x 3 rows of 320 bytes  ->  160 sums of 2x3 samples        ->  80 sums of 4x3 samples (i16, at most 3060)
 *
 *   PAIRS       36 x 160 x u16  sums of 2x5 samples, and 32 unused bytes, because a cell is read as a whole vector
 *   SQUARES     12 x 10 x 4 x i32  of each strip four partial sums of its squared samples
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
const PAIRS: usize = memory.data(36 * 160 * 2 + 32, 16);
const PAIRS_BYTES: usize = 160 * 2;
const SQUARES: usize = memory.data(12 * 10 * 16, 16);
/** Four partial sums of the moves of each cell of the current 15 rows. */
const MOVES: usize = memory.data(20 * 16, 16);
const ROW_BYTES: usize = 320;
const BAND_BYTES: usize = 15 * 320;
const BANDS: usize = 12;
const FINE_ROW_BYTES: usize = 160;
const HALF_CELLS: usize = memory.data<i16>([6375, 6375, 6375, 6375, 6375, 6375, 6375, 6375], 16);
/** Takes the first five of eight words. */
const FIVE: usize = memory.data<i16>([1, 1, 1, 1, 1, 0, 0, 0], 16);

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
 * Measures the plane at address `plane` (any alignment), fills CELLS and CELL_MOVES, and writes the 60 x 80 x
 * i16 sums of 4x3 samples to `fine`; those of the frame before are at `fineBefore`. Keeps the plane for the
 * next one.
 */
export function measurePlane(plane: usize, fine: usize, fineBefore: usize, isFirst: bool): void {
  if (isFirst) memory.copy(BEFORE, plane, PLANE_BYTES);
  let squares = i32x4.splat(0);
  let totals = i32x4.splat(0);
  for (let band: usize = 0; band < BANDS; band++) {
    const at = band * BAND_BYTES, fineAt = band * 5 * FINE_ROW_BYTES;
    sumStrips(plane + at, band, fine + fineAt, fineBefore + fineAt, isFirst);
    for (let at = SQUARES + band * 160; at < SQUARES + (band + 1) * 160; at += 16) {
      squares = i32x4.add(squares, v128.load(at));
    }
    for (let row = band * 3; row < band * 3 + 3; row++) {
      totals = i32x4.add(totals, foldRow(PAIRS + row * PAIRS_BYTES, CELLS + row * CELL_COLUMNS * 2));
    }
    foldMoves(CELL_MOVES + band * 40);
  }
  sum = sum4(totals);
  // At most 3.75e9, which needs all bits of a u32.
  squareSum = <u32> sum4(squares);
}

/** Fills MOVES from 15 rows, their part of PAIRS and SQUARES, and five rows of fine cells. */
function sumStrips(rows: usize, band: usize, fine: usize, fineBefore: usize, isFirst: bool): void {
  const ones = v128.load(ONE_WORDS);
  const before = BEFORE + band * BAND_BYTES, pairs = PAIRS + band * 3 * PAIRS_BYTES;
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
      one = v128.load(at, 320), other = v128.load(at, 336);
      left = i16x8.add(left, pairSums(apart(one, v128.load(old, 320))));
      right = i16x8.add(right, pairSums(apart(other, v128.load(old, 336))));
      v128.store(old, one, 320);
      v128.store(old, other, 336);
      one = v128.load(at, 640), other = v128.load(at, 656);
      left = i16x8.add(left, pairSums(apart(one, v128.load(old, 640))));
      right = i16x8.add(right, pairSums(apart(other, v128.load(old, 656))));
      v128.store(old, one, 640);
      v128.store(old, other, 656);
      old += 3 * ROW_BYTES;
    }
    v128.store(MOVES + x, i32x4.dot_i16x8_s(left, ones));
    v128.store(MOVES + x, i32x4.dot_i16x8_s(right, ones), 16);
    const cells = fine + (x >> 1);
    if (isFirst || v128.any_true(v128.or(left, right))) {
      const leftSquares = sumRows(strip, pairs + x, cells);
      v128.store(
        SQUARES + band * 160 + (x >> 1),
        i32x4.add(leftSquares, sumRows(strip + 16, pairs + x + 16, cells + 8)),
      );
    } else {
      const cellsBefore = fineBefore + (x >> 1);
      v128.store(cells, v128.load(cellsBefore));
      v128.store(cells, v128.load(cellsBefore, 160), 160);
      v128.store(cells, v128.load(cellsBefore, 320), 320);
      v128.store(cells, v128.load(cellsBefore, 480), 480);
      v128.store(cells, v128.load(cellsBefore, 640), 640);
    }
  }
}

/**
 * The sums of three and of five rows of half a strip: rows 3 and 4 are in both, and so on. Returns the sum of
 * their squared samples, in four lanes.
 */
function sumRows(strip: usize, pairs: usize, fine: usize): v128 {
  const ones = v128.load(ONE_WORDS), low = v128.load(LOW_BYTES);
  let a = v128.load(strip), b = v128.load(strip, 320), c = v128.load(strip, 640);
  const upper = sumOfThree(a, b, c);
  let squares = squaresOfThree(a, b, c, low);
  a = v128.load(strip, 960), b = v128.load(strip, 1280), c = v128.load(strip, 1600);
  const fourth = i16x8.add(pairSums(a), pairSums(b)), sixth = pairSums(c);
  squares = i32x4.add(squares, squaresOfThree(a, b, c, low));
  v128.store(pairs, i16x8.add(upper, fourth));
  storeFine(fine, upper, ones);
  storeFine(fine + 160, i16x8.add(fourth, sixth), ones);
  a = v128.load(strip, 1920), b = v128.load(strip, 2240), c = v128.load(strip, 2560);
  const middle = sumOfThree(a, b, c);
  squares = i32x4.add(squares, squaresOfThree(a, b, c, low));
  storeFine(fine + 320, middle, ones);
  a = v128.load(strip, 2880), b = v128.load(strip, 3200), c = v128.load(strip, 3520);
  const tenth = pairSums(a), eleventh = i16x8.add(pairSums(b), pairSums(c));
  squares = i32x4.add(squares, squaresOfThree(a, b, c, low));
  v128.store(pairs, i16x8.add(i16x8.add(sixth, middle), tenth), 320);
  storeFine(fine + 480, i16x8.add(tenth, eleventh), ones);
  a = v128.load(strip, 3840), b = v128.load(strip, 4160), c = v128.load(strip, 4480);
  const lower = sumOfThree(a, b, c);
  v128.store(pairs, i16x8.add(eleventh, lower), 640);
  storeFine(fine + 640, lower, ones);
  return i32x4.add(squares, squaresOfThree(a, b, c, low));
}

function squaresOfThree(first: v128, second: v128, third: v128, low: v128): v128 {
  return i32x4.add(
    i32x4.add(squareSums(first, low), squareSums(second, low)),
    squareSums(third, low),
  );
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
  const five = v128.load(FIVE), half = v128.load(HALF_CELLS);
  let total = i32x4.splat(0);
  for (let group = 0; group < 4; group++) {
    const left = fourCells(pairs, five), right = fourCells(pairs + 40, five);
    total = i32x4.add(total, i32x4.add(left, right));
    v128.store(cells, i16x8.sub(i16x8.narrow_i32x4_s(left, right), half));
    pairs += 80;
    cells += 16;
  }
  return total;
}

/** The sums of four times five pairs. */
function fourCells(pairs: usize, five: v128): v128 {
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
