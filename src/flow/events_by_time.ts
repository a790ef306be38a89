/** Finds events by their time: they are written in its order, so that a few reads are enough. */

/** What is read of an event. */
export interface TimedEvent {
  readonly seq: number;
  readonly ptsMs: number;
}

export interface TimeSearch {
  /** The first event with a number in this range, of those that are searched. */
  readonly first: (fromSeq: number, toSeq: number) => TimedEvent | undefined;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly sinceMs: number;
}

/**
 * A number between the events that were written before `sinceMs` and the others. It pauses after each read,
 * for callers that let others go on.
 */
export function* seekTime({ first, fromSeq, toSeq, sinceMs }: TimeSearch): Generator<void, number> {
  let [low, high] = [fromSeq, toSeq];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const event = first(middle, high - 1);
    if (event === undefined || event.ptsMs >= sinceMs) high = middle;
    else low = event.seq + 1;
    yield;
  }
  return low;
}
