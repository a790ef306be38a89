/** Fitted trees that say how likely it is that a frame is damaged. */

/** Trees that were fitted, in whole numbers: nodes of all trees in one list, leaves as -1 - index. */
export interface DamageWeights {
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

/** One unit of the logarithm of the odds in the weights. */
const LEAF_ONE = 4096;
/** The logarithm of the odds that a frame with these numbers is damaged. */
export function damageOdds(
  { bias, roots, features, thresholds, low, high, leaves }: DamageWeights,
  row: Uint8Array,
): number {
  let sum = bias;
  for (let tree = 0; tree < roots.length; tree++) {
    let node = roots[tree]!;
    while (node >= 0) node = row[features[node]!]! > thresholds[node]! ? high[node]! : low[node]!;
    sum += leaves[-1 - node]!;
  }
  return sum / LEAF_ONE;
}
