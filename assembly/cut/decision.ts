/** The decision of fitted trees: each asks whether single numbers are above thresholds and adds what its leaf says. */

import { BIAS, FEATURES_ASKED, HIGH, LEAVES, LOW, ROOTS, THRESHOLDS, TREES } from "./weights";

/** A leaf of this value is one unit of the logarithm of the odds. */
export const LEAF_ONE: f32 = 4096;

/** The logarithm of the odds that the numbers at `row` are those of a cut, times LEAF_ONE. */
export function decide(row: usize): i32 {
  let sum: i32 = BIAS;
  for (let tree = 0; tree < TREES; tree++) {
    let node: i32 = load<i16>(ROOTS + (tree << 1));
    // Leaves are -1 - index.
    while (node >= 0) {
      const isHigh = load<u8>(row + load<u8>(FEATURES_ASKED + node)) > load<u8>(THRESHOLDS + node);
      node = load<i16>((isHigh ? HIGH : LOW) + (node << 1));
    }
    sum += load<i16>(LEAVES + ((-1 - node) << 1));
  }
  return sum;
}
