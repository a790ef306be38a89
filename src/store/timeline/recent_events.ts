/** The last events of the runs that were written last, in memory: what clients that follow a run read again
 * and again.
 */

import { firstIndexWhere } from "../../base/sorted.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { BatchQuery, StoredEvent } from "./event_reader.ts";

/** Bytes that an event takes besides its payload: its object, its texts, its places in the lists. */
const EVENT_BYTES = 256;

/** The last events of one run: all of them behind `afterSeq`, so a reading from there on needs no log. */
interface KeptTail {
  events: StoredEvent[];
  afterSeq: number;
}

/**
 * The last events of the runs, bounded over all runs together. What was not written since the start is in the
 * log only; so is what is dropped, which begins with the run that was written longest ago, and what is too
 * long.
 */
export class RecentEvents {
  /** The kept events by run; the run that was written last is at the end. */
  readonly #tails = new Map<string, KeptTail>();
  readonly #maxBytes: number;
  #bytes = 0;
  #lastRunId = "";

  constructor(maxBytes: number = LIMITS.timeline.recentBytesMax) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes in memory, at most what the limit says; counted as if every text had two bytes a character. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Keeps an event. Call it for every one, before it is folded into `run`: `run.lastSeq` must still be the
   * event before it.
   */
  add(run: RunView, event: StoredEvent): void {
    const tail = this.#tailOf(run);
    tail.events.push(event);
    this.#bytes += bytesOf(event);
    const recentEventsMax = LIMITS.timeline.recentEventsMax;
    if (tail.events.length > recentEventsMax) this.#dropFirst(tail, recentEventsMax >> 1);
    while (this.#bytes > this.#maxBytes) this.#dropOldest();
  }

  /** Forgets a run that has an event that is not kept, or that nobody may read any longer. */
  forget(runId: string): void {
    const tail = this.#tails.get(runId);
    if (tail === undefined) return;
    this.#tails.delete(runId);
    for (const event of tail.events) this.#bytes -= bytesOf(event);
  }

  /** The events that the query asks for, in one batch; undefined where only the log has all of them. */
  read(
    runId: string,
    { fromSeq = 1, toSeq = Infinity, kinds, limit = Infinity, batchBytes = Infinity }: BatchQuery,
  ): readonly StoredEvent[] | undefined {
    const tail = this.#tails.get(runId);
    if (tail === undefined || fromSeq <= tail.afterSeq) return undefined;
    const matches = kinds === undefined
      ? undefined
      : typeof kinds === "function"
      ? kinds
      : (kind: string) => kinds.has(kind);
    const wanted: StoredEvent[] = [];
    let bytes = 0;
    for (let at = firstFrom(tail.events, fromSeq); at < tail.events.length; at++) {
      const event = tail.events[at]!;
      if (event.seq > toSeq || wanted.length >= limit) break;
      if (matches !== undefined && !matches(event.kind)) continue;
      bytes += event.payload.length;
      if (bytes > batchBytes) return wanted.length > 0 ? wanted : undefined;
      wanted.push(event);
    }
    return wanted;
  }

  #tailOf({ runId, eventCount, lastSeq }: RunView): KeptTail {
    let tail = this.#tails.get(runId);
    if (tail !== undefined && runId === this.#lastRunId) return tail;
    tail ??= { events: [], afterSeq: eventCount === 0 ? 0 : lastSeq };
    this.#tails.delete(runId);
    this.#tails.set(runId, tail);
    this.#lastRunId = runId;
    return tail;
  }

  /** Drops all events of the run that was written longest ago, or the older half of the only run. */
  #dropOldest(): void {
    const [runId, tail] = this.#tails.entries().next().value!;
    if (this.#tails.size > 1 || tail.events.length === 1) this.forget(runId);
    else this.#dropFirst(tail, tail.events.length >> 1);
  }

  #dropFirst(tail: KeptTail, count: number): void {
    const dropped = tail.events.splice(0, count);
    tail.afterSeq = dropped.at(-1)!.seq;
    for (const event of dropped) this.#bytes -= bytesOf(event);
  }
}

function bytesOf({ payload }: StoredEvent): number {
  return EVENT_BYTES + 2 * payload.length;
}

/** The index of the first event from `seq` on. */
function firstFrom(events: readonly StoredEvent[], seq: number): number {
  return firstIndexWhere(events, (event) => event.seq >= seq);
}
