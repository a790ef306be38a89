/** How the main thread controls a decode Worker that reads a stream, through shared memory, because the Worker blocks. */

import type { CollectedRows } from "../kernels/row_collector.ts";

/** Consecutive rows of a stream; all of them are final. */
export interface RowBatch extends CollectedRows {
  readonly count: number;
  /** The first frame of the stream on the clock of the decode, seconds: `ptsMs` counts from there. */
  readonly startS: number;
}

export interface StreamOrder {
  /** Two Int32: see `CONTROL`. */
  readonly control: SharedArrayBuffer;
  /** A batch is sent when this many more rows are final, or no more are granted. */
  readonly batchRows: number;
  /** No more rows than this will come, so the last ones are final without waiting for the end of the stream. */
  readonly maxRows: number;
}

/** The two numbers in `StreamOrder.control`, which both sides can access while the worker blocks. */
export const CONTROL = {
  /** Index of: how many rows may be read in all. Whoever changes it calls `Atomics.notify`. */
  granted: 0,
  /** Index of: how many reads gave bytes, so that the main thread can tell a slow stream from a dead one. */
  reads: 1,
  bytes: 8,
  /** The value of `granted` that ends the reading. */
  stop: -1,
} as const;
