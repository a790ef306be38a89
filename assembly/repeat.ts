/** How far the newest frame is from earlier ones: what repeats are found by. */

import { sum4, sums4, wordsApart } from "./lanes";

/*
 * A frame is 60 blocks of luma, u16 each, written by the caller; frame i is in place i % RING, and has four
 * empty blocks behind, so that it is eight whole vectors.
 *
 *   BLOCKS  512 x 64 x u16
 *   FITS    304 x i32       by lag: the difference of a frame to the one so many before; FAR where it is more than is asked for
 *   MINIMA  304 x u16       the lags of FITS that are not FAR, and no more than those of both lags beside them
 *   COUNTS  4 x i32         sums over a run of frames, see `count`
 */

export const RING: i32 = 512;
export const BLOCKS: usize = memory.data(512 * 64 * 2, 16);
export const FITS: usize = memory.data(304 * 4 + 16, 16);
export const MINIMA: usize = memory.data(304 * 2, 16);
export const COUNTS: usize = memory.data(4 * 4, 16);
/** More than any difference. */
const FAR: i32 = 0x3fffffff;

const FRAME_BYTES: i32 = 128;

/** The difference of two frames. */
export function differenceOf(frame: i32, other: i32): i32 {
  return apart(placeOf(frame), placeOf(other));
}

/** The least difference of a frame to those a quarter, half and three quarters of a lag before. */
export function least(frame: i32, lag: i32): i32 {
  const own = placeOf(frame);
  const quarter = apart(own, placeBetween(frame, lag, 1)), half = apart(own, placeBetween(frame, lag, 2));
  return min(quarter, min(half, apart(own, placeBetween(frame, lag, 3))));
}

/**
 * The difference of a frame to the one `lag` before; where that is `most` at most, fills COUNTS for this
 * frame.
 */
export function step(frame: i32, lag: i32, most: i32, variation: i32, share: f64): i32 {
  const difference = apart(placeOf(frame), placeOf(frame - lag));
  if (difference <= most) {
    memory.fill(COUNTS, 0, 16);
    count(frame, lag, difference, variation, share);
  }
  return difference;
}

/**
 * The first of the frames right before `frame`, none before `earliest`, that differ by `most` at most from
 * those `lag` before them. Fills COUNTS for the frames from there to `frame`.
 */
export function trace(frame: i32, lag: i32, most: i32, earliest: i32, variation: i32, share: f64): i32 {
  memory.fill(COUNTS, 0, 16);
  count(frame, lag, apart(placeOf(frame), placeOf(frame - lag)), variation, share);
  for (; frame > earliest; frame--) {
    const difference = apart(placeOf(frame - 1), placeOf(frame - 1 - lag));
    if (difference > most) break;
    count(frame - 1, lag, difference, variation, share);
  }
  return frame;
}

/**
 * Adds a frame to COUNTS: its difference to the frame `lag` before, the middle one of those to the three
 * frames between, and the least of them; and whether it tells the lag, as the middle one is `variation` at
 * least, and the difference is that share of it at most.
 */
function count(frame: i32, lag: i32, difference: i32, variation: i32, share: f64): void {
  const own = placeOf(frame);
  const quarter = apart(own, placeBetween(frame, lag, 1)), half = apart(own, placeBetween(frame, lag, 2));
  const threeQuarters = apart(own, placeBetween(frame, lag, 3));
  const middle = max(min(quarter, half), min(max(quarter, half), threeQuarters));
  add(0, difference);
  add(1, middle);
  add(2, min(quarter, min(half, threeQuarters)));
  if (middle >= variation && <f64> difference <= share * <f64> middle) add(3, 1);
}

function add(index: i32, value: i32): void {
  const at = COUNTS + (index << 2);
  store<i32>(at, load<i32>(at) + value);
}

/**
 * Fills FITS for the lags of a frame from `first` to `last`; differences above `most` become FAR, as do those
 * of the lags beside. Fills MINIMA and returns how many there are.
 */
export function seek(frame: i32, first: i32, last: i32, most: i32): i32 {
  const own = placeOf(frame);
  const a = v128.load(own), b = v128.load(own, 16), limit = i32x4.splat(most);
  let lag = first;
  for (; lag + 3 <= last; lag += 4) {
    // Most differ by more in the first blocks already.
    const sums = sums4(
      beginningApart(a, b, placeOf(frame - lag)),
      beginningApart(a, b, placeOf(frame - lag - 1)),
      beginningApart(a, b, placeOf(frame - lag - 2)),
      beginningApart(a, b, placeOf(frame - lag - 3)),
    );
    if (i32x4.all_true(i32x4.gt_s(sums, limit))) v128.store(FITS + (lag << 2), i32x4.splat(FAR));
    else for (let other = lag; other < lag + 4; other++) storeFit(own, frame, other, most);
  }
  for (; lag <= last; lag++) storeFit(own, frame, lag, most);
  store<i32>(FITS + ((first - 1) << 2), FAR);
  store<i32>(FITS + ((last + 1) << 2), FAR);
  let minima = 0;
  for (let lag = first; lag <= last; lag += 4) {
    const at = FITS + (lag << 2);
    // Of the lags behind the last one nothing is taken.
    const fits = v128.load(at), near = i32x4.min_s(v128.load(at - 4), v128.load(at, 4));
    let found = i32x4.bitmask(v128.and(i32x4.le_s(fits, near), i32x4.lt_s(fits, i32x4.splat(FAR))));
    for (; found != 0; found &= found - 1) {
      const other = lag + ctz(found);
      if (other <= last) store<u16>(MINIMA + (minima++ << 1), <u16> other);
    }
  }
  return minima;
}

function storeFit(own: usize, frame: i32, lag: i32, most: i32): void {
  const sum = apart(own, placeOf(frame - lag));
  store<i32>(FITS + (lag << 2), sum > most ? FAR : sum);
}

/** The difference of the first two vectors of a frame, in four sums. */
function beginningApart(first: v128, second: v128, other: usize): v128 {
  return i32x4.add(pairsApart(first, v128.load(other)), pairsApart(second, v128.load(other, 16)));
}

function placeOf(frame: i32): usize {
  return BLOCKS + (frame & (RING - 1)) * FRAME_BYTES;
}

/** Of the frame so many quarters of a lag before, rounded. */
function placeBetween(frame: i32, lag: i32, quarters: i32): usize {
  return placeOf(frame - ((quarters * lag + 2) >> 2));
}

function apart(a: usize, b: usize): i32 {
  // Differences of blocks are words of 16 bits without a sign; two of them are added up at once in 32 bits.
  let sums = i32x4.add(
    pairsApart(v128.load(a), v128.load(b)),
    pairsApart(v128.load(a, 16), v128.load(b, 16)),
  );
  sums = i32x4.add(sums, pairsApart(v128.load(a, 32), v128.load(b, 32)));
  sums = i32x4.add(sums, pairsApart(v128.load(a, 48), v128.load(b, 48)));
  sums = i32x4.add(sums, pairsApart(v128.load(a, 64), v128.load(b, 64)));
  sums = i32x4.add(sums, pairsApart(v128.load(a, 80), v128.load(b, 80)));
  sums = i32x4.add(sums, pairsApart(v128.load(a, 96), v128.load(b, 96)));
  sums = i32x4.add(sums, pairsApart(v128.load(a, 112), v128.load(b, 112)));
  return sum4(sums);
}

function pairsApart(a: v128, b: v128): v128 {
  return i32x4.extadd_pairwise_i16x8_u(wordsApart(a, b));
}
