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

/** Decides by trees, and no further than is needed. */
export class DamageTrees {
  readonly #weights: DamageWeights;
  /** What the trees from each one on add at most. */
  readonly #most: Int32Array;

  constructor(weights: DamageWeights) {
    this.#weights = weights;
    this.#most = new Int32Array(weights.roots.length + 1);
    for (let tree = weights.roots.length - 1; tree >= 0; tree--) {
      this.#most[tree] = this.#most[tree + 1]! + mostOf(weights, weights.roots[tree]!);
    }
  }

  /** The logarithm of the odds that a frame with these numbers is damaged; where they are below `least`, any number that is. */
  odds(row: Uint8Array, least: number): number {
    const { bias, roots, features, thresholds, low, high, leaves } = this.#weights;
    const most = this.#most, enough = least * LEAF_ONE;
    let sum = bias;
    for (let tree = 0; tree < roots.length; tree++) {
      if (sum + most[tree]! < enough) return -Infinity;
      let node = roots[tree]!;
      while (node >= 0) node = row[features[node]!]! > thresholds[node]! ? high[node]! : low[node]!;
      sum += leaves[-1 - node]!;
    }
    return sum / LEAF_ONE;
  }
}

/** The largest leaf below a node. */
function mostOf(weights: DamageWeights, node: number): number {
  if (node < 0) return weights.leaves[-1 - node]!;
  return Math.max(mostOf(weights, weights.low[node]!), mostOf(weights, weights.high[node]!));
}
