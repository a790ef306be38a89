/** Searching in sorted lists. */

/**
 * The index of the first item of which `isReached` holds, as it does of all behind it; the length where there
 * is none.
 */
export function firstIndexWhere<Item>(sorted: readonly Item[], isReached: (item: Item) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isReached(sorted[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
