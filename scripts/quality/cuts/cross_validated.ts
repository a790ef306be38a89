/** Cuts as trees find them that were fitted without the sources of what they judge. */

import { measureRows } from "./measure_rows.ts";
import { readRows } from "./rows.ts";
import { cutsAmong, oddsApart } from "./validate.ts";
import type { LabelledVideo } from "../scores/videos.ts";

const FITTED_ON = new URL("../../../fixtures/quality/cut_rows.bin.gz", import.meta.url);

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
