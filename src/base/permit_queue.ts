/** Bounded concurrency: a fixed number of permits, first come, first served, and a bounded queue for the rest. */

import { Refusal, type RefusalKind } from "./refusal.ts";
import { type Sleeper, timer } from "./wait.ts";

export interface PermitQueueOptions {
  /** Permits that may be out at once; at least 1. */
  readonly limit: number;
  /** Callers that may wait at once; a further one is refused immediately. */
  readonly waiterLimit: number;
  /** What the permits are for, used in the error message: "decodes", "uploads". */
  readonly what: string;
  /** How a caller is refused that finds the queue full or whose wait runs out. */
  readonly refusal: RefusalKind;
}

export interface AcquireOptions {
  /** When it aborts, the caller leaves the queue and `acquire` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** The longest wait, by the clock of `world`; without it the wait ends with a permit, the signal or the closed queue. */
  readonly within?: { readonly world: Sleeper; readonly timeoutMs: number };
}

/** The right to proceed. Released with `using`; releasing it twice does nothing. */
export interface Permit extends Disposable {
  release(): void;
}

/**
 * A queue for `limit` permits. A released permit goes to the caller who has waited longest, so no newcomer overtakes a
 * waiting one.
 *
 *     using _permit = await decodes.acquire({ signal });
 */
export class PermitQueue implements Disposable {
  readonly limit: number;
  readonly #options: PermitQueueOptions;
  /** A set keeps the order of arrival, and removing one from the middle costs no more than from the end. */
  readonly #waiters = new Set<QueuedCaller>();
  #active = 0;
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

  /** Permits that are out now. */
  get active(): number {
    return this.#active;
  }

  /** Callers that wait now. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /**
   * Waits for a permit. Rejects with a {@link Refusal} when the queue is full, when the wait runs out and when the
   * permit queue is closed, and with the signal's reason when it aborts.
   */
  acquire({ signal, within }: AcquireOptions = {}): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#isClosed) return Promise.reject(this.#refused("as the service is closing"));
    // While a permit is free the queue is empty: a released permit is handed on immediately.
    if (this.#active < this.limit) {
      this.#active += 1;
      return Promise.resolve(this.#permit());
    }
    if (this.#waiters.size >= this.#options.waiterLimit) {
      return Promise.reject(this.#refused(`as ${this.#waiters.size} are waiting already`));
    }
    return this.#wait(signal, within);
  }

  /** Refuses all waiting and all later callers; permits that are out stay valid. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of [...this.#waiters]) waiter.reject(this.#refused("as the service is closing"));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #wait(signal: AbortSignal | undefined, within: AcquireOptions["within"]): Promise<Permit> {
    return new Promise<Permit>((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener("abort", onAbort);
        timeout?.[Symbol.dispose]();
      };
      const waiter: QueuedCaller = {
        resolve: (permit) => {
          leave();
          resolve(permit);
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      const onAbort = () => waiter.reject(signal!.reason);
      const timeout = within && timer(within.world, within.timeoutMs, () => {
        waiter.reject(this.#refused(`within ${within.timeoutMs} ms`));
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  #permit(): Permit {
    let isOut = true;
    const release = () => {
      if (!isOut) return;
      isOut = false;
      this.#handOn();
    };
    return { release, [Symbol.dispose]: release };
  }

  /** The permit goes to the caller who has waited longest, without ever being free. */
  #handOn(): void {
    const [next] = this.#waiters;
    if (next) next.resolve(this.#permit());
    else this.#active -= 1;
  }

  #refused(why: string): Refusal {
    return new Refusal(
      this.#options.refusal,
      `Cannot admit more than ${this.limit} ${this.#options.what} at once ${why}`,
    );
  }
}

interface QueuedCaller {
  readonly resolve: (permit: Permit) => void;
  readonly reject: (reason: unknown) => void;
}
