/** Chooses among stretches that may be transitions, and joins the halves of fades. */

import type { RangeSink } from "../range_sink.ts";
import { LONGEST_MS } from "./transition_row.ts";

/** The logarithm of the odds that a transition needs; cross-validated F1 is flat here, and what is wrong is seen more than what is missed. */
export const LEAST_ODDS = 0.5;
/** A fade out and a fade in from the same plain picture with at most this between are one. */
const HOLD_MS = 510;
/** The odds at which the confidence is about 0.85. */
const SOFTNESS = 4;
/** So many stretches are compared at once; of more the least sure are left out. */
const MOST = 200;

/** Mixed frames from `start` on; `end` is the first frame that is the second picture alone. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly startMs: number;
  /** Time of the last mixed frame. */
  readonly lastMs: number;
  readonly endMs: number;
  readonly startsPlain: boolean;
  readonly endsPlain: boolean;
  /** Logarithm of the odds. */
  readonly odds: number;
}

export class ChosenStretches {
  readonly #sink: RangeSink;
  #likely: Stretch[] = [];
  #lastMs = 0;
  /** A transition that may be the first half of a fade. */
  #held: Stretch | null = null;

  constructor(sink: RangeSink) {
    this.#sink = sink;
  }

  reset(): void {
    this.#likely = [];
    this.#lastMs = 0;
    this.#held = null;
  }

  add(stretch: Stretch): void {
    const likely = this.#likely;
    this.#lastMs = Math.max(this.#lastMs, stretch.endMs);
    if (likely.length < MOST) {
      likely.push(stretch);
      return;
    }
    let least = 0;
    for (let at = 1; at < MOST; at++) if (likely[at]!.odds < likely[least]!.odds) least = at;
    if (likely[least]!.odds < stretch.odds) likely[least] = stretch;
  }

  /** No stretch that ends before `nowMs` will be added. */
  settle(nowMs: number): void {
    if (this.#likely.length > 0) {
      if (nowMs - this.#lastMs > LONGEST_MS) this.#choose();
    } else if (this.#held && nowMs - this.#held.endMs > HOLD_MS + LONGEST_MS) this.#give();
  }

  finish(): void {
    this.#choose();
    this.#give();
  }

  /** Of stretches that overlap the surest counts. */
  #choose(): void {
    const chosen: Stretch[] = [];
    for (
      const stretch of this.#likely.sort((a, b) => b.odds - a.odds || a.start - b.start || a.end - b.end)
    ) {
      if (chosen.every(({ start, end }) => stretch.start > end || stretch.end < start)) chosen.push(stretch);
    }
    this.#likely = [];
    for (const stretch of chosen.sort((a, b) => a.start - b.start)) this.#join(stretch);
  }

  #join(stretch: Stretch): void {
    const held = this.#held;
    if (held && held.endsPlain && stretch.startsPlain && stretch.startMs - held.endMs <= HOLD_MS) {
      const odds = Math.max(held.odds, stretch.odds);
      this.#held = { ...stretch, start: held.start, startMs: held.startMs, odds };
    } else {
      this.#give();
      this.#held = stretch;
    }
    if (!stretch.endsPlain) this.#give();
  }

  #give(): void {
    const held = this.#held;
    if (!held) return;
    const confidence = (1 + held.odds / Math.sqrt(held.odds * held.odds + SOFTNESS)) / 2;
    this.#sink.add("gradual_transition", held.start, held.end - 1, held.startMs, held.lastMs, confidence);
    this.#held = null;
  }
}
