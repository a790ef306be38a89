/** The ways that cells go from what they are in one frame to what they are in another one. */

import { CELL_BYTES, CELLS_OF_ALL, cellsOf, LUMA_BYTES, movesOf, placeBetween, putNumber } from "./layout";
import { sum4, wordsApart } from "../lanes";

/** Frames at which the way of a cell is looked at. */
const WAY_POINTS: i32 = 20;
/** A cell went straight whose whole change is at least this share of its way. */
const STRAIGHT: f64 = 0.8;

const PLACES: usize = memory.data(20 * 4, 16);
/** Of each cell: by how much it is another, how long its way was, and the longest step of it. */
const CHANGES: usize = memory.data(360 * 2, 16);
const WAYS: usize = memory.data(360 * 4, 16);
const STEPS: usize = memory.data(360 * 2, 16);
/** Of each cell of two frames, the change from the one to the other. */
const TURNS: usize = memory.data(360 * 8, 16);
/** Of each luma cell, sums over frames: four places of 240 u32. */
export const CELL_SUMS: usize = memory.data(4 * 240 * 4, 16);
const SUMS_BYTES: i32 = 240 * 4;

/** How many cells, luma and chroma, differ by more than `most` between two frames; `most` is below 65535. */
export function changed(one: i32, other: i32, most: i32): i32 {
  const a = cellsOf(one), b = cellsOf(other);
  const limit = i16x8.splat(<i16> most);
  let others = i16x8.splat(0);
  for (let at: usize = 0; at < CELL_BYTES; at += 16) {
    // A true lane is -1.
    others = i16x8.sub(others, i16x8.gt_u(wordsApart(v128.load(a + at), v128.load(b + at)), limit));
  }
  return sum4(i32x4.extadd_pairwise_i16x8_u(others));
}

/**
 * Of the cells that differ by more than `most` between two frames: writes to NUMBERS how many there are, how
 * many of them went straight, and the sum of the longest step of each as a share of its way. Then the sums of
 * the differences of the chroma cells and of all.
 */
export function measureWays(one: i32, other: i32, most: i32): void {
  const points = min(WAY_POINTS, other - one);
  for (let n = 1; n <= points; n++) {
    store<usize>(PLACES + ((n - 1) << 2), cellsOf(placeBetween(one, other, n, points)));
  }
  const a = cellsOf(one), b = cellsOf(other), end = PLACES + (points << 2);
  let luma = i32x4.splat(0), all = luma;
  for (let at: usize = 0; at < CELL_BYTES; at += 16) {
    if (at == LUMA_BYTES) luma = all;
    let last = v128.load(a + at);
    const change = wordsApart(v128.load(b + at), last);
    all = i32x4.add(all, i32x4.extadd_pairwise_i16x8_u(change));
    v128.store(CHANGES + at, change);
    let low = i32x4.splat(0), high = low, longest = i16x8.splat(0);
    for (let place = PLACES; place < end; place += 4) {
      const own = v128.load(load<usize>(place) + at);
      const step = wordsApart(own, last);
      low = i32x4.add(low, i32x4.extend_low_i16x8_u(step));
      high = i32x4.add(high, i32x4.extend_high_i16x8_u(step));
      longest = i16x8.max_u(longest, step);
      last = own;
    }
    v128.store(WAYS + 2 * at, low);
    v128.store(WAYS + 2 * at, high, 16);
    v128.store(STEPS + at, longest);
  }
  let straight = 0, count = 0;
  let sudden: f64 = 0;
  for (let cell: usize = 0; cell < <usize> CELLS_OF_ALL; cell++) {
    const change = <i32> load<u16>(CHANGES + (cell << 1));
    if (change <= most) continue;
    const way = <f64> load<i32>(WAYS + (cell << 2));
    count++;
    sudden += <f64> load<u16>(STEPS + (cell << 1)) / way;
    if (<f64> change >= STRAIGHT * way) straight++;
  }
  putNumber(0, count);
  putNumber(1, straight);
  putNumber(2, sudden);
  putNumber(3, sum4(all) - sum4(luma));
  putNumber(4, sum4(all));
}

/**
 * Compares the frames a quarter, half and three quarters of the way between two with what a straight way
 * leads through. Writes to NUMBERS how far they are, the worst of them, as shares of the distance of the two:
 * from a mix of both; from a picture of which each cell is from the one or from the other; and how far the
 * mix is from that which their time asks for. Then how much the way bends.
 */
