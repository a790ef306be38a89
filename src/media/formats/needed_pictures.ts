/** How many pictures a file needs that ends at some time, as those of most codecs are not decoded in the order in which they are shown. */

export interface NeededPictures {
  /** The index of the last one that is needed; -1 for none. */
  readonly last: number;
  /** When the latest is shown of those that lead to a picture before the end; -Infinity for none. */
  readonly latest: number;
}

/**
 * Of pictures in decoding order, which are shown at `times`, those from `first` on up to the last one that is shown before `end`. One that
 * others refer to may be shown later; then all that are shown before it are needed, too, so that none is missing between.
 */
export function neededPictures(times: Float64Array, first: number, end: number): NeededPictures {
  const lastBefore = (limit: number) => times.findLastIndex((time) => time < limit);
  const led = lastBefore(end);
  const latest = times.slice(first, led + 1).reduce((most, time) => Math.max(most, time), -Infinity);
  return { last: Math.max(led, lastBefore(latest)), latest };
}
