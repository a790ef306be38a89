/** Bounded admission: a fixed number of permits, first come first served, and a bounded queue for the rest. */

import { Refusal, type RefusalKind } from "./refusal.ts";

export interface GateOptions {
  /** Permits that may be out at once; at least 1. */
  readonly limit: number;
  /** Callers that may wait at once; the next one is refused at once. */
  readonly waiterLimit: number;
  /** What is scarce, for the words of a refusal: "decodes", "provider calls". */
  readonly what: string;
  /** The refusal of a caller that finds the queue full, or that waited its time in vain. */
  readonly refusal: RefusalKind;
}

export interface AcquireOptions {
  /** Leaves the queue as soon as it aborts; `acquire` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** Longest wait; without it the wait ends with a permit, the signal or the gate. */
  readonly timeoutMs?: number;
}

/** The right to proceed. Give it back with `using`; giving it back twice does nothing. */
export interface Permit extends Disposable {
  release(): void;
}

/**
 * A gate with `limit` permits. A permit that comes back goes to the one who has waited longest, so nobody is passed
 * by a newcomer.
 *
 *     using _permit = await decodes.acquire({ signal });
 */
export class Gate implements Disposable {
  readonly limit: number;
  readonly #options: GateOptions;
  /** Insertion order is the order of arrival, and leaving from the middle costs nothing. */
  readonly #waiters = new Set<Waiter>();
  #active = 0;
  #isClosed = false;

  constructor(options: GateOptions) {
    if (!(Number.isInteger(options.limit) && options.limit >= 1)) {
      throw new RangeError(
        `Cannot open a gate as its limit must be an integer of at least 1: got ${options.limit}`,
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
   * gate is closed, and with the signal's reason when it aborts.
   */
  acquire({ signal, timeoutMs }: AcquireOptions = {}): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#isClosed) return Promise.reject(this.#refused("as the service is closing"));
    // Nobody waits while a permit is free: a permit that comes back is handed on at once.
    if (this.#active < this.limit) {
      this.#active += 1;
      return Promise.resolve(this.#permit());
    }
    if (this.#waiters.size >= this.#options.waiterLimit) {
      return Promise.reject(this.#refused(`as ${this.#waiters.size} are waiting already`));
    }
    return this.#wait(signal, timeoutMs);
  }

  /** Refuses everyone who waits and everyone who comes; permits that are out stay valid. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of [...this.#waiters]) waiter.reject(this.#refused("as the service is closing"));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #wait(signal: AbortSignal | undefined, timeoutMs: number | undefined): Promise<Permit> {
    return new Promise<Permit>((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener("abort", onAbort);
        clearTimeout(timer);
      };
      const waiter: Waiter = {
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
      const onTimeout = () => waiter.reject(this.#refused(`within ${timeoutMs} ms`));
      const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
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

  /** The permit passes to the longest waiter without ever being free. */
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

interface Waiter {
  readonly resolve: (permit: Permit) => void;
  readonly reject: (reason: unknown) => void;
}
