/** Lines of the picture that nothing was averaged of, which come before each reduced frame: docs/detection.md#combing. */

import type { Region } from "../../model/frames/coordinates.ts";
import { FRAME_BYTES, PLANE_BYTES, PLANE_WIDTH } from "./frame_filter.ts";

/** Two bands of neighbouring lines, around a third and two thirds of the height, 320 samples of each line. */
const BANDS = 2;
const BAND_LINES = 16;
export const LINES_BYTES = BANDS * BAND_LINES * PLANE_WIDTH;

/** Half as many lines and samples of each chroma plane, which nobody needs. */
const LINES_CHROMA_BYTES = LINES_BYTES / 4;
const CHROMA_BYTES = PLANE_BYTES / 4;
/** A yuv420p picture of the lines with the frame below them, as ffmpeg writes it. */
export const STACKED_FRAME_BYTES = FRAME_BYTES + LINES_BYTES + 2 * LINES_CHROMA_BYTES;

/** The filters of ffmpeg that make a stacked frame of a picture; `reduction` are those that make the frame alone. */
export function stackingFilters(reduction: readonly string[]): string {
  const bands = Array.from({ length: BANDS }, (_, band) => {
    // The filter keeps the band inside the picture. If that has fewer lines, some come twice.
    const crop = `crop=iw:'min(${BAND_LINES},ih)':0:'floor(ih*${band + 1}/6)*2-${BAND_LINES / 2}':exact=1`;
    const scale = `scale=${PLANE_WIDTH}:${BAND_LINES}:flags=neighbor:in_range=full:out_range=full`;
    return { name: `[band${band}]`, filters: `[at${band}]${crop},${scale},format=yuv420p[band${band}]` };
  });
  const names = bands.map(({ name }) => name).join("");
  return [
    `split=${BANDS + 1}${names.replaceAll("band", "at")}[whole]`,
    ...bands.map(({ filters }) => filters),
    `[whole]${reduction.join(",")}[frame]`,
    `${names}[frame]vstack=${BANDS + 1}`,
  ].join(";");
}

/**
 * Leaves out the chroma of the lines, in place; returns where the frame begins. The stacked frame begins at `offset`:
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

/** Copies the lines of `region` of a luma plane, whose rows have `stride` bytes, into `target`: those that ffmpeg takes. */
export function copyLines(
  source: Uint8Array,
  stride: number,
  { x, y, width, height }: Region,
  target: Uint8Array,
): void {
  const taken = Math.min(BAND_LINES, height);
  let at = 0;
  for (let band = 0; band < BANDS; band++) {
    const wanted = Math.floor(height * (band + 1) / 6) * 2 - BAND_LINES / 2;
    const first = Math.max(0, Math.min(wanted, height - taken));
    for (let line = 0; line < BAND_LINES; line++) {
      const row = first + Math.floor((2 * line + 1) * taken / (2 * BAND_LINES));
      const start = (y + row) * stride + x;
      for (let column = 0; column < PLANE_WIDTH; column++) {
        target[at++] = source[start + Math.floor((2 * column + 1) * width / (2 * PLANE_WIDTH))]!;
      }
    }
  }
}
