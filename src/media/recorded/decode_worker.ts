/** The media Worker: reads decoded planes from a named pipe into the frame filter's memory. Blocks while it reads. */

import type { SignalColumns } from "../../model/frames/signals.ts";
import { FrameFilter, PLANE_BYTES } from "../kernels/frame_filter.ts";
import { NutReader } from "../formats/nut.ts";
import { CONTROL, type RowBatch, type StreamOrder } from "./stream_order.ts";

/** To the worker: read the NUT stream of this pipe to its end. */
export interface DecodeOrder {
  readonly fifoPath: string;
  /** Present: rows are handed on in batches, as far as they are granted, and not all at the end. */
  readonly stream?: StreamOrder;
}

/**
 * From the worker: `ready` once, then for each order `opened` when the pipe is open, `rows` if it is a stream, then how it
 * ended; a stream has no `signals` left then. `failed` says that the bytes were not what was asked for; the worker itself
 * goes on.
 */
export type DecodeReport =
  | { readonly kind: "ready" }
  | { readonly kind: "opened" }
  | { readonly kind: "rows"; readonly batch: RowBatch }
  | { readonly kind: "done"; readonly signals: SignalColumns }
  | { readonly kind: "failed"; readonly message: string };

/**
 * How the staging area is used. What is left of one read is moved in front of the next, so a plane always lies in one
 * piece, and one fixed view serves every read.
 *
 * ```
 *   0                    CARRY_BYTES                     + READ_BYTES
 *   | ......... rest ....|#### read from the pipe ##### ........|
 * ```
 */
const CARRY_BYTES = 128 * 1024;
/** A pipe holds 64 KiB, so one read never gives more. */
const READ_BYTES = 64 * 1024;

interface WorkerScope {
  postMessage(report: DecodeReport, moved?: readonly Transferable[]): void;
  onmessage: ((event: MessageEvent<DecodeOrder>) => void) | null;
}

const scope = self as unknown as WorkerScope;
const filter = await FrameFilter.load();
const reader = new NutReader();
const readView = filter.staging.subarray(CARRY_BYTES, CARRY_BYTES + READ_BYTES);

scope.onmessage = ({ data: order }) => {
  try {
    using fifo = Deno.openSync(order.fifoPath, { read: true });
    scope.postMessage({ kind: "opened" });
    filter.reset();
    reader.reset();
    const stream = order.stream ? new RowStream(order.stream) : null;
    readPlanes(fifo, stream);
    filter.finish();
    stream?.post();
    scope.postMessage({ kind: "done", signals: stream ? filter.takeFinalRows() : filter.columns() });
  } catch (error) {
    scope.postMessage({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
};
scope.postMessage({ kind: "ready" });

/** The hot loop: allocates nothing. A stream that ends within a frame ends before it: the decoder was stopped. */
function readPlanes(fifo: Deno.FsFile, stream: RowStream | null): void {
  const staging = filter.staging;
  let firstPts = NaN;
  let lastMs = 0;
  let pauseAt = stream ? stream.firstPause : Infinity;
  /** The unread bytes are `[at, CARRY_BYTES + got)`; `at` may lie behind them while a skipped element goes on. */
  let at = CARRY_BYTES;
  for (let got = fifo.readSync(readView); got !== null; got = fifo.readSync(readView)) {
    const end = CARRY_BYTES + got;
    stream?.noteRead();
    for (let next = reader.read(staging, at, end); next !== -1; next = reader.read(staging, at, end)) {
      at = next;
      if (!reader.hasFrame) continue;
      if (reader.frameBytes !== PLANE_BYTES) throw new Error(`a plane of ${reader.frameBytes} bytes`);
      if (Number.isNaN(firstPts)) {
        firstPts = reader.framePts;
        if (stream) stream.startS = firstPts * reader.timeBaseNumerator / reader.timeBaseDenominator;
      }
      const ms = (reader.framePts - firstPts) * 1000 * reader.timeBaseNumerator / reader.timeBaseDenominator;
      if (ms > lastMs) lastMs = ms;
      filter.push(reader.frameOffset, lastMs);
      if (filter.count >= pauseAt) pauseAt = stream!.pause();
      if (pauseAt === CONTROL.stop) return;
    }
    if (end - at > CARRY_BYTES) throw new Error("an element that does not fit the staging area");
    if (at < end) staging.copyWithin(CARRY_BYTES - (end - at), at, end);
    at = CARRY_BYTES - (end - at);
  }
}

/** Hands settled rows on while a stream is read, and holds the reading back, hence ffmpeg, until more is granted. */
class RowStream {
  startS = NaN;
  readonly #order: StreamOrder;
  readonly #control: Int32Array;

  constructor(order: StreamOrder) {
    this.#order = order;
    this.#control = new Int32Array(order.control);
  }

  /** After the look-ahead of the cut score, so that the first batch is a whole one. */
  get firstPause(): number {
    return Math.min(this.#order.batchRows + filter.cutLookahead, this.#order.maxRows);
  }

  noteRead(): void {
    Atomics.add(this.#control, CONTROL.reads, 1);
  }

  /** Posts what is settled and waits for leave to go on. Returns the row count of the next pause, or `CONTROL.stop`. */
  pause(): number {
    const { batchRows, maxRows } = this.#order;
    if (filter.count >= maxRows) filter.finish();
    this.post();
    if (filter.count >= maxRows) return Infinity;
    for (;;) {
      const granted = Atomics.load(this.#control, CONTROL.granted);
      if (granted === CONTROL.stop) return CONTROL.stop;
      if (granted > filter.count) return Math.min(filter.count + batchRows, granted, maxRows);
      Atomics.wait(this.#control, CONTROL.granted, granted);
    }
  }

  /** Moves what is settled to the main thread. */
  post(): void {
    if (filter.settled === 0) return;
    const batch = { ...filter.takeFinalRows(), startS: this.startS };
    const { ptsMs, perceptualHash, lumaMean, flickerScore, ghostingScore, noiseVarianceScore, cutScore } =
      batch;
    scope.postMessage({ kind: "rows", batch }, [
      ...[ptsMs.buffer, perceptualHash.buffer, lumaMean.buffer, flickerScore.buffer],
      ...[ghostingScore.buffer, noiseVarianceScore.buffer, cutScore.buffer],
    ]);
  }
}
