/** Compares predicted cuts with labelled ones: one-to-one matches within one frame; gradual changes are not counted. */

import type { CutTruth } from "./truth.ts";

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

const TOLERANCE_FRAMES = 1;

/**
 * Compares predictions with the truth. An unmatched prediction is ignored inside a gradual change, and where the
 * picture really jumps without an edited cut: at the edges of black, the end of a freeze that dropped frames, the seams
 * of a loop, time jumps, and missing frames. In all other cases it is a false alarm, also at flashes, artifacts,
 * damage, camera shake and moving subjects.
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

/** Precision, recall and their harmonic mean. Without any cut and any prediction all three are 1. */
export function rates(counts: { hits: number; falseAlarms: number; misses: number }): Rates {
  const { hits, falseAlarms, misses } = counts;
  const precision = hits + falseAlarms > 0 ? hits / (hits + falseAlarms) : misses === 0 ? 1 : 0;
  const recall = hits + misses > 0 ? hits / (hits + misses) : 1;
  const f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
  return { precision, recall, f1 };
}

/** Matches the nearest pairs first, then the earlier cut, then the earlier prediction; each is used only once. */
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
