/** How gradual transitions are fitted, and what the odds of their stretches find. */

import { ChosenStretches, LEAST_HALF_ODDS } from "../../src/media/detection/gradual/transition_choice.ts";
import { isOnlyRelit, isPlainIn } from "../../src/media/detection/gradual/transition_row.ts";
import type { Fitting } from "../cuts/validate.ts";
import { addCounts, type Counts, tallyRanges } from "../scores/score.ts";
import type { FrameRange } from "../scores/truth.ts";
import type { StretchRows } from "./stretch_rows.ts";

/**
 * How the trees for transitions are fitted. Each transition has several stretches, so these trees are enough.
 */
export const TRANSITIONS: Fitting = {
  options: { trees: 150, leaves: 12, rate: 0.08, leastSamples: 10, shrinkage: 2, features: 0.4 },
  otherWeight: 0.5,
};

/** What the odds find, for each kind of video. */
export function judgeStretches(rows: StretchRows, odds: Float64Array): Map<string, Counts> {
  const counts = new Map<string, Counts>();
  let first = 0;
  for (const { kind, gradual, starts, ends, fps } of rows.videos) {
    const found: FrameRange[] = [];
    const chosen = new ChosenStretches({
      add: (_, startFrame, endFrame) => found.push({ start: startFrame, end: endFrame + 1 }),
    });
    starts.forEach((start, at) => {
      const row = first + at, end = ends[at]!;
      chosen.settle(end * 1000 / fps - 1);
      const values = rows.values.subarray(row * rows.width, (row + 1) * rows.width);
      if (odds[row]! <= LEAST_HALF_ODDS || isOnlyRelit(values)) return;
      chosen.add({
        ...{ start, end, odds: odds[row]! },
        ...{ first: start, last: end - 1 },
        ...{ startMs: start * 1000 / fps, lastMs: (end - 1) * 1000 / fps, endMs: end * 1000 / fps },
        startsPlain: isPlainIn(values, "before"),
        endsPlain: isPlainIn(values, "after"),
      });
    });
    chosen.finish();
    counts.set(kind, addCounts(counts.get(kind), tallyRanges(gradual, found)));
    first += starts.length;
  }
  return counts;
}
