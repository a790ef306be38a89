/** Fitted trees that say how likely it is that a frame is damaged. */

import type { FittedTrees } from "../../../base/fitted_trees.ts";
import type { DamageKernel } from "../../kernels/damage_kernel.ts";

/** Most nodes of a tree that ask. */
const NODES = 7;
/** Where the parts of a pair of trees begin, and how long it is; see assembly/damage.ts. */
const THRESHOLDS = 16, STAY = 32, LEAVES = 48, PAIR_BYTES = 80;
const LEAVES_BYTES = 16;
const ALL_LEAVES = 255;

/** Pairs of trees, as the kernel takes them, of weights that were used before. */
const pairsOfWeights = new WeakMap<FittedTrees, Uint8Array>();

/**
 * Decides by fitted trees. It does so without branches, as a processor guesses most of them wrong: the kernel
 * asks all nodes of two trees at once.
 */
export class DamageTrees {
  readonly #kernel: DamageKernel;
  readonly #bias: number;
  readonly #at: number;
  readonly #pairs: number;

  constructor(kernel: DamageKernel, weights: FittedTrees) {
    const pairs = pairsOfWeights.get(weights) ?? pairsOf(weights);
    pairsOfWeights.set(weights, pairs);
    this.#kernel = kernel;
    this.#bias = weights.bias;
    this.#at = kernel.keepTrees(pairs);
    this.#pairs = pairs.length / PAIR_BYTES;
  }

  /**
   * The logarithm of the odds that a frame with the numbers in the kernel's `features` is damaged, times
   * LEAF_ONE: so it is whole.
   */
  odds(): number {
    return this.#bias + this.#kernel.sumLeaves(this.#at, this.#pairs);
  }
}

function pairsOf(weights: FittedTrees): Uint8Array {
  const trees = weights.roots.length;
  const bytes = new Uint8Array(Math.ceil(trees / 2) * PAIR_BYTES), view = new DataView(bytes.buffer);
  // What is not written asks whether number 0 is above 0, and leaves all leaves where they are; where there
  // is no tree they are 0.
  for (let at = 0; at < bytes.length; at += PAIR_BYTES) bytes.fill(ALL_LEAVES, at + STAY, at + LEAVES);
  for (let tree = 0; tree < trees; tree++) {
    const { nodes, leaves } = layOut(weights, weights.roots[tree]!);
    if (nodes.length > NODES) throw new RangeError(`A tree has ${nodes.length} nodes, and ${NODES} at most`);
    const pair = (tree >> 1) * PAIR_BYTES, at = pair + (tree % 2) * (NODES + 1);
    nodes.forEach(({ node, leftFrom, leftEnd }, i) => {
      bytes[at + i] = weights.features[node]!;
      bytes[at + THRESHOLDS + i] = weights.thresholds[node]!;
      for (let leaf = leftFrom; leaf < leftEnd; leaf++) bytes[at + STAY + i]! &= ~(1 << leaf);
    });
    leaves.forEach((leaf, i) =>
      view.setInt16(pair + LEAVES + (tree % 2) * LEAVES_BYTES + 2 * i, weights.leaves[leaf]!, true)
    );
  }
  return bytes;
}

/** A tree as its nodes, each with the range of leaves on its left side, and its leaves from left to right. */
interface LaidOutTree {
  readonly nodes: { readonly node: number; readonly leftFrom: number; readonly leftEnd: number }[];
  readonly leaves: number[];
}

function layOut(
  weights: FittedTrees,
  node: number,
  tree: LaidOutTree = { nodes: [], leaves: [] },
): LaidOutTree {
  if (node < 0) {
    tree.leaves.push(-1 - node);
    return tree;
  }
  const leftFrom = tree.leaves.length;
  layOut(weights, weights.low[node]!, tree);
  tree.nodes.push({ node, leftFrom, leftEnd: tree.leaves.length });
  return layOut(weights, weights.high[node]!, tree);
}
