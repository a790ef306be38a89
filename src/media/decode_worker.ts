/** The media Worker: reads decoded planes from a named pipe into the frame filter's memory. Blocks while it reads. */

import type { SignalColumns } from "../model/signals.ts";
import { FrameFilter, PLANE_BYTES } from "./filter.ts";
import { NutReader } from "./nut.ts";

/** To the worker: read the NUT stream of this pipe to its end. */
export interface DecodeOrder {
  readonly fifoPath: string;
}

/**
 * From the worker: `ready` once, then for each order `opened` when the pipe is open, then how it ended. `failed` says
 * that the bytes were not what was asked for; the worker itself goes on.
 */
export type DecodeReport =
  | { readonly kind: "ready" }
  | { readonly kind: "opened" }
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
  postMessage(report: DecodeReport): void;
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
    readPlanes(fifo);
    filter.finish();
    scope.postMessage({ kind: "done", signals: filter.columns() });
  } catch (error) {
    scope.postMessage({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
};
scope.postMessage({ kind: "ready" });

/** The hot loop: allocates nothing. A stream that ends within a frame ends before it: the decoder was stopped. */
function readPlanes(fifo: Deno.FsFile): void {
  const staging = filter.staging;
  let firstPts = NaN;
  let lastMs = 0;
  /** The unread bytes are `[at, CARRY_BYTES + got)`; `at` may lie behind them while a skipped element goes on. */
  let at = CARRY_BYTES;
  for (let got = fifo.readSync(readView); got !== null; got = fifo.readSync(readView)) {
    const end = CARRY_BYTES + got;
    for (let next = reader.read(staging, at, end); next !== -1; next = reader.read(staging, at, end)) {
      at = next;
      if (!reader.hasFrame) continue;
      if (reader.frameBytes !== PLANE_BYTES) throw new Error(`a plane of ${reader.frameBytes} bytes`);
      if (Number.isNaN(firstPts)) firstPts = reader.framePts;
      const ms = (reader.framePts - firstPts) * 1000 * reader.timeBaseNumerator / reader.timeBaseDenominator;
      if (ms > lastMs) lastMs = ms;
      filter.push(reader.frameOffset, lastMs);
    }
    if (end - at > CARRY_BYTES) throw new Error("an element that does not fit the staging area");
    if (at < end) staging.copyWithin(CARRY_BYTES - (end - at), at, end);
    at = CARRY_BYTES - (end - at);
  }
}
