/** How many pictures a file needs that ends at some time, as those of most codecs are not decoded in the
 * order in which they are shown.
 */

export interface NeededPictures {
  /** The index of the last one that is needed; -1 for none. */
  readonly last: number;
  /**
   * When the latest picture is shown among those up to the last one before the end, in decoding order;
   * -Infinity for none.
   */
  readonly latest: number;
}

/**
 * Which pictures a file needs that ends at `end`: of those in decoding order from `first` on, which are shown
 * at `times`, all up to the last one that is shown before `end`. A picture that others refer to may be shown
 * later. Then all pictures shown before it are needed, too, so that none is missing between.
 */
export function neededPictures(times: Float64Array, first: number, end: number): NeededPictures {
  const lastBefore = (limit: number) => times.findLastIndex((time) => time < limit);
  const led = lastBefore(end);
  const latest = times.slice(first, led + 1).reduce((most, time) => Math.max(most, time), -Infinity);
  return { last: Math.max(led, lastBefore(latest)), latest };
}
