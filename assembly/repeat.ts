/** How far the newest frame is from earlier ones: what repeats are found by. */

/*
 * A frame is 60 blocks of luma, u16 each, written by the caller; frame i is in place i % RING, and has four empty blocks behind, so
 * that it is eight whole vectors.
 *
 *   BLOCKS  512 x 64 x u16
 *   FITS    304 x i32       by lag: the difference of a frame to the one so many before; FAR where it is more than is asked for
 */

export const RING: i32 = 512;
export const BLOCKS: usize = memory.data(512 * 64 * 2, 16);
export const FITS: usize = memory.data(304 * 4, 16);
/** More than any difference. */
export const FAR: i32 = 0x3fffffff;

const FRAME_BYTES: i32 = 128;

/** The sum of the differences of all blocks of two frames. */
export function difference(one: i32, other: i32): i32 {
  return apart(placeOf(one), placeOf(other));
}

/** Fills FITS for the lags of a frame from `first` to `last`; differences above `most` become FAR. */
export function seek(frame: i32, first: i32, last: i32, most: i32): void {
  const own = placeOf(frame);
  for (let lag = first; lag <= last; lag++) {
    const sum = apart(own, placeOf(frame - lag));
    store<i32>(FITS + (lag << 2), sum > most ? FAR : sum);
  }
}

function placeOf(frame: i32): usize {
  return BLOCKS + (frame & (RING - 1)) * FRAME_BYTES;
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
  const halves = i32x4.add(sums, v128.shuffle<i32>(sums, sums, 2, 3, 0, 1));
  return i32x4.extract_lane(halves, 0) + i32x4.extract_lane(halves, 1);
}

function pairsApart(a: v128, b: v128): v128 {
  return i32x4.extadd_pairwise_i16x8_u(v128.or(i16x8.sub_sat_u(a, b), i16x8.sub_sat_u(b, a)));
}
