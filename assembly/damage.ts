/** The numbers that damaged parts of the picture are decided on, codes of a frame beside those of the frames
 * around it; and fitted trees.
 */

/*
 *   CODES     64 x 32 x u8   a byte for each measure of a frame, frame i in slot i % KEPT, written by the caller
 *   FEATURES  32 x 8 x u8    of the frame that was asked for: eight numbers of each measure, see `measureFeatures`
 *   TREES     512 x 80 x u8  pairs of trees, written by the caller, see `sumLeaves`
 *
 * Sixteen measures are taken at once.
 */

export const KEPT: i32 = 64;
export const CODES: usize = memory.data(64 * 32, 16);
export const FEATURES: usize = memory.data(32 * 8, 16);
const PAIR_BYTES: i32 = 80;
export const TREES_BYTES: i32 = 512 * 80;
export const TREES: usize = memory.data(512 * 80, 16);

const FRAME_BYTES: i32 = 32;
/**
 * What is usual in a shot is the median of so many frames before, the nearest of which may be damaged
 * already.
 */
const USUAL_COUNT: i32 = 9;
const USUAL_FROM: i32 = 6;
const USUAL_STEP: i32 = 3;
const USUAL: usize = memory.data(9 * 4, 16);
const SORTED: usize = memory.data(9 * 16, 16);
/** Pairs that are put in order one after the other, until the one in the middle of nine is in its place. */
// deno-fmt-ignore
const EXCHANGES: usize = memory.data<u8>([
  1, 2, 4, 5, 7, 8, 0, 1, 3, 4, 6, 7, 1, 2, 4, 5, 7, 8, 0, 3, 5, 8, 4, 7, 3, 6, 1, 4, 2, 5, 4, 7, 4, 2, 6, 4, 4, 2,
]);
const EXCHANGES_END: usize = 38;
const SIXTEENS: usize = memory.data<u8>([16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16], 16);

/**
 * Fills FEATURES for a frame of the shot that began with `first`, of a stream of `count` frames by now;
 * frames that have not come count as the newest one. Eight numbers of each measure: by how much it is more
 * than usual, than the most of the frames that say what is usual, and than the least of the three frames
 * behind; by how much the most of the three before, the most of those behind, and the last one are more than
 * usual; and the code itself and the usual one. 128 says that two are alike.
 */
export function measureFeatures(frame: i32, first: i32, count: i32): void {
  for (let n = 0; n < USUAL_COUNT; n++) {
    store<usize>(USUAL + (n << 2), codesOf(max(first, frame - USUAL_FROM - n * USUAL_STEP), count));
  }
  const own = codesOf(frame, count), last = codesOf(max(first, frame - 1), count);
  const second = codesOf(max(first, frame - 2), count), third = codesOf(max(first, frame - 3), count);
  const next = codesOf(frame + 1, count), afterNext = codesOf(frame + 2, count);
  const later = codesOf(frame + 3, count);
  for (let at: usize = 0; at < <usize> FRAME_BYTES; at += 16) {
    const most = sortUsual(at);
    const usual = v128.load(SORTED, 4 * 16);
    const now = v128.load(own + at), just = v128.load(last + at);
    const before = i8x16.max_u(just, i8x16.max_u(v128.load(second + at), v128.load(third + at)));
    const one = v128.load(next + at), two = v128.load(afterNext + at), three = v128.load(later + at);
    putSixteen(
      FEATURES + (at << 3),
      beside(now, usual),
      beside(now, most),
      beside(now, i8x16.min_u(one, i8x16.min_u(two, three))),
      beside(before, usual),
      beside(i8x16.max_u(one, i8x16.max_u(two, three)), usual),
      beside(just, usual),
      now,
      usual,
    );
  }
}

/** Of a frame outside the stream, those of the first or the newest frame. */
function codesOf(frame: i32, count: i32): usize {
  return CODES + (max(0, min(frame, count - 1)) & (KEPT - 1)) * FRAME_BYTES;
}

