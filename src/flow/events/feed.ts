/** The new events of one run, of all kinds or some: read and encoded once for all listeners. Never waits for
 * a listener.
 */

import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { LongEvent, StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Subscription } from "../../store/timeline/notification_ring.ts";
import type { EncodedPieces, FeedPosition, KindFilter, Listener, ListenersFeed } from "./listener.ts";

/** Encodes events. */
export interface Wire {
  /** For a listener at `cursor` where the first event that is left of the run is `firstSeq`. */
  readonly expired: (runId: string, cursor: number, firstSeq: number) => Uint8Array<ArrayBuffer>;
  readonly messages: (events: readonly StoredEvent[]) => EncodedPieces;
  /** One message, in pieces. */
  readonly longMessage: (event: LongEvent) => AsyncIterable<Uint8Array<ArrayBuffer>>;
}

export interface FeedOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly wire: Wire;
  readonly runId: string;
  readonly filter: KindFilter;
  /** The notification ring has overwritten what the feed had not read, which concerns so many listeners. */
  readonly onLag: (listeners: number) => void;
  /** The queue of a listener was full. */
  readonly onStall: () => void;
  /** An event was sent to the listeners that follow the feed, so long after its append. */
  readonly onSent: (latencyMs: number) => void;
  /** The last listener left. */
  readonly onEmpty: () => void;
}

/** Bytes that may wait for one listener. The number of batches is bounded too, for small ones. */
const QUEUE_BYTES = 1024 * 1024;
/** The longest rest after a delivery; it adds at most this to the latency of a busy run. */
const REST_MS_MAX = 20;

export class Feed implements ListenersFeed {
  readonly #options: FeedOptions;
  readonly #subscription: Subscription;
  /** Undefined for all kinds. */
  readonly #isWanted: ((kind: string) => boolean) | undefined;
  readonly #listeners = new Set<Listener>();
  /** Every wanted event up to this one is in a batch, or was in the log before the feed started. */
  #headSeq: number;
  #newest: FeedPosition = { number: 0, bytesBefore: 0, next: undefined };

  /**
   * Subscribes before any listener reads the log, so every event that is appended from now on is in a batch.
   */
  constructor(options: FeedOptions) {
    this.#options = options;
    const { timeline, runId, filter: { kind, withoutKind } } = options;
    this.#subscription = timeline.subscribe(runId);
    this.#headSeq = timeline.view.run(runId)?.lastSeq ?? 0;
    this.#isWanted = kind === undefined && withoutKind === undefined
      ? undefined
      : (other) => (kind === undefined || other === kind) && other !== withoutKind;
  }

  get newest(): FeedPosition {
    return this.#newest;
  }

  get lastSeq(): number {
    const { timeline, runId } = this.#options;
    return timeline.view.run(runId)?.lastSeq ?? 0;
  }

  read(seq: number, batchBytes = QUEUE_BYTES): readonly StoredEvent[] | number | undefined {
    const { timeline, runId } = this.#options;
    const query = { fromSeq: seq + 1, limit: LIMITS.sse.replayBatchEvents, batchBytes };
    const kinds = this.#isWanted;
    return timeline.readFirst(runId, kinds === undefined ? query : { ...query, kinds });
  }

  expired(
    cursor: number,
  ): { readonly bytes: Uint8Array<ArrayBuffer>; readonly removedSeq: number } | undefined {
    const { timeline, runId, wire } = this.#options;
    const { removedSeq = 0, firstSeq = 0 } = timeline.view.run(runId) ?? {};
    if (cursor === 0 || cursor >= removedSeq) return undefined;
    return { bytes: wire.expired(runId, cursor, firstSeq), removedSeq };
  }

  messages(events: readonly StoredEvent[]): EncodedPieces {
    return this.#options.wire.messages(events);
  }

  async *longMessage(seq: number, pieceBytes: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const { timeline, wire } = this.#options;
    const event = await timeline.readOneInPieces(seq, pieceBytes);
    if (event === undefined || this.#isWanted?.(event.kind) === false) return;
    if ("pieces" in event) yield* wire.longMessage(event);
    else yield* wire.messages([event]);
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
   * Makes batches of new events until the feed ends. After each delivery it rests for as long as the delivery
   * took: an event after an idle time is sent at once, the events of a busy run are sent several at a time,
   * and however many listeners there are, half of the time is left for other work.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    try {
      while (await this.#subscription.changed()) {
        if (this.#subscription.drain().lagged) this.#options.onLag(this.#listeners.size);
        while (this.#listeners.size > 0) {
          const startedMs = world.monotonicMs();
          const hasMore = this.#publishNext();
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

  /** Publishes the next batch; false when there are no more events for now. */
  #publishNext(): boolean {
    const { lastSeq } = this;
    const events = lastSeq > this.#headSeq ? this.read(this.#headSeq) : undefined;
    if (events === undefined) {
      this.#headSeq = lastSeq;
      return false;
    }
    if (typeof events === "number") {
      // Too long to be kept for others: each listener reads it from the log, as fast as it takes the pieces.
      this.#headSeq = events;
      for (const listener of this.#listeners) listener.readLogAgain();
      return this.#headSeq < lastSeq;
    }
    this.#headSeq = events.at(-1)!.seq;
    this.#publish(events);
    return events.length === LIMITS.sse.replayBatchEvents || this.#headSeq < lastSeq;
  }

  #publish(events: readonly StoredEvent[]): void {
    const { world, onSent } = this.#options;
    const pieces = this.messages(events);
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    const before = this.#newest;
    const number = before.number + 1;
    const end: FeedPosition = { number, bytesBefore: before.bytesBefore + bytes, next: undefined };
    this.#newest = end;
    before.next = {
      firstSeq: events[0]!.seq,
      lastSeq: events.at(-1)!.seq,
      eventCount: events.length,
      pieces,
      end,
    };
    for (const listener of this.#listeners) {
      listener.onBatch();
      if (isTooFarBehind(listener.position, end)) {
        listener.cutOff();
        this.#options.onStall();
      }
    }
    const nowMs = world.now();
    for (const { ptsMs } of events) onSent(Math.max(0, nowMs - ptsMs));
  }
}

/** Whether more batches or bytes wait than a queue may have; one batch of any size may always wait. */
function isTooFarBehind(position: FeedPosition | undefined, newest: FeedPosition): boolean {
  if (position === undefined) return false;
  const batches = newest.number - position.number;
  const bytes = newest.bytesBefore - position.bytesBefore;
  return batches > LIMITS.sse.queueEvents || (batches > 1 && bytes > QUEUE_BYTES);
}
