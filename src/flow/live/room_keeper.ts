/** Keeps what a live session has reserved at the size of its pictures, and tells its Worker what it may hold.
 */

import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { PictureSize } from "../../media/live/picture_sizes.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import type { SessionOrder } from "../../live/worker_pool.ts";
import type { LiveJournal } from "./journal/journal.ts";
import type { SessionRoom } from "./session_room.ts";

/** How long memory for larger pictures is kept, for those that change their size again and again. */
const ROOM_KEPT_MS = 60_000;

export interface RoomKeeperOptions {
  readonly sessionId: string;
  readonly journal: Pick<LiveJournal, "runId">;
  readonly room: SessionRoom;
  readonly send: (order: SessionOrder) => void;
  readonly world: World;
}

/**
 * More is reserved at once, and given back where the pictures stay smaller for a while. Disposing it only
 * stops that wait.
 */
export class RoomKeeper implements Disposable {
  readonly #options: RoomKeeperOptions;
  #newest: PictureSize | null = null;
  /** Set while the pictures are smaller than what is reserved. */
  #givingBack: Disposable | null = null;

  constructor(options: RoomKeeperOptions) {
    this.#options = options;
  }

  /** The size of the newest frames; null before the first. */
  get newest(): PictureSize | null {
    return this.#newest;
  }

  onFrames({ frame, source }: PictureSize): void {
    const { room, world } = this.#options;
    this.#newest = { frame, source };
    this[Symbol.dispose]();
    if (room.isTooSmallFor(frame)) this.#order(room.resize(frame), source);
    if (!room.isLargerThan(frame)) return;
    this.#givingBack = timer(world, ROOM_KEPT_MS, () => this.#order(room.resize(frame), source));
  }

  /** The source is opened again, with pictures of this size. */
  reopen(picture: Extent): void {
    this.#order(this.#options.room.reopen(picture), picture);
  }

  [Symbol.dispose](): void {
    this.#givingBack?.[Symbol.dispose]();
    this.#givingBack = null;
  }

  #order(isGranted: boolean, asked: Extent): void {
    const { sessionId, journal, room: { picture }, send, world } = this.#options;
    send({ kind: "room", picture: { width: picture.width, height: picture.height }, isGranted });
    if (isGranted) return;
    world.log.warn("there is no memory for the pictures of a live session: they are scaled down", {
      run_id: journal.runId,
      session_id: sessionId,
      picture: `${asked.width}x${asked.height}`,
      to_pixels_of: `${picture.width}x${picture.height}`,
    });
  }
}
