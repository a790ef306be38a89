/** Finds out which frame each JPEG of a stream shows, and keeps the JPEGs until their chunk is complete. */

import type { TimedJpeg } from "../formats/jpeg_stream.ts";
import type { FrameChoice } from "./frame_choice.ts";
import type { RowQueue } from "./row_queue.ts";

export class FrameJpegs {
  /** ffmpeg has begun to count frames again, as the medium changed its format: JPEGs are known by their times alone. */
  isOrderLost = false;
  /** A JPEG was too large to be kept. */
  hasOversize = false;

  readonly #rows: RowQueue;
  readonly #choice: FrameChoice;
  readonly #isSampled: boolean;
  readonly #byFrame = new Map<number, Uint8Array<ArrayBuffer>>();
  /** JPEGs whose frame is not certain yet, with their place in the order of arrival. */
  #unmatched: { readonly jpeg: TimedJpeg; readonly order: number }[] = [];
  #arrivals = 0;

  /** `isSampled`: ffmpeg and the decode Worker choose the rows, each by the same rule. */
  constructor(rows: RowQueue, choice: FrameChoice, isSampled: boolean) {
    this.#rows = rows;
    this.#choice = choice;
    this.#isSampled = isSampled;
  }

  has(frame: number): boolean {
    return this.#byFrame.has(frame);
  }

  get(frame: number): Uint8Array<ArrayBuffer> | undefined {
    return this.#byFrame.get(frame);
  }

  set(frame: number, jpeg: Uint8Array<ArrayBuffer>): void {
    this.#byFrame.set(frame, jpeg);
  }

  /** Takes over new JPEGs and matches all that can be matched by now. With `isLast`, the rest is dropped. */
  add(jpegs: readonly TimedJpeg[], isLast: boolean): void {
    for (const jpeg of jpegs) this.#unmatched.push({ jpeg, order: this.#arrivals++ });
    this.#unmatched = this.#unmatched.filter(({ jpeg, order }) => {
      const frame = this.#frameOf(jpeg, order);
      if (frame === null) return !isLast;
      if (jpeg.jpeg.length > JPEG_BYTES_MAX) this.hasOversize = true;
      else if (frame >= this.#rows.first) this.#byFrame.set(frame, jpeg.jpeg);
      return false;
    });
  }

  /** Drops the JPEGs of frames that have left the queue of rows. */
  dropTaken(): void {
    for (const frame of this.#byFrame.keys()) if (frame < this.#rows.first) this.#byFrame.delete(frame);
  }

  clear(): void {
    this.#byFrame.clear();
    this.#unmatched = [];
  }

  /**
   * The frame that a JPEG shows; null while the rows up to it are not here. JPEGs come in the order of the choice. One with
   * the time of another frame than the expected one means that ffmpeg has begun to count again. One with the time of no frame
   * is the expected one: ffmpeg changes times that go back, and does so in each of its outputs separately. Of sampled media it
   * may also show a frame that is no row, if ffmpeg has begun its count of periods again.
   */
  #frameOf({ timeS }: TimedJpeg, order: number): number | null {
    const { first, end, startS } = this.#rows;
    const timeMs = (timeS - startS) * 1000;
    const expected = this.#choice.frameOf(order);
    const hasTime = (frame: number) => Math.abs(this.#rows.ptsMs(frame) - timeMs) < TIME_TOLERANCE_MS;
    if (!this.isOrderLost) {
      if (expected >= end) return null;
      if (expected < first || hasTime(expected)) return expected;
      if (this.#isSampled) this.isOrderLost = true;
    }
    const next = end > first ? this.#rows.firstAtOrAfter(timeMs - TIME_TOLERANCE_MS) : null;
    if (next === null) return this.isOrderLost ? null : expected;
    if (hasTime(next)) {
      this.isOrderLost = true;
      return next;
    }
    return this.isOrderLost ? TAKEN : expected;
  }
}

/** Stands for a frame that has left the queue. */
const TAKEN = -1;
/** Much smaller than the distance of any two frames, much larger than the rounding error of a double. */
const TIME_TOLERANCE_MS = 0.1;
/** What a model endpoint accepts of one image, with room to spare. Only pure noise above 1080p reaches it. */
const JPEG_BYTES_MAX = 4 * 2 ** 20;
