/** A signal for work that may take so long and no longer, and that ends early when its caller does. */

import type { World } from "../base/world.ts";

/** The time was up; as opposed to a caller who hung up. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/**
 * Aborts `signal` after `timeoutMs` (with `OutOfTime`), or together with `parent` (with its reason). Disposing it stops
 * the clock and lets go of `parent`.
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #over = new AbortController();

  constructor(world: World, timeoutMs: number, parent: AbortSignal) {
    if (parent.aborted) this.#controller.abort(parent.reason);
    parent.addEventListener("abort", () => this.#controller.abort(parent.reason), {
      signal: this.#over.signal,
    });
    const timeIsUp = () => this.#controller.abort(new OutOfTime(`not done after ${timeoutMs} ms`));
    world.sleep(timeoutMs, this.#over.signal).then(timeIsUp, () => {/* it was done in time */});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#over.abort();
  }
}

/** What `promise` gives, unless `signal` aborts first; then its reason, and whatever becomes of `promise` is dropped. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
