/** The decision of fitted trees: each asks whether single numbers are above thresholds and adds what its leaf
 * says.
 */

import { BIAS, FEATURES_ASKED, HIGH, LEAVES, LOW, ROOTS, THRESHOLDS, TREES } from "../../weights/cut";

// The compiler gets the trees of weights/cut.json as a module of lists: see scripts/build_wasm.ts.

/** A leaf of this value is one unit of the logarithm of the odds. */
export const LEAF_ONE: f32 = 4096;

/** What the trees from each one on add at most, and at least. */
const MOST: usize = memory.data((TREES + 1) * 4, 16);
const LEAST: usize = memory.data((TREES + 1) * 4, 16);

/** Fills MOST and LEAST. Call it once, before `isAtLeast`. */
export function prepareDecision(): void {
  let most = 0, least = 0;
  for (let tree = TREES - 1; tree >= 0; tree--) {
    const root: i32 = load<i16>(ROOTS + (tree << 1));
    most += mostOf(root);
    least -= mostOf(root, -1);
    store<i32>(MOST + (tree << 2), most);
    store<i32>(LEAST + (tree << 2), least);
  }
}

/** The largest leaf below a node, times `sign`. */
function mostOf(node: i32, sign: i32 = 1): i32 {
  if (node < 0) return sign * load<i16>(LEAVES + ((-1 - node) << 1));
  const low = mostOf(load<i16>(LOW + (node << 1)), sign);
  return max(low, mostOf(load<i16>(HIGH + (node << 1)), sign));
}

/** Whether `decide` gives at least `limit`; most often a part of the trees tells. */
export function isAtLeast(row: usize, limit: i32): bool {
  let sum: i32 = BIAS;
  for (let tree = 0; tree < TREES; tree++) {
    if (sum + load<i32>(MOST + (tree << 2)) < limit) return false;
    if (sum + load<i32>(LEAST + (tree << 2)) >= limit) return true;
    sum += leafOf(row, tree);
  }
  return sum >= limit;
}

/**
 * Whether `decide` may give at least `limit` for any numbers from those at `least` to those at `most`; seldom
 * also where it may not.
 */
export function mayBeAtLeast(least: usize, most: usize, limit: i32): bool {
  let sum: i32 = BIAS;
  for (let tree = 0; tree < TREES; tree++) {
    if (sum + load<i32>(MOST + (tree << 2)) < limit) return false;
    if (sum + load<i32>(LEAST + (tree << 2)) >= limit) return true;
    sum += mostWithin(load<i16>(ROOTS + (tree << 1)), least, most);
  }
  return sum >= limit;
}

/** The largest leaf below a node for any numbers from those at `least` to those at `most`. */
function mostWithin(node: i32, least: usize, most: usize): i32 {
  while (node >= 0) {
    const feature: usize = load<u8>(FEATURES_ASKED + node), threshold = load<u8>(THRESHOLDS + node);
    const low = load<i16>(LOW + (node << 1)), high = load<i16>(HIGH + (node << 1));
    const mayBeLow = load<u8>(least + feature) <= threshold, mayBeHigh = load<u8>(most + feature) > threshold;
    if (mayBeLow && mayBeHigh) return max(mostWithin(low, least, most), mostWithin(high, least, most));
    node = mayBeHigh ? high : low;
  }
  return load<i16>(LEAVES + ((-1 - node) << 1));
}

/** The logarithm of the odds that the numbers at `row` are those of a cut, times LEAF_ONE. */
export function decide(row: usize): i32 {
  let sum: i32 = BIAS;
  for (let tree = 0; tree < TREES; tree++) sum += leafOf(row, tree);
  return sum;
}

/** What a tree adds. */
function leafOf(row: usize, tree: i32): i32 {
  let node: i32 = load<i16>(ROOTS + (tree << 1));
  // Leaves are -1 - index.
  while (node >= 0) {
    const isHigh = load<u8>(row + load<u8>(FEATURES_ASKED + node)) > load<u8>(THRESHOLDS + node);
    node = load<i16>((isHigh ? HIGH : LOW) + (node << 1));
  }
  return load<i16>(LEAVES + ((-1 - node) << 1));
}
