/** Rows of signals between the Worker, which sends batches, and the consumer, which takes chunks. */

import { type CollectedRows, copyRows, newRows, sliceRows } from "../kernels/row_collector.ts";
import type { RowBatch } from "./stream_order.ts";

/** Frames are numbered from the first of the stream; the queue contains `[first, end)`. */
export class RowQueue {
  /** The next row to take. */
  first = 0;
  /** The number of all rows that have come so far. */
  end = 0;
  /** The first frame of the stream on the clock of the decode, seconds. */
  startS = NaN;

  readonly #batches: { readonly first: number; readonly batch: RowBatch }[] = [];

  push(batch: RowBatch): void {
    if (this.end === 0) this.startS = batch.startS;
    this.#batches.push({ first: this.end, batch });
    this.end += batch.count;
  }

  /** The batch and the row in it of a queued frame. */
  locate(frame: number): { readonly batch: RowBatch; readonly row: number } {
    const found = this.#batches.find(({ first, batch }) => frame >= first && frame < first + batch.count);
    if (!found) {
      throw new RangeError(`Cannot find row ${frame}: the queue holds ${this.first} to ${this.end - 1}`);
    }
    return { batch: found.batch, row: frame - found.first };
  }

  ptsMs(frame: number): number {
    const { batch, row } = this.locate(frame);
    return batch.ptsMs[row]!;
  }

  /** The first queued frame from `from` on whose time is `ptsMs` or later; null when it has not come. */
  firstAtOrAfter(ptsMs: number, from = this.first): number | null {
    for (const { first, batch } of this.#batches) {
      if (first + batch.count <= from || batch.ptsMs[batch.count - 1]! < ptsMs) continue;
      const row = batch.ptsMs.findIndex((time, row) => first + row >= from && time >= ptsMs);
      if (row >= 0) return first + row;
    }
    return null;
  }

  /** Removes the oldest `count` rows. */
  take(count: number): CollectedRows & { readonly count: number } {
    const result = newRows(count);
    for (let taken = 0; taken < count;) {
      const { first, batch } = this.#batches[0]!;
      const from = this.first - first;
      const rows = Math.min(count - taken, batch.count - from);
      copyRows(result, sliceRows(batch, from, from + rows), taken);
      taken += rows;
      this.first += rows;
      if (from + rows === batch.count) this.#batches.shift();
    }
    return { count, ...result };
  }
}
