/** Who loses something where several principals store too much together: the one furthest above its share.
 * See docs/retention.md#shares.
 */

import { firstIndexWhere } from "../base/sorted.ts";

/** What one principal stores. */
export interface StoredPart {
  /**
   * What the principal stores, in bytes, with what cannot go. Grows smaller with each {@link
   * FairRemoval.took}.
   */
  bytes: number;
}

/**
 * ```
 *   the limit   ██████████ 10      share of each of two: 5
 *   Alice       ███████████ 11     loses until 7 are left
 *   Bob         ███ 3              is below its share, and loses nothing
 * ```
 *
 * All shares are equal, so the one that is furthest above its share is the one that stores the most. What a
 * principal leaves of its share is there for the others.
 */
export class FairRemoval<S extends StoredPart> {
  readonly #bytesMax: number;
  readonly #count: number;
  /** The principals that may still lose something, by their bytes, the largest last. */
  readonly #stores: S[];
  #bytes = 0;

  /** `bytesMax`: what all may store together. It may be negative, and then everything that can go does. */
  constructor(stores: Iterable<S>, bytesMax: number) {
    this.#stores = [...stores].filter(({ bytes }) => bytes > 0).sort((a, b) => a.bytes - b.bytes);
    this.#count = this.#stores.length;
    this.#bytesMax = bytesMax;
    for (const { bytes } of this.#stores) this.#bytes += bytes;
  }

  /**
   * Whose oldest goes next; null where all fits, and where nobody above its share has anything that can go.
   */
  next(): S | null {
    const store = this.#stores.at(-1);
    const isTooMuch = this.#bytes > this.#bytesMax && store !== undefined;
    return isTooMuch && store.bytes * this.#count > this.#bytesMax ? store : null;
  }

  /**
   * Takes off `bytes` that the one named by {@link next} has lost; null where it has nothing more that can
   * go.
   */
  took(bytes: number | null): void {
    const store = this.#stores.pop();
    if (store === undefined || bytes === null) return;
    store.bytes -= bytes;
    this.#bytes -= bytes;
    const place = firstIndexWhere(this.#stores, ({ bytes }) => bytes > store.bytes);
    this.#stores.splice(place, 0, store);
  }
}
