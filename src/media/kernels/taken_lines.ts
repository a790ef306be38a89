/** Which lines of a high picture its reduced frame is made of. */

import { PLANE_HEIGHT, PLANE_WIDTH } from "./frame_planes.ts";

/** Least number of lines of a picture, if it has them, that are averaged for a line of its reduced frame. */
const LINES_EACH = 1.5;

/**
 * How many lines lie from one that is averaged to the next, for a picture, or a region of one, of this
 * height: 1 takes all lines, 2 every other one, 4 every fourth one, and so on. A scaler waits for the memory
 * of each line that it reads: all 1080 would cost a sixth of a decode, every fourth one a fourteenth.
 */
export function lineStep(height: number): number {
  let step = 1;
  while (height >= 2 * step * LINES_EACH * PLANE_HEIGHT) step *= 2;
  return step;
}

/** The filters of ffmpeg that reduce a picture, or a region of one, that has `height` lines. */
export function reductionFilters(height: number): string[] {
  return [
    // Leaves out every other line without a copy.
    ...Array<string>(Math.log2(lineStep(height))).fill("field=top"),
    `scale=${PLANE_WIDTH}:${PLANE_HEIGHT}:flags=area:in_range=full:out_range=full`,
  ];
}
