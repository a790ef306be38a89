/** Writes a fragment of an MP4 with its media: the boxes `moof` and `mdat`. */

// mediabunny, which makes the evidence clips and the first part of these streams, ends a fragment at a key
// frame only: with the key frames of cameras, viewers would be seconds behind.

import { joinedBytes } from "../../../base/bytes.ts";
import { uint32 } from "../mp4_boxes.ts";
import { type ListedSample, movieFragment } from "../mp4_fragments.ts";

/** A unit in decoding order. */
export interface Sample extends Omit<ListedSample, "sizeBytes"> {
  readonly data: Uint8Array;
}

/** The samples of one track; at least one. */
export interface TrackRun {
  readonly trackId: number;
  /** When the first sample is decoded, ticks of the track. */
  readonly decodeTime: number;
  readonly samples: readonly Sample[];
}

const MDAT_HEADER_BYTES = 8;

/** The bytes of a fragment; `sequence` counts fragments from 1. The data lie track by track. */
export function fragmentBytes(sequence: number, runs: readonly TrackRun[]): Uint8Array<ArrayBuffer> {
  let mediaBytes = 0;
  const tracks = runs.map(({ trackId, decodeTime, samples }) => {
    const at = mediaBytes;
    for (const { data } of samples) mediaBytes += data.length;
    const listed = samples.map(({ data, ...sample }) => ({ ...sample, sizeBytes: data.length }));
    return { trackId, decodeTime, runs: [{ at, samples: listed }] };
  });
  return joinedBytes(
    movieFragment(sequence, tracks, MDAT_HEADER_BYTES),
    uint32(MDAT_HEADER_BYTES + mediaBytes),
    new TextEncoder().encode("mdat"),
    ...runs.flatMap(({ samples }) => samples.map(({ data }) => data)),
  );
}
