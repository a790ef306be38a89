/** One client that follows a run: which events it has, and whether the next ones come from the log or from
 * the feed.
 */

import type { StoredEvent } from "../../store/timeline/event_reader.ts";

/** Which events of a run a listener gets; all unless given. */
export interface KindFilter {
  /** Only events of exactly this kind. */
  readonly kind?: string | undefined;
  /** Every kind but this one. */
  readonly withoutKind?: string | undefined;
}

/** Encoded messages in pieces, which may be shared with other listeners. At least one. */
export type EncodedPieces = readonly Uint8Array<ArrayBuffer>[];

/** Where the bytes go. `send` is called at most once after each {@link Listener.request}. */
export interface Receiver {
  send(pieces: EncodedPieces): void;
  end(): void;
}

/**
 * A position between two batches of a feed. Positions and batches form a linked list, and only listeners that
 * are behind hold its older part: a batch that every listener has is garbage collected, and the newest
 * position holds no bytes.
 *
 *     position ─▶ batch ─▶ position ─▶ batch ─▶ newest position ─▶ (nothing yet)
 */
export interface FeedPosition {
  /** Batches before it, since the feed started. */
  readonly number: number;
  /** Bytes before it, since the feed started. */
  readonly bytesBefore: number;
  next: FeedBatch | undefined;
}

/** Consecutive events, encoded. */
export interface FeedBatch {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly eventCount: number;
  readonly pieces: EncodedPieces;
  readonly end: FeedPosition;
}

/** What a listener needs of its feed. */
export interface ListenersFeed {
  /** Where a listener continues that has read the log to its end. */
  readonly newest: FeedPosition;
  /** The sequence number of the run's last event in the log. */
  readonly lastSeq: number;
  /**
   * The next wanted events after `seq` in the log, at most one replay batch and about `batchBytes`; undefined
   * when there are none. The number of one that is longer.
   */
  read(seq: number, batchBytes: number): readonly StoredEvent[] | number | undefined;
  /**
   * The message for a listener whose next events were removed, and the last one of them; undefined where none
   * were.
   */
  expired(
    cursor: number,
  ): { readonly bytes: Uint8Array<ArrayBuffer>; readonly removedSeq: number } | undefined;
  messages(events: readonly StoredEvent[]): EncodedPieces;
  /**
   * The message of one event of any length, in pieces of about `pieceBytes`; none when the event is not
   * wanted or cannot be read.
   */
  longMessage(seq: number, pieceBytes: number): AsyncIterator<Uint8Array<ArrayBuffer>>;
  add(listener: Listener): void;
  remove(listener: Listener): void;
}

/** The owner of all listeners. */
export interface Listeners {
  readonly keepalive: Uint8Array<ArrayBuffer>;
  /**
   * For a listener that starts: its feed, or undefined where it may not start, as the service closes or is
   * full.
   */
  join(listener: Listener): ListenersFeed | undefined;
  /** Before the log is read for a listener: undefined where it may be at once, or what to wait for. */
  turn(listener: Listener): Promise<void> | undefined;
  /** About so many bytes a listener may have read of the log, and not sent. */
  readBytesOf(listener: Listener): number;
  /** Bytes were sent: so many events, of which so many are older than the listener. */
  onSent(listener: Listener, events: number, replayed: number): void;
  onFailure(listener: Listener, error: unknown): void;
  leave(listener: Listener): void;
}

/** A message that is sent in pieces: one for each request. */
interface LongMessage {
  readonly seq: number;
  readonly pieces: AsyncIterator<Uint8Array<ArrayBuffer>>;
  hasPieces: boolean;
}

/**
 *              first request                    the log has no more
 *     (new) ──────────────────▶ reads the log ─────────────────────▶ follows the feed
 *                                     ▲     cut off: queue was full          │
 *                                     └──────────────────────────────────────┘
 */
export class Listener {
  readonly principalKey: string;
  readonly runId: string;
  readonly filter: KindFilter;
  /** The `monotonicMs` of the last bytes for it. */
  activeMs = 0;
  readonly #listeners: Listeners;
  readonly #receiver: Receiver;
  #feed: ListenersFeed | undefined;
  /** Its position in the feed; undefined while it reads the log. */
  #position: FeedPosition | undefined;
  /** Every event up to this one was sent or is not wanted. */
  #cursor: number;
  /** The run's last event when the listener joined. */
  #joinedAtSeq = 0;
  /** Between its pieces nothing else may be sent. */
  #longMessage: LongMessage | undefined;
  #isRequesting = false;
  #isEnded = false;

  constructor(
    listeners: Listeners,
    receiver: Receiver,
    { principalKey, runId, filter, cursor }: {
      readonly principalKey: string;
      readonly runId: string;
      readonly filter: KindFilter;
      readonly cursor: number;
    },
  ) {
    this.#listeners = listeners;
    this.#receiver = receiver;
    this.principalKey = principalKey;
    this.runId = runId;
    this.filter = filter;
    this.#cursor = cursor;
  }

