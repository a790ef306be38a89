/** Which lines of a high picture its reduced frame is made of. */

import { PLANE_HEIGHT, PLANE_WIDTH } from "./frame_planes.ts";

/** So many lines of a picture at least, if it has them, are averaged for a line of its reduced frame. */
const LINES_EACH = 1.5;

/**
 * 1 where all lines of a picture, or of a region of one, are averaged; 2 for every other one, 4 for every fourth one, and so on.
 * A scaler waits for the memory of each line that it reads: all 1080 would cost a sixth of a decode, every fourth one a fourteenth.
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
