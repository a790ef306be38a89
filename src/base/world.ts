/** Clocks, random bytes, the log and traces as values, so that tests can replace them; no other module reads
 * a clock.
 */

import type { Log } from "./log.ts";
import { NO_TRACING, type Tracing } from "./tracing.ts";

export interface World {
  /** Wall-clock time, epoch milliseconds. */
  now(): number;
  /** A clock that never goes back, milliseconds from an arbitrary start. */
  monotonicMs(): number;
  /** Gives `length` bytes from the system's secure generator. */
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
  /** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: SleepSignal): Promise<void>;
  readonly log: Log;
  readonly tracing: Tracing;
}

/** What a sleep needs of the signal that ends it early. An AbortSignal has it. */
export interface SleepSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export function realWorld(log: Log): World {
  return {
    now: () => Date.now(),
    monotonicMs: () => performance.now(),
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    sleep,
    log,
    tracing: NO_TRACING,
  };
}

function sleep(ms: number, signal?: SleepSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    function onAbort() {
      clearTimeout(timer);
      reject(signal!.reason);
    }
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
