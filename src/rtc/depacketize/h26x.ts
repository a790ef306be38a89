/** H.264 (RFC 6184) and H.265 (RFC 7798) over RTP: turns single, aggregated and fragmented NAL units into
 * Annex B.
 */

import type { Depacketizer, UnitFacts } from "./depacketizer.ts";
import { h264Size, h265Size } from "./sequence_size.ts";
import type { UnitBuffer } from "./unit_buffer.ts";

/** The differences between the two codecs: the header of a NAL unit and the numbers of its types. */
interface NalFormat {
  readonly headBytes: 1 | 2;
  readonly aggregate: number;
  readonly fragment: number;
  /** The first type that does not occur in a bitstream, but only in RTP payloads. */
  readonly reservedFrom: number;
  readonly sequence: number;
  typeOf(head: number): number;
  /** The first byte of the header with another type. */
  withType(head: number, type: number): number;
  isRandomAccess(type: number): boolean;
  startsUnit(type: number): boolean;
  sizeOf(nal: Uint8Array): { width: number; height: number } | null;
}

const H264: NalFormat = {
  headBytes: 1,
  aggregate: 24,
  fragment: 28,
  reservedFrom: 24,
  sequence: 7,
  typeOf: (head) => head & 0x1f,
  withType: (head, type) => (head & 0xe0) | type,
  // Encoders that never send an IDR picture repeat their parameter sets where decoding may start.
  isRandomAccess: (type) => type === 5 || type === 7,
  startsUnit: (type) => type === 7 || type === 9,
  sizeOf: h264Size,
};

const H265: NalFormat = {
  headBytes: 2,
  aggregate: 48,
  fragment: 49,
  reservedFrom: 48,
  sequence: 33,
  typeOf: (head) => (head >> 1) & 0x3f,
  withType: (head, type) => (head & 0x81) | (type << 1),
  isRandomAccess: (type) => (type >= 16 && type <= 23) || type === 33,
  startsUnit: (type) => type === 32 || type === 33 || type === 35,
  sizeOf: h265Size,
};

const START_CODE = Uint8Array.of(0, 0, 0, 1);

export class NalDepacketizer implements Depacketizer {
  readonly #format: NalFormat;
  /** Parameter sets from the offer: they are put before a keyframe that has none. */
  readonly #outOfBand: readonly Uint8Array[];
  readonly #outOfBandBytes: Uint8Array;
  #isFragmentOpen = false;
  #isKeyframe = false;
  #hasSequence = false;
  #size: { width: number; height: number } | null = null;
  /** Where the current fragmented sequence parameter set begins in the unit, or -1. */
  #sequenceStart = -1;

  constructor(codec: "h264" | "h265", outOfBand: readonly Uint8Array[] = []) {
    this.#format = codec === "h264" ? H264 : H265;
    this.#outOfBand = outOfBand;
    this.#outOfBandBytes = annexB(outOfBand);
  }

  startsUnit(payload: Uint8Array): boolean {
    return this.#format.startsUnit(this.#firstType(payload));
  }

  startsKeyframe(payload: Uint8Array): boolean {
    return this.startsUnit(payload) && this.#types(payload).includes(this.#format.sequence);
  }

  reset(): void {
    this.#isFragmentOpen = false;
    this.#isKeyframe = false;
    this.#hasSequence = false;
    this.#size = null;
    this.#sequenceStart = -1;
  }

