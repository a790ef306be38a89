/** Sums over the lanes of a vector, and how far the lanes of two vectors are apart. */

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

/** The sums of the four words of `a`, of `b`, of `c` and of `d`. */
export function sums4(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}
