/** Cuts as trees find them that were fitted without the sources of what they judge. */

import { groupOf } from "./edits/files/origins.ts";
import { measureRows } from "./cuts/measure_rows.ts";
import { type CutRows, readRows } from "./cuts/rows.ts";
import { cutsAmong, fitRows } from "./cuts/validate.ts";
import { decide } from "./cuts/weights_file.ts";
import type { LabelledVideo } from "./videos.ts";

const FITTED_ON = new URL("../../fixtures/quality/cut_rows.bin.gz", import.meta.url);

/** The cuts of each video, by {@link oddsApart}. */
export async function crossValidatedCuts(
  videos: readonly LabelledVideo[],
  folds: number,
): Promise<number[][]> {
  const judged = await measureRows(videos, () => {});
  const fittedOn = await readRows(FITTED_ON);
  if (fittedOn.kernelSum !== judged.kernelSum) {
    throw new Error(
      "The kernel measures otherwise than for the committed rows: see scripts/quality/fit_cuts.ts --measure",
    );
  }
  const odds = oddsApart(judged, fittedOn, folds);
  let first = 0;
  return judged.videos.map(({ frames }) => cutsAmong(frames, odds.subarray(first, first += frames.length)));
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
