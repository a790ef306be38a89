/** One run's new events of one kind or all, read and written once for everyone who listens; it waits for nobody. */

import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { StoredEvent } from "../../store/log/event_reader.ts";
import type { Subscription } from "../../store/log/notification_ring.ts";
import type { FeedPosition, Listener, ListenersFeed } from "./listener.ts";

/** How events become bytes. */
export interface Wire {
  readonly messages: (events: readonly StoredEvent[]) => Uint8Array<ArrayBuffer>;
}

export interface FeedOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly wire: Wire;
  readonly runId: string;
  readonly kind: string | undefined;
  /** The ring went past the feed, and with it past so many listeners. */
  readonly onLapped: (listeners: number) => void;
  /** A listener's queue was full. */
  readonly onStall: () => void;
  /** An event was handed to the listeners in step, so long after its append. */
  readonly onSent: (latencyMs: number) => void;
  /** The last listener left. */
  readonly onEmpty: () => void;
}

/** What a listener may have waiting besides the number of pieces, which bounds small ones. */
const QUEUE_BYTES = 1024 * 1024;
/** The longest rest after a delivery: what it adds to the latency of a busy run at most. */
const REST_MS_MAX = 20;

export class Feed implements ListenersFeed {
  readonly #options: FeedOptions;
  readonly #subscription: Subscription;
  readonly #kinds: ReadonlySet<string> | undefined;
  readonly #listeners = new Set<Listener>();
  /** Every wanted event up to it is in a piece, or was in the log before the feed began. */
  #headSeq: number;
  #newest: FeedPosition = { number: 0, bytesBefore: 0, next: undefined };

  /** Subscribes before anybody reads the log: what is appended from now on is in a piece. */
  constructor(options: FeedOptions) {
    this.#options = options;
    const { timeline, runId, kind } = options;
    this.#subscription = timeline.subscribe(runId);
    this.#headSeq = timeline.view.run(runId)?.lastSeq ?? 0;
    this.#kinds = kind === undefined ? undefined : new Set([kind]);
  }

  get newest(): FeedPosition {
    return this.#newest;
  }

  get lastSeq(): number {
    const { timeline, runId } = this.#options;
    return timeline.view.run(runId)?.lastSeq ?? 0;
  }

  read(seq: number): readonly StoredEvent[] | undefined {
    const { timeline, runId } = this.#options;
    const query = { fromSeq: seq + 1, limit: LIMITS.sse.replayBatchEvents };
    const kinds = this.#kinds;
    for (const batch of timeline.read(runId, kinds === undefined ? query : { ...query, kinds })) return batch;
    return undefined;
  }

  messages(events: readonly StoredEvent[]): Uint8Array<ArrayBuffer> {
    return this.#options.wire.messages(events);
  }

  add(listener: Listener): void {
    this.#listeners.add(listener);
  }

  remove(listener: Listener): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
    this.#subscription[Symbol.dispose]();
    this.#options.onEmpty();
  }

  /** Ends every listener's stream, and with the last one the feed. */
  end(): void {
    for (const listener of [...this.#listeners]) listener.end();
  }

  /**
   * Makes pieces of what is rung until the feed ends. After each delivery it rests for as long as that took: an event
   * after a quiet time leaves at once, while those of a busy run go out several at a time, and however many listen,
   * half of the time is left for everybody else.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    try {
      while (await this.#subscription.changed()) {
        if (this.#subscription.drain().lagged) this.#options.onLapped(this.#listeners.size);
        while (this.#listeners.size > 0) {
          const startedMs = world.monotonicMs();
          const hasMore = this.#readOn();
          await yieldToEventLoop();
          const tookMs = world.monotonicMs() - startedMs;
          if (!hasMore) {
            await world.sleep(Math.min(tookMs, REST_MS_MAX), signal);
            break;
          }
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      world.log.error("cannot follow a run", { run_id: this.#options.runId, error: String(error) });
      this.end();
    }
  }

  /** Hands on the next batch; false when that was the last for now. */
  #readOn(): boolean {
    const { lastSeq } = this;
    const events = lastSeq > this.#headSeq ? this.read(this.#headSeq) : undefined;
    if (events === undefined) {
      this.#headSeq = lastSeq;
      return false;
    }
    this.#headSeq = events.at(-1)!.seq;
    this.#publish(events);
    return events.length === LIMITS.sse.replayBatchEvents || this.#headSeq < lastSeq;
  }

  #publish(events: readonly StoredEvent[]): void {
    const { world, onSent } = this.#options;
    const bytes = this.messages(events);
    const before = this.#newest;
    const number = before.number + 1;
    const end: FeedPosition = { number, bytesBefore: before.bytesBefore + bytes.length, next: undefined };
    this.#newest = end;
    before.next = {
      firstSeq: events[0]!.seq,
      lastSeq: events.at(-1)!.seq,
      eventCount: events.length,
      bytes,
      end,
    };
    for (const listener of this.#listeners) {
      listener.offer();
      if (isTooFarBehind(listener.place, end)) {
        listener.cutOff();
        this.#options.onStall();
      }
    }
    const nowMs = world.now();
    for (const { ptsMs } of events) onSent(Math.max(0, nowMs - ptsMs));
  }
}

/** More pieces wait than the queue has room for, or more bytes; one piece of any size has room. */
function isTooFarBehind(place: FeedPosition | undefined, newest: FeedPosition): boolean {
  if (place === undefined) return false;
  const pieces = newest.number - place.number;
  const bytes = newest.bytesBefore - place.bytesBefore;
  return pieces > LIMITS.sse.queueEvents || (pieces > 1 && bytes > QUEUE_BYTES);
}
