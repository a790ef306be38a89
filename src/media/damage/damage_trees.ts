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
/** A tree has at most so many nodes that ask. */
const NODES = 7;
const ANSWERS = 1 << NODES;
/** No number is above it. */
const NEVER = 255;

/**
 * The same trees without branches, as a processor guesses most of them wrong: all nodes of a tree are asked, and the answers, a bit for
 * each, are the place of its leaf in a table.
 */
interface AnswerTables {
  readonly trees: number;
  /** NODES of each tree; where it has fewer, the rest never say yes. */
  readonly features: Uint8Array;
  readonly thresholds: Uint8Array;
  /** ANSWERS of each tree. */
  readonly leaves: Int16Array;
}

/** Those of weights that were used before: they are larger than the weights. */
const tablesOfWeights = new WeakMap<DamageWeights, AnswerTables>();

/** Decides by trees. */
export class DamageTrees {
  readonly #bias: number;
  readonly #tables: AnswerTables;

  constructor(weights: DamageWeights) {
    const known = tablesOfWeights.get(weights);
    this.#bias = weights.bias;
    this.#tables = known ?? tablesOf(weights);
    if (!known) tablesOfWeights.set(weights, this.#tables);
  }

  /** The logarithm of the odds that a frame with these numbers is damaged. */
  odds(row: Uint8Array): number {
    const { trees, features, thresholds, leaves } = this.#tables;
    let sum = this.#bias;
    for (let tree = 0, node = 0; tree < trees; tree++, node += NODES) {
      // The sign of the difference is the answer.
      const answers = (thresholds[node]! - row[features[node]!]!) >>> 31 |
        (thresholds[node + 1]! - row[features[node + 1]!]!) >>> 31 << 1 |
        (thresholds[node + 2]! - row[features[node + 2]!]!) >>> 31 << 2 |
        (thresholds[node + 3]! - row[features[node + 3]!]!) >>> 31 << 3 |
        (thresholds[node + 4]! - row[features[node + 4]!]!) >>> 31 << 4 |
        (thresholds[node + 5]! - row[features[node + 5]!]!) >>> 31 << 5 |
        (thresholds[node + 6]! - row[features[node + 6]!]!) >>> 31 << 6;
      sum += leaves[tree * ANSWERS + answers]!;
    }
    return sum / LEAF_ONE;
  }
}

function tablesOf(weights: DamageWeights): AnswerTables {
  const trees = weights.roots.length;
  const features = new Uint8Array(trees * NODES), thresholds = new Uint8Array(trees * NODES).fill(NEVER);
  const leaves = new Int16Array(trees * ANSWERS);
  for (let tree = 0; tree < trees; tree++) {
    const root = weights.roots[tree]!, nodes = nodesBelow(weights, root);
    if (nodes.length > NODES) throw new RangeError(`A tree has ${nodes.length} nodes, and ${NODES} at most`);
    nodes.forEach((node, i) => {
      features[tree * NODES + i] = weights.features[node]!;
      thresholds[tree * NODES + i] = weights.thresholds[node]!;
    });
    for (let answers = 0; answers < ANSWERS; answers++) {
      leaves[tree * ANSWERS + answers] = leafOf(weights, root, nodes, answers);
    }
  }
  return { trees, features, thresholds, leaves };
}

/** A node and those below it that ask. */
function nodesBelow(weights: DamageWeights, node: number): number[] {
  if (node < 0) return [];
  return [
    node,
    ...nodesBelow(weights, weights.low[node]!),
    ...nodesBelow(weights, weights.high[node]!),
  ];
}

/** The leaf where the nodes, in the order of `nodes`, give these answers. */
function leafOf(weights: DamageWeights, root: number, nodes: readonly number[], answers: number): number {
  let node = root;
  while (node >= 0) {
    const isHigh = (answers >> nodes.indexOf(node)) & 1;
    node = isHigh ? weights.high[node]! : weights.low[node]!;
  }
  return weights.leaves[-1 - node]!;
}
