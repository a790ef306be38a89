/** Rows of signals between the Worker, which sends batches, and the consumer, which takes chunks. */

import { type CollectedRows, copyRows, newRows, sliceRows } from "../detection/row_collector.ts";
import type { CountedFrames } from "../jobs/parts/window_seek.ts";
import type { RowBatch } from "./stream_order.ts";

/** The queue of rows. Frames are numbered from the first of the stream; the queue contains `[first, end)`. */
export class RowQueue {
  /** The next row to take. */
  first = 0;
  /** The number of all rows that have come so far. */
  end = 0;
  /** The number of rows that this run has given. */
  #given = 0;
  /** Frames with which ffmpeg's filters began: see `RowSources`. */
  beginnings: readonly number[] = [0];
  isSteady = true;

  /** Number of each row that has come among all decoded frames; `#timesMs` has the times of these rows. */
  readonly #frames: number[] = [];
  readonly #timesMs: number[] = [];
  readonly #batches: { readonly first: number; readonly batch: RowBatch }[] = [];

  /**
   * To be called when a new run begins with the first row of all. The rows that have come stay, and are not
   * taken again.
   */
  restart(): void {
    this.#given = 0;
  }

  push(batch: RowBatch): void {
    const first = this.#given;
    this.#given += batch.count;
    if (this.#given <= this.end) return;
    this.beginnings = batch.source.beginnings;
    this.isSteady = batch.source.isSteady;
    for (let row = this.end - first; row < batch.count; row++) {
      this.#frames.push(batch.source.frames[row]!);
      this.#timesMs.push(batch.ptsMs[row]!);
    }
    this.#batches.push({ first, batch });
    this.end = this.#given;
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

  /** The number of a queued row among all decoded frames. */
  frameOf(row: number): number {
    const { batch, row: at } = this.locate(row);
    return batch.source.frames[at]!;
  }

  /** The time of a queued row by its source, seconds on the clock of the decode. */
  sourceTimeS(row: number): number {
    const { batch, row: at } = this.locate(row);
    return batch.source.timesS[at]!;
  }

  /**
   * The queued row that a decoded frame is; null where it is none, or has left the queue, or `undefined`
   * where it has not come yet.
   */
  rowOf(frame: number): number | null | undefined {
    for (const { first, batch: { count, source } } of this.#batches) {
      if (source.frames[count - 1]! < frame) continue;
      const at = source.frames.indexOf(frame);
      return at === -1 || first + at < this.first ? null : first + at;
    }
    return undefined;
  }

  /** The time of the newest row; 0 before the first one. */
  get knownMs(): number {
    return this.#timesMs.at(-1) ?? 0;
  }

  /**
   * The decoded frames from the row that is shown at a time up to another time, whether or not they have left
   * the queue. Behind the rows that have come they are `intervalMs` apart.
   */
  framesIn(startMs: number, endMs: number, intervalMs: number): CountedFrames | null {
    const first = this.#rowAt(startMs + ROUNDING_MS) - 1;
    if (first < 0) return null;
    const after = this.#rowAt(endMs - ROUNDING_MS);
    const last = this.#timesMs.length - 1;
    const isKnown = after <= last;
    const end = isKnown
      ? this.#frames[after]!
      : this.#frames[last]! + Math.max(1, Math.round((endMs - this.#timesMs[last]!) / intervalMs));
    const count = Math.max(1, end - this.#frames[first]!);
    const spanMs = (isKnown ? this.#timesMs[after]! : endMs) - this.#timesMs[first]!;
    return { first: this.#frames[first]!, count, intervalMs: Math.max(1, spanMs / count) };
  }

  /** The first row whose time is `timeMs` or later; the number of rows where there is none. */
  #rowAt(timeMs: number): number {
    let low = 0;
    let high = this.#timesMs.length;
    while (low < high) {
      const middle = low + high >> 1;
      if (this.#timesMs[middle]! < timeMs) low = middle + 1;
      else high = middle;
    }
    return low;
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

/** Tolerance of times, milliseconds: callers round them to whole milliseconds. */
const ROUNDING_MS = 0.6;
