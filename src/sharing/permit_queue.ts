/** Bounded concurrency: a fixed number of permits, or an amount of which each takes a part, fair between
 * principals, and a bounded queue for the rest.
 */

import { isWithinShare } from "./fair_share.ts";
import { Refusal, RefusalForNow, type RefusalKind } from "../contract/refusal.ts";
import { type Sleeper, timer } from "../base/wait.ts";

export interface PermitQueueOptions {
  /** Permits that may be out at once, or their amounts together; at least 1. */
  readonly limit: number;
  /** Callers that may wait at once. */
  readonly waiterLimit: number;
  /** What the permits are for, used in the error message: "decodes", "uploads". */
  readonly what: string;
  /** How a caller is refused that finds the queue full or whose wait runs out. */
  readonly refusal: RefusalKind;
  /** Seconds after which a refused caller may come back; absent where that is not known. */
  readonly retryAfterSeconds?: number;
  /** Whether several principals may come, so that none may hold all permits; false unless given. */
  readonly isShared?: boolean;
}

export interface AcquireOptions {
  /** The principal for whom the permit is; work of no principal has a share of its own. */
  readonly principalKey?: string | undefined;
  /**
   * The signal of the caller: when it aborts, the caller leaves the queue and `acquire` rejects with its
   * reason.
   */
  readonly signal?: AbortSignal;
  /** The part of the limit that the permit takes: an integer from 1 to the limit; 1 unless given. */
  readonly amount?: number;
  /**
   * The longest wait, by the clock of `world`; without it the wait ends with a permit, the signal or the
   * closed queue.
   */
  readonly within?: { readonly world: Sleeper; readonly timeoutMs: number };
}

/** The right to proceed. Released with `using`; releasing it twice does nothing. */
export interface Permit extends Disposable {
  release(): void;
}

/**
 * A queue for `limit` permits.
 *
 *     using _permit = await decodes.acquire({ principalKey, signal });
 *
 * - A shared queue admits a principal while {@link isWithinShare} holds, so that there is a permit for one
 *   that holds none.
 * - A permit that comes back goes to the waiting principal that holds the fewest; of several, to the one that
 *   has waited
 *   longest since it last gave one back. So two principals take turns, however many callers each has waiting.
 * - The callers of one principal are admitted in the order in which they came. One that wants much can be
 *   overtaken by
 *   other principals that want less: nothing is kept free for it, so its wait should have an end.
 * - When the waiting room is full, the newest caller of the principal with the most waiting is refused: the
 *   caller who has
 *   just come, unless its principal has fewer.
 *
 * Invariant: no principal's first waiting caller could be admitted. Where all want the same, a newcomer that
 * is admitted overtakes none.
 */
export class PermitQueue implements Disposable {
  readonly limit: number;
  readonly #options: PermitQueueOptions;
  /** The principals with a permit or a waiting caller. */
  readonly #shares = new Map<string, Share>();
  #active = 0;
  #waiting = 0;
  /** Counts arrivals and releases, so that it is known which came first. */
  #ticks = 0;
  #isClosed = false;

  constructor(options: PermitQueueOptions) {
    if (!(Number.isInteger(options.limit) && options.limit >= 1)) {
      throw new RangeError(
        `Cannot open a permit queue as its limit must be an integer of at least 1: got ${options.limit}`,
      );
    }
    this.limit = options.limit;
    this.#options = options;
  }

  /** Permits that are out now, or their amounts together. */
  get active(): number {
    return this.#active;
  }

