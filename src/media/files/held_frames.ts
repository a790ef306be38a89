/** Frames that wait until their time is decided. */

import { CLOCK_LOOK_AHEAD } from "../../model/frames/frame_clock.ts";
import { STACKED_FRAME_BYTES } from "../kernels/picture_lines.ts";

/** Frames that there is room for: one more comes before the first of those that wait leaves. */
const SLOTS = CLOCK_LOOK_AHEAD + 1;

/**
 * A queue of frames, each with its own time. Its three megabytes are taken with the first frame that waits.
 */
export class HeldFrames {
  #bytes: Uint8Array<ArrayBuffer> | null = null;
  readonly #ticks = new Float64Array(SLOTS);
  #added = 0;
  #taken = 0;

  get count(): number {
    return this.#added - this.#taken;
  }

  clear(): void {
    this.#taken = this.#added;
  }

  /** Copies the frame that begins `offset` bytes into `bytes`. */
  add(bytes: Uint8Array, offset: number, ticks: number): void {
    if (this.count === SLOTS) throw new RangeError(`Cannot hold more than ${SLOTS} frames`);
    this.#bytes ??= new Uint8Array(SLOTS * STACKED_FRAME_BYTES);
    const slot = this.#added++ % SLOTS;
    this.#ticks[slot] = ticks;
    this.#bytes.set(bytes.subarray(offset, offset + STACKED_FRAME_BYTES), slot * STACKED_FRAME_BYTES);
  }

  /** Copies the oldest frame to `offset` bytes into `bytes`; returns its time. */
  take(bytes: Uint8Array, offset: number): number {
    if (this.count === 0 || !this.#bytes) throw new RangeError("Cannot take a frame as none is held");
    const slot = this.#taken++ % SLOTS;
    bytes.set(this.#bytes.subarray(slot * STACKED_FRAME_BYTES, (slot + 1) * STACKED_FRAME_BYTES), offset);
    return this.#ticks[slot]!;
  }
}
