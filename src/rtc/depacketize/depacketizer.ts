/** What the assembler needs for a codec: makes access units out of RTP payloads, and reads facts from their
 * headers.
 */

import type { UnitBuffer } from "./unit_buffer.ts";

/** What the header of a unit tells. Width and height are null where it does not have them. */
export interface UnitFacts {
  readonly isKeyframe: boolean;
  readonly width: number | null;
  readonly height: number | null;
}

/** The payload format of one stream. No method throws, whatever the payload. */
export interface Depacketizer {
  /** Whether a unit certainly starts with this payload; false where the format does not show it. */
  startsUnit(payload: Uint8Array): boolean;
  /** Whether a keyframe certainly starts with this payload; false where the format does not show it. */
  startsKeyframe(payload: Uint8Array): boolean;
  /** Prepares for a new unit and drops the current one. */
  reset(): void;
  /** Adds the next payload of the unit; false when it is malformed, which makes the unit unusable. */
  add(payload: Uint8Array, into: UnitBuffer): boolean;
  /** Ends the unit; null when it is incomplete. May change the bytes in `unit`. */
  finish(unit: UnitBuffer): UnitFacts | null;
}

export const DELTA_UNIT: UnitFacts = { isKeyframe: false, width: null, height: null };
