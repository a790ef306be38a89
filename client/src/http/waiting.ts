/** Waiting that ends: pauses and deadlines that follow an AbortSignal and leave no timer or listener behind.
 */

/** Resolves after `ms`; rejects with the signal's reason as soon as it is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A signal that is aborted when its time is over, when the caller's signal is, or by `end`. */
export class Deadline {
  /** Whether the time was over before the end. */
  isOver = false;
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #follow = () => this.#controller.abort(this.#parent!.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeoutMs: number, parent?: AbortSignal) {
    this.#parent = parent;
    if (parent?.aborted) this.#follow();
    else parent?.addEventListener("abort", this.#follow, { once: true });
    this.restart(timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Gives it `timeoutMs` from now on; Infinity is no limit. */
  restart(timeoutMs: number): void {
    clearTimeout(this.#timer);
    if (timeoutMs > LONGEST_TIMER_MS) return;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, timeoutMs);
  }

  /** Takes the timer and the listener away; with `abort`, also ends what still runs. */
  end(abort = false): void {
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener("abort", this.#follow);
    if (abort) this.#controller.abort();
  }
}

/** Timers of more milliseconds fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
