/** Marks in the order in which they lie in the media, for those of a window and those next to a time. */

import type { MarkStore } from "./mark_store.ts";

/** Indexes of a store, by `startMs`, then by `seq`. */
export class SortedMarks {
  readonly #store: MarkStore;
  #indexes = new Uint32Array(64);
  #count = 0;
  #longestMs = 0;

  constructor(store: MarkStore) {
    this.#store = store;
  }

  get count(): number {
    return this.#count;
  }

  /** No mark is longer. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** The index in the store of the mark at a position. */
  at(position: number): number {
    return this.#indexes[position]!;
  }

  clear(): void {
    this.#count = 0;
    this.#longestMs = 0;
  }

  /**
   * Marks that are not in it yet, in the order of the store. Those of a run that goes on mostly belong at the
   * end.
   */
  add(added: Uint32Array): void {
    if (added.length === 0) return;
    const store = this.#store;
    for (const index of added) {
      this.#longestMs = Math.max(
        this.#longestMs,
        store.endMsAt(index) - store.startMsAt(index),
      );
    }
    const batch = isOrdered(store, added)
      ? added
      : added.slice().sort((one, other) => store.startMsAt(one) - store.startMsAt(other) || one - other);
    this.#reserve(this.#count + batch.length);
    let to = this.#count + batch.length - 1;
    let old = this.#count - 1;
    let fresh = batch.length - 1;
    while (fresh >= 0) {
      const isOldLater = old >= 0 &&
        store.startMsAt(this.#indexes[old]!) > store.startMsAt(batch[fresh]!);
      this.#indexes[to--] = isOldLater ? this.#indexes[old--]! : batch[fresh--]!;
    }
    this.#count += batch.length;
  }

  /** The first position whose mark starts at a time or later, or only later. */
  positionAt(ms: number, equal: "with" | "behind" = "with"): number {
    let [low, high] = [0, this.#count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const startMs = this.#store.startMsAt(this.#indexes[middle]!);
      if (startMs < ms || (equal === "behind" && startMs === ms)) {
        low = middle + 1;
      } else high = middle;
    }
    return low;
  }

  #reserve(count: number): void {
    if (count <= this.#indexes.length) return;
    const larger = new Uint32Array(Math.max(count, this.#indexes.length * 2));
    larger.set(this.#indexes.subarray(0, this.#count));
    this.#indexes = larger;
  }
}

function isOrdered(store: MarkStore, indexes: Uint32Array): boolean {
  for (let at = 1; at < indexes.length; at++) {
    if (store.startMsAt(indexes[at]!) < store.startMsAt(indexes[at - 1]!)) {
      return false;
    }
  }
  return true;
}
