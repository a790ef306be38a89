/** Collects the bytes of one access unit, packet after packet; reused for the next unit. */

const BYTES_START = 64 * 1024;

/**
 * A buffer that grows up to `bytesMax`; an append that exceeds it, and all later ones, are dropped, and
 * `hasOverflowed` is set.
 */
export class UnitBuffer {
  hasOverflowed = false;
  readonly #bytesMax: number;
  #bytes = new Uint8Array(BYTES_START);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  /** The bytes so far: a view that the next `append` may invalidate. */
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
    this.hasOverflowed = false;
  }

  /** The bytes as a copy that belongs to the caller. */
  copy(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  #reserve(more: number): boolean {
    const needed = this.#length + more;
    if (needed > this.#bytesMax) this.hasOverflowed = true;
    if (this.hasOverflowed) return false;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      larger.set(this.bytes);
      this.#bytes = larger;
    }
    return true;
  }
}
