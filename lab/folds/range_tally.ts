/** What one detector finds, counted apart for each set of folds, so that any of them can be left out. */

import { addCounts, askedOf, type Counts, isClean, matchRanges, rates } from "../scores/score.ts";
import type { RangeFigure } from "../scores/score.ts";
import type { FrameRange } from "../scores/truth.ts";
import type { FoldSet, VideoFolds } from "./fold_sets.ts";
import type { RecordedVideo } from "./recording.ts";

/** What one false marker of a fault in ten minutes of clean video costs, in units of F1. */
const FALSE_MARKER_COST = 0.02;

const NONE: Counts = { hits: 0, falseAlarms: 0, misses: 0 };

/** A video, and which folds its frames are of. */
export interface FoldedVideo extends RecordedVideo {
  readonly folds: VideoFolds;
}

export class RangeTally {
  readonly #counts = new Map<FoldSet, Counts>();
  readonly #cleanSeconds = new Map<FoldSet, number>();
  readonly #cleanMarkers = new Map<FoldSet, number>();

  constructor(videos: readonly FoldedVideo[], figure: RangeFigure, found: Iterable<readonly FrameRange[]>) {
    let at = 0;
    for (const predicted of found) {
      const video = videos[at++]!;
      if (figure === "artifacts") this.#addFaults(video, predicted);
      else this.#addRanges(video, figure, predicted);
    }
  }

  /** How good the detector is where no fold of `left` is shown. */
  scoreWithout(left: FoldSet): number {
    const sum = (values: ReadonlyMap<FoldSet, number>) =>
      [...values].reduce((sum, [set, value]) => set & left ? sum : sum + value, 0);
    const counts = [...this.#counts].reduce(
      (sum, [set, own]) => set & left ? sum : addCounts(sum, own),
      NONE,
    );
    const markers = 600 * sum(this.#cleanMarkers) / Math.max(1, sum(this.#cleanSeconds));
    return rates(counts).f1 - FALSE_MARKER_COST * markers;
  }

  #addRanges({ truth, folds }: FoldedVideo, figure: RangeFigure, predicted: readonly FrameRange[]): void {
    const { wanted, doubtful } = askedOf(truth)[figure];
    const { isFound, wrong } = matchRanges(wanted, predicted, doubtful);
    wanted.forEach((range, at) => this.#add(folds.ofRange(range), isFound[at] ? "hits" : "misses"));
    for (const range of wrong) this.#add(folds.ofRange(range), "falseAlarms");
  }

  #addFaults({ truth, folds }: FoldedVideo, predicted: readonly FrameRange[]): void {
    const { wanted, doubtful } = askedOf(truth).artifacts;
    const [asked, unsure, said] = [wanted, doubtful, predicted].map((ranges) => flags(ranges, folds.count));
    for (let frame = 0; frame < folds.count; frame++) {
      if (asked![frame]) this.#add(folds.ofFrame(frame), said![frame] ? "hits" : "misses");
      else if (said![frame] && !unsure![frame]) this.#add(folds.ofFrame(frame), "falseAlarms");
    }
    if (!isClean(truth)) return;
    for (let frame = 0; frame < folds.count; frame++) {
      increase(this.#cleanSeconds, folds.ofFrame(frame), 1 / (truth.fps ?? 25));
    }
    for (const { start } of predicted) increase(this.#cleanMarkers, folds.ofFrame(start), 1);
  }

  #add(set: FoldSet, what: keyof Counts): void {
    this.#counts.set(set, addCounts(this.#counts.get(set), { ...NONE, [what]: 1 }));
  }
}

function increase(values: Map<FoldSet, number>, set: FoldSet, by: number): void {
  values.set(set, (values.get(set) ?? 0) + by);
}

function flags(ranges: readonly FrameRange[], length: number): Uint8Array {
  const result = new Uint8Array(length);
  for (const { start, end } of ranges) result.fill(1, Math.max(0, start), Math.max(0, end));
  return result;
}
