/** How far the newest frame is from earlier ones: what repeats are found by. */

import { sum4, wordsApart } from "./lanes";

/*
 * A frame is 60 blocks of luma, u16 each, written by the caller; frame i is in place i % RING, and has four empty blocks behind, so
 * that it is eight whole vectors.
 *
 *   BLOCKS  512 x 64 x u16
 *   FITS    304 x i32       by lag: the difference of a frame to the one so many before; FAR where it is more than is asked for
 *   MINIMA  304 x u16       the lags of FITS that are not FAR, and no more than those of both lags beside them
 *   COUNTS  4 x i32         of a run of frames, see `count`
 */

export const RING: i32 = 512;
export const BLOCKS: usize = memory.data(512 * 64 * 2, 16);
export const FITS: usize = memory.data(304 * 4, 16);
export const MINIMA: usize = memory.data(304 * 2, 16);
export const COUNTS: usize = memory.data(4 * 4, 16);
/** More than any difference. */
export const FAR: i32 = 0x3fffffff;

const FRAME_BYTES: i32 = 128;

/** The sum of the differences of all blocks of two frames. */
export function difference(one: i32, other: i32): i32 {
  return apart(placeOf(one), placeOf(other));
}

/** The least difference of a frame to those a quarter, half and three quarters of a lag before. */
export function least(frame: i32, lag: i32): i32 {
  const own = placeOf(frame);
  const quarter = apart(own, placeBetween(frame, lag, 1)), half = apart(own, placeBetween(frame, lag, 2));
  return min(quarter, min(half, apart(own, placeBetween(frame, lag, 3))));
}

/**
 * Fills COUNTS for the frames from `first` to `last`: the sums of their differences to the frame `lag` before, of the middle one of
 * those to the three frames between, and of the least; and how many frames tell it, as the middle one is `variation` at least, and the
 * difference is that share of it at most.
 */
export function count(first: i32, last: i32, lag: i32, variation: i32, share: f64): void {
  let differences = 0, middles = 0, leasts = 0, telling = 0;
  for (let frame = first; frame <= last; frame++) {
    const own = placeOf(frame);
    const difference = apart(own, placeOf(frame - lag));
    const quarter = apart(own, placeBetween(frame, lag, 1)), half = apart(own, placeBetween(frame, lag, 2));
    const threeQuarters = apart(own, placeBetween(frame, lag, 3));
    const middle = max(min(quarter, half), min(max(quarter, half), threeQuarters));
    differences += difference;
    middles += middle;
    leasts += min(quarter, min(half, threeQuarters));
    if (middle >= variation && <f64> difference <= share * <f64> middle) telling++;
  }
  store<i32>(COUNTS, differences);
  store<i32>(COUNTS, middles, 4);
  store<i32>(COUNTS, leasts, 8);
  store<i32>(COUNTS, telling, 12);
}

/** The first of the frames right before `frame`, none before `earliest`, that differ by `most` at most from those `lag` before them. */
export function trace(frame: i32, lag: i32, most: i32, earliest: i32): i32 {
  while (frame > earliest && apart(placeOf(frame - 1), placeOf(frame - 1 - lag)) <= most) frame--;
  return frame;
}

/**
 * Fills FITS for the lags of a frame from `first` to `last`; differences above `most` become FAR, as do those of the lags beside. Fills
 * MINIMA and returns how many there are.
 */
export function seek(frame: i32, first: i32, last: i32, most: i32): i32 {
  const own = placeOf(frame);
  for (let lag = first; lag <= last; lag++) {
    const sum = apart(own, placeOf(frame - lag));
    store<i32>(FITS + (lag << 2), sum > most ? FAR : sum);
  }
  store<i32>(FITS + ((first - 1) << 2), FAR);
  store<i32>(FITS + ((last + 1) << 2), FAR);
  let minima = 0;
  for (let lag = first; lag <= last; lag++) {
    const at = FITS + (lag << 2), fit = load<i32>(at);
    if (fit == FAR || fit > load<i32>(at - 4) || fit > load<i32>(at, 4)) continue;
    store<u16>(MINIMA + (minima++ << 1), <u16> lag);
  }
  return minima;
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
