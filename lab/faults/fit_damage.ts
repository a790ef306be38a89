/** Fits the trees of the detector of damaged parts, and judges them, also on sources that took no part. */

import type { FittedTrees } from "../../src/base/fitted_trees.ts";
import {
  DAMAGE_FEATURES,
  DAMAGE_REACH,
  DamageHistory,
} from "../../src/media/detection/faults/damage_features.ts";
import {
  DAMAGE_LOOKAHEAD,
  DamagedParts,
  type DamageWeights,
} from "../../src/media/detection/faults/damaged_parts.ts";
import { seededRandom } from "../../test/support/seeded_random.ts";
import { fit, type FitOptions } from "../cuts/boosting.ts";
import { weightsOf } from "../cuts/weights_file.ts";
import { addCounts, type Counts, tallyFrames } from "../scores/score.ts";
import type { FaultRows, FaultVideo, Span } from "./rows.ts";

const SEED = 7;
const OPTIONS: Omit<FitOptions, "random" | "trees"> = {
  ...{ leaves: 8, rate: 0.1, leastSamples: 30, shrinkage: 5, features: 0.2 },
};
/** Step between the sound frames of a video that are used: every second one. */
const SOUND_STEP = 2;
/** Step between the frames within drawn damage that are used to show what has not healed: every third one. */
const DRAWN_STEP = 3;
/** How many trees are fitted for each of DamageWeights. */
export const FAULT_TREES = { damage: 120, silent: 120, healing: 60 } as const;

/**
 * The trees that are fitted on all videos, or on those of which `isUsed` says so; with a `share` only the
 * first of each.
 */
export function fitFaults(
  rows: FaultRows,
  isUsed: (video: FaultVideo) => boolean = () => true,
  share = 1,
): DamageWeights {
  const options = (of: keyof DamageWeights) => ({ ...OPTIONS, trees: FAULT_TREES[of] * share });
  return {
    damage: fitTrees(rows, (video) => !video.lasting && isUsed(video), options("damage"), isDamagedAt),
    silent: fitTrees(rows, isUsed, options("silent"), isDamagedAt),
    healing: fitTrees(rows, isUsed, options("healing"), isHealedAt),
  };
}

/** Whether a frame is damaged; null where it is not asked for. */
function isDamagedAt({ damaged, doubtful }: FaultVideo, frame: number): boolean | null {
  if (isIn(damaged, frame)) return true;
  return isIn(doubtful, frame) || frame % SOUND_STEP !== 0 ? null : false;
}

/**
 * Whether damage is over with a frame; null where none was just before. Drawn damage ends, damage that was
 * decoded lasts.
 */
function isHealedAt({ shots, damaged, lasting }: FaultVideo, frame: number): boolean | null {
  if (shots.includes(frame)) return null;
  if (lasting) return lasting.some(([start, end]) => frame > start + 1 && frame < end) ? false : null;
  if (damaged.some(([, end]) => end === frame) && !isIn(damaged, frame)) return true;
  return frame % DRAWN_STEP === 0 && damaged.some(([start, end]) => frame > start + 1 && frame < end)
    ? false
    : null;
}

function fitTrees(
  { videos, values, width }: FaultRows,
  isUsed: (video: FaultVideo) => boolean,
  options: Omit<FitOptions, "random">,
  labelAt: (video: FaultVideo, frame: number) => boolean | null,
): FittedTrees {
  const all = videos.reduce((frames, video) => frames + video.frames, 0);
  const numbers = new Uint8Array(all * DAMAGE_FEATURES);
  const labels: number[] = [];
  const history = new DamageHistory();
  let first = 0;
  for (const video of videos) {
    const { frames, shots } = video;
    history.reset();
    let shot = 0;
    for (let frame = 0; frame < frames && isUsed(video); frame++) {
      while (history.count < Math.min(frames, frame + DAMAGE_REACH + 1)) {
        history.pushCodes(values, (first + history.count) * width);
      }
      if (shots.includes(frame)) shot = frame;
      const label = labelAt(video, frame);
      if (label === null) continue;
      history.measure(frame, shot);
      numbers.set(history.numbers, labels.length * DAMAGE_FEATURES);
      labels.push(label ? 1 : 0);
    }
    first += frames;
  }
  const samples = {
    ...{ width: DAMAGE_FEATURES, values: numbers, labels: Uint8Array.from(labels) },
    weights: new Float64Array(labels.length).fill(1),
  };
  const rows = Int32Array.from(labels.keys());
  return weightsOf(fit(samples, rows, { ...options, random: seededRandom(SEED) }));
}

function isIn(spans: readonly Span[], frame: number): boolean {
  return spans.some(([start, end]) => frame >= start && frame < end);
}

export interface Judged {
  /** Counts of frames. */
  readonly counts: Counts;
  /** Markers of videos without any fault, and how many frames those have. */
  readonly falseMarkers: number;
  readonly cleanFrames: number;
}

/** What is found in each kind of video by the trees that `weightsFor` gives for it. */
export function judgeDamage(
  { videos, values, width }: FaultRows,
  weightsFor: (video: FaultVideo) => DamageWeights,
): Map<string, Judged> {
  const judged = new Map<string, Judged>();
  let first = 0;
  for (const video of videos) {
    const said = damagedSpans(video, values.subarray(first * width), width, weightsFor(video));
    first += video.frames;
    const isClean = video.damaged.length + video.doubtful.length === 0;
    const before = judged.get(video.kind);
    judged.set(video.kind, {
      counts: addCounts(
        before?.counts,
        tallyFrames(...[video.damaged, said, video.doubtful].map(rangesOf) as Three),
      ),
      falseMarkers: (before?.falseMarkers ?? 0) + (isClean ? said.length : 0),
      cleanFrames: (before?.cleanFrames ?? 0) + (isClean ? video.frames : 0),
    });
  }
  return judged;
}

type Ranges = { readonly start: number; readonly end: number }[];
type Three = [Ranges, Ranges, Ranges];

function rangesOf(spans: readonly Span[]): Ranges {
  return spans.map(([start, end]) => ({ start, end }));
}

function damagedSpans(
  { frames, shots, lasting }: FaultVideo,
  codes: Uint8Array,
  width: number,
  weights: DamageWeights,
): Span[] {
  const detector = new DamagedParts(weights);
  const spans: [number, number][] = [];
  for (let frame = 0, pushed = 0; frame < frames; frame++) {
    for (; pushed < Math.min(frames, frame + DAMAGE_LOOKAHEAD + 1); pushed++) {
      detector.pushCodes(codes, pushed * width);
    }
    detector.step(frame, shots.includes(frame), lasting !== undefined);
    if (detector.strength === 0) continue;
    const last = spans.at(-1);
    if (last?.[1] === frame) last[1]++;
    else spans.push([frame, frame + 1]);
  }
  return spans;
}

/**
 * Each video judged by trees that were fitted on the other groups; what is drawn has no group and is judged
 * by those of all.
 */
export function judgeApart(rows: FaultRows): Map<string, Judged> {
  const groups = [...new Set(rows.videos.map(({ group }) => group))];
  const weights = new Map(
    groups.map((group) => [group, fitFaults(rows, (video) => group === null || video.group !== group)]),
  );
  return judgeDamage(rows, ({ group }) => weights.get(group)!);
}
