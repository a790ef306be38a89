/** Chooses among stretches that may be transitions, and joins the halves of fades. */

import type { RangeSink } from "../ranges/range_sink.ts";
import { LONGEST_MS } from "./transition_row.ts";

/**
 * Least logarithm of the odds for a transition. Near this value the cross-validated F1 hardly changes, and a
 * wrong transition is noticed more than a missed one.
 */
const LEAST_ODDS = 1;
/**
 * Least logarithm of the odds for half of a fade where the other half is sure: something must come before and
 * after a plain picture.
 */
export const LEAST_HALF_ODDS = -1;
/** Most milliseconds of the same plain picture between a fade out and a fade in that are one fade. */
const HOLD_MS = 510;
/** The odds at which the confidence is about 0.85. */
const SOFTNESS = 4;
/** How long after a stretch its other half of a fade may end, milliseconds. */
const HALF_WAIT_MS = HOLD_MS + LONGEST_MS;
/** Stretches that are compared at once; if there are more, the least sure ones are left out. */
const MOST = 200;

/** A stretch with mixed frames from `start` on; `end` is the first frame that is the second picture alone. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly startMs: number;
  /** Time of the last mixed frame. */
  readonly lastMs: number;
  readonly endMs: number;
  /** The first and the last mixed frame, counted among all frames of the stream. */
  readonly first: number;
  readonly last: number;
  readonly startsPlain: boolean;
  readonly endsPlain: boolean;
  /** Logarithm of the odds. */
  readonly odds: number;
}

export class ChosenStretches {
  readonly #sink: RangeSink;
  #likely: Stretch[] = [];
  /** Halves of fades that count only beside a sure one. */
  #halves: Stretch[] = [];
  #lastMs = 0;
  /** A transition that may be the first half of a fade. */
  #held: Stretch | null = null;

  constructor(sink: RangeSink) {
    this.#sink = sink;
  }

  reset(): void {
    this.#likely = [];
    this.#halves = [];
    this.#lastMs = 0;
    this.#held = null;
  }

  /** Takes a stretch with more than `LEAST_HALF_ODDS`. */
  add(stretch: Stretch): void {
    if (stretch.odds > LEAST_ODDS) {
      this.#lastMs = Math.max(this.#lastMs, stretch.endMs);
      keepSurest(this.#likely, stretch);
    } else if (stretch.startsPlain !== stretch.endsPlain) keepSurest(this.#halves, stretch);
  }

  /** To be called when no stretch that ends before `nowMs` will be added any more. */
  settle(nowMs: number): void {
    if (this.#likely.length > 0) {
      if (nowMs - this.#lastMs > HALF_WAIT_MS) this.#choose();
      return;
    }
    if (this.#held && nowMs - this.#held.endMs > HALF_WAIT_MS) this.#give();
    if (this.#halves.length > 0 && nowMs - this.#halves[0]!.endMs > 2 * HALF_WAIT_MS) this.#halves.shift();
  }

  finish(): void {
    this.#choose();
    this.#give();
  }

  /** Chooses the surest of the stretches that overlap. */
  #choose(): void {
    const chosen: Stretch[] = [];
    for (const stretch of this.#likely.sort(bySurest)) {
      if (chosen.every((other) => areApart(stretch, other))) chosen.push(stretch);
    }
    this.#likely = [];
    for (const half of this.#halves.sort(bySurest)) {
      const isOther = chosen.some((sure) => sure.odds > LEAST_ODDS && arePlainBetween(half, sure));
      if (isOther && chosen.every((other) => areApart(half, other))) chosen.push(half);
    }
    this.#halves = [];
    for (const stretch of chosen.sort((a, b) => a.start - b.start)) this.#join(stretch);
  }

  #join(stretch: Stretch): void {
    const held = this.#held;
    if (held && isFadeThrough(held, stretch)) {
      const odds = Math.max(held.odds, stretch.odds);
      this.#held = { ...stretch, start: held.start, startMs: held.startMs, first: held.first, odds };
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
    this.#sink.add("gradual_transition", held.first, held.last, held.startMs, held.lastMs, confidence);
    this.#held = null;
  }
}

function keepSurest(kept: Stretch[], stretch: Stretch): void {
  if (kept.length < MOST) {
    kept.push(stretch);
    return;
  }
  let least = 0;
  for (let at = 1; at < MOST; at++) if (kept[at]!.odds < kept[least]!.odds) least = at;
  if (kept[least]!.odds < stretch.odds) kept[least] = stretch;
}

function bySurest(a: Stretch, b: Stretch): number {
  return b.odds - a.odds || a.start - b.start || a.end - b.end;
}

function areApart(one: Stretch, other: Stretch): boolean {
  return one.start > other.end || one.end < other.start || arePlainBetween(one, other);
}

/** Whether the two are the halves of a fade, whichever comes first. */
function arePlainBetween(one: Stretch, other: Stretch): boolean {
  return isFadeThrough(one, other) || isFadeThrough(other, one);
}

function isFadeThrough(out: Stretch, into: Stretch): boolean {
  const holdMs = into.startMs - out.endMs;
  return out.endsPlain && into.startsPlain && holdMs >= 0 && holdMs <= HOLD_MS;
}
