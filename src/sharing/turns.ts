/** Turns for pieces of long work that several requests have at once, so that all of them together leave room
 * for the others.
 */

import { yieldToEventLoop } from "../base/wait.ts";

/**
 * Gives one turn for each round of the event loop. Who only yields to the event loop goes on together with
 * all others that do, and a round takes as long as the pieces of all of them.
 */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isGiving = false;

  /**
   * Resolves when it is the caller's turn, in the order of the calls. Each caller waits only once at a time,
   * so there are no more waits than callers.
   */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#isGiving) void this.#give();
    });
  }

  async #give(): Promise<void> {
    this.#isGiving = true;
    for (; this.#waiting.length > 0; this.#waiting.shift()!()) await yieldToEventLoop();
    this.#isGiving = false;
  }
}
