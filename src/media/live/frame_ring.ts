/** The pixels of the newest decoded frames of one live stream, in memory that is reused. */

import { type Extent, isSameExtent } from "../../model/frames/coordinates.ts";
import type { PictureSize } from "./picture_sizes.ts";
import { NutError, NutReader } from "../containers/nut.ts";

/** A decoded frame in YUV 4:2:0: the planes one after the other, rows without padding. */
export interface FramePixels extends Extent {
  /** Whether luma is 0 to 255 and not 16 to 235. */
  readonly isFullRange: boolean;
  /** The size that was decoded, before the picture was scaled down. */
  readonly sourceExtent: Extent;
  /** Whether the pixels can be read: false once their memory is used for a newer frame. */
  readonly isAvailable: boolean;
  /**
   * A view; throws when the pixels are no longer available. Copy what must live longer than the ring keeps
   * it.
   */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The most that one read may give: twice the capacity of a pipe. */
export const RING_READ_BYTES = 128 * 1024;
/** Headers of a NUT file and of its first frame. */
const HEADER_BYTES = 16 * 1024;

/** The memory of a ring for `frames` frames of this size. */
export function ringBytes(extent: Extent, frames: number): number {
  return frames * slotBytes(extent) + HEADER_BYTES + 2 * RING_READ_BYTES;
}

/**
 * Reads a NUT stream of raw frames. The bytes of each frame are collected where they stay:
 *
 * ```
 *   read ─copy─→ slot | header of the frame | pixels ........... | start of the next frame |
 *                                                                  └─copy─→ next slot
 * ```
 */
export class FrameRing {
  readonly #frames: number;
  readonly #reader = new NutReader();
  #slots: Slot[] = [];
  /** The size that the slots are for; null while the bytes are in a slot that is for none. */
  #extent: Extent | null = null;
  #slot = new Slot(HEADER_BYTES + 2 * RING_READ_BYTES);
  #next = 0;
  /**
   * The unread bytes of the slot are `[at, end)`. `at` may be greater than `end`, while a skipped element is
   * not complete.
   */
  #at = 0;
  #end = 0;
  /** Where the bytes go on behind a frame that was read and waits; null where none does. */
  #waitsFrom: number | null = null;

  /** Keeps the newest `frames` frames, and one less while the next one is being read. */
  constructor(frames: number) {
    this.#frames = frames;
  }

  /** Prepares for a new stream. The frames of the one before stay until their slots are used again. */
  reset(): void {
    this.#reader.reset();
    this.#slot = new Slot(HEADER_BYTES + 2 * RING_READ_BYTES);
    this.#extent = null;
    this.#at = 0;
    this.#end = 0;
    this.#waitsFrom = null;
  }

  /**
   * Takes the next bytes of the stream, at most RING_READ_BYTES, and calls `onPixels` with each frame that is
   * complete. Where a frame waits, so does what follows it, until the next call without new bytes. Throws a
   * NutError for bytes that are no stream of raw frames.
   */
  push(
    bytes: Uint8Array,
    { isFullRange, sizeOf }: {
      readonly isFullRange: boolean;
      /**
       * Size of the frame of this time, null while it is not known. `first` is the size in the header of the
       * stream, and `fits` says which sizes have as many bytes.
       */
      readonly sizeOf: (pts: number, first: Extent, fits: (frame: Extent) => boolean) => PictureSize | null;
    },
    onPixels: (pixels: FramePixels, time: StreamTime) => void,
  ): UnplacedFrame | null {
    const reader = this.#reader;
    this.#slot.bytes.set(bytes, this.#end);
    this.#end += bytes.length;
    for (;;) {
      const slot = this.#slot;
      const next = this.#waitsFrom ?? reader.read(slot.bytes, this.#at, this.#end);
      const isFull = next === -1 && this.#end + RING_READ_BYTES > slot.bytes.length;
      if (next === -1 && !isFull) return null;
      if (!reader.hasFrame && !isFull) {
        this.#at = next;
        continue;
      }
      const { width, height, framePts, frameOffset, frameBytes } = reader;
      const fits = (frame: Extent) => pixelBytes(frame) === frameBytes;
      const size = sizeOf(framePts, { width, height }, fits);
      const waits = this.#waitingFor(size, frameBytes);
      if (size === null || waits) {
        if (!isFull) this.#waitsFrom = next;
        return waits;
      }
      if (isFull) throw new NutError("an element that does not fit");
      this.#waitsFrom = null;
      this.#at = next;
      this.#openSlot(slot.bytes.subarray(this.#at, this.#end));
      onPixels(new SlotPixels(slot, { ...size.frame, isFullRange, sourceExtent: size.source }, frameOffset), {
        pts: framePts,
        numerator: reader.timeBaseNumerator,
        denominator: reader.timeBaseDenominator,
      });
    }
  }

