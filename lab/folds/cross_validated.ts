/** What would be found if nothing that was fitted or chosen knew the sources of what it judges. */

import type { Predictions, RangeFigure } from "../scores/score.ts";
import { askedOf, RANGE_FIGURES } from "../scores/score.ts";
import type { FrameRange } from "../scores/truth.ts";
import { RangeDetectors } from "../../src/media/detection/range_detectors.ts";
import { numbersIn, RANGE_BOUNDS, withNumbers } from "./bounds.ts";
import { type Change, ChosenConstants } from "./chosen_constants.ts";
import { cutsApart } from "./cuts.ts";
import { rangesIn } from "./detected.ts";
import { FaultsCopy } from "./faults_copy.ts";
import { gradualApart } from "./gradual.ts";
import { type FoldSet, joined, VideoFolds } from "./fold_sets.ts";
import type { FoldedVideo } from "./range_tally.ts";
import type { RecordedVideo } from "./recording.ts";

/** Makes one detector again, without some sources. */
export interface Maker {
  /** What it finds in each video where it was made without the sources of these folds. */
  findWithout(left: FoldSet): Promise<readonly (readonly FrameRange[])[]>;
  /** How it was made, for who watches. */
  summary(): string;
}

type Found = (readonly FrameRange[])[];

/** Makes the maker of a detector of `videos`. `transitions` are the gradual ones that were found before. */
type MakeMaker = (videos: readonly FoldedVideo[], folds: number, transitions: Found) => Promise<Maker>;

/** How each detector is made again. One that is fitted has an entry that fits it anew. */
const MAKERS: Readonly<Record<RangeFigure, MakeMaker>> = {
  gradual: gradualApart,
  flashes: byBounds("flashes", "flash"),
  freezes: byBounds("freezes", "freeze"),
  black: byBounds("black", "black"),
  loops: byBounds("loops", "repeat"),
  artifacts: faultsByConstants,
};

/**
 * What is found by detectors that do not know what they judge. Each range is found by one that was made
 * without the folds of all that is shown in it and beside it; each frame of a fault by one without the fold
 * of what it shows, outside of the transitions that were found so.
 */
export async function crossValidated(
  videos: readonly RecordedVideo[],
  folds: number,
  say: (line: string) => void,
): Promise<Predictions[]> {
  const folded = videos.map((video): FoldedVideo => ({
    ...video,
    folds: new VideoFolds(video.truth, video.recording.frames, folds),
  }));
  const cuts = await cutsApart(videos, folds);
  const ranges = new Map<RangeFigure, Found>();
  for (const figure of RANGE_FIGURES) {
    const startedMs = performance.now();
    const maker = await MAKERS[figure](folded, folds, ranges.get("gradual") ?? []);
    ranges.set(figure, await rangesApart(folded, figure, maker));
    say(`${figure}: ${maker.summary()}; ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  }
  return videos.map((_, at) => ({
    cuts: cuts[at]!,
    ...Object.fromEntries([...ranges].map(([figure, found]) => [figure, found[at]!])),
  }));
}

export async function rangesApart(
  videos: readonly FoldedVideo[],
  figure: RangeFigure,
  maker: Maker,
): Promise<(readonly FrameRange[])[]> {
  const results: FrameRange[][] = videos.map(() => []);
  const isByFrame = figure === "artifacts";
  for (const left of setsIn(videos, figure)) {
    const found = await maker.findWithout(left);
    videos.forEach(({ folds }, at) => {
      const own = isByFrame
        ? folds.partsOf(found[at]!, left)
        : found[at]!.filter((range) => folds.ofRange(range) === left);
      results[at]!.push(...own);
    });
  }
  return results.map((ranges) => isByFrame ? joined(ranges) : ranges.toSorted((a, b) => a.start - b.start));
}

/**
 * The folds that a range may be of: of one shot, of two that follow each other, and of what the truth has.
 */
function setsIn(videos: readonly FoldedVideo[], figure: RangeFigure): Set<FoldSet> {
  const sets = new Set<FoldSet>();
  for (const { folds, truth } of videos) {
    for (let frame = 0; frame < folds.count; frame++) {
      sets.add(folds.ofFrame(frame));
      if (figure !== "artifacts") sets.add(folds.ofFrame(frame) | folds.ofFrame(frame + 1));
    }
    if (figure === "artifacts") continue;
    for (const range of askedOf(truth)[figure].wanted) sets.add(folds.ofRange(range));
  }
  return sets;
}

/** Chooses the bounds of a detector of ranges anew. */
function byBounds(figure: RangeFigure, type: keyof typeof RANGE_BOUNDS): MakeMaker {
  return (videos) => {
    const recordings = videos.map(({ recording }) => recording);
    const bounds = RANGE_BOUNDS[type];
    const find = (changes: readonly Change[]) => {
      const numbers = { [type]: withNumbers(bounds, changes) };
      return rangesIn(recordings, (cuts) => new RangeDetectors(cuts, [type], numbers));
    };
    return Promise.resolve(chosen({ videos, figure, constants: numbersIn(bounds), find }));
  };
}

/** Chooses the constants of the detectors of faults anew. */
async function faultsByConstants(
  videos: readonly FoldedVideo[],
  _folds: number,
  transitions: Found,
): Promise<Maker> {
  const copy = await FaultsCopy.load();
  const recordings = videos.map(({ recording }) => recording);
  const find = (changes: readonly Change[]) => copy.faultsWith(changes, recordings, transitions);
  return chosen({ videos, figure: "artifacts", constants: copy.constants, find });
}

function chosen(options: ConstructorParameters<typeof ChosenConstants>[0]): Maker {
  const constants = new ChosenConstants(options);
  return {
    findWithout: (left) => Promise.resolve(constants.foundWith(constants.without(left))),
    summary() {
      const { all, other } = constants.choices;
      return `${options.constants.length} constants, others were chosen ${other} of ${all} times`;
    },
  };
}
