/** The memory for the pictures of a session, in its Worker: what is reserved for them, and what is asked for
 * when they grow.
 */

import type { FrameRoom } from "../media/live/frame_room.ts";
import type { PictureSize } from "../media/live/picture_sizes.ts";
import type { Extent } from "../model/frames/coordinates.ts";
import { LARGEST_PICTURE, pixelsOf } from "../model/live/picture_limits.ts";
import type { LiveOrder } from "./messages/messages.ts";

export interface PictureRoomOptions {
  /** Largest picture for which admission has reserved memory. */
  readonly reserved: Extent;
  readonly report: (size: PictureSize) => void;
  /** Called when another amount is reserved. */
  readonly onReserved: (picture: Extent) => void;
}

/**
 * ```
 *   size of the pictures ──▶ report ──▶ HTTP thread: reserves more, or less
 *        └─ larger: waits for ◀── room ────┘ refused: `maxFrame` is what is reserved
 * ```
 */
export class PictureRoom implements FrameRoom, Disposable {
  readonly #options: PictureRoomOptions;
  #reserved: Extent;
  #isGranted = true;
  #isClosed = false;
  /** Waits for the answer where a larger size was reported; null otherwise. */
  #asked: PromiseWithResolvers<boolean> | null = null;

  constructor(options: PictureRoomOptions) {
    this.#options = options;
    this.#reserved = options.reserved;
  }

  get maxFrame(): Extent {
    return this.#isGranted ? LARGEST_PICTURE : this.#reserved;
  }

  takeFor(size: PictureSize): boolean | Promise<boolean> {
    if (this.#isClosed) return false;
    this.#options.report(size);
    if (pixelsOf(size.frame) <= pixelsOf(this.#reserved)) return true;
    this.#asked ??= Promise.withResolvers();
    return this.#asked.promise;
  }

  /** Takes the order that says what is reserved from here on. */
  onOrder({ picture, isGranted }: Extract<LiveOrder, { kind: "room" }>): void {
    this.#reserved = picture;
    this.#isGranted = isGranted;
    this.#options.onReserved(picture);
    this.#settle(isGranted);
  }

  /** Ends the waiting: there is room for nothing more. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#settle(false);
  }

  #settle(isGranted: boolean): void {
    this.#asked?.resolve(isGranted);
    this.#asked = null;
  }
}
