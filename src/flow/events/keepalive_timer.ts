/** Who has heard nothing for how long: one timer for everybody who listens, and none when nobody does. */

import type { World } from "../../base/world.ts";

/** Calls `onSilence` for each member every time that it was not heard for `silenceMs`. */
export class KeepaliveTimer<T> {
  readonly #world: World;
  readonly #silenceMs: number;
  readonly #onSilence: (member: T) => void;
  /** When each one was heard last, `monotonicMs`; whoever was heard goes to the end, so the first is the longest silent. */
  readonly #heardMs = new Map<T, number>();
  #waiting: AbortController | undefined;

  /** `onSilence` must let the member be heard or forgotten. */
  constructor(world: World, silenceMs: number, onSilence: (member: T) => void) {
    this.#world = world;
    this.#silenceMs = silenceMs;
    this.#onSilence = onSilence;
  }

  heard(member: T): void {
    this.#heardMs.delete(member);
    this.#heardMs.set(member, this.#world.monotonicMs());
    if (this.#waiting === undefined) this.#watch(this.#waiting = new AbortController());
  }

  forget(member: T): void {
    this.#heardMs.delete(member);
    if (this.#heardMs.size > 0) return;
    this.#waiting?.abort();
    this.#waiting = undefined;
  }

  async #watch({ signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      const [first] = this.#heardMs;
      if (first === undefined) return;
      const leftMs = first[1] + this.#silenceMs - this.#world.monotonicMs();
      if (leftMs <= 0) this.#onSilence(first[0]);
      else {
        try {
          await this.#world.sleep(leftMs, signal);
        } catch {
          return; // nobody is left to wait for
        }
      }
    }
  }
}