  /**
   * Makes room for frames of this size, which one waits for. Those that were given before stay as long as
   * somebody has them.
   */
  resize(extent: Extent): void {
    this.#extent = extent;
    const bytes = slotBytes(extent);
    if (this.#slots[0]?.bytes.length !== bytes) {
      this.#slots = Array.from({ length: this.#frames }, () => new Slot(bytes));
      this.#next = 0;
    }
    const [at, rest] = [this.#at, this.#slot.bytes.subarray(0, this.#end)];
    this.#openSlot(rest);
    this.#at = at;
  }

  #waitingFor(size: PictureSize | null, frameBytes: number): UnplacedFrame | null {
    if (size === null || frameBytes !== pixelBytes(size.frame)) return { size: null };
    return this.#extent && isSameExtent(this.#extent, size.frame) ? null : { size };
  }

  /** Makes the oldest slot the current one and begins it with `rest`. */
  #openSlot(rest: Uint8Array): void {
    const slot = this.#slots[this.#next]!;
    this.#next = (this.#next + 1) % this.#slots.length;
    slot.uses++;
    slot.bytes.set(rest);
    this.#slot = slot;
    this.#at = 0;
    this.#end = rest.length;
  }
}

/** A frame that waits for room for its size, by `resize`; null: it waits until its size is known. */
export interface UnplacedFrame {
  readonly size: PictureSize | null;
}

/** Unit of times in a stream: a time is `pts * numerator / denominator` seconds. */
export interface StreamTime {
  readonly pts: number;
  readonly numerator: number;
  readonly denominator: number;
}

/** Bytes of a frame: chroma has half the rows and columns, rounded up. */
function pixelBytes({ width, height }: Extent): number {
  return width * height + 2 * Math.ceil(width / 2) * Math.ceil(height / 2);
}

function slotBytes(extent: Extent): number {
  return pixelBytes(extent) + HEADER_BYTES + 2 * RING_READ_BYTES;
}

class Slot {
  /** How many frames it was used for. */
  uses = 0;
  readonly bytes: Uint8Array<ArrayBuffer>;

  constructor(bytes: number) {
    this.bytes = new Uint8Array(bytes);
  }
}

class SlotPixels implements FramePixels {
  readonly width: number;
  readonly height: number;
  readonly isFullRange: boolean;
  readonly sourceExtent: Extent;
  readonly #slot: Slot;
  readonly #use: number;
  readonly #offset: number;

  constructor(slot: Slot, shape: Extent & Pick<FramePixels, "isFullRange" | "sourceExtent">, offset: number) {
    this.width = shape.width;
    this.height = shape.height;
    this.isFullRange = shape.isFullRange;
    this.sourceExtent = shape.sourceExtent;
    this.#slot = slot;
    this.#use = slot.uses;
    this.#offset = offset;
  }

  get isAvailable(): boolean {
    return this.#slot.uses === this.#use;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    if (!this.isAvailable) throw new Error("Cannot read a frame that has left the ring");
    return this.#slot.bytes.subarray(this.#offset, this.#offset + pixelBytes(this));
  }
}
