/** The bitrate that a publisher may send: lowered as soon as decoding falls behind, and raised again slowly.
 */

/**
 * Highest bit rate, bits a second: enough for 1080p from a browser. BITRATE_MIN is enough for frames that can
 * still be described.
 */
const BITRATE_MAX = 2_500_000;
const BITRATE_MIN = 300_000;
/** Units that wait for their frame from which on decoding is behind: half a second of a camera. */
const BEHIND_UNITS = 15;
const DECREASE = 0.6;
const INCREASE = 1.15;
/** Seconds in a row without falling behind after which the rate is raised. */
const STABLE_S = 5;

/** Decides on the bit rate. A state machine without a clock: `step` is called once a second. */
export class BitrateController {
  #bitrate = BITRATE_MAX;
  #stableS = 0;

  get bitrate(): number {
    return this.#bitrate;
  }

  /** The new rate, or null if it does not change. `waiting` counts units that wait or are being decoded. */
  step({ dropped, waiting }: { readonly dropped: number; readonly waiting: number }): number | null {
    const isBehind = dropped > 0 || waiting >= BEHIND_UNITS;
    this.#stableS = isBehind ? 0 : this.#stableS + 1;
    const factor = isBehind ? DECREASE : this.#stableS > STABLE_S ? INCREASE : 1;
    const next = Math.round(Math.min(BITRATE_MAX, Math.max(BITRATE_MIN, this.#bitrate * factor)));
    if (next === this.#bitrate) return null;
    this.#bitrate = next;
    return next;
  }
}
