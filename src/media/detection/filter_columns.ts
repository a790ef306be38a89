/** The rows of the frame analyser as nine typed arrays of one length, one for each signal. */

import type { FilterRing } from "../kernels/frame_filter.ts";

/** One typed array for each signal, used for the ring of the newest frames, and in rows. */
export interface FilterColumns extends FilterRing {
  readonly artifactScore: Float32Array<ArrayBuffer>;
  /** Kind of the fault: 0 for none, else 1 + the index in ARTIFACT_KINDS. */
  readonly artifactKind: Uint8Array<ArrayBuffer>;
}

/** New columns with `rows` rows of zeros. */
export function newColumns(rows: number): FilterColumns {
  return {
    ptsMs: new Float64Array(rows),
    perceptualHash: new BigUint64Array(rows),
    lumaMean: new Float32Array(rows),
    flickerScore: new Float32Array(rows),
    ghostingScore: new Float32Array(rows),
    noiseVarianceScore: new Float32Array(rows),
    cutScore: new Float32Array(rows),
    artifactScore: new Float32Array(rows),
    artifactKind: new Uint8Array(rows),
  };
}

/** Views of the rows from `start` (inclusive) to `end` (exclusive), not copies. */
export function slice(columns: FilterColumns, start: number, end: number): FilterColumns {
  return {
    ptsMs: columns.ptsMs.subarray(start, end),
    perceptualHash: columns.perceptualHash.subarray(start, end),
    lumaMean: columns.lumaMean.subarray(start, end),
    flickerScore: columns.flickerScore.subarray(start, end),
    ghostingScore: columns.ghostingScore.subarray(start, end),
    noiseVarianceScore: columns.noiseVarianceScore.subarray(start, end),
    cutScore: columns.cutScore.subarray(start, end),
    artifactScore: columns.artifactScore.subarray(start, end),
    artifactKind: columns.artifactKind.subarray(start, end),
  };
}

/**
 * The columns, which must be whole buffers, with room for `capacity` rows. Their memory is moved at once, and
 * `columns` is empty afterwards.
 */
export function resized(columns: FilterColumns, capacity: number): FilterColumns {
  const floats = ({ buffer }: Float32Array<ArrayBuffer>) =>
    new Float32Array(buffer.transfer(capacity * Float32Array.BYTES_PER_ELEMENT));
  const { ptsMs, perceptualHash, artifactKind } = columns;
  return {
    ptsMs: new Float64Array(ptsMs.buffer.transfer(capacity * Float64Array.BYTES_PER_ELEMENT)),
    perceptualHash: new BigUint64Array(
      perceptualHash.buffer.transfer(capacity * BigUint64Array.BYTES_PER_ELEMENT),
    ),
    lumaMean: floats(columns.lumaMean),
    flickerScore: floats(columns.flickerScore),
    ghostingScore: floats(columns.ghostingScore),
    noiseVarianceScore: floats(columns.noiseVarianceScore),
    cutScore: floats(columns.cutScore),
    artifactScore: floats(columns.artifactScore),
    artifactKind: new Uint8Array(artifactKind.buffer.transfer(capacity)),
  };
}

/** Copies all rows of `source` into `target`, from its row `at` on. Allocates nothing. */
export function copyInto(target: FilterColumns, source: FilterColumns, at: number): void {
  target.ptsMs.set(source.ptsMs, at);
  target.perceptualHash.set(source.perceptualHash, at);
  target.lumaMean.set(source.lumaMean, at);
  target.flickerScore.set(source.flickerScore, at);
  target.ghostingScore.set(source.ghostingScore, at);
  target.noiseVarianceScore.set(source.noiseVarianceScore, at);
  target.cutScore.set(source.cutScore, at);
  target.artifactScore.set(source.artifactScore, at);
  target.artifactKind.set(source.artifactKind, at);
}