/** Puts the median of the frames in USUAL into the middle of SORTED, and returns the most of them. */
function sortUsual(at: usize): v128 {
  let most = i8x16.splat(0);
  for (let n = 0; n < USUAL_COUNT; n++) {
    const codes = v128.load(load<usize>(USUAL + (n << 2)) + at);
    most = i8x16.max_u(most, codes);
    v128.store(SORTED + (n << 4), codes);
  }
  for (let pair = EXCHANGES; pair < EXCHANGES + EXCHANGES_END; pair += 2) {
    const less = SORTED + (<usize> load<u8>(pair) << 4), more = SORTED + (<usize> load<u8>(pair, 1) << 4);
    const a = v128.load(less), b = v128.load(more);
    v128.store(less, i8x16.min_u(a, b));
    v128.store(more, i8x16.max_u(a, b));
  }
  return most;
}

/** How much more one code is than another, around 128, from 0 to 255. */
function beside(code: v128, other: v128): v128 {
  const more = i8x16.add_sat_u(i8x16.splat(-128), i8x16.sub_sat_u(code, other));
  return i8x16.sub_sat_u(more, i8x16.sub_sat_u(other, code));
}

/** Stores the lanes of eight vectors side by side: the first of each, then the second of each. */
function putSixteen(to: usize, a: v128, b: v128, c: v128, d: v128, e: v128, f: v128, g: v128, h: v128): void {
  putEight(to, lowBytes(a, b), lowBytes(c, d), lowBytes(e, f), lowBytes(g, h));
  putEight(to + 64, highBytes(a, b), highBytes(c, d), highBytes(e, f), highBytes(g, h));
}

/** The same of four vectors of pairs. */
function putEight(to: usize, ab: v128, cd: v128, ef: v128, gh: v128): void {
  const low = v128.shuffle<i16>(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11);
  const lowNext = v128.shuffle<i16>(ef, gh, 0, 8, 1, 9, 2, 10, 3, 11);
  const high = v128.shuffle<i16>(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15);
  const highNext = v128.shuffle<i16>(ef, gh, 4, 12, 5, 13, 6, 14, 7, 15);
  v128.store(to, v128.shuffle<i32>(low, lowNext, 0, 4, 1, 5));
  v128.store(to, v128.shuffle<i32>(low, lowNext, 2, 6, 3, 7), 16);
  v128.store(to, v128.shuffle<i32>(high, highNext, 0, 4, 1, 5), 32);
  v128.store(to, v128.shuffle<i32>(high, highNext, 2, 6, 3, 7), 48);
}

function lowBytes(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

function highBytes(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/**
 * The sum of the leaves that the numbers in FEATURES come to, of so many pairs of trees at `trees`. A tree
 * has eight leaves, from left to right, and eight nodes that ask whether a number is above a threshold; where
 * it is, none of the leaves on their left side are meant.
 *
 *   16 x u8   which number the nodes ask for, of the one tree and of the other; below 240
 *   16 x u8   their thresholds
 *   16 x u8   the leaves that stay where it is above: bit i for leaf i
 *   16 x i16  the leaves
 */
export function sumLeaves(trees: usize, pairs: i32): i32 {
  const sixteen = v128.load(SIXTEENS), none = i8x16.splat(0);
  const end = trees + pairs * PAIR_BYTES;
  let sum = 0;
  for (let at = trees; at < end; at += PAIR_BYTES) {
    const above = i8x16.sub_sat_u(numbersAt(v128.load(at), sixteen), v128.load(at, 16));
    let left = v128.or(i8x16.eq(above, none), v128.load(at, 32));
    left = v128.and(left, i64x2.shr_u(left, 32));
    left = v128.and(left, i64x2.shr_u(left, 16));
    left = v128.and(left, i64x2.shr_u(left, 8));
    // The first leaf that is left is the one.
    sum += load<i16>(at + (ctz<i32>(i8x16.extract_lane_u(left, 0)) << 1), 48);
    sum += load<i16>(at + (ctz<i32>(i8x16.extract_lane_u(left, 8)) << 1), 64);
  }
  return sum;
}

/** Sixteen of the first 240 numbers: each vector of them gives those that lie in it, and 0 for the others. */
function numbersAt(places: v128, sixteen: v128): v128 {
  let at = places;
  let numbers = i8x16.swizzle(v128.load(FEATURES), at);
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 16), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 32), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 48), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 64), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 80), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 96), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 112), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 128), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 144), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 160), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 176), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 192), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 208), at));
  at = i8x16.sub(at, sixteen);
  numbers = v128.or(numbers, i8x16.swizzle(v128.load(FEATURES, 224), at));
  return numbers;
}
