/** Turns counters that wrap into numbers that do not: sequence numbers of 16 bits, RTP times of 32 bits. */

/**
 * Follows a counter of `bits` bits. A step of less than half its range, forward or back, is taken as it is.
 */
export class Unwrapper {
  readonly #range: number;
  #last: number | undefined;

  constructor(bits: 16 | 32) {
    this.#range = 2 ** bits;
  }

  /** The next value. The first one is returned unchanged; no result is negative. */
  follow(value: number): number {
    const next = this.#last === undefined ? value : this.near(value);
    this.#last = next;
    return next;
  }

  /** The result that `follow` would give, without changing the state. */
  near(value: number): number {
    if (this.#last === undefined) return value;
    const range = this.#range;
    const step = (((value - this.#last) % range) + range) % range;
    return Math.max(0, this.#last + (step >= range / 2 ? step - range : step));
  }

  reset(): void {
    this.#last = undefined;
  }
}
