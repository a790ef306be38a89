/** Fitted boosted trees in whole numbers, so that every machine decides alike. They lie in `weights/`. */

/** The nodes of all trees in one list. A node that follows another is an index, a leaf is -1 - index. */
export interface FittedTrees {
  /**
   * What all odds begin with. It and all leaves are in units of 1 / LEAF_ONE of the logarithm of the odds.
   */
  readonly bias: number;
  /** The first node of each tree. */
  readonly roots: Int16Array;
  /** For each node: the number that is asked for, and the threshold that it must be above to go to `high`. */
  readonly features: Uint8Array;
  readonly thresholds: Uint8Array;
  readonly low: Int16Array;
  readonly high: Int16Array;
  readonly leaves: Int16Array;
}

/** What a file of `weights/` holds: trees by what they tell, written by `lab/cuts/weights_file.ts`. */
export interface WeightsFile<Name extends string = string> {
  readonly trees: Readonly<Record<Name, Lists>>;
}

type Lists = { readonly [List in keyof FittedTrees]: FittedTrees[List] extends number ? number : number[] };

export const LEAF_ONE = 4096;

/** The trees of a file by their names. */
export function loadTrees<Name extends string>(file: WeightsFile<Name>): Readonly<Record<Name, FittedTrees>> {
  const trees = Object.entries<Lists>(file.trees).map(([name, lists]) => [name, treesOf(lists)]);
  return Object.fromEntries(trees);
}

/** Trees out of plain lists. */
export function treesOf({ bias, roots, features, thresholds, low, high, leaves }: Lists): FittedTrees {
  return {
    bias,
    roots: Int16Array.from(roots),
    features: Uint8Array.from(features),
    thresholds: Uint8Array.from(thresholds),
    low: Int16Array.from(low),
    high: Int16Array.from(high),
    leaves: Int16Array.from(leaves),
  };
}

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
