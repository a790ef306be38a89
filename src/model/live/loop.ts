/** Loop detection: whether the kept frames of a live stream look like those before. See
 * docs/live/events.md#loop-detector.
 */

/** How many frames back a frame is compared with. */
const RING_FRAMES = 8;
/** How many of them must look the same. */
const SIMILAR_MIN = 3;
/** The bits of 64 in which two hashes differ that do not look the same: this many or more. */
const DISTANCE_END = 6;

/**
 * ```
 *              3 of the last 8 hashes are closer than 6 bits
 *   outside ──────────────────────────────────────────────────▶ inside    "entered", once
 *           ◀──────────────────────────────────────────────────           no event
 *              fewer than 3 are
 * ```
 * The ring starts with hashes of all ones, so a stream that starts with such hashes is in a loop from its
 * first frame.
 */
export class LoopDetector {
  readonly #low = new Uint32Array(RING_FRAMES).fill(ALL_ONES);
  readonly #high = new Uint32Array(RING_FRAMES).fill(ALL_ONES);
  #next = 0;
  #isLooping = false;

  /** Whether the last frame was in a loop. While it is so, no model is asked about keyframes. */
  get isLooping(): boolean {
    return this.#isLooping;
  }

  /**
   * Adds the 64-bit hash of the next frame, in two halves. True when a loop begins with it. Allocates
   * nothing.
   */
  step(low: number, high: number): boolean {
    let similar = 0;
    for (let at = 0; at < RING_FRAMES; at++) {
      const distance = bitsOf(this.#low[at]! ^ low) + bitsOf(this.#high[at]! ^ high);
      if (distance < DISTANCE_END) similar++;
    }
    this.#low[this.#next] = low;
    this.#high[this.#next] = high;
    this.#next = (this.#next + 1) % RING_FRAMES;
    const wasLooping = this.#isLooping;
    this.#isLooping = similar >= SIMILAR_MIN;
    return this.#isLooping && !wasLooping;
  }
}

const ALL_ONES = 0xffffffff;

/** The number of set bits of a 32-bit number. */
function bitsOf(value: number): number {
  let bits = value - ((value >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  bits = (bits + (bits >>> 4)) & 0x0f0f0f0f;
  return Math.imul(bits, 0x01010101) >>> 24;
}
