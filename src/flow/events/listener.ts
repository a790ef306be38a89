/** One caller's place in a run: which event it has, and where the next one comes from, its feed or the log. */

import type { StoredEvent } from "../../store/log/event_reader.ts";

/** Where the bytes go. `give` is only called after the receiver asked, and once for each time it did. */
export interface Receiver {
  give(bytes: Uint8Array<ArrayBuffer>): void;
  end(): void;
}

/**
 * A place between two pieces of a feed. Places and pieces are a chain, each leading to the next, and only listeners
 * that have not gone on hold its older part: what everybody has taken is gone, and the newest place holds no bytes.
 *
 *     place ─▶ piece ─▶ place ─▶ piece ─▶ newest place ─▶ (nothing yet)
 */
export interface FeedPosition {
  /** Pieces before it, since the feed began. */
  readonly number: number;
  /** Bytes before it, since the feed began. */
  readonly bytesBefore: number;
  next: FeedBatch | undefined;
}

/** Consecutive events, ready to send. */
export interface FeedBatch {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly eventCount: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly end: FeedPosition;
}

/** What a listener needs of its feed. */
export interface ListenersFeed {
  /** Where a listener that has read the log to its end goes on. */
  readonly newest: FeedPosition;
  /** The run's last event in the log. */
  readonly lastSeq: number;
  /** The next wanted events after `seq` in the log, at most one replay batch; undefined when there are none. */
  read(seq: number): readonly StoredEvent[] | undefined;
  messages(events: readonly StoredEvent[]): Uint8Array<ArrayBuffer>;
  add(listener: Listener): void;
  remove(listener: Listener): void;
}

/** Who knows all listeners. */
export interface Listeners {
  readonly keepalive: Uint8Array<ArrayBuffer>;
  enter(listener: Listener): ListenersFeed | undefined;
  gave(listener: Listener, events: number, replayed: number): void;
  failed(listener: Listener, error: unknown): void;
  left(listener: Listener): void;
}

/**
 *              ask, first time                  the log has no more
 *     (new) ──────────────────▶ reads the log ─────────────────────▶ in step with the feed
 *                                     ▲     cut off: queue was full          │
 *                                     └──────────────────────────────────────┘
 */
export class Listener {
  readonly #listeners: Listeners;
  readonly #receiver: Receiver;
  #feed: ListenersFeed | undefined;
  /** Where it is in the feed; undefined while it reads the log. */
  #place: FeedPosition | undefined;
  /** Everything up to this seq was given or is not wanted. */
  #cursor: number;
  /** The run's last event when the listener came. */
  #cameAtSeq = 0;
  #isAsking = false;
  #isOver = false;

  constructor(
    listeners: Listeners,
    readonly runId: string,
    readonly kind: string | undefined,
    cursor: number,
    receiver: Receiver,
  ) {
    this.#listeners = listeners;
    this.#receiver = receiver;
    this.#cursor = cursor;
  }

  /** The receiver has room for more; it gets something now or as soon as there is something. */
  ask(): void {
    if (this.#isOver) return;
    this.#isAsking = true;
    try {
      if (this.#feed !== undefined || this.#begin()) this.#next();
    } catch (error) {
      this.leave();
      this.#listeners.failed(this, error);
      throw error;
    }
  }

  /** The receiver is gone: nothing is kept for it. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#place = undefined;
    if (this.#feed === undefined) return;
    this.#feed.remove(this);
    this.#listeners.left(this);
  }

  /** The service ends the stream. */
  end(): void {
    if (this.#isOver) return;
    this.leave();
    this.#receiver.end();
  }

  /** Where the listener is in the feed; undefined while it reads the log. */
  get place(): FeedPosition | undefined {
    return this.#place;
  }

  /** The feed has a new piece. */
  offer(): void {
    if (this.#isAsking && this.#place !== undefined) this.#next();
  }

  /** The feed does not keep pieces for this listener any longer. */
  cutOff(): void {
    this.#place = undefined;
  }

  /** Nothing was given for a while. One that has not taken the last bytes needs no sign of life. */
  signOfLife(): void {
    if (this.#isAsking) this.#give(this.#listeners.keepalive, 0, 0);
    else this.#listeners.gave(this, 0, 0);
  }

  #begin(): boolean {
    this.#feed = this.#listeners.enter(this);
    if (this.#feed === undefined) {
      this.#isOver = true;
      this.#receiver.end();
      return false;
    }
    this.#feed.add(this);
    this.#cameAtSeq = this.#feed.lastSeq;
    return true;
  }

  #next(): void {
    while (this.#isAsking) {
      if (this.#place === undefined) {
        this.#readLog();
        continue;
      }
      const piece = this.#place.next;
      if (piece === undefined) return;
      if (piece.firstSeq > this.#cursor) {
        this.#place = piece.end;
        this.#cursor = piece.lastSeq;
        this.#give(piece.bytes, piece.eventCount, 0);
      } else if (piece.lastSeq <= this.#cursor) this.#place = piece.end;
      else this.#place = undefined; // has a part of it from the log: the log has the rest too
    }
  }

  /** Gives the next batch of the log, or joins the feed when it has no more. */
  #readLog(): void {
    const feed = this.#feed!;
    const events = feed.lastSeq > this.#cursor ? feed.read(this.#cursor) : undefined;
    if (events === undefined) {
      this.#cursor = Math.max(this.#cursor, feed.lastSeq);
      this.#place = feed.newest;
      return;
    }
    this.#cursor = events.at(-1)!.seq;
    const replayed = events.findLastIndex(({ seq }) => seq <= this.#cameAtSeq) + 1;
    this.#give(feed.messages(events), events.length, replayed);
  }

  #give(bytes: Uint8Array<ArrayBuffer>, events: number, replayed: number): void {
    this.#isAsking = false;
    this.#listeners.gave(this, events, replayed);
    this.#receiver.give(bytes);
  }
}
