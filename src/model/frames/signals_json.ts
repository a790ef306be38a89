/** `frames_decoded.signals[]` as JSON text and back without loss: 64-bit hashes are never converted to doubles. */

import type { SignalColumns } from "./signals.ts";

/** Six decimals: finer than the steps of a mean over the reduced plane, and a third of the text of a full double. */
function compact(score: number): number {
  return Math.round(score * 1e6) / 1e6;
}

/** JSON text of rows `start` (inclusive) to `end` (exclusive), comma-separated, without brackets. */
export function signalRowsJson(signals: SignalColumns, start: number, end: number): string {
  let text = "";
  for (let row = start; row < end; row++) {
    text += `${row > start ? "," : ""}{"frame_index":${row},"pts_ms":${Math.round(signals.ptsMs[row]!)}` +
      `,"perceptual_hash":${signals.perceptualHash[row]},"luma_mean":${compact(signals.lumaMean[row]!)}` +
      `,"flicker_score":${compact(signals.flickerScore[row]!)}` +
      `,"ghosting_score":${compact(signals.ghostingScore[row]!)}` +
      `,"noise_variance_score":${compact(signals.noiseVarianceScore[row]!)}` +
      (signals.cutScore ? `,"cut_score":${compact(signals.cutScore[row]!)}` : "") + "}";
  }
  return text;
}

/** The signals as they are read back from the log, so that an analysis gives the same result with and without the log. */
export function asStored(signals: SignalColumns): SignalColumns {
  const { count, cutScore } = signals;
  const scores = (column: Float32Array) => column.subarray(0, count).map(compact);
  return {
    count,
    ptsMs: signals.ptsMs.subarray(0, count).map(Math.round),
    perceptualHash: signals.perceptualHash.subarray(0, count),
    lumaMean: scores(signals.lumaMean),
    flickerScore: scores(signals.flickerScore),
    ghostingScore: scores(signals.ghostingScore),
    noiseVarianceScore: scores(signals.noiseVarianceScore),
    ...(cutScore && { cutScore: scores(cutScore) }),
  };
}

/** One parsed row of signals, of a request or of the log. */
export interface SignalRow {
  readonly frame_index: number;
  readonly pts_ms: number;
  readonly perceptual_hash: bigint | number | string;
  readonly luma_mean: number;
  readonly flicker_score: number;
  readonly ghosting_score: number;
  readonly noise_variance_score: number;
  readonly cut_score?: number | undefined;
}

/** Columns and frame numbers of `rows`. A row without a cut score has NaN there: then the Hamming rule decides. */
export function columnsOf(rows: readonly SignalRow[]): { frameIndex: Float64Array; signals: SignalColumns } {
  const count = rows.length;
  const frameIndex = new Float64Array(count);
  const hasCutScores = rows.some((row) => row.cut_score !== undefined);
  const signals = {
    count,
    ptsMs: new Float64Array(count),
    perceptualHash: new BigUint64Array(count),
    lumaMean: new Float32Array(count),
    flickerScore: new Float32Array(count),
    ghostingScore: new Float32Array(count),
    noiseVarianceScore: new Float32Array(count),
    ...(hasCutScores && { cutScore: new Float32Array(count).fill(NaN) }),
  };
  rows.forEach((row, index) => {
    frameIndex[index] = row.frame_index;
    signals.ptsMs[index] = row.pts_ms;
    signals.perceptualHash[index] = BigInt(row.perceptual_hash);
    signals.lumaMean[index] = row.luma_mean;
    signals.flickerScore[index] = row.flicker_score;
    signals.ghostingScore[index] = row.ghosting_score;
    signals.noiseVarianceScore[index] = row.noise_variance_score;
    if (row.cut_score !== undefined) signals.cutScore![index] = row.cut_score;
  });
  return { frameIndex, signals };
}
