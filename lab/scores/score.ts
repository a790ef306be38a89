/** Compares predictions with labelled videos: cuts within one frame, ranges by their overlap, faults frame by
 * frame.
 */

import type { CutTruth, FrameRange, Truth } from "./truth.ts";

/** The number of hits, and the frames of the false alarms and the misses. */
export interface CutTally {
  readonly hits: number;
  readonly falseAlarms: readonly number[];
  readonly misses: readonly number[];
}

export interface Rates {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

/** What a detector says of one video. A list that is left out is not scored. */
export interface Predictions {
  readonly cuts?: readonly number[];
  readonly gradual?: readonly FrameRange[];
  readonly flashes?: readonly FrameRange[];
  readonly freezes?: readonly FrameRange[];
  readonly black?: readonly FrameRange[];
  readonly loops?: readonly FrameRange[];
  readonly artifacts?: readonly FrameRange[];
}

export interface Counts {
  readonly hits: number;
  readonly falseAlarms: number;
  readonly misses: number;
}

/** What is scored. `artifact_frames` counts frames, all others count markers. */
export const FIGURES = [
  ...["cuts", "gradual", "flashes", "freezes", "black", "loops", "artifacts", "artifact_frames"] as const,
];

export type Figure = typeof FIGURES[number];

export interface VideoTally {
  readonly counts: Readonly<Partial<Record<Figure, Counts>>>;
  /** Seconds of a video without any fault, and the artifact markers in it, which are all false. */
  readonly clean: { readonly seconds: number; readonly artifactMarkers: number };
}

const TOLERANCE_FRAMES = 1;
const LEAST_OVERLAP = 0.5;
const AGAIN_SECONDS = 12;
const NEAR_SECONDS = 1 / 6;

/**
 * Compares predictions with the truth. An unmatched prediction is ignored inside a gradual change, and where
 * the picture really jumps without an edited cut: at the edges of black, the end of a freeze that dropped
 * frames, the seams of a loop, time jumps, and missing frames. In all other cases it is a false alarm, also
 * at flashes, artifacts, damage, camera shake and moving subjects.
 */
export function tallyCuts(truth: CutTruth, predicted: readonly number[]): CutTally {
  const cuts = [...new Set(truth.cuts)];
  const predictions = [...new Set(predicted)];
  const { matchedCuts, matchedPredictions } = match(cuts, predictions);
  const ignored = realJumps(truth);
  const falseAlarms = predictions.filter((frame) =>
    !matchedPredictions.has(frame) &&
    !ignored.some((jump) => Math.abs(frame - jump) <= TOLERANCE_FRAMES) &&
    !truth.gradual?.some((range) =>
      frame >= range.start - TOLERANCE_FRAMES && frame < range.end + TOLERANCE_FRAMES
    )
  );
  const misses = cuts.filter((frame) => !matchedCuts.has(frame));
  return { hits: matchedCuts.size, falseAlarms: ascending(falseAlarms), misses: ascending(misses) };
}

/** Which ranges of the truth were found, and the predictions that are wrong. */
export interface RangeMatch {
  /** Whether each range of the truth was found. */
  readonly isFound: readonly boolean[];
  readonly wrong: readonly FrameRange[];
}

/**
 * A truth range is found by a prediction when what both cover is at least half of what either covers; each is
 * used once. Other predictions are false alarms, unless at least half of one lies where both answers are
 * right (`doubtful`).
 */
export function matchRanges(
  truth: readonly FrameRange[],
  predicted: readonly FrameRange[],
  doubtful: readonly FrameRange[] = [],
): RangeMatch {
  const pairs = truth.flatMap((range, t) =>
    predicted
      .map((prediction, p) => ({ t, p, overlap: overlap(range, prediction) }))
      .filter(({ overlap }) => overlap >= LEAST_OVERLAP)
  ).sort((a, b) => b.overlap - a.overlap || a.t - b.t || a.p - b.p);
  const found = new Set<number>(), used = new Set<number>();
  for (const { t, p } of pairs) {
    if (found.has(t) || used.has(p)) continue;
    found.add(t);
    used.add(p);
  }
  const unsure = framesOf(doubtful);
  const wrong = predicted.filter((prediction, p) => {
    if (used.has(p)) return false;
    let inside = 0;
    for (let frame = prediction.start; frame < prediction.end; frame++) if (unsure.has(frame)) inside++;
    return 2 * inside < prediction.end - prediction.start;
  });
  return { isFound: truth.map((_, t) => found.has(t)), wrong };
}

/** How many ranges {@link matchRanges} finds. */
export function tallyRanges(
  truth: readonly FrameRange[],
  predicted: readonly FrameRange[],
  doubtful: readonly FrameRange[] = [],
): Counts {
  const { isFound, wrong } = matchRanges(truth, predicted, doubtful);
  const hits = isFound.filter(Boolean).length;
  return { hits, falseAlarms: wrong.length, misses: truth.length - hits };
}

/** Counts frames; those of `doubtful` that are not in the truth do not count at all. */
export function tallyFrames(
  truth: readonly FrameRange[],
  predicted: readonly FrameRange[],
  doubtful: readonly FrameRange[] = [],
): Counts {
  const wanted = framesOf(truth), said = framesOf(predicted), unsure = framesOf(doubtful);
  const hits = [...said].filter((frame) => wanted.has(frame)).length;
  const falseAlarms = [...said].filter((frame) => !wanted.has(frame) && !unsure.has(frame)).length;
  return { hits, falseAlarms, misses: wanted.size - hits };
}

/** What is found as ranges. */
export const RANGE_FIGURES = [
  ...["gradual", "flashes", "freezes", "black", "loops", "artifacts"] as const,
];

export type RangeFigure = typeof RANGE_FIGURES[number];

/** What has to be found, and where a prediction is right as well. */
export interface Asked {
  readonly wanted: readonly FrameRange[];
  readonly doubtful: readonly FrameRange[];
}

/**
 * What has to be found, and where both answers are right. They are for a freeze where nothing moves, also for
 * an edited one between such parts, where the picture is black, or where damage holds it; for black at the
 * dark end of a fade; for a flash within a fault or damage; for a repeat where nothing moves, or where shots
 * show the same frames; for a fault next to missing frames, and where damage is too faint to be asked for.
 */
export function askedOf(truth: Truth): Readonly<Record<RangeFigure, Asked>> {
  const { gradual = [], flashes = [], freezes = [], black = [], loops = [], artifacts = [] } = truth;
  const { corruption = [], faint = [], jumps = [], static: still = [] } = truth;
  const faults = [...artifacts, ...corruption];
  const { seen = [], unseen = [] } = Object.groupBy(
    freezes,
    (range) => isAmongStill(truth, range) ? "unseen" : "seen",
  );
  const edges = jumps.map((frame) => ({ start: frame - 1, end: frame + 1 + TOLERANCE_FRAMES }));
  return {
    gradual: { wanted: gradual, doubtful: [] },
    flashes: { wanted: flashes, doubtful: faults },
    freezes: { wanted: seen, doubtful: [...still, ...unseen, ...black, ...faults, ...loops] },
    black: { wanted: black, doubtful: gradual },
    loops: { wanted: loops, doubtful: [...still, ...freezes, ...black, ...shownAgain(truth)] },
    artifacts: { wanted: faults, doubtful: [...faint, ...edges] },
  };
}

/** Whether nothing moves right before the range, nor right after it. */
function isAmongStill({ static: still = [], fps = 25 }: Truth, { start, end }: FrameRange): boolean {
  const reach = Math.round(NEAR_SECONDS * fps);
  const isNear = (range: FrameRange, frame: number) =>
    range.start - reach <= frame && frame <= range.end + reach;
  return still.some((range) => range.end <= start && isNear(range, start)) &&
    still.some((range) => range.start >= end && isNear(range, end));
}

/**
 * Ranges that the edit shows again: from a shot of a clip to the end of the next one, in a while, that begins
 * in the first half of it.
 */
function shownAgain({ shots = [], frames = 0, fps = 25 }: Truth): FrameRange[] {
  return shots.flatMap(({ start, src, src_t }, at) => {
    const half = ((shots[at + 1]?.start ?? frames) - start) / fps / 2;
    const again = shots.findIndex((shot, n) =>
      n > at && shot.src === src && Math.abs(shot.src_t - src_t) < half
    );
    if (again < 0 || src.startsWith("drawn") || shots[again]!.start - start > AGAIN_SECONDS * fps) return [];
    return [{ start, end: shots[again + 1]?.start ?? frames }];
  });
}

/** Whether the video has no fault at all, however faint. */
export function isClean({ artifacts = [], corruption = [], faint = [], jumps = [] }: Truth): boolean {
  return artifacts.length + corruption.length + faint.length + jumps.length === 0;
}

/** Scores everything that was predicted. */
export function tallyVideo(truth: Truth, predictions: Predictions): VideoTally {
  const asked = askedOf(truth);
  const counts: Partial<Record<Figure, Counts>> = {};
  for (const figure of RANGE_FIGURES) {
    const predicted = predictions[figure];
    if (!predicted) continue;
    counts[figure] = tallyRanges(asked[figure].wanted, predicted, asked[figure].doubtful);
  }
  if (predictions.cuts) {
    const { hits, falseAlarms, misses } = tallyCuts(truth, predictions.cuts);
    counts.cuts = { hits, falseAlarms: falseAlarms.length, misses: misses.length };
  }
  const { artifacts: faults } = predictions;
  if (faults) {
    counts.artifact_frames = tallyFrames(asked.artifacts.wanted, faults, asked.artifacts.doubtful);
  }
  const clean = isClean(truth);
  return {
    counts,
    clean: {
      seconds: clean ? (truth.frames ?? 0) / (truth.fps ?? 25) : 0,
      artifactMarkers: clean ? faults?.length ?? 0 : 0,
    },
  };
}

export function addCounts(a: Counts | undefined, b: Counts): Counts {
  return {
    hits: (a?.hits ?? 0) + b.hits,
    falseAlarms: (a?.falseAlarms ?? 0) + b.falseAlarms,
    misses: (a?.misses ?? 0) + b.misses,
  };
}

/** What both ranges cover as a share of what either covers. */
function overlap(a: FrameRange, b: FrameRange): number {
  const both = Math.max(0, Math.min(a.end, b.end) - Math.max(a.start, b.start));
  return both / (a.end - a.start + b.end - b.start - both);
}

function framesOf(ranges: readonly FrameRange[]): Set<number> {
  const frames = new Set<number>();
  for (const { start, end } of ranges) for (let frame = start; frame < end; frame++) frames.add(frame);
  return frames;
}

/** Precision, recall and their harmonic mean. With nothing to find and no prediction all three are 1. */
export function rates(counts: Counts): Rates {
  const { hits, falseAlarms, misses } = counts;
  const precision = hits + falseAlarms > 0 ? hits / (hits + falseAlarms) : misses === 0 ? 1 : 0;
  const recall = hits + misses > 0 ? hits / (hits + misses) : 1;
  const f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
  return { precision, recall, f1 };
}

/**
 * Matches the nearest pairs first, then the earlier cut, then the earlier prediction; each is used only once.
 */
function match(cuts: readonly number[], predictions: readonly number[]) {
  const pairs = cuts.flatMap((cut) =>
    predictions
      .map((prediction) => ({ cut, prediction, distance: Math.abs(prediction - cut) }))
      .filter(({ distance }) => distance <= TOLERANCE_FRAMES)
  );
  pairs.sort((a, b) => a.distance - b.distance || a.cut - b.cut || a.prediction - b.prediction);
  const matchedCuts = new Set<number>();
  const matchedPredictions = new Set<number>();
  for (const { cut, prediction } of pairs) {
    if (matchedCuts.has(cut) || matchedPredictions.has(prediction)) continue;
    matchedCuts.add(cut);
    matchedPredictions.add(prediction);
  }
  return { matchedCuts, matchedPredictions };
}

function realJumps(truth: CutTruth): number[] {
  const jumps = [...truth.jumpcuts ?? [], ...truth.jumps ?? []];
  for (const { start, end } of truth.black ?? []) jumps.push(start, end);
  for (const { end, kind } of truth.freezes ?? []) if (kind === "freeze_drop") jumps.push(end);
  for (const { start, end, period } of truth.loops ?? []) {
    for (let seam = start; seam <= end; seam += period) jumps.push(seam);
  }
  return jumps;
}

function ascending(frames: readonly number[]): number[] {
  return [...frames].sort((a, b) => a - b);
}
