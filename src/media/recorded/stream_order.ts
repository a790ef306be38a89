/** How the main thread holds back a media Worker that blocks while it reads a stream. */

import type { FilterColumns } from "../kernels/filter_columns.ts";

/** Consecutive rows of a stream, settled. */
export interface RowBatch extends FilterColumns {
  readonly count: number;
  /** The first frame of the stream on the clock of the decode, seconds: `ptsMs` counts from there. */
  readonly startS: number;
}

export interface StreamOrder {
  /** Two Int32: see `CONTROL`. */
  readonly control: SharedArrayBuffer;
  /** A batch is posted when so many further rows are settled; at most 1024. */
  readonly batchRows: number;
  /** So many rows are all there will be: the last are settled without waiting for the end. */
  readonly maxRows: number;
}

/** What lies in `StreamOrder.control`, which both sides look at while the worker blocks. */
export const CONTROL = {
  /** Rows that may be read in all; whoever raises it, or writes `stop`, notifies. */
  granted: 0,
  /** Counts what came through the pipe, so that who waits can tell slow from dead. */
  reads: 1,
  bytes: 8,
  /** As `granted`: read no more. */
  stop: -1,
} as const;
