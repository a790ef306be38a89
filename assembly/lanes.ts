/** Sums over the lanes of a vector, and how far the lanes of two vectors are apart. */

/*
 * Constants for loops: V8 makes a constant of the code anew at each use, by three instructions, while one
 * that was loaded before the loop stays in its register.
 */
export const ONE_WORDS: usize = memory.data<i16>([1, 1, 1, 1, 1, 1, 1, 1], 16);
export const EIGHTS: usize = memory.data<i16>([8, 8, 8, 8, 8, 8, 8, 8], 16);
/** The lower byte of each word. */
export const LOW_BYTES: usize = memory.data<i16>([255, 255, 255, 255, 255, 255, 255, 255], 16);
/** All lanes, all but the first, and all but the last of sixteen. */
// deno-fmt-ignore
export const LANE_MASKS: usize = memory.data<i8>([
  -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
  0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
  -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0,
], 16);

/** The sum of four words of 32 bits. */
export function sum4(words: v128): i32 {
  const pairs = i32x4.add(words, v128.shuffle<i32>(words, words, 2, 3, 0, 1));
  return i32x4.extract_lane(pairs, 0) + i32x4.extract_lane(pairs, 1);
}

/** The sum of eight unsigned words of 16 bits. */
export function sum8(words: v128): i32 {
  return sum4(i32x4.extadd_pairwise_i16x8_u(words));
}

/** |a - b| of sixteen unsigned bytes. */
export function apart(a: v128, b: v128): v128 {
  return v128.or(i8x16.sub_sat_u(a, b), i8x16.sub_sat_u(b, a));
}

/** |a - b| of eight unsigned words. */
export function wordsApart(a: v128, b: v128): v128 {
  return v128.or(i16x8.sub_sat_u(a, b), i16x8.sub_sat_u(b, a));
}

/** The sums of the four words of `a`, of `b`, of `c` and of `d`. */
export function sums4(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}
