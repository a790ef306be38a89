/** How long the pieces of all bodies that are being received may keep the one thread that serves everybody.
 */

import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";

/** How long a turn lasts before others have theirs. */
const TURN_MS = 5;
/** How many of those who wait get their turn at the same time. */
const RESUMED_MAX = 16;

/**
 * Turns for reading. What is at hand already is read without a turn of the event loop, so that a reader of
 * many pieces keeps everybody else from running. All readers together do so for a few milliseconds; then they
 * wait, and go on one principal after the other.
 */
export class ReadingTurns {
  readonly #world: Pick<World, "sleep" | "monotonicMs">;
  /** Since when the event loop has had no turn, as far as is known; undefined while nobody reads. */
  #sinceMs: number | undefined;
  #isResting = false;
  /** Who waits, by principal; the one whose last turn was longest ago comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(world: Pick<World, "sleep" | "monotonicMs">) {
    this.#world = world;
  }

  /** Asked before some pieces are read: undefined where that may be done at once, or what to wait for. */
  take(principalKey: string): Promise<void> | undefined {
    if (!this.#isResting && this.#waiting.size === 0) {
      const nowMs = this.#world.monotonicMs();
      if (this.#sinceMs === undefined) {
        this.#begin(nowMs);
        return undefined;
      }
      const tookMs = nowMs - this.#sinceMs;
      if (tookMs < TURN_MS) return undefined;
      this.#rest();
    }
    return new Promise((resolve) => {
      const ofPrincipal = this.#waiting.get(principalKey);
      if (ofPrincipal === undefined) this.#waiting.set(principalKey, [resolve]);
      else ofPrincipal.push(resolve);
    });
  }

  #begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    timer(this.#world, 0, () => {
      if (!this.#isResting) this.#resume();
    });
  }

  #rest(): void {
    this.#isResting = true;
    timer(this.#world, 0, () => {
      this.#isResting = false;
      this.#resume();
    });
  }

  /** Called when the event loop has had a turn. */
  #resume(): void {
    this.#sinceMs = undefined;
    if (this.#waiting.size === 0) return;
    this.#begin(this.#world.monotonicMs());
    for (let resumed = 0; resumed < RESUMED_MAX && this.#waiting.size > 0; resumed++) {
      const [principalKey, [next, ...rest]] = this.#waiting.entries().next().value!;
      this.#waiting.delete(principalKey);
      if (rest.length > 0) this.#waiting.set(principalKey, rest);
      next!();
    }
  }
}
