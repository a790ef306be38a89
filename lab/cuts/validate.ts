/** Fits the cut detector and judges it, also on sources that took no part in the fit. */

import { type FittedTrees, oddsByTrees } from "../../src/base/fitted_trees.ts";
import { seededRandom } from "../../test/support/seeded_random.ts";
import { groupOf } from "../edits/files/origins.ts";
import { addCounts, type Counts, tallyCuts } from "../scores/score.ts";
import { fit, type FitOptions, type Samples } from "./boosting.ts";
import { type CutRows, EITHER, type LabelledRows } from "./rows.ts";
import { weightsOf } from "./weights_file.ts";

const SEED = 7;
/**
 * Least frames between two cuts: of nearer ones only the surest counts. LEAST_SHOT in `assembly/cut.ts` is
 * the same.
 */
const LEAST_SHOT = 3;
/** How trees are fitted. */
export interface Fitting {
  readonly options: Omit<FitOptions, "random">;
  /** How much a row counts that is not what is looked for; one that is counts 1. */
  readonly otherWeight: number;
}

/**
 * How the trees for cuts are fitted. Faults are rare among the candidates, and what follows one looks like a
 * cut: so a false cut counts more than a missed one.
 */
const CUTS: Fitting = {
  options: { trees: 150, leaves: 12, rate: 0.08, leastSamples: 5, shrinkage: 1, features: 0.4 },
  otherWeight: 2.5,
};

/** The trees that are fitted on all rows, or on those of which `isUsed` says so. */
export function fitRows(
  rows: LabelledRows,
  isUsed: (row: number) => boolean = () => true,
  { options, otherWeight } = CUTS,
): FittedTrees {
  const labels = Uint8Array.from(rows.videos.flatMap(({ labels }) => labels));
  const used: number[] = [];
  labels.forEach((label, row) => {
    if (label !== EITHER && isUsed(row)) used.push(row);
  });
  const samples: Samples = {
    ...{ width: rows.width, values: rows.values, labels },
    weights: Float64Array.from(labels, (label) => label === 1 ? 1 : otherWeight),
  };
  return weightsOf(fit(samples, Int32Array.from(used), { ...options, random: seededRandom(SEED) }));
}

/** The logarithm of the odds of each row. */
export function oddsOf(rows: LabelledRows, trees: FittedTrees): Float64Array {
  const count = rows.values.length / rows.width;
  return Float64Array.from({ length: count }, (_, row) => oddsByTrees(trees, rows.values, row * rows.width));
}

/**
 * The logarithm of the odds of each row of `judged`. Origins are divided into `folds`; a row is judged by
 * trees that were fitted on `fittedOn` without any origin of the folds of what is shown before it and after
 * it. So no number of the trees comes from a source that they judge; the measures themselves are the same for
 * all.
 */
export function oddsApart(
  judged: LabelledRows,
  fittedOn: LabelledRows,
  folds: number,
  fitting = CUTS,
): Float64Array {
  const own = sidesOf(judged, folds);
  const odds = new Float64Array(own.before.length);
  for (let a = 0; a < folds; a++) {
    for (let b = a; b < folds; b++) {
      const rows = [...odds.keys()].filter((row) =>
        own.before[row] === a && own.after[row] === b || own.before[row] === b && own.after[row] === a
      );
      if (rows.length === 0) continue;
      const trees = fitWithout(fittedOn, new Set([a, b]), folds, fitting);
      for (const row of rows) odds[row] = oddsByTrees(trees, judged.values, row * judged.width);
    }
  }
  return odds;
}

/** The trees that are fitted on rows of which neither side is of these folds. */
export function fitWithout(
  rows: LabelledRows,
  left: ReadonlySet<number>,
  folds: number,
  fitting = CUTS,
): FittedTrees {
  const { before, after } = sidesOf(rows, folds);
  return fitRows(rows, (row) => !left.has(before[row]!) && !left.has(after[row]!), fitting);
}

/** The folds of what is shown before and after each row. */
function sidesOf({ origins, videos }: LabelledRows, folds: number) {
  const fold = origins.map((origin) => groupOf(origin, folds));
  return {
    before: videos.flatMap(({ before }) => before.map((origin) => fold[origin]!)),
    after: videos.flatMap(({ after }) => after.map((origin) => fold[origin]!)),
  };
}

/** The candidates of one video that the odds call cuts. */
export function cutsAmong(frames: readonly number[], odds: Float64Array): number[] {
  return frames.filter((_, at) => {
    const own = odds[at]!;
    return own >= 0 && !frames.some((frame, other) => {
      const apart = Math.abs(frame - frames[at]!);
      if (apart === 0 || apart >= LEAST_SHOT) return false;
      const theirs = odds[other]!;
      return theirs > own || theirs === own && other < at;
    });
  });
}

/** What the odds find, for each kind of video. */
export function judge(rows: CutRows, odds: Float64Array): Map<string, Counts> {
  const found = new Map<string, Counts>();
  let first = 0;
  for (const { kind, cuts, frames, labels, name } of rows.videos) {
    const said = cutsAmong(frames, odds.subarray(first, first + frames.length));
    const { hits, falseAlarms, misses } = tallyCuts({ name, video: "", cuts }, said);
    const wrong = falseAlarms.filter((frame) => labels[frames.indexOf(frame)] !== EITHER);
    const counts = { hits, falseAlarms: wrong.length, misses: misses.length };
    found.set(kind, addCounts(found.get(kind), counts));
    first += frames.length;
  }
  return found;
}
