/** The main thread's side of the decode Workers: each has one order at a time, and a Worker that fails is
 * replaced.
 */

import { entryOf, PROJECT } from "../../base/program_paths.ts";
import { type Sleeper, timer } from "../../base/wait.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import type { DecodedLength, DecodeOrder, DecodeReport } from "./decode_worker.ts";
import type { RowBatch } from "./stream_order.ts";

/**
 * Milliseconds after which a Worker without an order ends: each takes the memory of a runtime, and a new one
 * starts in 0.1 s.
 */
const IDLE_MS = 60_000;

/** Keeps idle workers for a while, because each new one starts a thread and compiles a module. */
export class DecodeWorkerPool implements Disposable {
  /**
   * Workers without an order. The one that was given back last is at the end, and is taken first, so that the
   * others can end.
   */
  readonly #idle: { readonly worker: DecodeWorker; readonly ending: Disposable }[] = [];
  readonly #readable: readonly string[];
  readonly #world: Sleeper;

  /** Makes a pool; `readable` are the folders that the workers may read besides their own code. */
  constructor(readable: readonly string[], world: Sleeper) {
    this.#readable = readable;
    this.#world = world;
  }

  async take(): Promise<DecodeWorker> {
    const idle = this.#idle.pop();
    idle?.ending[Symbol.dispose]();
    return idle?.worker ?? await DecodeWorker.start(this.#readable);
  }

  giveBack(worker: DecodeWorker): void {
    if (worker.isBroken) return worker[Symbol.dispose]();
    const ending = timer(this.#world, IDLE_MS, () => {
      this.#idle.splice(this.#idle.findIndex((idle) => idle.worker === worker), 1);
      worker[Symbol.dispose]();
    });
    this.#idle.push({ worker, ending });
  }

  /** Ends the idle workers; all others must have been given back. */
  [Symbol.dispose](): void {
    for (const { worker, ending } of this.#idle.splice(0)) {
      ending[Symbol.dispose]();
      worker[Symbol.dispose]();
    }
  }
}

/** What an order gave. */
export interface ReadRows {
  /** Signals of the rows; empty for a stream, whose rows were sent before. */
  readonly signals: SignalColumns;
  /** What the detectors found in all frames that were read, sorted by start; also for a stream. */
  readonly ranges: readonly DetectedRange[];
  /** Times of all cuts, rising, milliseconds from the first frame; also for a stream. */
  readonly cutsMs: readonly number[];
  /** Whether a frame came after the last row that was asked for. */
  readonly hasMore: boolean;
  readonly length: DecodedLength;
}

/** The progress of one order; `finished` also rejects when `opened` does. */
export interface Reading {
  readonly opened: Promise<void>;
  /** What the order gave; null where the decoder told of damage and the order stops at it. */
  readonly finished: Promise<ReadRows | null>;
}

/** One Worker that may read the given folders and its own code, and nothing else. */
export class DecodeWorker implements Disposable {
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<void>();
  #opened = Promise.withResolvers<void>();
  #finished = Promise.withResolvers<ReadRows | null>();
  #onRows: (batch: RowBatch) => void = () => {};
  #isBroken = false;

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<DecodeReport>) => this.#onReport(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(event.message);
    };
  }

  static async start(readable: readonly string[]): Promise<DecodeWorker> {
    const worker = new DecodeWorker(startThread(readable));
    try {
      await worker.#ready.promise;
      return worker;
    } catch (error) {
      worker[Symbol.dispose]();
      throw error;
    }
  }

  /** Whether an order failed: the worker's memory is then in an unknown state. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Reads the NUT stream in a named pipe. With `order.stream`, all rows go to `onRows`. */
  read(order: DecodeOrder, onRows: (batch: RowBatch) => void = () => {}): Reading {
    this.#onRows = onRows;
    this.#opened = Promise.withResolvers<void>();
    this.#finished = Promise.withResolvers<ReadRows | null>();
    const reading = { opened: this.#opened.promise, finished: this.#finished.promise };
    // A caller that awaits one of them gets the failure; the other must not become an unhandled rejection.
    reading.opened.catch(() => {});
    reading.finished.catch(() => {});
    this.#worker.postMessage(order);
    return reading;
  }

  [Symbol.dispose](): void {
    this.#isBroken = true;
    this.#worker.terminate();
  }

  #onReport(report: DecodeReport): void {
    if (report.kind === "ready") this.#ready.resolve();
    else if (report.kind === "opened") this.#opened.resolve();
    else if (report.kind === "rows") this.#onRows(report.batch);
    else if (report.kind === "done") this.#finished.resolve(report);
    else if (report.kind === "damaged") this.#finished.resolve(null);
    else this.#fail(report.message);
  }

  #fail(message: string): void {
    this.#isBroken = true;
    const error = new Error(`The decode worker failed: ${message}`);
    this.#ready.reject(error);
    this.#opened.reject(error);
    this.#finished.reject(error);
  }
}

function startThread(readable: readonly string[]): Worker {
  const read = [...readable, new URL("wasm/", PROJECT)];
  const none = { write: false, net: false, env: false, run: false, ffi: false, sys: false, import: false };
  return new Worker(entryOf("decode"), {
    type: "module",
    name: "decode",
    deno: { permissions: { read, ...none } },
  });
}
