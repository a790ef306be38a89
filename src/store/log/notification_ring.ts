/** The bell that tells readers of new events: a bounded ring that never makes a writer wait (contract 8.2). */

import { LIMITS } from "../../model/limits.ts";

/** What readers are told of an event; the event itself is in the log. */
export interface CommittedEvent {
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly ptsMs: number;
  readonly kind: string;
  readonly runId: string;
}

/** Notifications that are kept for readers who have not drained them yet. */
export const RING_EVENTS = LIMITS.sse.ringEvents;

export class NotificationRing implements Disposable {
  readonly #slots: CommittedEvent[] = [];
  /** How many were ever rung: the next one goes to slot `#rung % RING_EVENTS`. */
  #rung = 0;
  readonly #byRun = new Map<string, Set<Subscription>>();
  readonly #ofAll = new Set<Subscription>();

  /** Only the events of one run, or of every run when none is named. */
  subscribe(runId?: string): Subscription {
    const subscription = new Subscription(this, runId, (leaving) => this.#remove(leaving));
    if (runId === undefined) this.#ofAll.add(subscription);
    else {
      const others = this.#byRun.get(runId);
      if (others === undefined) this.#byRun.set(runId, new Set([subscription]));
      else others.add(subscription);
    }
    return subscription;
  }

  ring(events: readonly CommittedEvent[]): void {
    for (const event of events) {
      const number = this.#rung++;
      this.#slots[number % RING_EVENTS] = event;
      for (const subscription of this.#ofAll) subscription.notice(number);
      const subscriptions = this.#byRun.get(event.runId);
      if (subscriptions !== undefined) {
        for (const subscription of subscriptions) subscription.notice(number);
      }
    }
  }

  /** Those from notification `number` on; undefined when some of them were overwritten already. */
  from(number: number): CommittedEvent[] | undefined {
    if (this.#rung - number > RING_EVENTS) return undefined;
    const events: CommittedEvent[] = [];
    for (let at = number; at < this.#rung; at++) events.push(this.#slots[at % RING_EVENTS]!);
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

/** What `Subscription.drain` found. */
export interface Drained {
  /** True when notifications were overwritten before they were drained: read the log again from the cursor. */
  readonly lagged: boolean;
  /** In sequence order; empty when lagged. */
  readonly events: readonly CommittedEvent[];
}

/**
 * One reader's place at the bell. The order that loses nothing: subscribe, read the log from the cursor to its end,
 * then repeat `await changed()` and `drain()`, skipping what the log reading already gave.
 *
 *   using subscription = timeline.subscribe(runId);
 *   for (const batch of timeline.read(runId, { fromSeq: cursor + 1 })) send(batch);
 *   while (await subscription.changed(signal)) {
 *     const { lagged, events } = subscription.drain();
 *     …
 *   }
 */
export class Subscription implements Disposable {
  /** The first notification not drained, or -1 when there is none. */
  #pendingFrom = -1;
  #isClosed = false;
  readonly #waiters = new Set<() => void>();

  constructor(
    private readonly ring: NotificationRing,
    readonly runId: string | undefined,
    private readonly leave: (subscription: Subscription) => void,
  ) {}

  /** Takes what was rung since the last time. */
  drain(): Drained {
    if (this.#pendingFrom < 0) return { lagged: false, events: [] };
    const rung = this.ring.from(this.#pendingFrom);
    this.#pendingFrom = -1;
    if (rung === undefined) return { lagged: true, events: [] };
    const { runId } = this;
    return {
      lagged: false,
      events: runId === undefined ? rung : rung.filter((event) => event.runId === runId),
    };
  }

  /**
   * Resolves with true as soon as there is something to drain, with false when the subscription or the timeline is
   * closed; rejects with the signal's reason when it aborts.
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

  /** The ring's side: notification `number` is for this reader. */
  notice(number: number): void {
    if (this.#pendingFrom >= 0) return;
    this.#pendingFrom = number;
    this.#wake();
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.leave(this);
    this.#wake();
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }
}
