/** How long somebody who failed is left alone: a little at first, twice as long after each failure, and never very long. */

const FIRST_MS = 100;
const MAX_MS = 5_000;

/** Contract 12.1. Times are of a clock that never goes back. */
export class BackOff {
  #lengthMs = 0;
  #untilMs = -Infinity;

  /** How much longer; 0 when it may be tried. */
  remainingMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }

  /** Failures of attempts that were under way together count once. The length of the pause that begins, 0 for none. */
  failed(nowMs: number): number {
    if (this.remainingMs(nowMs) > 0) return 0;
    this.#lengthMs = Math.min(MAX_MS, this.#lengthMs === 0 ? FIRST_MS : this.#lengthMs * 2);
    this.#untilMs = nowMs + this.#lengthMs;
    return this.#lengthMs;
  }

  succeeded(): void {
    this.#lengthMs = 0;
  }
}
