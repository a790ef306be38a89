/** A clock that stands still until the test moves it, with the sleeps that wait for it. */

import type { SleepSignal, World } from "../../src/base/world.ts";

export class ManualClock implements Pick<World, "monotonicMs" | "sleep"> {
  #nowMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  /** Number of sleeps that have neither ended nor been aborted. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal?: SleepSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const sleeper = { atMs: this.#nowMs + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", () => {
        if (this.#sleepers.delete(sleeper)) reject(signal.reason);
      }, { once: true });
    });
  }

  /**
   * Moves the clock and ends the sleeps that are due, in the order of their times. Resolves when their
   * reactions have run.
   */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (let next = this.#next(endMs); next; next = this.#next(endMs)) {
      this.#sleepers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
      await settled();
    }
    this.#nowMs = endMs;
    await settled();
  }

  /** Moves the clock without ending a sleep, as in a program whose timers are late. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  #next(endMs: number): Sleeper | undefined {
    let next: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (sleeper.atMs <= endMs && (!next || sleeper.atMs < next.atMs)) next = sleeper;
    }
    return next;
  }
}

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

/** Resolves when everything that was ready has run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
