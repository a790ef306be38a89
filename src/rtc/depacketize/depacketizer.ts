/** What the assembler needs of a codec: payloads in, an access unit and what its head says out. */

import type { UnitBuffer } from "./unit_buffer.ts";

/** Width and height are null where the unit does not tell them. */
export interface UnitFacts {
  readonly isKeyframe: boolean;
  readonly width: number | null;
  readonly height: number | null;
}

/** One stream's payload format. Nothing in it throws, whatever the payload. */
export interface Depacketizer {
  /** Whether a unit surely starts here; where a format does not tell, false. */
  startsUnit(payload: Uint8Array): boolean;
  /** Whether the first packet of a keyframe is this one; where a format does not tell, false. */
  startsKeyframe(payload: Uint8Array): boolean;
  /** Forgets the unit under way. */
  begin(): void;
  /** Adds the payloads of one unit in order; false when one is malformed, which spoils the unit. */
  add(payload: Uint8Array, into: UnitBuffer): boolean;
  /** Ends the unit: null when it is incomplete. May put bytes into another buffer, which is then the unit. */
  finish(unit: UnitBuffer): UnitFacts | null;
}

export const DELTA_UNIT: UnitFacts = { isKeyframe: false, width: null, height: null };
