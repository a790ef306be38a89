/** What a live session has reserved: memory for pictures of a size, which may change, threads, and a slot. */

import type { Extent } from "../../model/frames/coordinates.ts";
import { bounded, pixelsOf } from "../../model/live/picture_limits.ts";
import type { HeldCapacity } from "./capacity.ts";

export interface SessionRoomOptions {
  readonly capacity: HeldCapacity;
  readonly slot: Disposable;
  readonly picture: Extent;
  /** What a publisher may send at any time; null for a source whose pictures say it. */
  readonly least: Extent | null;
  /** What the session may hold at most with pictures of this size. */
  readonly memoryBytes: (picture: Extent) => number;
}

/** Disposing it gives back everything. */
export class SessionRoom implements Disposable {
  readonly #options: SessionRoomOptions;
  #picture: Extent;
  /** The pictures for which there was not enough memory last. */
  #refused: Extent | null = null;

  constructor(options: SessionRoomOptions) {
    this.#options = options;
    this.#picture = options.picture;
  }

  /** The size of pictures for which memory is reserved. */
  get picture(): Extent {
    return this.#picture;
  }

  /** Whether pictures of this size need more than is reserved. */
  isTooSmallFor(picture: Extent): boolean {
    return pixelsOf(bounded(picture)) > pixelsOf(this.#picture);
  }

  isLargerThan(picture: Extent): boolean {
    return pixelsOf(this.#fitting(picture)) < pixelsOf(this.#picture);
  }

  /**
   * Reserves for pictures of this size, more or less than before; false where there is not so much memory,
   * and nothing changes.
   */
  resize(picture: Extent): boolean {
    const next = this.#fitting(picture);
    const { capacity, memoryBytes } = this.#options;
    const isGranted = capacity.resizeMemory(memoryBytes(next));
    if (isGranted) this.#picture = next;
    this.#refused = isGranted ? null : next;
    return isGranted;
  }

  /**
   * Like `resize`, for what the source is known to send as it is opened again: it may go on with what was
   * refused before.
   */
  reopen(picture: Extent): boolean {
    const refused = this.#refused;
    return this.resize(refused && pixelsOf(refused) > pixelsOf(picture) ? refused : picture);
  }

  #fitting(picture: Extent): Extent {
    const { least } = this.#options;
    const next = bounded(picture);
    return least && pixelsOf(least) > pixelsOf(next) ? least : next;
  }

  [Symbol.dispose](): void {
    this.#options.capacity[Symbol.dispose]();
    this.#options.slot[Symbol.dispose]();
  }
}
