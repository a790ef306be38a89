/** Bits of a header, first the highest: as codecs write them. Past the end they are zero and `isOver` says so. */

export class BitReader {
  isOver = false;
  readonly #bytes: Uint8Array;
  #place: number;

  constructor(bytes: Uint8Array, fromByte = 0) {
    this.#bytes = bytes;
    this.#place = fromByte * 8;
  }

  /** Up to 32 bits as an unsigned number. */
  read(bits: number): number {
    let value = 0;
    for (let bit = 0; bit < bits; bit++) {
      const byte = this.#bytes[this.#place >> 3];
      if (byte === undefined) this.isOver = true;
      value = value * 2 + (((byte ?? 0) >> (7 - (this.#place & 7))) & 1);
      this.#place++;
    }
    return value;
  }

  skip(bits: number): void {
    this.#place += bits;
  }

  /** An Exp-Golomb number without a sign. */
  readGolomb(): number {
    let zeros = 0;
    while (zeros < 32 && !this.isOver && this.read(1) === 0) zeros++;
    return 2 ** zeros - 1 + this.read(zeros);
  }

  /** An Exp-Golomb number with a sign. */
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
