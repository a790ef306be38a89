/** Writes fitted weights as files of `weights/`, so that what is shipped and this fit agree exactly. */

import { type FittedTrees, LEAF_ONE, treesOf } from "../../src/base/fitted_trees.ts";
import type { Model } from "./boosting.ts";

const ROOT = new URL("../../", import.meta.url);

const TREES = "Trees of whole numbers: `roots` has the first node of each. Node n asks whether number " +
  "features[n] of a row is above thresholds[n]; then high[n] follows, else low[n]. Below 0 stands a leaf, " +
  `-1 - index. \`bias\` and a leaf of each tree add up to the logarithm of the odds, times ${LEAF_ONE}.`;

/** The header of each file of `weights/`: what it tells, which program made it, of what, how it is read. */
const HEADERS = {
  cut: {
    tells: "whether a frame is the first one after a cut",
    madeBy: "lab/fit_cuts.ts",
    madeOf: "fixtures/quality/cut_rows.bin.gz",
    howToRead: TREES,
  },
  gradual: {
    tells: "whether a stretch of frames is a gradual transition",
    madeBy: "lab/fit_gradual.ts",
    madeOf: "fixtures/quality/gradual_rows.bin.gz",
    howToRead: TREES,
  },
  damage: {
    tells: "whether parts of a frame are damaged, and where damage is over",
    madeBy: "lab/fit_faults.ts",
    madeOf: "fixtures/quality/fault_rows.bin.gz",
    howToRead: TREES,
  },
  voice: {
    tells: "whether somebody speaks in a frame of 10 ms",
    madeBy: "lab/fit_voice_activity.ts",
    madeOf: "scenes of bench/sidecars/audio_scenes.ts",
    howToRead:
      "A row for each hidden unit: its weights in the order of EVIDENCE, and its bias. The last row has " +
      "the weights of the units, and a bias. See src/sidecar/audio/voice_activity.ts.",
  },
} as const;

export type WeightsName = keyof typeof HEADERS;

/** Where the rows lie on which trees are fitted. */
export function rowsOf(name: Exclude<WeightsName, "voice">): URL {
  return new URL(HEADERS[name].madeOf, ROOT);
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

/** What stands in a file behind its header. */
export type Weights =
  | { readonly trees: Readonly<Record<string, FittedTrees>> }
  | { readonly rows: readonly (readonly number[])[] };

/** The text of a file of `weights/`: a list a line. */
export function weightsText(name: WeightsName, weights: Weights): string {
  const plain = (_: string, value: unknown) => ArrayBuffer.isView(value) ? [...value as Int16Array] : value;
  const text = JSON.stringify({ ...HEADERS[name], ...weights }, plain);
  return `${text.replaceAll(/\],|\{|",/g, "$&\n")}\n`;
}

/** The committed text of a file of `weights/`. */
export function committedWeights(name: WeightsName): string {
  return Deno.readTextFileSync(fileOf(name));
}

/** Writes a file of `weights/`. */
export function writeWeights(name: WeightsName, weights: Weights): void {
  Deno.writeTextFileSync(fileOf(name), weightsText(name, weights));
}

function fileOf(name: WeightsName): URL {
  return new URL(`weights/${name}.json`, ROOT);
}
