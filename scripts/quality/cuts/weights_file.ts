/** Writes fitted trees as `assembly/cut/weights.ts`: whole numbers only, so the kernel and this fit agree exactly. */

import type { Model } from "./boosting.ts";

/** One unit of the logarithm of the odds; LEAF_ONE in `assembly/cut/decision.ts`. */
const LEAF_ONE = 4096;

/** The trees in the form of the kernel: nodes of all trees in one list, leaves as -1 - index. */
export interface Weights {
  readonly bias: number;
  readonly roots: readonly number[];
  readonly features: readonly number[];
  readonly thresholds: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly leaves: readonly number[];
}

export function weightsOf(model: Model): Weights {
  const roots: number[] = [], features: number[] = [], thresholds: number[] = [];
  const low: number[] = [], high: number[] = [], leaves: number[] = [];
  for (const tree of model.trees) {
    const firstNode = features.length, firstLeaf = leaves.length;
    const placed = (node: number) => node >= 0 ? firstNode + node : node - firstLeaf;
    roots.push(tree.splits.length > 0 ? firstNode : -1 - firstLeaf);
    for (const split of tree.splits) {
      features.push(split.feature);
      thresholds.push(split.threshold);
      low.push(placed(split.low));
      high.push(placed(split.high));
    }
    for (const leaf of tree.leaves) {
      leaves.push(Math.max(-32768, Math.min(32767, Math.round(leaf * LEAF_ONE))));
    }
  }
  return { bias: Math.round(model.bias * LEAF_ONE), roots, features, thresholds, low, high, leaves };
}

/** The logarithm of the odds, as the kernel computes it. */
export function decide(weights: Weights, values: Uint8Array, at: number): number {
  let sum = weights.bias;
  for (const root of weights.roots) {
    let node = root;
    while (node >= 0) {
      const isHigh = values[at + weights.features[node]!]! > weights.thresholds[node]!;
      node = (isHigh ? weights.high : weights.low)[node]!;
    }
    sum += weights.leaves[-1 - node]!;
  }
  return sum / LEAF_ONE;
}

/** The text of `assembly/cut/weights.ts`. */
export function weightsText(weights: Weights): string {
  const array = (name: string, type: string, numbers: readonly number[]) =>
    `export const ${name}: usize = memory.data<${type}>([\n${wrapped(numbers)}\n]);\n`;
  return [
    "/** The fitted trees of the cut detector: made by `scripts/quality/fit_cuts.ts`, not by hand. */\n// deno-fmt-ignore-file\n",
    `export const BIAS: i32 = ${weights.bias};\nexport const TREES: i32 = ${weights.roots.length};\n`,
    "/** The first node of each tree. */",
    array("ROOTS", "i16", weights.roots),
    "/** For each node: the number that is asked for, and the threshold that it must be above to go to HIGH. */",
    array("FEATURES_ASKED", "u8", weights.features),
    array("THRESHOLDS", "u8", weights.thresholds),
    "/** The nodes that follow; leaves are -1 - index. */",
    array("LOW", "i16", weights.low),
    array("HIGH", "i16", weights.high),
    array("LEAVES", "i16", weights.leaves),
  ].join("\n").replaceAll("*/\n\n", "*/\n").trimEnd() + "\n";
}

export function wrapped(numbers: readonly number[]): string {
  const lines: string[] = [];
  let line = " ";
  for (const number of numbers) {
    if (line.length + `${number}`.length + 2 > 110) {
      lines.push(line);
      line = " ";
    }
    line += ` ${number},`;
  }
  return [...lines, line].join("\n");
}
