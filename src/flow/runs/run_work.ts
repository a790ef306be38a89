/** The work under way for each run, so that the end of a run cancels it at once. */

/** Why work was cancelled: its run ended or the service closes, as opposed to a client that disconnected. */
export class RunEnded extends Error {
  override readonly name = "RunEnded";
}

/** One piece of work: pass its signal to everything that waits, and dispose it when the work is done. */
export interface RunWorkHandle extends Disposable {
  readonly signal: AbortSignal;
}

export class RunWork {
  readonly #underWay = new Map<string, Set<AbortController>>();

  /**
   * The returned signal aborts when the run ends, when `signal` does, or when the service closes. It is no `AbortSignal.any`:
   * the runtime keeps what listens to one of those for as long as `signal` lives, which may be as long as the process.
   */
  begin(runId: string, signal: AbortSignal): RunWorkHandle {
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const ofRun = this.#underWay.get(runId) ?? new Set();
    ofRun.add(controller);
    this.#underWay.set(runId, ofRun);
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => {
        signal.removeEventListener("abort", onAbort);
        ofRun.delete(controller);
        if (ofRun.size === 0 && this.#underWay.get(runId) === ofRun) this.#underWay.delete(runId);
      },
    };
  }

  /** Cancels everything under way for `runId`, with {@link RunEnded}. */
  end(runId: string): void {
    for (const controller of this.#underWay.get(runId) ?? []) {
      controller.abort(new RunEnded("the run ended while this was under way"));
    }
  }

  /** Cancels everything under way for every run, as the service closes. */
  endAll(): void {
    for (const runId of this.#underWay.keys()) this.end(runId);
  }
}
