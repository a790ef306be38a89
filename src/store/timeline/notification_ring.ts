/** Notifies readers of new events, through a bounded ring buffer that never makes a writer wait. */

import { LIMITS } from "../../contract/limits.ts";

/** What a notification says of an event; the event itself is in the log. */
export interface CommittedEvent {
  readonly seq: number;
  /** The time of the event, epoch milliseconds. */
  readonly ptsMs: number;
  readonly kind: string;
  readonly runId: string;
}

/** How many notifications are kept for readers that have not drained them yet. */
export const RING_EVENTS = LIMITS.sse.ringEvents;

export class NotificationRing implements Disposable {
  readonly #slots: CommittedEvent[] = [];
  /** How many notifications there were so far: the next one goes to slot `#published % RING_EVENTS`. */
  #published = 0;
  readonly #byRun = new Map<string, Set<Subscription>>();
  readonly #ofAll = new Set<Subscription>();

  /** A subscription to the events of one run, or of every run without `runId`. */
  subscribe(runId?: string): Subscription {
    const subscription = new Subscription(this, runId, (closed) => this.#remove(closed));
    if (runId === undefined) this.#ofAll.add(subscription);
    else {
      const others = this.#byRun.get(runId);
      if (others === undefined) this.#byRun.set(runId, new Set([subscription]));
      else others.add(subscription);
    }
    return subscription;
  }

  publish(events: readonly CommittedEvent[]): void {
    for (const event of events) {
      const number = this.#published++;
      this.#slots[number % RING_EVENTS] = event;
      for (const subscription of this.#ofAll) subscription.notify(number);
      const subscriptions = this.#byRun.get(event.runId);
      if (subscriptions !== undefined) {
        for (const subscription of subscriptions) subscription.notify(number);
      }
    }
  }

  /** The events from notification `number` on; undefined when some of them were overwritten. */
  from(number: number): CommittedEvent[] | undefined {
    if (this.#published - number > RING_EVENTS) return undefined;
    const events: CommittedEvent[] = [];
    for (let at = number; at < this.#published; at++) events.push(this.#slots[at % RING_EVENTS]!);
    return events;
  }

  get subscriptionCount(): number {
    let count = this.#ofAll.size;
    for (const subscriptions of this.#byRun.values()) count += subscriptions.size;
    return count;
  }

  [Symbol.dispose](): void {
    for (const subscription of [...this.#ofAll]) subscription[Symbol.dispose]();
    for (const set of [...this.#byRun.values()]) for (const each of [...set]) each[Symbol.dispose]();
  }

  #remove(subscription: Subscription): void {
    this.#ofAll.delete(subscription);
    if (subscription.runId === undefined) return;
    const set = this.#byRun.get(subscription.runId);
    set?.delete(subscription);
    if (set?.size === 0) this.#byRun.delete(subscription.runId);
  }
}

/** The result of `Subscription.drain`. */
export interface DrainedEvents {
  /** Whether notifications were overwritten before `drain`: then read the log again from the cursor. */
  readonly lagged: boolean;
  /** The events in sequence order; empty when `lagged`. */
  readonly events: readonly CommittedEvent[];
}

/**
 * One reader of the ring. To miss no event: subscribe, then read the log from the cursor to its end, then
 * repeat `await changed()` and `drain()`, and skip the events that were already read from the log.
 *
 *   using subscription = timeline.subscribe(runId);
 *   for (const batch of timeline.read(runId, { fromSeq: cursor + 1 })) send(batch);
 *   while (await subscription.changed(signal)) {
 *     const { lagged, events } = subscription.drain();
 *     …
 *   }
 */
export class Subscription implements Disposable {
  readonly runId: string | undefined;
  readonly #ring: NotificationRing;
  readonly #onClose: (subscription: Subscription) => void;
  /** Number of the first notification that was not drained, or -1 when all were. */
  #pendingFrom = -1;
  #isClosed = false;
  readonly #waiters = new Set<() => void>();

  constructor(
    ring: NotificationRing,
    runId: string | undefined,
    onClose: (subscription: Subscription) => void,
  ) {
    this.#ring = ring;
    this.runId = runId;
    this.#onClose = onClose;
  }

  /** Takes the notifications since the last call. */
  drain(): DrainedEvents {
    if (this.#pendingFrom < 0) return { lagged: false, events: [] };
    const events = this.#ring.from(this.#pendingFrom);
    this.#pendingFrom = -1;
    if (events === undefined) return { lagged: true, events: [] };
    const { runId } = this;
    return {
      lagged: false,
      events: runId === undefined ? events : events.filter((event) => event.runId === runId),
    };
  }

  /**
   * Resolves with true as soon as there is something to drain, with false when the subscription or the
   * timeline is closed; rejects with the signal's reason when it aborts.
   */
  changed(signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#isClosed) return Promise.resolve(false);
    if (this.#pendingFrom >= 0) return Promise.resolve(true);
    return new Promise((resolve, reject) => {
      const wake = () => {
        this.#waiters.delete(wake);
        signal?.removeEventListener("abort", abort);
        resolve(!this.#isClosed);
      };
      const abort = () => {
        this.#waiters.delete(wake);
        reject(signal!.reason);
      };
      this.#waiters.add(wake);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** Called by the ring: notification `number` is for this reader. */
  notify(number: number): void {
    if (this.#pendingFrom >= 0) return;
    this.#pendingFrom = number;
    this.#wake();
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose(this);
    this.#wake();
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }
}