export function measureMixes(one: i32, other: i32): void {
  const a = cellsOf(one), b = cellsOf(other);
  let squares = f64x2.splat(0), distances = i32x4.splat(0);
  for (let at: usize = 0; at < CELL_BYTES; at += 8) {
    const ways = i32x4.sub(v128.load16x4_u(b + at), v128.load16x4_u(a + at));
    const low = f64x2.convert_low_i32x4_s(ways);
    const high = f64x2.convert_low_i32x4_s(v128.shuffle<i32>(ways, ways, 2, 3, 2, 3));
    squares = f64x2.add(squares, f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high)));
    distances = i32x4.add(distances, i32x4.abs(ways));
    v128.store(TURNS + 4 * at, low);
    v128.store(TURNS + 4 * at, high, 16);
  }
  // Whole numbers, which an f64 holds.
  const square = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1), distance = sum4(distances);
  let fromMix: f64 = 0, fromParts: f64 = 0, fromTime: f64 = 0, bends = 0;
  for (let part = 1; part < 4; part++) {
    const frame = placeBetween(one, other, part, 4);
    const x = cellsOf(frame);
    const share = alongOf(a, x) / square;
    fromMix = max(fromMix, offMix(a, x, share) / <f64> distance);
    fromParts = max(fromParts, <f64> offParts(a, b, x) / <f64> distance);
    fromTime = max(fromTime, abs(share - <f64> (frame - one) / <f64> (other - one)));
    bends += bendOf(
      cellsOf(placeBetween(one, other, part - 1, 4)),
      x,
      cellsOf(placeBetween(one, other, part + 1, 4)),
    );
  }
  putNumber(0, fromMix);
  putNumber(1, fromParts);
  putNumber(2, fromTime);
  putNumber(3, <f64> bends / <f64> distance);
}

/**
 * The sum of the products of the changes from `a` to `x` with those in TURNS; whole numbers, which an f64
 * holds.
 */
function alongOf(a: usize, x: usize): f64 {
  let sums = f64x2.splat(0);
  for (let at: usize = 0; at < CELL_BYTES; at += 8) {
    const own = i32x4.sub(v128.load16x4_u(x + at), v128.load16x4_u(a + at));
    const turns = TURNS + 4 * at;
    const low = f64x2.convert_low_i32x4_s(own);
    const high = f64x2.convert_low_i32x4_s(v128.shuffle<i32>(own, own, 2, 3, 2, 3));
    sums = f64x2.add(sums, f64x2.mul(low, v128.load(turns)));
    sums = f64x2.add(sums, f64x2.mul(high, v128.load(turns, 16)));
  }
  return f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
}

/**
 * The sum of how far each cell of `x` is from `share` of its way. Added up cell by cell, as the order of such
 * sums matters.
 */
function offMix(a: usize, x: usize, share: f64): f64 {
  const shares = f64x2.splat(share);
  let sum: f64 = 0;
  for (let at: usize = 0; at < CELL_BYTES; at += 8) {
    const own = i32x4.sub(v128.load16x4_u(x + at), v128.load16x4_u(a + at));
    const turns = TURNS + 4 * at;
    const high = v128.shuffle<i32>(own, own, 2, 3, 2, 3);
    const first = f64x2.sub(f64x2.convert_low_i32x4_s(own), f64x2.mul(shares, v128.load(turns)));
    const second = f64x2.sub(f64x2.convert_low_i32x4_s(high), f64x2.mul(shares, v128.load(turns, 16)));
    sum += abs(f64x2.extract_lane(first, 0));
    sum += abs(f64x2.extract_lane(first, 1));
    sum += abs(f64x2.extract_lane(second, 0));
    sum += abs(f64x2.extract_lane(second, 1));
  }
  return sum;
}

/** The sum of how far each cell of `x` is from the nearer one of `a` and `b`. */
function offParts(a: usize, b: usize, x: usize): i32 {
  let sums = i32x4.splat(0);
  for (let at: usize = 0; at < CELL_BYTES; at += 16) {
    const own = v128.load(x + at);
    const least = i16x8.min_u(wordsApart(own, v128.load(a + at)), wordsApart(own, v128.load(b + at)));
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(least));
  }
  return sum4(sums);
}

/** The sum of how much the step of each cell from `x` to `after` differs from that from `before` to `x`. */
function bendOf(before: usize, x: usize, after: usize): i32 {
  let sums = i32x4.splat(0);
  for (let at: usize = 0; at < CELL_BYTES; at += 8) {
    const ends = i32x4.add(v128.load16x4_u(before + at), v128.load16x4_u(after + at));
    sums = i32x4.add(sums, i32x4.abs(i32x4.sub(ends, i32x4.shl(v128.load16x4_u(x + at), 1))));
  }
  return sum4(sums);
}

/** Begins the sums of a place in CELL_SUMS anew. */
export function clearMoves(place: i32): void {
  memory.fill(CELL_SUMS + place * SUMS_BYTES, 0, SUMS_BYTES);
}

/** Adds the moves of a frame to the sums of a place. */
export function addMoves(place: i32, frame: i32): void {
  const moves = movesOf(frame), sums = CELL_SUMS + place * SUMS_BYTES;
  for (let at: usize = 0; at < LUMA_BYTES; at += 8) {
    const own = sums + 2 * at;
    v128.store(own, i32x4.add(v128.load(own), v128.load16x4_u(moves + at)));
  }
}
