/** The work under way for each run, so that the end of a run cancels it at once. */

/** Why work was cancelled: its run ended or the service closes, as opposed to a client that disconnected. */
export class RunEnded extends Error {
  override readonly name = "RunEnded";
}

/** How far a decode for a run is. */
export interface WorkProgress {
  readonly work: "ingest" | "reason";
  /** Frames that were decoded. */
  readonly frames: number;
  /** Media time of the last one. */
  readonly pts_ms: number;
  /** Media time at which the work ends; null where it is not known. */
  readonly end_ms: number | null;
}

/** One piece of work: pass its signal to everything that waits, and dispose it when the work is done. */
export interface RunWorkHandle extends Disposable {
  readonly signal: AbortSignal;
  /** From now on `read` says how far the work is. */
  tells(read: () => WorkProgress): void;
}

interface Piece {
  readonly controller: AbortController;
  progress: (() => WorkProgress) | null;
}

export class RunWork {
  readonly #underWay = new Map<string, Set<Piece>>();

  /**
   * The returned signal aborts when the run ends, when `signal` does, or when the service closes. It is no
   * `AbortSignal.any`: the runtime keeps what listens to one of those for as long as `signal` lives, which
   * may be as long as the process.
   */
  begin(runId: string, signal: AbortSignal): RunWorkHandle {
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const ofRun = this.#underWay.get(runId) ?? new Set();
    const piece: Piece = { controller, progress: null };
    ofRun.add(piece);
    this.#underWay.set(runId, ofRun);
    return {
      signal: controller.signal,
      tells: (read) => {
        piece.progress = read;
      },
      [Symbol.dispose]: () => {
        signal.removeEventListener("abort", onAbort);
        ofRun.delete(piece);
        if (ofRun.size === 0 && this.#underWay.get(runId) === ofRun) this.#underWay.delete(runId);
      },
    };
  }

  isUnderWay(runId: string): boolean {
    return this.#underWay.has(runId);
  }

  /** The progress of the newest work that tells it; null where there is none. */
  progressOf(runId: string): WorkProgress | null {
    const pieces = [...this.#underWay.get(runId) ?? []];
    return pieces.findLast(({ progress }) => progress !== null)?.progress?.() ?? null;
  }

  /** Cancels everything under way for `runId`, with {@link RunEnded}. */
  end(runId: string): void {
    for (const { controller } of this.#underWay.get(runId) ?? []) {
      controller.abort(new RunEnded("the run ended while this was under way"));
    }
  }

  /** Cancels everything under way for every run, as the service closes. */
  endAll(): void {
    for (const runId of this.#underWay.keys()) this.end(runId);
  }
}