  /** Callers that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Waits for a permit. Rejects with a {@link Refusal} when the queue is full, when the wait runs out and
   * when the permit queue is closed, and with the signal's reason when it aborts.
   */
  acquire(options: AcquireOptions = {}): Promise<Permit> {
    const { principalKey = NO_PRINCIPAL, signal, amount = 1 } = options;
    if (!(Number.isInteger(amount) && amount >= 1 && amount <= this.limit)) {
      return Promise.reject(
        new RangeError(`Cannot acquire ${amount} ${this.#options.what}: must be from 1 to ${this.limit}`),
      );
    }
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#isClosed) return Promise.reject(this.#refused("as the service is closing"));
    const share = this.#shares.get(principalKey) ?? newShare(principalKey);
    if (share.waiters.size === 0 && this.#mayAdmit(share, amount)) {
      return Promise.resolve(this.#admit(share, amount));
    }
    if (this.#waiting >= this.#options.waiterLimit && !this.#makeRoom(share)) {
      return Promise.reject(this.#isFull());
    }
    return this.#wait(share, amount, options);
  }

  /** Refuses all waiting and all later callers; permits that are out stay valid. */
  close(): void {
    this.#isClosed = true;
    for (const { waiters } of [...this.#shares.values()]) {
      for (const waiter of [...waiters]) waiter.reject(this.#refused("as the service is closing"));
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #wait(share: Share, amount: number, { signal, within }: AcquireOptions): Promise<Permit> {
    return new Promise<Permit>((resolve, reject) => {
      const leave = () => {
        share.waiters.delete(waiter);
        this.#waiting -= 1;
        this.#forgetIdle(share);
        signal?.removeEventListener("abort", onAbort);
        timeout?.[Symbol.dispose]();
      };
      const waiter: QueuedCaller = {
        amount,
        sinceTick: ++this.#ticks,
        // The permit is out before the caller leaves the queue, so that its share is not forgotten in
        // between.
        admit: () => {
          resolve(this.#admit(share, amount));
          leave();
        },
        reject: (reason) => {
          leave();
          reject(reason);
          // Those behind it may want less.
          if (!this.#isClosed) this.#admitWaiters();
        },
      };
      const onAbort = () => waiter.reject(signal!.reason);
      const timeout = within && timer(within.world, within.timeoutMs, () => {
        waiter.reject(this.#refused(`within ${within.timeoutMs} ms`));
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      share.waiters.add(waiter);
      this.#shares.set(share.key, share);
      this.#waiting += 1;
    });
  }

  #admit(share: Share, amount: number): Permit {
    this.#shares.set(share.key, share);
    share.held += amount;
    this.#active += amount;
    let isOut = true;
    const release = () => {
      if (!isOut) return;
      isOut = false;
      share.held -= amount;
      share.returnedTick = ++this.#ticks;
      this.#active -= amount;
      this.#forgetIdle(share);
      this.#admitWaiters();
    };
    return { release, [Symbol.dispose]: release };
  }

  #mayAdmit({ held }: Share, amount: number): boolean {
    const free = this.limit - this.#active;
    return this.#options.isShared ? isWithinShare(held, amount, free) : amount <= free;
  }

  #admitWaiters(): void {
    for (let next = this.#next(); next; next = this.#next()) next.admit();
  }

  #next(): QueuedCaller | undefined {
    let first: Share | undefined;
    for (const share of this.#shares.values()) {
      if (share.waiters.size === 0 || !this.#mayAdmit(share, oldest(share).amount)) continue;
      if (!first || isBefore(share, first)) first = share;
    }
    return first && oldest(first);
  }

  /**
   * Takes the place of a principal that has more callers waiting than `share` will have; false where none
   * has.
   */
  #makeRoom(share: Share): boolean {
    let longest = share;
    for (const each of this.#shares.values()) if (each.waiters.size > longest.waiters.size) longest = each;
    if (longest.waiters.size <= share.waiters.size + 1) return false;
    [...longest.waiters].at(-1)!.reject(this.#isFull());
    return true;
  }

  /**
   * Forgets a principal without permits and callers. Nothing is lost: one that comes back later has waited
   * since later than it gave its last permit back.
   */
  #forgetIdle({ key, held, waiters }: Share): void {
    if (held === 0 && waiters.size === 0) this.#shares.delete(key);
  }

  #isFull(): Refusal {
    return this.#refused(`as ${this.#options.waiterLimit} are waiting already`);
  }

  #refused(why: string): Refusal {
    const { refusal, retryAfterSeconds, what } = this.#options;
    const message = `Cannot admit more than ${this.limit} ${what} at once ${why}`;
    return retryAfterSeconds === undefined
      ? new Refusal(refusal, message)
      : new RefusalForNow(retryAfterSeconds, refusal, message);
  }
}

/** One principal's part of the queue. */
interface Share {
  readonly key: string;
  /** Permits that are out, or their amounts together. */
  held: number;
  /** When the last permit came back. */
  returnedTick: number;
  /**
   * The callers that wait. A set keeps the order of arrival, and removing one from the middle costs no more
   * than from the end.
   */
  readonly waiters: Set<QueuedCaller>;
}

interface QueuedCaller {
  readonly amount: number;
  readonly sinceTick: number;
  readonly admit: () => void;
  readonly reject: (reason: unknown) => void;
}

/** The key for work of no principal: no principal has it. */
const NO_PRINCIPAL = "";

function newShare(key: string): Share {
  return { key, held: 0, returnedTick: 0, waiters: new Set() };
}

function isBefore(one: Share, other: Share): boolean {
  return (one.held - other.held || waitsSince(one) - waitsSince(other)) < 0;
}

/**
 * Since when a principal waits: when its oldest caller came, or, if that was later, when it last gave a
 * permit back. With that permit it has had its turn.
 */
function waitsSince(share: Share): number {
  return Math.max(oldest(share).sinceTick, share.returnedTick);
}

function oldest({ waiters }: Share): QueuedCaller {
  const [first] = waiters;
  return first!;
}
