/** Reads numbers and texts of QPACK (RFC 9204 4.1): a number begins in the last bits of a byte whose first
 * bits say what it is.
 */

import { ConnectionFault } from "../wire/faults.ts";
import { decodeHuffman } from "./huffman.ts";

/** The largest number that is read; no number of a request comes close. */
const INTEGER_MAX = 2 ** 30;

export class PrefixReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The next byte, which stays unread. */
  get first(): number {
    if (this.isAtEnd) throw faulty("the fields end too early");
    return this.#bytes[this.#at]!;
  }

  /**
   * The number that begins in the last `bits` bits of the next byte. All ones mean that it goes on, seven
   * bits a byte with the lowest first: 1337 with 5 bits is 31, 0x9a, 0x0a, that is 31 + 26 + 10 * 128.
   */
  integer(bits: number): number {
    const all = (1 << bits) - 1;
    let value = this.first & all;
    this.#at++;
    if (value < all) return value;
    for (let weight = 1;; weight *= 128) {
      const byte = this.first;
      this.#at++;
      value += (byte & 0x7f) * weight;
      if (value > INTEGER_MAX || weight > INTEGER_MAX) throw faulty("a number is too large");
      if (byte < 0x80) return value;
    }
  }

  /**
   * A text, a character a byte: a bit for the Huffman code, its length in the last `bits` bits, and its
   * bytes.
   */
  text(bits: number): string {
    const isHuffman = (this.first & (1 << bits)) !== 0;
    const length = this.integer(bits);
    if (length > this.#bytes.length - this.#at) throw faulty("a text is longer than the fields");
    const bytes = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return isHuffman ? decodeHuffman(bytes) : plain(bytes);
  }
}

/** The bytes as a text, made at once: one that grows by a character leaves a text of each length behind. */
function plain(bytes: Uint8Array): string {
  return String.fromCharCode.apply(null, bytes as unknown as number[]);
}

function faulty(message: string): ConnectionFault {
  return new ConnectionFault("QPACK_DECOMPRESSION_FAILED", message);
}
