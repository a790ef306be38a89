/** What a publisher is told that it may send: less as soon as decoding falls behind, more again slowly. */

/** Bits a second. The most is enough for 1080p of a browser's encoder, the least for a picture one can still describe. */
const MOST = 2_500_000;
const LEAST = 300_000;
/** Behind is who has dropped a unit, or has so many under way at once: half a second of a camera. */
const BEHIND_UNITS = 15;
const LOWERED = 0.6;
const RAISED = 1.15;
/** Seconds in a row without falling behind, before the rate is raised. */
const CALM_S = 5;

/** Told once a second how decoding goes; a pure state machine. */
export class BitrateController {
  #bitrate = MOST;
  #calmS = 0;

  get bitrate(): number {
    return this.#bitrate;
  }

  /** The new rate, or null where it stays. `waiting` are the units that the decoder has not given back. */
  step({ dropped, waiting }: { readonly dropped: number; readonly waiting: number }): number | null {
    const isBehind = dropped > 0 || waiting >= BEHIND_UNITS;
    this.#calmS = isBehind ? 0 : this.#calmS + 1;
    const factor = isBehind ? LOWERED : this.#calmS > CALM_S ? RAISED : 1;
    const next = Math.round(Math.min(MOST, Math.max(LEAST, this.#bitrate * factor)));
    if (next === this.#bitrate) return null;
    this.#bitrate = next;
    return next;
  }
}
