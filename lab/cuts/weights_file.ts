/** Writes fitted trees as source code: whole numbers only, so that what is shipped and this fit agree
 * exactly.
 */

import { type FittedTrees, LEAF_ONE } from "../../src/media/detection/gradual/fitted_trees.ts";
import type { Model } from "./boosting.ts";

/** The trees in the form of the kernel, whose LEAF_ONE in `assembly/cut/decision.ts` is the same. */
export function weightsOf(model: Model): FittedTrees {
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

/** The text of `src/media/detection/gradual/weights.ts`. */
export function transitionTreesText(trees: FittedTrees): string {
  const lists = (["roots", "features", "thresholds", "low", "high", "leaves"] as const)
    .map((name) => `  ${name}: [\n${wrapped(trees[name])}\n  ],\n`);
  return [
    "/** The fitted trees of gradual transitions: made by `lab/fit_gradual.ts`, not by hand. */\n// deno-fmt-ignore-file\n",
    'import type { FittedTrees } from "./fitted_trees.ts";\n',
    `export const TRANSITION_TREES: FittedTrees = {\n  bias: ${trees.bias},\n${lists.join("")}};\n`,
  ].join("\n");
}

/** The text of `assembly/cut/weights.ts`. */
export function weightsText(weights: FittedTrees): string {
  const array = (name: string, type: string, numbers: readonly number[]) =>
    `export const ${name}: usize = memory.data<${type}>([\n${wrapped(numbers)}\n]);\n`;
  return [
    "/** The fitted trees of the cut detector: made by `lab/fit_cuts.ts`, not by hand. */\n// deno-fmt-ignore-file\n",
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
