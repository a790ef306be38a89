/** VP8 over RTP (RFC 7741): removes the descriptor before each piece of a frame. */

import { DELTA_UNIT, type Depacketizer, type UnitFacts } from "./depacketizer.ts";
import type { UnitBuffer } from "./unit_buffer.ts";

/** The bytes after the three bytes of a keyframe's tag. */
const START_CODE = [0x9d, 0x01, 0x2a];

export class Vp8Depacketizer implements Depacketizer {
  startsUnit(payload: Uint8Array): boolean {
    // The start of the first partition.
    return (payload[0]! & 0x17) === 0x10;
  }

  startsKeyframe(payload: Uint8Array): boolean {
    const start = descriptorBytes(payload);
    return this.startsUnit(payload) && start < payload.length && (payload[start]! & 1) === 0;
  }

  reset(): void {}

  add(payload: Uint8Array, into: UnitBuffer): boolean {
    const start = descriptorBytes(payload);
    if (start >= payload.length) return false;
    into.append(payload.subarray(start));
    return true;
  }

  finish(unit: UnitBuffer): UnitFacts | null {
    const { bytes } = unit;
    if (bytes.length < 3) return null;
    if ((bytes[0]! & 1) === 1) return DELTA_UNIT;
    if (bytes.length < 10 || START_CODE.some((byte, index) => bytes[3 + index] !== byte)) return null;
    const size = (at: number) => (bytes[at]! | (bytes[at + 1]! << 8)) & 0x3fff;
    const [width, height] = [size(6), size(8)];
    return width > 0 && height > 0 ? { isKeyframe: true, width, height } : null;
  }
}

function descriptorBytes(payload: Uint8Array): number {
  if ((payload[0]! & 0x80) === 0) return 1;
  const extension = payload[1] ?? 0;
  let bytes = 2;
  if (extension & 0x80) bytes += (payload[bytes] ?? 0) & 0x80 ? 2 : 1;
  if (extension & 0x40) bytes++;
  if (extension & 0x30) bytes++;
  return bytes;
}
