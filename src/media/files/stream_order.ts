/** How the main thread controls a decode Worker that reads a stream, through shared memory, because the
 * Worker blocks.
 */

import type { CollectedRows } from "../detection/row_collector.ts";

/** Consecutive rows of a stream; all of them are final. */
export interface RowBatch extends CollectedRows {
  readonly count: number;
  readonly source: RowSources;
}

/** Where the frames of rows are in the source. */
export interface RowSources {
  /** The number of each among all decoded frames. */
  readonly frames: readonly number[];
  /** The time of each by its source, seconds on the clock of the decode. */
  readonly timesS: readonly number[];
  /** The frames so far with which ffmpeg began its filters, and to count, anew; the first one is 0. */
  readonly beginnings: readonly number[];
  /** Whether all frames so far are in the source at the times that they have, counted from the first one. */
  readonly isSteady: boolean;
}

export interface StreamOrder {
  /** Shared memory with two Int32: see `CONTROL`. */
  readonly control: SharedArrayBuffer;
  /** Rows of a batch: it is sent when this many more rows are final, or no more are granted. */
  readonly batchRows: number;
  /**
   * The most rows that will come, so that the last ones are final without waiting for the end of the stream.
   */
  readonly maxRows: number;
}

/** The two numbers in `StreamOrder.control`, which both sides can access while the worker blocks. */
export const CONTROL = {
  /** Index of the number of rows that may be read in all. Whoever changes it calls `Atomics.notify`. */
  granted: 0,
  /**
   * Index of the number of reads that gave bytes, so that the main thread can tell a slow stream from a dead
   * one.
   */
  reads: 1,
  bytes: 8,
  /** The value of `granted` that ends the reading. */
  stop: -1,
} as const;
