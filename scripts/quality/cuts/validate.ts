/** Fits the cut detector and judges it, also on sources that took no part in the fit. */

import { seededRandom } from "../../../test/support/seeded_random.ts";
import { groupOf } from "../edits/files/origins.ts";
import { addCounts, type Counts, tallyCuts } from "../scores/score.ts";
import { fit, type FitOptions, type Samples } from "./boosting.ts";
import { type CutRows, EITHER } from "./rows.ts";
import { decide, type Weights, weightsOf } from "./weights_file.ts";

const SEED = 7;
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

/**
 * The logarithm of the odds of each row of `judged`. Origins are divided into `folds`; a row is judged by trees that were fitted on
 * `fittedOn` without any origin of the folds of what is shown before it and after it. So no number of the trees comes
 * from a source that they judge; the measures themselves are the same for all.
 */
export function oddsApart(judged: CutRows, fittedOn: CutRows, folds: number): Float64Array {
  const [own, theirs] = [sidesOf(judged, folds), sidesOf(fittedOn, folds)];
  const odds = new Float64Array(own.before.length);
  for (let a = 0; a < folds; a++) {
    for (let b = a; b < folds; b++) {
      const rows = [...odds.keys()].filter((row) =>
        own.before[row] === a && own.after[row] === b || own.before[row] === b && own.after[row] === a
      );
      if (rows.length === 0) continue;
      const isApart = (row: number) =>
        [a, b].every((fold) => theirs.before[row] !== fold && theirs.after[row] !== fold);
      const weights = fitRows(fittedOn, isApart);
      for (const row of rows) odds[row] = decide(weights, judged.values, row * judged.width);
    }
  }
  return odds;
}

/** The folds of what is shown before and after each row. */
function sidesOf({ origins, videos }: CutRows, folds: number) {
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
