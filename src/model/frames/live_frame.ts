/** The fields that events of live sessions have for their frame and for a stored picture. */

import { COORDINATE_SCHEMA, type ImageCoordinates } from "./coordinates.ts";

/** The frame of an event. */
export interface LiveFrame {
  /** The number of the frame: counts the session's access units from 0. */
  readonly frameIndex: number;
  /** The media time of the frame on the RTP clock. */
  readonly ptsMs: number;
  readonly coordinates: ImageCoordinates;
}

/** A JPEG in the store; a `BlobRef` of the store is one. */
export interface StoredImage {
  readonly ref: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

export function frameFields({ frameIndex, ptsMs, coordinates }: LiveFrame) {
  return {
    frame_index: frameIndex,
    pts_ms: ptsMs,
    coordinate_schema: COORDINATE_SCHEMA,
    coordinates,
  } as const;
}

/** The fields of a stored image, for `evidence` or for the payload of a keyframe itself. */
export function storedImageFields({ ref, sizeBytes, sha256 }: StoredImage) {
  return {
    image_ref: ref,
    image_media_type: "image/jpeg",
    image_bytes: sizeBytes,
    image_sha256: sha256,
  } as const;
}

/** A score within [0,1]: one that was computed in doubles may be outside by its last digit. */
export function unitScore(value: number): number {
  return Math.min(1, Math.max(0, value));
}
