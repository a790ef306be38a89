/** Exponential back-off: how long a sidecar that failed is not called. */

const FIRST_MS = 100;
const MAX_MS = 5_000;

/**
 * A back-off of 100 ms after the first failure, twice as long after each further one, at most 5 s. Times are
 * monotonic.
 */
export class BackOff {
  #lengthMs = 0;
  #untilMs = -Infinity;

  /** How much longer the back-off lasts; 0 when a call may be tried. */
  remainingMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }

  /**
   * Starts a back-off and returns its length. During a back-off it does nothing and returns 0, so that the
   * failures of calls that were under way at the same time count once.
   */
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
