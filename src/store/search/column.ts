/** A column of unsigned 32-bit numbers that grows at its end and never changes what it has. */

const FIRST_CAPACITY = 16;
/** From here on a column grows by a quarter instead of doubling: a little copying against a lot of empty memory. */
const LARGE_CAPACITY = 65_536;

export class Column {
  #numbers: Uint32Array<ArrayBuffer>;
  length: number;

  /** Takes over `numbers` as the first ones of the column. */
  constructor(numbers: Uint32Array<ArrayBuffer> = new Uint32Array(0)) {
    this.#numbers = numbers;
    this.length = numbers.length;
  }

  push(number: number): void {
    if (this.length === this.#numbers.length) this.#grow();
    this.#numbers[this.length++] = number;
  }

  /** Only for `at` below `length`. */
  get(at: number): number {
    return this.#numbers[at]!;
  }

  /** What is in the column now, not copied; what is pushed later does not show in it. */
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
