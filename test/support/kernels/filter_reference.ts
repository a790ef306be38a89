/** The reference implementation of `assembly/frame_filter.ts` without cut scores, as docs/frames.md#signals
 * defines them.
 */

import { referenceHash } from "./phash_reference.ts";

export interface ReferenceSignals {
  readonly perceptualHash: bigint;
  readonly lumaMean: number;
  readonly flickerScore: number;
  readonly ghostingScore: number;
  readonly noiseVarianceScore: number;
}

/** Signals of consecutive 320x180 planes; scores are rounded to 32 bits as the columns hold them. */
export function referenceSignals(planes: Iterable<Uint8Array>): ReferenceSignals[] {
  const rows: ReferenceSignals[] = [];
  let previous: { sum: number; hash: bigint } | undefined;
  for (const plane of planes) {
    const sum = plane.reduce((total, sample) => total + sample, 0);
    const squares = plane.reduce((total, sample) => total + sample * sample, 0);
    const hash = referenceHash(plane);
    const size = plane.length;
    // (n * squares - sum^2) / n^2, exact up to the division.
    const scaledVariance = size * squares - sum * sum;
    rows.push({
      perceptualHash: hash,
      lumaMean: Math.fround(sum / (255 * size)),
      flickerScore: previous ? Math.fround(Math.abs(sum - previous.sum) / (255 * size)) : 0,
      ghostingScore: previous ? hammingDistance(hash, previous.hash) / 64 : 0,
      noiseVarianceScore: Math.fround(Math.min(1, scaledVariance / (4096 * size * size))),
    });
    previous = { sum, hash };
  }
  return rows;
}

/** How many of 64 bits differ. */
export function hammingDistance(a: bigint, b: bigint): number {
  return (a ^ b).toString(2).replaceAll("0", "").length;
}
