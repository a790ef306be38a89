/** Numbers in pieces of one size: it grows without a copy of what it has. */

export class NumberList {
  readonly #pieces: Float64Array[] = [];
  length = 0;

  push(number: number): void {
    const at = this.length++ % NUMBERS_PER_PIECE;
    if (at === 0) this.#pieces.push(new Float64Array(NUMBERS_PER_PIECE));
    this.#pieces.at(-1)![at] = number;
  }

  /** Only for `at` below `length`. */
  at(at: number): number {
    return this.#pieces[Math.floor(at / NUMBERS_PER_PIECE)]![at % NUMBERS_PER_PIECE]!;
  }
}

const NUMBERS_PER_PIECE = 8_192;
