/** Encodes the fields of an answer (RFC 9204 4.5) with the static table and literals, without the Huffman code. */

import { STATIC_TABLE } from "./static_table.ts";

const FIELD_NUMBERS = new Map(STATIC_TABLE.map(([name, value], index) => [`${name}\0${value}`, index]));
/** The first field of each name. */
const NAME_NUMBERS = new Map(STATIC_TABLE.map(([name], index) => [name, index] as const).toReversed());

/** Room for the fields of most answers. */
const FIRST_BYTES = 512;
/** The longest form of a number that says how long a text is. */
const NUMBER_BYTES = 6;

export class FieldEncoder {
  #bytes = new Uint8Array(FIRST_BYTES);
  /** No insert count and no base: two bytes of zero. */
  #length = 2;

  /** Both consist of characters up to 255, a byte each; the name is in lower case. */
  add(name: string, value: string): void {
    const field = FIELD_NUMBERS.get(`${name}\0${value}`);
    if (field !== undefined) return this.#number(0xc0, 6, field);
    const known = NAME_NUMBERS.get(name);
    if (known === undefined) this.#text(0x20, 3, name);
    else this.#number(0x50, 4, known);
    this.#text(0x00, 7, value);
  }

  /** What was added so far. */
  get block(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** See `PrefixReader.integer`; `start` has the bits before the number. */
  #number(start: number, bits: number, value: number): void {
    this.#makeRoom(NUMBER_BYTES);
    const all = 2 ** bits - 1;
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
