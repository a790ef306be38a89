/** Finds out which frame each JPEG of a stream shows, and keeps the JPEGs until their chunk is complete. */

import type { TimedJpeg } from "../containers/jpeg_stream.ts";
import type { RowQueue } from "./row_queue.ts";
import { numberIn } from "../jobs/parts/source_times.ts";

export class FrameJpegs {
  /** Whether a JPEG was too large to be kept. */
  hasOversize = false;

  readonly #rows: RowQueue;
  /** JPEGs by the number of the row. */
  readonly #byRow = new Map<number, Uint8Array<ArrayBuffer>>();
  /**
   * JPEGs whose row has not come yet, each with the number of its frame since a beginning of ffmpeg's
   * filters.
   */
  #unmatched: {
    readonly jpeg: Uint8Array<ArrayBuffer>;
    readonly number: number;
    readonly beginning: number;
  }[] = [];
  /** How often ffmpeg has begun its filters so far, and the value of the JPEGs since then. */
  #beginnings = 0;
  #beginning = NaN;

  constructor(rows: RowQueue) {
    this.#rows = rows;
  }

  has(row: number): boolean {
    return this.#byRow.has(row);
  }

  get(row: number): Uint8Array<ArrayBuffer> | undefined {
    return this.#byRow.get(row);
  }

  set(row: number, jpeg: Uint8Array<ArrayBuffer>): void {
    this.#byRow.set(row, jpeg);
  }

  /** Takes over new JPEGs and matches all that can be matched by now. With `isLast`, the rest is dropped. */
  add(jpegs: readonly TimedJpeg[], isLast: boolean): void {
    for (const { pts, jpeg } of jpegs) {
      const { number, beginning } = numberIn(pts);
      if (beginning !== this.#beginning) this.#beginnings++;
      this.#beginning = beginning;
      this.#unmatched.push({ jpeg, number, beginning: this.#beginnings - 1 });
    }
    this.#unmatched = this.#unmatched.filter(({ jpeg, number, beginning }) => {
      const start = this.#rows.beginnings[beginning];
      const row = start === undefined ? undefined : this.#rows.rowOf(start + number);
      if (row === undefined) return !isLast;
      if (row === null) return false;
      if (jpeg.length > JPEG_BYTES_MAX) this.hasOversize = true;
      else this.#byRow.set(row, jpeg);
      return false;
    });
  }

  /**
   * To be called when a new run begins with the first frame of all; the JPEGs of rows that have come stay.
   */
  restart(): void {
    this.#unmatched = [];
    this.#beginnings = 0;
    this.#beginning = NaN;
  }

  /** Drops the JPEGs of rows that have left the queue. */
  dropTaken(): void {
    for (const row of this.#byRow.keys()) if (row < this.#rows.first) this.#byRow.delete(row);
  }

  clear(): void {
    this.#byRow.clear();
    this.#unmatched = [];
  }
}

/**
 * Most bytes of a JPEG: what a model endpoint accepts of one image, with room to spare. Only pure noise above
 * 1080p reaches it.
 */
const JPEG_BYTES_MAX = 4 * 2 ** 20;
