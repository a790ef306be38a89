/** `frames_decoded.signals[]` as JSON text and back without loss: 64-bit hashes are never converted to
 * doubles.
 */

import { artifactCode, type ArtifactKind, artifactKindOf } from "./detected_range.ts";
import type { SignalColumns } from "./signals.ts";

/**
 * A score with six decimals: finer than the steps of a mean over the reduced plane, and a third of the text
 * of a full double.
 */
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
      (signals.cutScore ? `,"cut_score":${compact(signals.cutScore[row]!)}` : "") +
      cutTimeJson(signals, row) + artifactJson(signals, row) + "}";
  }
  return text;
}

function cutTimeJson({ cutPtsMs }: SignalColumns, row: number): string {
  const ptsMs = cutPtsMs?.[row] ?? NaN;
  return Number.isNaN(ptsMs) ? "" : `,"cut_pts_ms":${Math.round(ptsMs)}`;
}

function artifactJson({ artifactScore, artifactKind }: SignalColumns, row: number): string {
  if (!artifactScore) return "";
  const kind = artifactKindOf(artifactKind?.[row]);
  return `,"artifact_score":${compact(artifactScore[row]!)}` + (kind ? `,"artifact_kind":"${kind}"` : "");
}

/**
 * The signals as they are read back from the log, so that an analysis gives the same result with and without
 * the log.
 */
export function asStored(signals: SignalColumns): SignalColumns {
  const { count, cutScore, cutPtsMs, artifactScore, artifactKind } = signals;
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
    ...(cutPtsMs && { cutPtsMs: cutPtsMs.subarray(0, count).map(Math.round) }),
    ...(artifactScore && { artifactScore: scores(artifactScore) }),
    ...(artifactKind && { artifactKind: artifactKind.subarray(0, count) }),
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
  readonly cut_pts_ms?: number | undefined;
  readonly artifact_score?: number | undefined;
  readonly artifact_kind?: ArtifactKind | undefined;
}

/** Frame numbers and signals of the same frames. */
export interface FrameColumns {
  readonly frameIndex: Float64Array;
  readonly signals: SignalColumns;
}

/**
 * The columns and frame numbers of `rows`. A row without a cut score or an artifact score has NaN there: then
 * the rules for frames without that score decide.
 */
export function columnsOf(rows: readonly SignalRow[]): FrameColumns {
  const columns = emptyColumns(rows.length, {
    cutScore: rows.some((row) => row.cut_score !== undefined),
    artifactScore: rows.some((row) => row.artifact_score !== undefined),
  });
  fillRows(columns, 0, rows);
  return columns;
}

/**
 * Reads the payload of `frames_decoded` as it comes, in pieces of any length: a long decode has a hundred
 * megabytes of it. All digits of the hashes are kept. Rows have no objects and no free texts in them, so
 * `},{` stands between two rows only.
 */
export class StoredSignals {
  /** The payload without its rows; null until its pieces have come. */
  head: Readonly<Record<string, unknown>> | null = null;
  #left = "";

  /** The rows that are whole with this piece. */
  add(piece: string): readonly SignalRow[] {
    this.#left += piece;
    if (this.head === null) {
      const key = '"signals":[';
      // no text has this key in it, as quotes in texts are escaped
      const start = this.#left.indexOf(key) + key.length;
      if (start < key.length) return [];
      this.head = JSON.parse(`${this.#left.slice(0, start)}]}`);
      this.#left = this.#left.slice(start);
    }
    return this.#take(this.#left.lastIndexOf("},{") + 1);
  }

  /** The rows behind the last separator. */
  end(): readonly SignalRow[] {
    return this.head === null ? [] : this.#take(this.#left.length - "]}".length);
  }

  #take(end: number): readonly SignalRow[] {
    if (end <= 0) return [];
    const rows = JSON.parse(`[${hashesQuoted(this.#left.slice(0, end))}]`);
    this.#left = this.#left.slice(end + 1);
    return rows;
  }
}

/** The rows with each hash as a JSON string, from which BigInt reads all 64 bits. */
function hashesQuoted(rows: string): string {
  return rows.replace(/"perceptual_hash":(\d+)/g, '"perceptual_hash":"$1"');
}

/** The scores that not every source of rows has. */
export interface OptionalScores {
  readonly cutScore: boolean;
  readonly artifactScore: boolean;
}

export function emptyColumns(count: number, has: OptionalScores): FrameColumns {
  return {
    frameIndex: new Float64Array(count),
    signals: {
      count,
      ptsMs: new Float64Array(count),
      perceptualHash: new BigUint64Array(count),
      lumaMean: new Float32Array(count),
      flickerScore: new Float32Array(count),
      ghostingScore: new Float32Array(count),
      noiseVarianceScore: new Float32Array(count),
      ...(has.cutScore && {
        cutScore: new Float32Array(count).fill(NaN),
        cutPtsMs: new Float64Array(count).fill(NaN),
      }),
      ...(has.artifactScore && {
        artifactScore: new Float32Array(count).fill(NaN),
        artifactKind: new Uint8Array(count),
      }),
    },
  };
}

/** Writes `rows` from row `start` of the columns on. */
export function fillRows(
  { frameIndex, signals }: FrameColumns,
  start: number,
  rows: readonly SignalRow[],
): void {
  rows.forEach((row, number) => {
    const index = start + number;
    frameIndex[index] = row.frame_index;
    signals.ptsMs[index] = row.pts_ms;
    signals.perceptualHash[index] = BigInt(row.perceptual_hash);
    signals.lumaMean[index] = row.luma_mean;
    signals.flickerScore[index] = row.flicker_score;
    signals.ghostingScore[index] = row.ghosting_score;
    signals.noiseVarianceScore[index] = row.noise_variance_score;
    if (signals.cutScore) signals.cutScore[index] = row.cut_score ?? NaN;
    if (signals.cutPtsMs) signals.cutPtsMs[index] = row.cut_pts_ms ?? NaN;
    if (signals.artifactScore) signals.artifactScore[index] = row.artifact_score ?? NaN;
    if (signals.artifactKind) signals.artifactKind[index] = artifactCode(row.artifact_kind);
  });
}
