/** Lines of the picture that nothing was averaged of, which come before each reduced frame:
 * docs/detection/faults.md#combing.
 */

import type { Region } from "../../model/frames/coordinates.ts";
import { FRAME_BYTES, PLANE_BYTES, PLANE_WIDTH } from "./frame_planes.ts";

/** Groups of four neighbouring lines, spread evenly over the height; 320 samples of each line. */
const GROUPS = 8;
const NEIGHBOURS = 4;
export const LINES_BYTES = GROUPS * NEIGHBOURS * PLANE_WIDTH;

/** Half as many lines and samples of each chroma plane, which nobody needs. */
const LINES_CHROMA_BYTES = LINES_BYTES / 4;
const CHROMA_BYTES = PLANE_BYTES / 4;
/** A yuv420p picture of the lines with the frame below them, as ffmpeg writes it. */
export const STACKED_FRAME_BYTES = FRAME_BYTES + LINES_BYTES + 2 * LINES_CHROMA_BYTES;

/**
 * The filters of ffmpeg that make a stacked frame of a picture; `reduction` are those that make the frame
 * alone. Fields of fields are each fourth line, for which nothing is copied; the scaler takes one line of
 * each group from them.
 */
export function stackingFilters(reduction: readonly string[]): string {
  const scale = `scale=${PLANE_WIDTH}:${GROUPS}:flags=neighbor:in_range=full:out_range=full,format=yuv420p`;
  return [
    "split[all][whole]",
    // Lines of a picture that has fewer than four come more than once.
    "[all]scale=iw:'max(ih,4)':flags=neighbor,crop=iw:'floor(ih/4)*4':0:0:exact=1,split[all0][all1]",
    "[all0]field=top,split[even0][even1]",
    "[all1]field=bottom,split[odd0][odd1]",
    `[even0]field=top,${scale}[a]`,
    `[odd0]field=top,${scale}[b]`,
    `[even1]field=bottom,${scale}[c]`,
    `[odd1]field=bottom,${scale}[d]`,
    `[whole]${reduction.join(",")}[frame]`,
    "[a][b][c][d][frame]vstack=5",
  ].join(";");
}

/**
 * Leaves out the chroma of the lines, in place; returns where the frame begins. The stacked frame begins at
 * `offset`:
 *
 * ```
 *   lines | luma | U of lines | U | V of lines | V    becomes    lines | luma | U | V
 * ```
 */
export function unstack(bytes: Uint8Array, offset: number): number {
  const frame = offset + LINES_BYTES;
  const u = frame + PLANE_BYTES + LINES_CHROMA_BYTES;
  bytes.copyWithin(frame + PLANE_BYTES, u, u + CHROMA_BYTES);
  const v = u + CHROMA_BYTES + LINES_CHROMA_BYTES;
  bytes.copyWithin(frame + PLANE_BYTES + CHROMA_BYTES, v, v + CHROMA_BYTES);
  return frame;
}

/**
 * Copies the lines of `region` of a luma plane, whose rows have `stride` bytes, into `target`: those that
 * ffmpeg takes, the first line of each group, then the second ones, and so on.
 */
export function copyLines(
  source: Uint8Array,
  stride: number,
  { x, y, width, height }: Region,
  target: Uint8Array,
): void {
  let at = 0;
  for (let line = 0; line < NEIGHBOURS; line++) {
    for (let group = 0; group < GROUPS; group++) {
      const place = NEIGHBOURS * middleOf(group, height >> 2, GROUPS) + line;
      const row = height < NEIGHBOURS ? middleOf(line, height, NEIGHBOURS) : place;
      const start = (y + row) * stride + x;
      for (let column = 0; column < PLANE_WIDTH; column++) {
        target[at++] = source[start + middleOf(column, width, PLANE_WIDTH)]!;
      }
    }
  }
}

/** The place in the middle of one of `parts` equal parts of `size` places. */
function middleOf(part: number, size: number, parts: number): number {
  return Math.floor((2 * part + 1) * size / (2 * parts));
}
