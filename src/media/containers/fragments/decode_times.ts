/** Decode times of pictures that come in decoding order with nothing but the times at which they are shown.
 */

/** Most pictures that a picture of H.264 or H.265 may wait for. */
const DEPTH_MAX = 16;

/**
 * How many pictures at most are shown later than one that comes after them, by the times in decoding order.
 */
export function reorderDepthOf(shown: readonly number[]): number {
  return shown.reduce((most, time, at) => {
    const before = shown.slice(Math.max(0, at - DEPTH_MAX), at);
    return Math.max(most, before.filter((other) => other > time).length);
  }, 0);
}

/**
 * The time of the picture that is shown so many pictures earlier: always rising, and not later than its own.
 *
 * ```
 *   decoding order  I0  P3  B1  B2  P6  B4  B5
 *   shown           0   3   1   2   6   4   5
 *   decoded        -1   0   1   2   3   4   5     one picture waits
 * ```
 * The depth grows where a picture shows that it was too small; until then its time is one tick after the one
 * before.
 */
export class DecodeTimes {
  #depth: number;
  /** Times that are not used yet, in their order. */
  #waiting: number[] = [];
  /** When the pictures before are shown, in decoding order. */
  #before: number[] = [];
  #isFirst = true;
  #last = -1;

  /**
   * Makes the times of one stream, in which at most `depth` pictures are shown later than others that come
   * after them.
   */
  constructor(depth: number) {
    this.#depth = Math.min(DEPTH_MAX, depth);
  }

  /**
   * To be called where the next picture does not follow on those before, so that its times need not either.
   */
  restart(): void {
    this.#isFirst = true;
  }

  /** When the next picture is decoded, in the unit of `shown`, a whole number from 0. */
  next(shown: number): number {
    if (this.#isFirst) {
      this.#waiting = Array.from({ length: this.#depth }, (_, place) => shown - this.#depth + place);
      this.#before = [];
      this.#isFirst = false;
    }
    this.#before = [...this.#before.slice(-DEPTH_MAX), shown];
    this.#depth = Math.max(this.#depth, this.#before.filter((time) => time > shown).length);
    const later = this.#waiting.findIndex((time) => time > shown);
    this.#waiting.splice(later === -1 ? this.#waiting.length : later, 0, shown);
    const time = this.#waiting.length > this.#depth ? this.#waiting.shift()! : 0;
    this.#last = Math.max(time, this.#last + 1);
    return this.#last;
  }
}
