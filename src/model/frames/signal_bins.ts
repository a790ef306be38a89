/** Signals of many frames in few bins: the least, the greatest and the mean value of each, so that a plot of
 * hours costs kilobytes.
 */

import type { ContextScores, SignalColumns } from "./signals.ts";

/** The scores that are binned, by their names in answers. */
const SCORES = {
  luma_mean: "lumaMean",
  flicker_score: "flickerScore",
  ghosting_score: "ghostingScore",
  noise_variance_score: "noiseVarianceScore",
  cut_score: "cutScore",
  artifact_score: "artifactScore",
  motion_score: "motionScore",
  novelty_score: "noveltyScore",
  confidence: "contextConfidence",
} as const satisfies Readonly<Record<string, keyof BinnedColumns>>;

/** What was measured of frames, with or without their context pass. */
export type BinnedColumns = SignalColumns & Partial<ContextScores>;

export type BinnedScore = keyof typeof SCORES;

/** One value a bin; null where no frame of the bin has this score. */
export interface BinColumns {
  readonly min: readonly (number | null)[];
  readonly max: readonly (number | null)[];
  readonly mean: readonly (number | null)[];
}

/** Signals in bins. All columns have one entry for each bin that has frames. */
export interface SignalBins {
  /** The number of frames of the range. */
  readonly frames: number;
  /** Media time of the first frame of each bin, milliseconds. */
  readonly ptsMs: readonly number[];
  /** Frames of each bin. */
  readonly counts: readonly number[];
  /** The signals that the decode has measured. */
  readonly signals: Readonly<Partial<Record<BinnedScore, BinColumns>>>;
}

/**
 * Bins of equal media time, at most `points`, with the frames from `fromMs` to `toMs`, both included. Bins
 * without frames are left out; where there are no more frames than bins, each frame is a bin of its own.
 */
export function signalBins(
  signals: BinnedColumns,
  { fromMs, toMs, points }: TimeRange & { points: number },
): SignalBins {
  const { ptsMs } = signals;
  const { first, end } = framesBetween(signals, { fromMs, toMs });
  const frames = end - first;
  const starts = frames <= points
    ? Array.from({ length: frames }, (_, frame) => first + frame)
    : binStarts(ptsMs, { first, end, points });
  const ends = [...starts.slice(1), end];
  const columns = Object.entries(SCORES).flatMap(([name, key]) => {
    const column = signals[key];
    return column ? [[name, binned(column, starts, ends)] as const] : [];
  });
  return {
    frames,
    ptsMs: starts.map((start) => ptsMs[start]!),
    counts: starts.map((start, bin) => ends[bin]! - start),
    signals: Object.fromEntries(columns),
  };
}

/** Two media times, milliseconds, both included. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The frames of a range: the first one, and the one behind the last. */
export function framesBetween(
  { ptsMs, count }: SignalColumns,
  { fromMs, toMs }: TimeRange,
): { first: number; end: number } {
  const first = lowerBound(ptsMs, count, fromMs);
  return { first, end: Math.max(first, lowerBound(ptsMs, count, toMs, "after equal ones")) };
}

/** The first frame of each bin that has one. */
function binStarts(
  ptsMs: Float64Array,
  { first, end, points }: { first: number; end: number; points: number },
): number[] {
  const startMs = ptsMs[first]!;
  const widthMs = (ptsMs[end - 1]! - startMs) / points;
  if (widthMs === 0) return [first]; // all frames have one time
  const starts: number[] = [];
  let last = -1;
  for (let frame = first; frame < end; frame++) {
    const bin = Math.min(points - 1, Math.floor((ptsMs[frame]! - startMs) / widthMs));
    if (bin === last) continue;
    last = bin;
    starts.push(frame);
  }
  return starts;
}

function binned(column: Float32Array, starts: readonly number[], ends: readonly number[]): BinColumns {
  const min: (number | null)[] = [];
  const max: (number | null)[] = [];
  const mean: (number | null)[] = [];
  for (const [bin, start] of starts.entries()) {
    let [least, greatest, sum, count] = [Infinity, -Infinity, 0, 0];
    for (let frame = start; frame < ends[bin]!; frame++) {
      const value = column[frame]!;
      if (Number.isNaN(value)) continue; // not measured of this frame
      if (value < least) least = value;
      if (value > greatest) greatest = value;
      sum += value;
      count += 1;
    }
    min.push(count === 0 ? null : compact(least));
    max.push(count === 0 ? null : compact(greatest));
    mean.push(count === 0 ? null : compact(sum / count));
  }
  return { min, max, mean };
}

/** A score with four decimals: more than a plot can show. */
function compact(score: number): number {
  return Math.round(score * 1e4) / 1e4;
}

/** The first frame at `ms` or later, or the first one later than it. */
function lowerBound(ptsMs: Float64Array, count: number, ms: number, equal?: "after equal ones"): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const isBefore = equal ? ptsMs[middle]! <= ms : ptsMs[middle]! < ms;
    if (isBefore) low = middle + 1;
    else high = middle;
  }
  return low;
}
