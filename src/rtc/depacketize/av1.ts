/** AV1 over RTP: turns OBU elements, which may be aggregated or fragmented, into temporal units whose OBUs
 * have size fields.
 */

import type { Depacketizer, UnitFacts } from "./depacketizer.ts";
import { UnitBuffer } from "./unit_buffer.ts";

const TEMPORAL_DELIMITER = 2;
const SEQUENCE_HEADER = 1;
const TILE_LIST = 8;

export class Av1Depacketizer implements Depacketizer {
  /** The current OBU, which may continue in the next packet. */
  readonly #obu: UnitBuffer;
  #isObuOpen = false;
  #isKeyframe = false;

  constructor(bytesMax: number) {
    this.#obu = new UnitBuffer(bytesMax);
  }

  startsUnit(payload: Uint8Array): boolean {
    return this.startsKeyframe(payload);
  }

  /** Whether a keyframe starts here: the header has a bit for the start of a coded video sequence. */
  startsKeyframe(payload: Uint8Array): boolean {
    return (payload[0]! & 0x88) === 0x08;
  }

  reset(): void {
    this.#obu.clear();
    this.#isObuOpen = false;
    this.#isKeyframe = false;
  }

  add(payload: Uint8Array, into: UnitBuffer): boolean {
    const head = payload[0]!;
    const continues = (head & 0x80) !== 0;
    const goesOn = (head & 0x40) !== 0;
    const count = (head >> 4) & 3;
    if (continues !== this.#isObuOpen || payload.length < 2) return false;
    let place = 1;
    for (let element = 0; place < payload.length; element++) {
      const isLast = count > 0 && element === count - 1;
      const length = isLast ? payload.length - place : readLeb128(payload, place);
      if (!isLast) place += leb128Bytes(payload, place);
      const end = place + length;
      if (!(end <= payload.length)) return false;
      if (!(element === 0 && continues)) this.#obu.clear();
      this.#obu.append(payload.subarray(place, end));
      place = end;
      this.#isObuOpen = place === payload.length && goesOn;
      if (!this.#isObuOpen && !this.#endObu(into)) return false;
    }
    return true;
  }

  finish(unit: UnitBuffer): UnitFacts | null {
    if (unit.length === 0 || this.#isObuOpen) return null;
    return { isKeyframe: this.#isKeyframe, width: null, height: null };
  }

  /**
   * Writes the OBU with a size field. RTP has no temporal delimiters, so one is added at the start of each
   * unit.
   */
  #endObu(into: UnitBuffer): boolean {
    const { bytes } = this.#obu;
    if (bytes.length === 0 || this.#obu.hasOverflowed) return false;
    const head = bytes[0]!;
    const type = (head >> 3) & 0x0f;
    if (type === TEMPORAL_DELIMITER || type === TILE_LIST) return true;
    if (into.length === 0) into.append(DELIMITER);
    if (type === SEQUENCE_HEADER) this.#isKeyframe = true;
    if (head & 0x02) {
      into.append(bytes);
      return true;
    }
    const headBytes = head & 0x04 ? 2 : 1;
    if (bytes.length < headBytes) return false;
    into.appendByte(head | 0x02);
    if (headBytes === 2) into.appendByte(bytes[1]!);
    writeLeb128(bytes.length - headBytes, into);
    into.append(bytes.subarray(headBytes));
    return true;
  }
}

const DELIMITER = Uint8Array.of(TEMPORAL_DELIMITER << 3 | 0x02, 0);
const LEB128_BYTES_MAX = 4;

/** Reads a LEB128 number; NaN where it has no end. */
function readLeb128(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let index = 0; index < LEB128_BYTES_MAX; index++) {
    const byte = bytes[at + index];
    if (byte === undefined) return NaN;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return value;
  }
  return NaN;
}

function leb128Bytes(bytes: Uint8Array, at: number): number {
  let length = 1;
  while (length < LEB128_BYTES_MAX && (bytes[at + length - 1] ?? 0) >= 0x80) length++;
  return length;
}

function writeLeb128(value: number, into: UnitBuffer): void {
  let rest = value;
  while (rest >= 0x80) {
    into.appendByte(rest % 0x80 | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  into.appendByte(rest);
}