  add(payload: Uint8Array, into: UnitBuffer): boolean {
    const { headBytes, typeOf, aggregate, fragment, reservedFrom } = this.#format;
    if (payload.length <= headBytes) return false;
    const type = typeOf(payload[0]!);
    if (type === fragment) return this.#addFragment(payload, into);
    // A fragmented NAL unit without an end makes the unit unusable.
    if (this.#isFragmentOpen) return false;
    if (type === aggregate) return this.#addAggregate(payload, into);
    if (type >= reservedFrom || (type === 0 && headBytes === 1)) return false;
    this.#addNal(payload, into);
    return true;
  }

  finish(unit: UnitBuffer): UnitFacts | null {
    if (unit.length === 0 || this.#isFragmentOpen) return null;
    if (this.#isKeyframe && !this.#hasSequence && this.#outOfBand.length > 0) {
      const bytes = unit.copy();
      unit.clear();
      unit.append(this.#outOfBandBytes);
      unit.append(bytes);
      for (const set of this.#outOfBand) {
        if (this.#format.typeOf(set[0]!) === this.#format.sequence) this.#size = this.#format.sizeOf(set);
      }
    }
    return {
      isKeyframe: this.#isKeyframe,
      width: this.#size?.width ?? null,
      height: this.#size?.height ?? null,
    };
  }

  #addAggregate(payload: Uint8Array, into: UnitBuffer): boolean {
    let place = this.#format.headBytes as number;
    while (place + 2 < payload.length) {
      const end = place + 2 + (payload[place]! << 8) + payload[place + 1]!;
      if (end > payload.length || end - place - 2 < this.#format.headBytes) return false;
      this.#addNal(payload.subarray(place + 2, end), into);
      place = end;
    }
    return place === payload.length;
  }

  #addNal(nal: Uint8Array, into: UnitBuffer): void {
    this.#note(this.#format.typeOf(nal[0]!));
    if (this.#format.typeOf(nal[0]!) === this.#format.sequence) this.#size = this.#format.sizeOf(nal);
    into.append(START_CODE);
    into.append(nal);
  }

  #addFragment(payload: Uint8Array, into: UnitBuffer): boolean {
    const { headBytes, withType } = this.#format;
    const head = payload[headBytes]!;
    const type = head & (headBytes === 1 ? 0x1f : 0x3f);
    const isFirst = (head & 0x80) !== 0;
    if (isFirst === this.#isFragmentOpen) return false;
    if (isFirst) {
      this.#note(type);
      into.append(START_CODE);
      this.#sequenceStart = type === this.#format.sequence ? into.length : -1;
      into.appendByte(withType(payload[0]!, type));
      if (headBytes === 2) into.appendByte(payload[1]!);
    }
    into.append(payload.subarray(headBytes + 1));
    this.#isFragmentOpen = (head & 0x40) === 0;
    if (!this.#isFragmentOpen && this.#sequenceStart >= 0) {
      this.#size = this.#format.sizeOf(into.bytes.subarray(this.#sequenceStart));
    }
    return true;
  }

  #note(type: number): void {
    if (this.#format.isRandomAccess(type)) this.#isKeyframe = true;
    if (type === this.#format.sequence) this.#hasSequence = true;
  }

  #firstType(payload: Uint8Array): number {
    return this.#types(payload)[0] ?? -1;
  }

  /** The types of the NAL units that begin in a payload. */
  #types(payload: Uint8Array): number[] {
    const { headBytes, typeOf, aggregate, fragment } = this.#format;
    const type = typeOf(payload[0] ?? 0);
    if (type === fragment) {
      const head = payload[headBytes] ?? 0;
      return head & 0x80 ? [head & (headBytes === 1 ? 0x1f : 0x3f)] : [];
    }
    if (type !== aggregate) return [type];
    const types: number[] = [];
    for (let place = headBytes as number; place + 2 < payload.length;) {
      types.push(typeOf(payload[place + 2]!));
      place += 2 + (payload[place]! << 8) + payload[place + 1]!;
    }
    return types;
  }
}

function annexB(sets: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(sets.reduce((sum, set) => sum + START_CODE.length + set.length, 0));
  let place = 0;
  for (const set of sets) {
    bytes.set(START_CODE, place);
    bytes.set(set, place + START_CODE.length);
    place += START_CODE.length + set.length;
  }
  return bytes;
}
