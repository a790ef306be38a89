/** The decode Worker: reads reduced frames from a named pipe into the frame filter's memory. Blocks while it reads. */

import "../../base/worker_globals.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { FRAME_BYTES, FrameFilter } from "../kernels/frame_filter.ts";
import { RangeDetectors } from "../detection/range_detectors.ts";
import { NutReader } from "../formats/nut.ts";
import { CONTROL, type RowBatch, type StreamOrder } from "./stream_order.ts";

/** An order to the worker: read the NUT stream in this pipe to its end. */
export interface DecodeOrder {
  readonly fifoPath: string;
  /** Frames that become rows; of those after them it only matters whether there are any. */
  readonly maxRows: number;
  /** With it, rows are sent in batches, as far as they are granted; without it, all at the end. */
  readonly stream?: StreamOrder;
}

/**
 * What the worker reports: `ready` once, then for each order `opened` when the pipe is open, `rows` if it is a stream, and at
 * last `done` or `failed`. The `signals` of `done` are empty for a stream, whose rows were sent before; its `ranges` are whole. `failed`: the bytes
 * were not what was asked for; the worker itself continues.
 */
export type DecodeReport =
  | { readonly kind: "ready" }
  | { readonly kind: "opened" }
  | { readonly kind: "rows"; readonly batch: RowBatch }
  | {
    readonly kind: "done";
    readonly signals: SignalColumns;
    readonly ranges: readonly DetectedRange[];
    readonly hasMore: boolean;
  }
  | { readonly kind: "failed"; readonly message: string };

/**
 * How the staging area is used. Unparsed bytes of one read are moved to just before the place of the next read, so that a
 * frame is always contiguous and every read goes into the same view.
 *
 * ```
 *   0                    CARRY_BYTES                     + READ_BYTES
 *   | ..... unparsed ....|#### read from the pipe ##### ........|
 * ```
 */
const CARRY_BYTES = 128 * 1024;
/** The capacity of a pipe, so that one read never gives more. */
const READ_BYTES = 64 * 1024;

/** The part of the Worker's global scope that is used here. */
interface DecodeWorkerScope {
  postMessage(report: DecodeReport, moved?: readonly Transferable[]): void;
  onmessage: ((event: MessageEvent<DecodeOrder>) => void) | null;
}

const scope = globalThis as typeof globalThis & DecodeWorkerScope;
const filter = await FrameFilter.load();
const ranges = new RangeDetectors(filter);
const reader = new NutReader();
const readView = filter.staging.subarray(CARRY_BYTES, CARRY_BYTES + READ_BYTES);

scope.onmessage = ({ data: order }) => {
  try {
    using fifo = Deno.openSync(order.fifoPath, { read: true });
    scope.postMessage({ kind: "opened" });
    filter.reset();
    ranges.reset();
    reader.reset();
    const stream = order.stream ? new RowStream(order.stream) : null;
    const hasMore = readFrames(fifo, stream, order.maxRows);
    filter.finish();
    stream?.post();
    const signals = stream ? filter.takeFinalRows() : filter.columns();
    scope.postMessage({ kind: "done", signals, ranges: ranges.finish(), hasMore });
  } catch (error) {
    scope.postMessage({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
};
scope.postMessage({ kind: "ready" });

/**
 * The hot loop: allocates nothing. A frame that is cut off by the end of the stream is dropped: the decoder was stopped.
 * Returns whether a frame came after the last row.
 */
function readFrames(fifo: Deno.FsFile, stream: RowStream | null, maxRows: number): boolean {
  const staging = filter.staging;
  let firstPts = NaN;
  let lastMs = 0;
  let hasMore = false;
  let pauseAt = stream ? stream.firstPause : Infinity;
  /** The unparsed bytes are `[at, CARRY_BYTES + got)`. `at` may be after them, while a skipped element is not complete. */
  let at = CARRY_BYTES;
  for (let got = fifo.readSync(readView); got !== null; got = fifo.readSync(readView)) {
    const end = CARRY_BYTES + got;
    stream?.noteRead();
    for (let next = reader.read(staging, at, end); next !== -1; next = reader.read(staging, at, end)) {
      at = next;
      if (!reader.hasFrame) continue;
      if (filter.count >= maxRows) {
        hasMore = true;
        continue;
      }
      if (reader.frameBytes !== FRAME_BYTES) throw new Error(`a frame of ${reader.frameBytes} bytes`);
      if (Number.isNaN(firstPts)) {
        firstPts = reader.framePts;
        if (stream) stream.startS = firstPts * reader.timeBaseNumerator / reader.timeBaseDenominator;
      }
      const ms = (reader.framePts - firstPts) * 1000 * reader.timeBaseNumerator / reader.timeBaseDenominator;
      if (ms > lastMs) lastMs = ms;
      filter.push(reader.frameOffset, lastMs);
      ranges.push(filter.rangeMeasures, lastMs);
      if (filter.count >= pauseAt) pauseAt = stream!.pause();
      if (pauseAt === CONTROL.stop) return hasMore;
    }
    if (end - at > CARRY_BYTES) throw new Error("an element that does not fit the staging area");
    if (at < end) staging.copyWithin(CARRY_BYTES - (end - at), at, end);
    at = CARRY_BYTES - (end - at);
  }
  return hasMore;
}

/** Sends final rows while a stream is read. Stops the reading, and so ffmpeg, until more rows are granted. */
class RowStream {
  startS = NaN;
  readonly #order: StreamOrder;
  readonly #control: Int32Array;

  constructor(order: StreamOrder) {
    this.#order = order;
    this.#control = new Int32Array(order.control);
  }

  /** The first batch is sent after the look-ahead of the cut score, so that it has `batchRows` final rows. */
  get firstPause(): number {
    return Math.min(this.#order.batchRows + filter.cutLookahead, this.#order.maxRows);
  }

  noteRead(): void {
    Atomics.add(this.#control, CONTROL.reads, 1);
  }

  /** Sends the final rows and waits until more are granted. Returns the row count of the next pause, or `CONTROL.stop`. */
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

  /** Moves the final rows to the main thread. */
  post(): void {
    if (filter.finalRows === 0) return;
    const batch = { ...filter.takeFinalRows(), startS: this.startS };
    const { ptsMs, perceptualHash, lumaMean, flickerScore, ghostingScore, noiseVarianceScore, cutScore } =
      batch;
    scope.postMessage({ kind: "rows", batch }, [
      ...[ptsMs.buffer, perceptualHash.buffer, lumaMean.buffer, flickerScore.buffer],
      ...[ghostingScore.buffer, noiseVarianceScore.buffer, cutScore.buffer],
    ]);
  }
}
