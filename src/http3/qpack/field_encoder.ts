/** Encodes the fields of an answer (RFC 9204 4.5) with the static table and literals, without the Huffman
 * code.
 */

import { STATIC_TABLE } from "./static_table.ts";

/** The static table by name: the first field with the name, and all of them by their values. */
const KNOWN = new Map(
  [...Map.groupBy(STATIC_TABLE.keys(), (number) => STATIC_TABLE[number]![0])].map(([name, numbers]) =>
    [name, {
      first: numbers[0]!,
      byValue: new Map(numbers.map((number) => [STATIC_TABLE[number]![1], number])),
    }] as const
  ),
);

/** Room for the fields of most answers. */
const FIRST_BYTES = 512;
/** The longest form of a number that says how long a text is. */
const NUMBER_BYTES = 6;

export class FieldEncoder {
  #bytes = new Uint8Array(FIRST_BYTES);
  #length: number;

  /** Leaves `bytesBefore` bytes before the block to the caller. */
  constructor(bytesBefore = 0) {
    this.#length = bytesBefore + 2; // no insert count and no base: two bytes of zero
  }

  /** Adds a field. Name and value consist of characters up to 255, a byte each; the name is in lower case. */
  add(name: string, value: string): void {
    const known = KNOWN.get(name);
    const field = known?.byValue.get(value);
    if (field !== undefined) return this.#number(0xc0, 6, field);
    if (known === undefined) this.#text(0x20, 3, name);
    else this.#number(0x50, 4, known.first);
    this.#text(0x00, 7, value);
  }

  /** What was added so far, with the caller's bytes before it and `bytesBehind` behind it. */
  block(bytesBehind = 0): Uint8Array<ArrayBuffer> {
    this.#makeRoom(bytesBehind);
    return this.#bytes.subarray(0, this.#length + bytesBehind);
  }

  /** Writes a number as `PrefixReader.integer` reads it; `start` has the bits before the number. */
  #number(start: number, bits: number, value: number): void {
    this.#makeRoom(NUMBER_BYTES);
    const all = (1 << bits) - 1;
    if (value < all) {
      this.#bytes[this.#length++] = start | value;
      return;
    }
    this.#bytes[this.#length++] = start | all;
    let rest = value - all;
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#length++] = rest;
  }

  #text(start: number, bits: number, text: string): void {
    this.#number(start, bits, text.length);
    this.#makeRoom(text.length);
    for (let at = 0; at < text.length; at++) this.#bytes[this.#length++] = text.charCodeAt(at);
  }

  #makeRoom(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}
