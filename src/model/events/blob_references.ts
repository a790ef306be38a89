/** The blobs that an event names, whether or not they are granted to anybody: every one of them must be on
 * the disk.
 */

import { BLOB_KEYS, blobOf, findEvent, grantedBlobs, type NamedBlob } from "./event_table.ts";

/** Whether an event of this kind may name a blob. One of a kind that this version does not know may. */
export function mayNameBlobs(kind: string): boolean {
  const row = findEvent(kind);
  return row === undefined || row.blobs.length > 0;
}

/** The text that every payload contains that names a blob. */
export const BLOB_KEY_END = 'sha256"';

/**
 * All blobs that an event names: those that it grants, and those named anywhere in `payload`, which is parsed
 * JSON of any shape.
 */
export function namedBlobs(kind: string, payload: unknown): NamedBlob[] {
  return [...grantedBlobs(kind, payload), ...blobsIn(payload)];
}

function blobsIn(payload: unknown): NamedBlob[] {
  if (typeof payload !== "object" || payload === null) return [];
  const fields = payload as Readonly<Record<string, unknown>>;
  const own = Object.values(BLOB_KEYS).flatMap(([shaKey, typeKey]) =>
    blobOf(fields[shaKey], fields[typeKey]) ?? []
  );
  return [...own, ...Object.values(fields).flatMap(blobsIn)];
}

/** The first 52 bits of a hash, which a number holds exactly: a key that takes less memory than the text. */
export function blobNumber(sha256: string): number {
  return parseInt(sha256.slice(0, 13), 16);
}
