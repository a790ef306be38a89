/** Writes fitted trees as files of `weights/`: whole numbers, so that what is shipped and this fit agree. */

import { type FittedTrees, LEAF_ONE, treesOf } from "../../src/base/fitted_trees.ts";
import type { Model } from "./boosting.ts";

const ROOT = new URL("../../", import.meta.url);

/** The files of `weights/`: what their trees tell, which program fits them and on which rows. */
const FILES = {
  cut: ["whether a frame is the first one after a cut", "lab/fit_cuts.ts", "cut_rows"],
  gradual: ["whether a stretch of frames is a gradual transition", "lab/fit_gradual.ts", "gradual_rows"],
  damage: [
    "whether parts of a frame are damaged, and where damage is over",
    "lab/fit_faults.ts",
    "fault_rows",
  ],
} as const;

export type WeightsName = keyof typeof FILES;

const HOW_TO_READ =
  "Trees of whole numbers: `roots` has the first node of each. Node n asks whether number " +
  "features[n] of a row is above thresholds[n]; then high[n] follows, else low[n]. Below 0 stands a leaf, " +
  `-1 - index. \`bias\` and a leaf of each tree add up to the logarithm of the odds, times ${LEAF_ONE}.`;

/** Where the rows lie on which trees are fitted. */
export function rowsOf(name: WeightsName): URL {
  return new URL(`fixtures/quality/${FILES[name][2]}.bin.gz`, ROOT);
}

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
  return treesOf({ bias: Math.round(model.bias * LEAF_ONE), roots, features, thresholds, low, high, leaves });
}

/** The text of a file of `weights/`: a list a line. */
export function weightsText(name: WeightsName, trees: Readonly<Record<string, FittedTrees>>): string {
  const [tells, madeBy, rows] = FILES[name];
  const header = { tells, madeBy, madeOf: `fixtures/quality/${rows}.bin.gz`, howToRead: HOW_TO_READ };
  const plain = (_: string, value: unknown) => ArrayBuffer.isView(value) ? [...value as Int16Array] : value;
  return `${JSON.stringify({ ...header, trees }, plain).replaceAll(/\],|\{|",/g, "$&\n")}\n`;
}

/** The committed text of a file of `weights/`. */
export function committedWeights(name: WeightsName): string {
  return Deno.readTextFileSync(fileOf(name));
}

/** Writes a file of `weights/`. */
export function writeWeights(name: WeightsName, trees: Readonly<Record<string, FittedTrees>>): void {
  Deno.writeTextFileSync(fileOf(name), weightsText(name, trees));
}

function fileOf(name: WeightsName): URL {
  return new URL(`weights/${name}.json`, ROOT);
}
