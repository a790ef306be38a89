/** A column of unsigned 32-bit numbers to which numbers are only appended. */

const FIRST_CAPACITY = 16;
/**
 * The size from which a column grows by a quarter instead of doubling: it copies more often and wastes less
 * memory.
 */
const LARGE_CAPACITY = 65_536;

export class Column {
  #numbers: Uint32Array<ArrayBuffer>;
  length: number;

  /** The column starts with `numbers`, which it does not copy. */
  constructor(numbers: Uint32Array<ArrayBuffer> = new Uint32Array(0)) {
    this.#numbers = numbers;
    this.length = numbers.length;
  }

  push(number: number): void {
    if (this.length === this.#numbers.length) this.#grow();
    this.#numbers[this.length++] = number;
  }

  /** The number at a place, which must be below `length`. */
  get(at: number): number {
    return this.#numbers[at]!;
  }

  /** The current content, not copied; numbers that are pushed later are not in it. */
  values(): Uint32Array<ArrayBuffer> {
    return this.#numbers.subarray(0, this.length);
  }

  #grow(): void {
    const { length } = this.#numbers;
    const capacity = length < LARGE_CAPACITY
      ? Math.max(FIRST_CAPACITY, length * 2)
      : Math.ceil(length * 1.25);
    const grown = new Uint32Array(capacity);
    grown.set(this.#numbers);
    this.#numbers = grown;
  }
}
