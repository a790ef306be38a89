/** Counters that wrap, followed as numbers that do not: 16 bits of sequence, 32 bits of RTP time. */

/** Follows a counter of `bits` bits; steps of less than half its range are taken as they are meant, back or forth. */
export class Unwrapper {
  readonly #range: number;
  #last: number | undefined;

  constructor(bits: 16 | 32) {
    this.#range = 2 ** bits;
  }

  /** The first value stands for itself; no result is negative. */
  follow(value: number): number {
    const next = this.#last === undefined ? value : this.near(value);
    this.#last = next;
    return next;
  }

  /** What `value` would be, without following it. */
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
