/** A bounded queue between two stages of a live session. */

import { unlessAborted } from "../../../base/wait.ts";

export class LiveQueue<Item> {
  readonly #bound: number;
  #items: Item[] = [];
  #isEnded = false;
  /**
   * Whether the consumer waits for an item: the first one that comes is no longer in the queue, as it is
   * taken at once.
   */
  #isAwaited = false;
  /** Resolved when there is an item to take, or when the queue has ended. */
  #changed = Promise.withResolvers<void>();

  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Whether the item was accepted; a full queue and an ended one accept none. */
  offer(item: Item): boolean {
    if (this.#isEnded || this.#items.length >= this.#bound) return false;
    this.#items.push(item);
    this.#changed.resolve();
    return true;
  }

  /**
   * Accepts the item; where the queue is full, the one goes that has waited longest. Returns what is not in
   * the queue then.
   */
  offerNewest(item: Item): Item | null {
    if (this.#isEnded) return item;
    this.#items.push(item);
    this.#changed.resolve();
    const taken = this.#isAwaited ? 1 : 0;
    return this.#items.length > taken + this.#bound ? this.#items.splice(taken, 1)[0]! : null;
  }

  /** Accepts nothing more; queued items are still handed out. */
  end(): void {
    this.#isEnded = true;
    this.#changed.resolve();
  }

  /** Removes the queued items and returns them. */
  clear(): readonly Item[] {
    return this.#items.splice(0);
  }

  /** For one consumer. Ends when the queue has ended and is empty, or as soon as the signal aborts. */
  async *items(signal: AbortSignal): AsyncIterable<Item> {
    while (!signal.aborted) {
      const item = this.#items.shift();
      if (item !== undefined) {
        yield item;
      } else if (this.#isEnded) {
        return;
      } else {
        this.#changed = Promise.withResolvers<void>();
        this.#isAwaited = true;
        await unlessAborted(this.#changed.promise, signal).catch(() => {/* the loop ends */});
        this.#isAwaited = false;
      }
    }
  }
}
