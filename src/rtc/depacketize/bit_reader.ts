/** Reads the bits of codec headers, most significant first. After the end they are zero, and `isPastEnd` is
 * set.
 */

export class BitReader {
  isPastEnd = false;
  readonly #bytes: Uint8Array;
  #place: number;

  constructor(bytes: Uint8Array, fromByte = 0) {
    this.#bytes = bytes;
    this.#place = fromByte * 8;
  }

  /** Reads up to 32 bits as an unsigned number. */
  read(bits: number): number {
    let value = 0;
    for (let bit = 0; bit < bits; bit++) {
      const byte = this.#bytes[this.#place >> 3];
      if (byte === undefined) this.isPastEnd = true;
      value = value * 2 + (((byte ?? 0) >> (7 - (this.#place & 7))) & 1);
      this.#place++;
    }
    return value;
  }

  skip(bits: number): void {
    this.#place += bits;
  }

  /** Reads an unsigned Exp-Golomb number. */
  readGolomb(): number {
    let zeros = 0;
    while (zeros < 32 && !this.isPastEnd && this.read(1) === 0) zeros++;
    return 2 ** zeros - 1 + this.read(zeros);
  }

  /** Reads a signed Exp-Golomb number. */
  readSignedGolomb(): number {
    const value = this.readGolomb();
    return value % 2 === 1 ? (value + 1) / 2 : -value / 2;
  }
}

/** A NAL unit without its emulation prevention bytes, at most `bytesMax` of it. */
export function unescaped(nal: Uint8Array, bytesMax: number): Uint8Array {
  const result = new Uint8Array(Math.min(nal.length, bytesMax));
  let length = 0;
  let zeros = 0;
  for (let index = 0; index < nal.length && length < result.length; index++) {
    const byte = nal[index]!;
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    result[length++] = byte;
  }
  return result.subarray(0, length);
}
