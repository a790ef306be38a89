/** The formats of identifiers, and the key of a principal. See docs/api.md#identifiers. */

import { createHash } from "node:crypto";

/** The principal of all callers when no API key is required. */
export const PUBLIC_PRINCIPAL = "public";

/** The stream of every event whose caller named none. */
export const DEFAULT_STREAM_ID = "stream-0";

const RUN_ID = /^run-(?:[0-9a-f]{32}|[0-9a-f]{16})$/i;

/**
 * Whether `text` is a run id: as this service makes it, or the older form with 16 hex digits; in any case.
 */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}

/** A new run id: `run-` and 32 hex digits from 16 secure random bytes. */
export function newRunId(randomBytes: (length: number) => Uint8Array<ArrayBuffer>): string {
  return `run-${randomBytes(16).toHex()}`;
}

/** A request id: `req-` and 16 hex digits of a process-local counter, from 1. */
export function requestId(counter: number): string {
  return `req-${counter.toString(16).padStart(16, "0")}`;
}

/** The default trace id of a request: `trace-` and the request id's 16 hex digits. */
export function defaultTraceId(requestId: string): string {
  return `trace-${requestId.slice("req-".length)}`;
}

/** A span id: `span-` and 16 hex digits of the frame index. */
export function spanId(frameIndex: number): string {
  return `span-${frameIndex.toString(16).padStart(16, "0")}`;
}

/** A number as eight hex digits, as in `mk-0000002a` and `seg-00000003`. */
export function hex8(ordinal: number): string {
  return ordinal.toString(16).padStart(8, "0");
}

/** The name of a principal: `api-key:` and the SHA-256 of the key, so that no key is ever stored. */
export function principalKeyOf(apiKey: string): string {
  return `api-key:${createHash("sha256").update(apiKey, "utf8").digest("hex")}`;
}

/** How the name of every upload of this principal begins. */
export function ownerPrefix(principalKey: string): string {
  if (principalKey === PUBLIC_PRINCIPAL) return "public__";
  return `${createHash("sha256").update(principalKey, "utf8").digest("hex")}__`;
}

/** The owner's prefix in the name of an upload; null for another file. */
export function ownerPrefixIn(name: string): string | null {
  return /^(?:public|[0-9a-f]{64})__/.exec(name)?.[0] ?? null;
}
