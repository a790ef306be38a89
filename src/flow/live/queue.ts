/** A queue with a bound between two stages of a live session: what does not fit is not taken. */

export class LiveQueue<Item> {
  readonly #bound: number;
  #items: Item[] = [];
  #isEnded = false;
  #wake = Promise.withResolvers<void>();

  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Whether the item was taken; a full queue, and one that has ended, takes none. */
  offer(item: Item): boolean {
    if (this.#isEnded || this.#items.length >= this.#bound) return false;
    this.#items.push(item);
    this.#wake.resolve();
    return true;
  }

  /** Nothing comes any more; what waits is still handed out. */
  end(): void {
    this.#isEnded = true;
    this.#wake.resolve();
  }

  /** Takes out what waits; how many it was. */
  clear(): number {
    return this.#items.splice(0).length;
  }

  /** For one consumer. Ends with the queue, or with the signal at the latest. */
  async *items(signal: AbortSignal): AsyncIterable<Item> {
    const aborted = Promise.withResolvers<void>();
    const onAbort = () => aborted.resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      while (!signal.aborted) {
        const item = this.#items.shift();
        if (item !== undefined) {
          yield item;
        } else if (this.#isEnded) {
          return;
        } else {
          this.#wake = Promise.withResolvers<void>();
          await Promise.race([this.#wake.promise, aborted.promise]);
        }
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
