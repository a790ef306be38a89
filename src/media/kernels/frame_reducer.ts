/** Makes the frames of the frame filter out of live pictures: the region of each of the three planes is
 * scaled.
 */

import type { Extent, Region } from "../../model/frames/coordinates.ts";
import { CHROMA_HEIGHT, CHROMA_WIDTH, PLANE_BYTES, PLANE_HEIGHT, PLANE_WIDTH } from "./frame_planes.ts";
import { PlaneReducer } from "./plane_reducer.ts";
import { lineStep } from "./taken_lines.ts";

const CHROMA_BYTES = CHROMA_WIDTH * CHROMA_HEIGHT;

/**
 * Reduces live pictures. Luma and chroma have tables of their own, which change only with the region's size.
 */
export class FrameReducer {
  readonly #luma: PlaneReducer;
  readonly #chroma: PlaneReducer;

  private constructor(luma: PlaneReducer, chroma: PlaneReducer) {
    this.#luma = luma;
    this.#chroma = chroma;
  }

  static async load(): Promise<FrameReducer> {
    const [luma, chroma] = await Promise.all([
      PlaneReducer.load({ width: PLANE_WIDTH, height: PLANE_HEIGHT }),
      PlaneReducer.load({ width: CHROMA_WIDTH, height: CHROMA_HEIGHT }),
    ]);
    return new FrameReducer(luma, chroma);
  }

  /**
   * Scales `region` of a yuv420p picture, whose planes follow each other without padding, into the first
   * FRAME_BYTES of `target`. A region at odd positions takes the whole chroma samples that it touches from
   * its first one on, and one of many lines every other line (`lineStep`), as ffmpeg does. Throws as
   * `PlaneReducer.reduce` does.
   */
  reduce(picture: Uint8Array, { width, height }: Extent, region: Region, target: Uint8Array): void {
    const lumaEnd = width * height;
    const chromaWidth = (width + 1) >> 1;
    const chromaEnd = lumaEnd + chromaWidth * ((height + 1) >> 1);
    const step = lineStep(region.height);
    const chromaRegion = {
      x: region.x >> 1,
      y: region.y >> 1,
      width: (region.width + 1) >> 1,
      height: (region.height + 1) >> 1,
    };
    const u = target.subarray(PLANE_BYTES, PLANE_BYTES + CHROMA_BYTES);
    const v = target.subarray(PLANE_BYTES + CHROMA_BYTES);
    this.#luma.reduce(picture.subarray(0, lumaEnd), width, region, target, step);
    this.#chroma.reduce(picture.subarray(lumaEnd, chromaEnd), chromaWidth, chromaRegion, u, step);
    this.#chroma.reduce(picture.subarray(chromaEnd), chromaWidth, chromaRegion, v, step);
  }
}
