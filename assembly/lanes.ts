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

/** Adds |a - b| of eight signed words to four lanes. The differences must fit an i16. */
export function addDifferences(sums: v128, a: v128, b: v128): v128 {
  return i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(i16x8.abs(i16x8.sub(a, b))));
}
