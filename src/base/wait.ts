/** Waiting with an end: the one module that races work against time or against a signal. */

import type { SleepSignal, World } from "./world.ts";

/** What a wait needs of the world. */
export type Sleeper = Pick<World, "sleep">;

/** The error of a time that ran out, as opposed to a caller who has disconnected. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/** A signal that never aborts, for work that only its own deadline ends. */
export const NEVER_ABORTED: AbortSignal = new AbortController().signal;

/**
 * Aborts `signal` after `timeoutMs` (with {@link OutOfTime}), or together with `parent` (with its reason).
 * Disposing it stops the timer and no longer listens to `parent`.
 *
 *     using deadline = new Deadline(world, 5_000, caller.signal);
 *     await ask(deadline.signal);
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #over = new SleepEnd();
  readonly #following: Disposable;

  constructor(world: Sleeper, timeoutMs: number, parent: AbortSignal = NEVER_ABORTED) {
    this.#following = abortWith(parent, this.#controller);
    const onTimeout = () => this.#controller.abort(outOfTime(timeoutMs));
    world.sleep(timeoutMs, this.#over).then(onTimeout, () => {/* disposed before */});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
    this.#over.end();
  }
}

/**
 * Aborts `controller` with the reason of `signal` when that aborts, until it is disposed. `AbortSignal.any`
 * costs more.
 */
export function abortWith(signal: AbortSignal, controller: AbortController): Disposable {
  const onAbort = () => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  else if (signal !== NEVER_ABORTED) signal.addEventListener("abort", onAbort);
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", onAbort) };
}

/** Calls `onTimeout` once after `ms`, unless it was disposed before. */
export function timer(world: Sleeper, ms: number, onTimeout: () => void): Disposable {
  const over = new SleepEnd();
  world.sleep(ms, over).then(() => {
    // Between the end of the sleep and this callback other code may have disposed the timer.
    if (!over.aborted) onTimeout();
  }, () => {/* disposed before */});
  return { [Symbol.dispose]: () => over.end() };
}

/**
 * Deadlines of one length, nearly all of which are met. They end in the order in which they began, so one
 * timer of the runtime serves all of them; it stays when none is left, as the next one comes soon.
 */
export class Deadlines implements Disposable {
  readonly ms: number;
  readonly #world: Sleeper & Pick<World, "monotonicMs">;
  /** The pending deadlines, in a circle with this one: behind it stands the one that ends first. */
  readonly #pending = new PendingDeadline(Infinity, () => {});
  #timer: Disposable | undefined;

  constructor(world: Sleeper & Pick<World, "monotonicMs">, ms: number) {
    this.#world = world;
    this.ms = ms;
  }

  /** Calls `onTimeout` once after `ms`, unless it was disposed before. */
  start(onTimeout: () => void): Disposable {
    this.#timer ??= timer(this.#world, this.ms, () => this.#endPassed());
    const deadline = new PendingDeadline(this.#world.monotonicMs() + this.ms, onTimeout);
    deadline.standBefore(this.#pending);
    return deadline;
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }

  #endPassed(): void {
    const nowMs = this.#world.monotonicMs();
    while (this.#pending.behind.endMs <= nowMs) {
      const deadline = this.#pending.behind;
      deadline[Symbol.dispose]();
      deadline.onTimeout();
    }
    // Until here the timer counts as running, so that a deadline that begins meanwhile makes no second one.
    const { endMs } = this.#pending.behind;
    this.#timer = endMs < Infinity ? timer(this.#world, endMs - nowMs, () => this.#endPassed()) : undefined;
  }
}

/**
 * A deadline in a circle with others. One that was disposed points to none of them. The tables of a `Set` or
 * a `Map` do not have this property: each former table points to the one after it, so one that has grown old
 * keeps all that came later from the short rounds of the garbage collector.
 */
class PendingDeadline implements Disposable {
  readonly endMs: number;
  readonly onTimeout: () => void;
  before: PendingDeadline = this;
  behind: PendingDeadline = this;

  constructor(endMs: number, onTimeout: () => void) {
    this.endMs = endMs;
    this.onTimeout = onTimeout;
  }

  standBefore(next: PendingDeadline): void {
    this.before = next.before;
    this.behind = next;
    this.before.behind = next.before = this;
  }

  [Symbol.dispose](): void {
    this.before.behind = this.behind;
    this.behind.before = this.before;
    this.before = this.behind = this;
  }
}

/**
 * Ends one sleep early. An AbortController could do that too, at five times the cost, and most timers of a
 * request are stopped.
 */
class SleepEnd implements SleepSignal {
  aborted = false;
  readonly reason = DISPOSED;
  #listener: (() => void) | undefined;

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = undefined;
  }

  end(): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#listener?.();
  }
}

/** Sleeps for `ms`: true when the time has passed, false as soon as `signal` aborts. Never rejects. */
export function pause(world: Sleeper, ms: number, signal?: AbortSignal): Promise<boolean> {
  // Between the end of the sleep and this callback other code may have aborted the signal.
  return world.sleep(ms, signal).then(() => signal?.aborted !== true, () => false);
}

/** The result of `work`; if `signal` aborts first, rejects with its reason and drops the result. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * The result of `work` within `timeoutMs`; rejects with {@link OutOfTime} after that, and with the signal's
 * reason when `signal` aborts. `work` itself goes on: stopping it is up to the caller.
 */
export async function within<T>(
  world: Sleeper,
  timeoutMs: number,
  work: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  using deadline = new Deadline(world, timeoutMs, signal);
  return await unlessAborted(work, deadline.signal);
}

/**
 * Waits until `work` has ended in either way, for at most `timeoutMs` or until `signal` aborts: whether it
 * has ended.
 */
export async function hasEndedWithin(
  world: Sleeper,
  timeoutMs: number,
  work: Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  const ended = work.then(() => true, () => true);
  return await within(world, timeoutMs, ended, signal).catch(() => false);
}

/** Lets everything run that is ready now, so that long work does not delay other requests. */
export function yieldToEventLoop(): Promise<void> {
  return gatherFor(0);
}

/** Lets a few milliseconds pass, for work that is cheaper in larger pieces. Nothing ends it early. */
export function gatherFor(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Lets at most `ms` pass, until another thread has changed the value at `at` of shared memory from `value`
 * and notified. Does not keep a process running.
 */
export async function unlessChanged(
  shared: Int32Array<SharedArrayBuffer>,
  at: number,
  value: number,
  ms: number,
): Promise<void> {
  await Atomics.waitAsync(shared, at, value, ms).value;
}

/** The reason with which a sleep is stopped; made once, as making an exception is slow. */
const DISPOSED = new DOMException("The wait is over", "AbortError");

function outOfTime(timeoutMs: number): OutOfTime {
  return new OutOfTime(`not done after ${timeoutMs} ms`);
}
