/** The keepalive timer of all listeners: one timer for all of them, and none while there are none. */

import { pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";

/** Calls `onIdle` for each member every time that it was idle for `idleMs`. */
export class KeepaliveTimer<T> {
  readonly #world: World;
  readonly #idleMs: number;
  readonly #onIdle: (member: T) => void;
  /** The `monotonicMs` of each member's last activity. An active member moves to the end, so the first is idle longest. */
  readonly #activeMs = new Map<T, number>();
  #waiting: AbortController | undefined;

  /** `onIdle` must restart or remove the member. */
  constructor(world: World, idleMs: number, onIdle: (member: T) => void) {
    this.#world = world;
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
  }

  /** The member was active: its time starts again. Adds a member that is new. */
  restart(member: T): void {
    this.#activeMs.delete(member);
    this.#activeMs.set(member, this.#world.monotonicMs());
    if (this.#waiting === undefined) this.#watch(this.#waiting = new AbortController());
  }

  remove(member: T): void {
    this.#activeMs.delete(member);
    if (this.#activeMs.size > 0) return;
    this.#waiting?.abort();
    this.#waiting = undefined;
  }

  /** Ends when the last member was removed. */
  async #watch({ signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      const [first] = this.#activeMs;
      if (first === undefined) return;
      const leftMs = first[1] + this.#idleMs - this.#world.monotonicMs();
      if (leftMs <= 0) this.#onIdle(first[0]);
      else await pause(this.#world, leftMs, signal);
    }
  }
}
