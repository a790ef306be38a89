/** The SETTINGS frame (RFC 9114 7.2.4): what this server tells, and the check of what a client tells. */

import { LIMITS } from "../../contract/limits.ts";
import { ConnectionFault } from "./faults.ts";
import { FRAME, frame } from "./frames.ts";
import { readVarint, varint, varintLength } from "./varint.ts";

const SETTING = {
  QPACK_MAX_TABLE_CAPACITY: 0x1,
  MAX_FIELD_SECTION_SIZE: 0x6,
  QPACK_BLOCKED_STREAMS: 0x7,
} as const;

/** Identifiers of HTTP/2 that HTTP/3 does not have (RFC 9114 7.2.4.1). */
const SETTINGS_OF_HTTP2: readonly number[] = [0x0, 0x2, 0x3, 0x4, 0x5];

/** No dynamic table: a client may refer to the static one only, so the fields of a request never wait for another stream. */
export function ownSettings(): Uint8Array<ArrayBuffer> {
  return frame(
    FRAME.SETTINGS,
    new Uint8Array(
      [
        [SETTING.QPACK_MAX_TABLE_CAPACITY, 0],
        [SETTING.QPACK_BLOCKED_STREAMS, 0],
        [SETTING.MAX_FIELD_SECTION_SIZE, LIMITS.http3.fieldSectionBytes],
      ].flat().flatMap(varint),
    ),
  );
}

/**
 * Checks the payload of a client's SETTINGS. What it says changes nothing here: answers use the static table only, and their
 * fields are few.
 */
export function checkSettings(payload: Uint8Array): void {
  const seen = new Set<number>();
  for (let at = 0; at < payload.length;) {
    const identifier = integerAt(at);
    at += varintLength(payload[at]!);
    integerAt(at);
    at += varintLength(payload[at]!);
    if (SETTINGS_OF_HTTP2.includes(identifier)) {
      throw new ConnectionFault("H3_SETTINGS_ERROR", `setting ${identifier} belongs to HTTP/2`);
    }
    if (seen.has(identifier)) {
      throw new ConnectionFault("H3_SETTINGS_ERROR", `setting ${identifier} stands twice`);
    }
    seen.add(identifier);
  }

  function integerAt(at: number): number {
    if (at >= payload.length || at + varintLength(payload[at]!) > payload.length) {
      throw new ConnectionFault("H3_FRAME_ERROR", "the settings end inside of a number");
    }
    return readVarint(payload, at);
  }
}