  /**
   * The receiver has room for more bytes: sends some now, or as soon as there are any and it is the
   * listener's turn.
   */
  request(): void {
    if (this.#isEnded) return;
    const turn = this.#position === undefined ? this.#listeners.turn(this) : undefined;
    if (turn === undefined) this.#serve();
    else void turn.then(() => this.#serveLate());
  }

  #serveLate(): void {
    try {
      this.#serve();
    } catch {
      this.#receiver.end(); // it was told
    }
  }

  #serve(): void {
    if (this.#isEnded) return;
    if (this.#longMessage !== undefined) return void this.#sendPiece(this.#longMessage);
    this.#isRequesting = true;
    try {
      if (this.#feed !== undefined || this.#start()) this.#next();
    } catch (error) {
      this.leave();
      this.#listeners.onFailure(this, error);
      throw error;
    }
  }

  /** The receiver has gone: releases everything that is kept for it. */
  leave(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#position = undefined;
    if (this.#feed === undefined) return;
    this.#feed.remove(this);
    this.#listeners.leave(this);
  }

  /** Ends the stream. */
  end(): void {
    if (this.#isEnded) return;
    this.leave();
    this.#receiver.end();
  }

  /** The position in the feed; undefined while the listener reads the log. */
  get position(): FeedPosition | undefined {
    return this.#position;
  }

  /** The feed has a new batch. */
  onBatch(): void {
    if (this.#isRequesting && this.#position !== undefined) this.#next();
  }

  /** The feed keeps no batches for this listener any longer, so it reads the log again. */
  cutOff(): void {
    this.#position = undefined;
  }

  /** The feed has left out an event. */
  readLogAgain(): void {
    this.cutOff();
    if (this.#isRequesting) this.#next();
  }

  /** Nothing was sent for a while. A receiver that has not read the last bytes yet needs no keepalive. */
  sendKeepalive(): void {
    if (this.#isRequesting) this.#send([this.#listeners.keepalive], 0, 0);
    else this.#listeners.onSent(this, 0, 0);
  }

  #start(): boolean {
    this.#feed = this.#listeners.join(this);
    if (this.#feed === undefined) {
      this.#isEnded = true;
      this.#receiver.end();
      return false;
    }
    this.#feed.add(this);
    this.#joinedAtSeq = this.#feed.lastSeq;
    return true;
  }

  #next(): void {
    while (this.#isRequesting) {
      if (this.#position === undefined) {
        this.#readLog();
        continue;
      }
      const batch = this.#position.next;
      if (batch === undefined) return;
      if (batch.firstSeq > this.#cursor) {
        this.#position = batch.end;
        this.#cursor = batch.lastSeq;
        this.#send(batch.pieces, batch.eventCount, 0);
      } else if (batch.lastSeq <= this.#cursor) this.#position = batch.end;
      // it has a part of the batch from the log, so it reads the rest there too
      else this.#position = undefined;
    }
  }

  /** Sends the next events of the log, or continues with the feed when the log has no more. */
  #readLog(): void {
    const feed = this.#feed!;
    const expired = feed.expired(this.#cursor);
    if (expired !== undefined) {
      this.#cursor = expired.removedSeq;
      return this.#send([expired.bytes], 0, 0);
    }
    const readBytes = this.#listeners.readBytesOf(this);
    const events = feed.lastSeq > this.#cursor ? feed.read(this.#cursor, readBytes) : undefined;
    if (events === undefined) {
      this.#cursor = Math.max(this.#cursor, feed.lastSeq);
      this.#position = feed.newest;
      return;
    }
    if (typeof events === "number") {
      this.#isRequesting = false;
      this.#longMessage = { seq: events, pieces: feed.longMessage(events, readBytes), hasPieces: false };
      void this.#sendPiece(this.#longMessage);
      return;
    }
    this.#cursor = events.at(-1)!.seq;
    const replayed = events.findLastIndex(({ seq }) => seq <= this.#joinedAtSeq) + 1;
    this.#send(feed.messages(events), events.length, replayed);
  }

  /** Sends one piece; behind the last one it goes on with what comes next. Never rejects. */
  async #sendPiece(message: LongMessage): Promise<void> {
    try {
      const { done, value } = await message.pieces.next();
      if (this.#isEnded) return;
      if (!done) {
        message.hasPieces = true;
        this.#send([value], 0, 0);
        return;
      }
      this.#longMessage = undefined;
      this.#cursor = message.seq;
      if (message.hasPieces) this.#listeners.onSent(this, 1, message.seq <= this.#joinedAtSeq ? 1 : 0);
      this.#isRequesting = true;
      this.#next();
    } catch (error) {
      if (this.#isEnded) return;
      this.#listeners.onFailure(this, error);
      this.end(); // a client drops a message without its end, and asks for it again
    }
  }

  #send(pieces: EncodedPieces, events: number, replayed: number): void {
    this.#isRequesting = false;
    this.#listeners.onSent(this, events, replayed);
    this.#receiver.send(pieces);
  }
}
