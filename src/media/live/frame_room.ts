/** The memory that one live session may use for its frames: it follows the size of the pictures, and may be
 * refused.
 */

import type { Extent } from "../../model/frames/coordinates.ts";
import type { PictureSize } from "./picture_sizes.ts";

export interface FrameRoom {
  /** Frames of more pixels are scaled down to as many. */
  readonly maxFrame: Extent;
  /**
   * Called before the first frame of a size; false where there is no memory for it, and `maxFrame` is smaller
   * from then on.
   */
  takeFor(size: PictureSize): boolean | Promise<boolean>;
}
