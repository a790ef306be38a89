/** Follows the size of the pictures of a live ffmpeg, which may change within the stream: NUT has that of the
 * first one alone.
 */

import { type Extent, isSameExtent } from "../../model/frames/coordinates.ts";

/** A size of the frames, and of the pictures that they are scaled down from. */
export interface PictureSize {
  readonly frame: Extent;
  readonly source: Extent;
}

/**
 * What the scaler's lines in the log have before the size that it makes. SCALED finds the sizes in such a
 * line, FILTERED the time of a frame in the line of one that leaves the filters.
 */
const SCALING = " -> w:";
const SCALED = /\bw:(\d+) h:(\d+) fmt:.* -> w:(\d+) h:(\d+) fmt:/;
const FILTERED = /\bfilter -> pts:(-?\d+) /;
/** Changes that are not seen in a frame yet. */
const CHANGES_MAX = 16;

/**
 * Follows sizes by the log: the scaler says in it what it makes from the next frame on. That comes before the
 * frame, but through another pipe.
 */
export class PictureSizes {
  /** Size of the first frames, once they have come; `#present` is that of the newest one. */
  #first: PictureSize | null = null;
  #present: PictureSize | null = null;
  #said: PictureSize | null = null;
  /** How many sizes the log has told of. */
  saidSizes = 0;
  #changes: readonly { readonly fromPts: number; readonly size: PictureSize }[] = [];

  /** A line of the log. */
  read(line: string): void {
    if (line.includes(SCALING)) this.saidSizes++;
    const sizes = SCALED.exec(line)?.slice(1).map(Number);
    if (sizes) {
      const [width, height, frameWidth, frameHeight] = sizes as [number, number, number, number];
      this.#said = { frame: { width: frameWidth, height: frameHeight }, source: { width, height } };
    }
    const fromPts = FILTERED.exec(line)?.[1];
    if (!this.#said || fromPts === undefined) return;
    const change = { fromPts: Number(fromPts), size: this.#said };
    this.#said = null;
    this.#changes = [...this.#changes, change].slice(-CHANGES_MAX);
  }

  /**
   * Size of the frame of this time; null where it is the size of the first frame. Of frames
   * with the same time all but the first get a later one, so that those before a change seem to be behind it:
   * `fits` says which sizes a frame can have, null for that of the first one.
   */
  of(pts: number, fits: (frame: Extent | null) => boolean): PictureSize | null {
    for (let next = this.#changes[0]; next && next.fromPts <= pts; next = this.#changes[0]) {
      if (fits(this.#present?.frame ?? null) && !fits(next.size.frame)) break;
      this.#changes = this.#changes.slice(1);
      this.#first ??= next.size;
      this.#present = next.size;
    }
    const isFirst = !this.#present || isSameExtent(this.#present.source, this.#first!.source);
    return isFirst ? null : this.#present;
  }
}
