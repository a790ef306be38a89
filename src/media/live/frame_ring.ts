/** The newest decoded pictures of one live stream, in memory that is used again and again. */

import type { Extent } from "../../model/frames/coordinates.ts";
import { NutError, NutReader } from "../formats/nut.ts";

/** A picture of YUV 4:2:0, the planes one behind the other, rows without padding. */
export interface FramePixels extends Extent {
  /** Luma from 0 to 255 and not from 16 to 235. */
  readonly isFullRange: boolean;
  /** False once its memory holds a newer picture. */
  readonly isAvailable: boolean;
  /** A view; throws when the picture is no longer there. Copy what must outlast the ring. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** What has not been read when a read gives this much has to wait: twice what a pipe holds. */
export const READ_BYTES = 128 * 1024;
/** Headers of a NUT file and of its first frame. */
const HEADER_BYTES = 16 * 1024;

/** Bytes that `pictures` pictures of this size take in a ring. */
export function ringBytes({ width, height }: Extent, pictures: number): number {
  return pictures * slotBytes(width, height) + HEADER_BYTES + 2 * READ_BYTES;
}

/**
 * Reads a NUT stream of raw pictures. Each picture gathers where it will stay:
 *
 * ```
 *   read ─copy─→ slot | header of the frame | picture .......... | start of the next one |
 *                                                                  └─copy─→ next slot
 * ```
 */
export class FrameRing {
  readonly #pictures: number;
  readonly #reader = new NutReader();
  #slots: Slot[] = [];
  #slot = new Slot(HEADER_BYTES + 2 * READ_BYTES);
  #next = 0;
  /** The unread bytes of the slot are `[at, end)`; `at` may lie behind them while a skipped element goes on. */
  #at = 0;
  #end = 0;

  /** Keeps the newest `pictures` pictures and, while the next one comes, one less. */
  constructor(pictures: number) {
    this.#pictures = pictures;
  }

  /** A new stream begins; the pictures of the one before are gone when the size changes, and one by one otherwise. */
  begin(): void {
    this.#reader.reset();
    this.#slot = new Slot(HEADER_BYTES + 2 * READ_BYTES);
    this.#at = 0;
    this.#end = 0;
  }

  /**
   * Takes the next bytes of the stream, at most READ_BYTES, and calls `onPicture` with each picture that became whole.
   * Throws a NutError for what is no stream of raw pictures.
   */
  push(
    bytes: Uint8Array,
    isFullRange: boolean,
    onPicture: (picture: FramePixels, time: StreamTime) => void,
  ): void {
    const reader = this.#reader;
    this.#slot.bytes.set(bytes, this.#end);
    this.#end += bytes.length;
    for (;;) {
      this.#sizeSlot();
      const slot = this.#slot;
      const next = reader.read(slot.bytes, this.#at, this.#end);
      if (next === -1) break;
      this.#at = next;
      if (!reader.hasFrame) continue;
      const { width, height, framePts, frameOffset, frameBytes } = reader;
      if (frameBytes !== pixelBytes(width, height)) throw new NutError(`a picture of ${frameBytes} bytes`);
      this.#openSlot(slot.bytes.subarray(this.#at, this.#end), 0);
      onPicture(new SlotPixels(slot, { width, height, isFullRange }, frameOffset), {
        pts: framePts,
        numerator: reader.timeBaseNumerator,
        denominator: reader.timeBaseDenominator,
      });
    }
    if (this.#end + READ_BYTES > this.#slot.bytes.length) throw new NutError("an element that does not fit");
  }

  /** Behind the header, what came so far goes on in a slot for pictures of its size. */
  #sizeSlot(): void {
    const { width, height } = this.#reader;
    const bytes = width > 0 ? slotBytes(width, height) : this.#slot.bytes.length;
    if (this.#slot.bytes.length === bytes) return;
    if (this.#slots[0]?.bytes.length !== bytes) {
      this.#slots = Array.from({ length: this.#pictures }, () => new Slot(bytes));
      this.#next = 0;
    }
    const read = Math.min(this.#at, this.#end);
    this.#openSlot(this.#slot.bytes.subarray(read, this.#end), this.#at - read);
  }

  /** The oldest slot becomes the current one and begins with `rest`. */
  #openSlot(rest: Uint8Array, at: number): void {
    const slot = this.#slots[this.#next]!;
    this.#next = (this.#next + 1) % this.#slots.length;
    slot.turn++;
    slot.bytes.set(rest);
    this.#slot = slot;
    this.#at = at;
    this.#end = rest.length;
  }
}

/** `pts * numerator / denominator` seconds. */
export interface StreamTime {
  readonly pts: number;
  readonly numerator: number;
  readonly denominator: number;
}

/** Bytes of a picture: chroma has half the rows and columns, rounded up. */
export function pixelBytes(width: number, height: number): number {
  return width * height + 2 * Math.ceil(width / 2) * Math.ceil(height / 2);
}

function slotBytes(width: number, height: number): number {
  return pixelBytes(width, height) + HEADER_BYTES + 2 * READ_BYTES;
}

class Slot {
  /** Counts the pictures that it held. */
  turn = 0;
  readonly bytes: Uint8Array<ArrayBuffer>;

  constructor(bytes: number) {
    this.bytes = new Uint8Array(bytes);
  }
}

class SlotPixels implements FramePixels {
  readonly width: number;
  readonly height: number;
  readonly isFullRange: boolean;
  readonly #slot: Slot;
  readonly #turn: number;
  readonly #offset: number;

  constructor(slot: Slot, shape: Extent & { isFullRange: boolean }, offset: number) {
    this.width = shape.width;
    this.height = shape.height;
    this.isFullRange = shape.isFullRange;
    this.#slot = slot;
    this.#turn = slot.turn;
    this.#offset = offset;
  }

  get isAvailable(): boolean {
    return this.#slot.turn === this.#turn;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    if (!this.isAvailable) throw new Error("Cannot read a picture that has left the ring");
    return this.#slot.bytes.subarray(this.#offset, this.#offset + pixelBytes(this.width, this.height));
  }
}
