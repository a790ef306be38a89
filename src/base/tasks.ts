/** Groups of background loops that fail and end together: none runs on after its group was closed. */

/**
 * A group of loops under one signal. The first loop that fails aborts the signal for all of them; closing the
 * group aborts it too and waits until every loop has returned.
 *
 *     await using tasks = new TaskGroup(parentSignal);
 *     tasks.start((signal) => deliver(signal));
 */
export class TaskGroup implements AsyncDisposable {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #parent: AbortSignal | undefined;
  readonly #onParentAbort = () => this.#controller.abort(this.#parent!.reason);
  /** The first failure of a loop; in an object, because a loop may also fail with `undefined`. */
  #failure: { readonly reason: unknown } | undefined;

  /** The group ends when `parent` aborts. */
  constructor(parent?: AbortSignal) {
    this.#parent = parent;
    if (parent?.aborted) this.#onParentAbort();
    else parent?.addEventListener("abort", this.#onParentAbort, { once: true });
  }

  /** Aborts when a loop failed, when the parent aborted or when the group is closed. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Runs `loop` in the background. An exception of it ends the group and is thrown by {@link join}, except
   * for an abort error after the signal has aborted: that is a normal end. Does nothing in an ended group.
   */
  start(loop: (signal: AbortSignal) => Promise<void> | void): void {
    if (this.signal.aborted) return;
    const task = this.#run(loop).finally(() => this.#running.delete(task));
    this.#running.add(task);
  }

  /** Waits until every loop has returned; throws the first exception of a loop. */
  async join(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    if (this.#failure) throw this.#failure.reason;
  }

  /** Ends the group and waits for its loops. Throws the first exception of a loop before that. */
  async close(): Promise<void> {
    this.#controller.abort(new DOMException("The task group was closed", "AbortError"));
    this.#parent?.removeEventListener("abort", this.#onParentAbort);
    await this.join();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(loop: (signal: AbortSignal) => Promise<void> | void): Promise<void> {
    try {
      await loop(this.signal);
    } catch (reason) {
      if (this.signal.aborted && isAbort(reason, this.signal)) return;
      this.#failure ??= { reason };
      this.#controller.abort(reason);
    }
  }
}

function isAbort(reason: unknown, signal: AbortSignal): boolean {
  return reason === signal.reason || (reason instanceof DOMException && reason.name === "AbortError");
}
