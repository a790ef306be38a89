/** VP9 over RTP (RFC 9628). Takes only the lowest spatial layer, which can be decoded without the others. */

import { BitReader } from "./bit_reader.ts";
import { DELTA_UNIT, type Depacketizer, type UnitFacts } from "./depacketizer.ts";
import type { UnitBuffer } from "./unit_buffer.ts";

export class Vp9Depacketizer implements Depacketizer {
  startsUnit(payload: Uint8Array): boolean {
    return (payload[0]! & 0x08) !== 0 && layerOf(payload) === 0;
  }

  startsKeyframe(payload: Uint8Array): boolean {
    return this.startsUnit(payload) && (payload[0]! & 0x40) === 0;
  }

  reset(): void {}

  add(payload: Uint8Array, into: UnitBuffer): boolean {
    const start = descriptorBytes(payload);
    if (start >= payload.length) return false;
    if (layerOf(payload) === 0) into.append(payload.subarray(start));
    return true;
  }

  finish(unit: UnitBuffer): UnitFacts | null {
    return unit.length === 0 ? null : headerFacts(unit.bytes);
  }
}

const SYNC_CODE = 0x498342;
const SRGB = 7;

/** Reads the uncompressed header up to the size. */
function headerFacts(bytes: Uint8Array): UnitFacts | null {
  const bits = new BitReader(bytes);
  if (bits.read(2) !== 2) return null;
  const profile = bits.read(1) + 2 * bits.read(1);
  if (profile === 3) bits.skip(1);
  const showsExisting = bits.read(1) === 1;
  if (showsExisting || bits.read(1) === 1) return DELTA_UNIT;
  bits.skip(2);
  if (bits.read(24) !== SYNC_CODE) return null;
  if (profile >= 2) bits.skip(1);
  const isSubsampled = profile === 1 || profile === 3;
  if (bits.read(3) === SRGB) bits.skip(isSubsampled ? 1 : 0);
  else bits.skip(isSubsampled ? 4 : 1);
  const width = bits.read(16) + 1;
  const height = bits.read(16) + 1;
  return bits.isPastEnd ? null : { isKeyframe: true, width, height };
}

function layerOf(payload: Uint8Array): number {
  const first = payload[0]!;
  if ((first & 0x20) === 0) return 0;
  return ((payload[1 + pictureIdBytes(payload)] ?? 0) >> 1) & 7;
}

function pictureIdBytes(payload: Uint8Array): number {
  if ((payload[0]! & 0x80) === 0) return 0;
  return (payload[1] ?? 0) & 0x80 ? 2 : 1;
}

/** The bytes of the descriptor. The first is `I P L F B E V Z`; fields follow for the bits that are set. */
function descriptorBytes(payload: Uint8Array): number {
  const first = payload[0]!;
  let place = 1 + pictureIdBytes(payload);
  const isFlexible = (first & 0x10) !== 0;
  if (first & 0x20) place += isFlexible ? 1 : 2;
  if (isFlexible && first & 0x40) {
    for (let reference = 0; reference < 3; reference++) {
      if (((payload[place++] ?? 0) & 1) === 0) break;
    }
  }
  return first & 0x02 ? place + structureBytes(payload, place) : place;
}

function structureBytes(payload: Uint8Array, start: number): number {
  const head = payload[start] ?? 0;
  let place = start + 1;
  if (head & 0x10) place += ((head >> 5) + 1) * 4;
  if (head & 0x08) {
    const pictures = payload[place++] ?? 0;
    for (let picture = 0; picture < pictures && place < payload.length; picture++) {
      place += 1 + (((payload[place] ?? 0) >> 2) & 3);
    }
  }
  return place - start;
}
