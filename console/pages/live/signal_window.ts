/** Motion and novelty of the last minute of a session, put together from many answers. */

import type { WatchedSession } from "../../../client/mod.ts";

/** What is plotted. */
export const WINDOW_MS = 60_000;
/**
 * After so many answers without signals the clock of the publisher may have gone back: all signals are asked
 * for again.
 */
const EMPTY_ANSWERS = 3;

export interface PlottedSignals {
  readonly ptsMs: readonly number[];
  readonly motion: readonly number[];
  readonly novelty: readonly number[];
}

export class SignalWindow {
  #values: PlottedSignals = { ptsMs: [], motion: [], novelty: [] };
  #emptyAnswers = 0;

  /** Behind which media time to ask next; null for all. */
  get afterMs(): number | null {
    return this.#emptyAnswers >= EMPTY_ANSWERS ? null : this.#values.ptsMs.at(-1) ?? null;
  }

  /** Times ascend. */
  get values(): PlottedSignals {
    return this.#values;
  }

  /** The answer to a question for what lies behind `afterMs`. */
  add({ pts_ms, motion, novelty }: WatchedSession["signals"], afterMs: number | null): void {
    this.#emptyAnswers = pts_ms.length === 0 && afterMs !== null ? this.#emptyAnswers + 1 : 0;
    if (pts_ms.length === 0) return;
    const known = afterMs === null ? { ptsMs: [], motion: [], novelty: [] } : this.#values;
    const all = [...known.ptsMs, ...pts_ms];
    const from = firstOfWindow(all);
    this.#values = {
      ptsMs: all.slice(from),
      motion: [...known.motion, ...motion].slice(from),
      novelty: [...known.novelty, ...novelty].slice(from),
    };
  }
}

/** Where the last minute begins, or the last time that the clock went back. */
function firstOfWindow(ptsMs: readonly number[]): number {
  const lastMs = ptsMs.at(-1)!;
  const old = ptsMs.findLastIndex((ms, at) => ms < lastMs - WINDOW_MS || ms >= (ptsMs[at + 1] ?? Infinity));
  return old + 1;
}
