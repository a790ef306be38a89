/** The blobs that an event names, whether or not they are granted to anybody: every one of them must be on the disk. */

import { findEvent, grantedBlobs } from "./event_table.ts";

export interface NamedBlob {
  /** 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly mediaType: string;
}

/** Whether an event of this kind may name a blob. One of a kind that this version does not know may. */
export function mayNameBlobs(kind: string): boolean {
  const row = findEvent(kind);
  return row === undefined || row.blobs.length > 0;
}

/** What every payload contains that names a blob. */
export const BLOB_KEY_END = 'sha256"';

const KEYS: readonly (readonly [sha256: string, mediaType: string])[] = [
  ["image_sha256", "image_media_type"],
  ["media_sha256", "media_type"],
];

/** All blobs that an event names: those that it grants, and those named anywhere in `payload`, which is parsed JSON of any shape. */
export function namedBlobs(kind: string, payload: unknown): NamedBlob[] {
  return [...grantedBlobs(kind, payload), ...blobsIn(payload)];
}

function blobsIn(payload: unknown): NamedBlob[] {
  if (typeof payload !== "object" || payload === null) return [];
  const fields = payload as Readonly<Record<string, unknown>>;
  const own = KEYS.flatMap(([shaKey, typeKey]) => {
    const [sha256, mediaType] = [fields[shaKey], fields[typeKey]];
    return typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256) && typeof mediaType === "string"
      ? [{ sha256, mediaType }]
      : [];
  });
  return [...own, ...Object.values(fields).flatMap(blobsIn)];
}
