/** Memory for the frames of a live stream where nobody has to be asked for it. */

import type { FrameRoom } from "../../../src/media/live/frame_room.ts";
import type { Extent } from "../../../src/model/frames/coordinates.ts";

export function freeRoom(maxFrame: Extent = { width: 1920, height: 1080 }): FrameRoom {
  return { maxFrame, takeFor: () => true };
}
