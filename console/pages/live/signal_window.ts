/** Motion and novelty of the last minute of a session, put together from many answers. */

import type { WatchedSession } from "../../../client/mod.ts";

/** What is plotted. */
export const WINDOW_MS = 60_000;

export interface PlottedSignals {
  readonly ptsMs: readonly number[];
  readonly motion: readonly number[];
  readonly novelty: readonly number[];
}

export class SignalWindow {
  #ptsMs: number[] = [];
  #motion: number[] = [];
  #novelty: number[] = [];

  /** The newest media time; null before the first. */
  get lastMs(): number | null {
    return this.#ptsMs.at(-1) ?? null;
  }

  get values(): PlottedSignals {
    return { ptsMs: this.#ptsMs, motion: this.#motion, novelty: this.#novelty };
  }

  add({ pts_ms, motion, novelty }: WatchedSession["signals"]): void {
    const [first] = pts_ms;
    const last = this.lastMs;
    if (first === undefined || (last !== null && first <= last)) return; // an answer that came twice
    this.#ptsMs.push(...pts_ms);
    this.#motion.push(...motion);
    this.#novelty.push(...novelty);
    const old = this.#ptsMs.findIndex((ms) => ms >= this.lastMs! - WINDOW_MS);
    for (const column of [this.#ptsMs, this.#motion, this.#novelty]) {
      column.splice(0, old);
    }
  }
}
