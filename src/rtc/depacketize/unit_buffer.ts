/** Where the bytes of one access unit gather, packet after packet; used again for the next unit. */

const BYTES_START = 64 * 1024;

/** Grows up to a limit that the caller watches by `length`; bytes beyond `bytesMax` are dropped and `isOver` says so. */
export class UnitBuffer {
  isOver = false;
  readonly #bytesMax: number;
  #bytes = new Uint8Array(BYTES_START);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  /** A view that the next `append` may invalidate. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  append(bytes: Uint8Array): void {
    if (!this.#reserve(bytes.length)) return;
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  appendByte(byte: number): void {
    if (!this.#reserve(1)) return;
    this.#bytes[this.#length++] = byte;
  }

  clear(): void {
    this.#length = 0;
    this.isOver = false;
  }

  /** A copy that belongs to the caller. */
  copy(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  #reserve(more: number): boolean {
    const needed = this.#length + more;
    if (needed > this.#bytesMax) this.isOver = true;
    if (this.isOver) return false;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      larger.set(this.bytes);
      this.#bytes = larger;
    }
    return true;
  }
}
