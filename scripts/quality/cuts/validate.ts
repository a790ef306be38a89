/** Fits the cut detector and judges it, also on sources that took no part in the fit. */

import { seededRandom } from "../../../test/support/seeded_random.ts";
import { groupOf } from "../edits/files/origins.ts";
import { addCounts, type Counts, tallyCuts } from "../score.ts";
import { fit, type FitOptions, type Samples } from "./boosting.ts";
import { type CutRows, EITHER } from "./rows.ts";
import { decide, type Weights, weightsOf } from "./weights_file.ts";

const SEED = 7;
const FOLDS = 5;
/** Of cuts that are nearer to each other only the surest counts; LEAST_SHOT in `assembly/cut.ts`. */
const LEAST_SHOT = 3;
const OPTIONS: Omit<FitOptions, "random"> = {
  ...{ trees: 150, leaves: 12, rate: 0.08, leastSamples: 5, shrinkage: 1, features: 0.4 },
};

/** Faults are rare among the candidates, and what follows one looks like a cut: so a false one counts more than a missed one. */
const OTHER_WEIGHT = 2.5;

/** The trees that are fitted on all rows, or on those of which `isUsed` says so. */
export function fitRows(rows: CutRows, isUsed: (row: number) => boolean = () => true): Weights {
  const labels = Uint8Array.from(rows.videos.flatMap(({ labels }) => labels));
  const used: number[] = [];
  labels.forEach((label, row) => {
    if (label !== EITHER && isUsed(row)) used.push(row);
  });
  const samples: Samples = {
    ...{ width: rows.width, values: rows.values, labels },
    weights: Float64Array.from(labels, (label) => label === 1 ? 1 : OTHER_WEIGHT),
  };
  return weightsOf(fit(samples, Int32Array.from(used), { ...OPTIONS, random: seededRandom(SEED) }));
}

/** The logarithm of the odds of each row. */
export function oddsOf(rows: CutRows, weights: Weights): Float64Array {
  const count = rows.values.length / rows.width;
  return Float64Array.from({ length: count }, (_, row) => decide(weights, rows.values, row * rows.width));
}

/** The same, each row by trees that were fitted without any origin of its own fold or of the other side's fold. */
export function crossValidatedOdds(rows: CutRows): Float64Array {
  const fold = rows.origins.map((origin) => groupOf(origin, FOLDS));
  const before = rows.videos.flatMap(({ before }) => before.map((origin) => fold[origin]!));
  const after = rows.videos.flatMap(({ after }) => after.map((origin) => fold[origin]!));
  const odds = new Float64Array(before.length);
  for (let a = 0; a < FOLDS; a++) {
    for (let b = a; b < FOLDS; b++) {
      const isJudged = (row: number) =>
        before[row] === a && after[row] === b || before[row] === b && after[row] === a;
      const isApart = (row: number) => [a, b].every((fold) => before[row] !== fold && after[row] !== fold);
      if (!before.some((_, row) => isJudged(row))) continue;
      const weights = fitRows(rows, isApart);
      for (let row = 0; row < odds.length; row++) {
        if (isJudged(row)) odds[row] = decide(weights, rows.values, row * rows.width);
      }
    }
  }
  return odds;
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
