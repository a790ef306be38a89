/** Fitted boosted trees in whole numbers, so that every machine decides alike. */

/** The nodes of all trees in one list. A node that follows another is an index, a leaf is -1 - index. */
export interface FittedTrees {
  /**
   * What all odds begin with. It and all leaves are in units of 1 / LEAF_ONE of the logarithm of the odds.
   */
  readonly bias: number;
  /** The first node of each tree. */
  readonly roots: readonly number[];
  /** For each node: the number that is asked for, and the threshold that it must be above to go to `high`. */
  readonly features: readonly number[];
  readonly thresholds: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly leaves: readonly number[];
}

export const LEAF_ONE = 4096;

/** The logarithm of the odds for the numbers from `at` on. */
export function oddsByTrees(trees: FittedTrees, values: Uint8Array, at = 0): number {
  let sum = trees.bias;
  for (const root of trees.roots) {
    let node = root;
    while (node >= 0) {
      const isHigh = values[at + trees.features[node]!]! > trees.thresholds[node]!;
      node = (isHigh ? trees.high : trees.low)[node]!;
    }
    sum += trees.leaves[-1 - node]!;
  }
  return sum / LEAF_ONE;
}
