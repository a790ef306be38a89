/** Cuts as trees find them that were fitted without the sources of what they judge. */

import { KernelRows } from "../cuts/kernel_rows.ts";
import { labelled } from "../cuts/measure_rows.ts";
import { readRows } from "../cuts/rows.ts";
import { cutsAmong, oddsApart } from "../cuts/validate.ts";
import { rowsOf } from "../cuts/weights_file.ts";
import type { RecordedVideo } from "./recording.ts";

/** The cuts of each video, by {@link oddsApart}. */
export async function cutsApart(videos: readonly RecordedVideo[], folds: number): Promise<number[][]> {
  const candidates = videos.map(({ truth, recording: { candidates } }) => ({ truth, candidates }));
  const judged = labelled(candidates, await KernelRows.load());
  const fittedOn = await readRows(rowsOf("cut"));
  if (fittedOn.kernelSum !== judged.kernelSum) {
    throw new Error(
      "The kernel measures otherwise than for the committed rows: see lab/fit_cuts.ts --measure",
    );
  }
  const odds = oddsApart(judged, fittedOn, folds);
  let first = 0;
  return judged.videos.map(({ frames }) => cutsAmong(frames, odds.subarray(first, first += frames.length)));
}
