/** Decodes a finished video: how many frames it has, and where nothing moves in them. */

import type { FrameRange } from "../../scores/truth.ts";
import type { FilmTruth } from "../film.ts";
import { difference, Picture, type Size } from "../pictures/picture.ts";
import { FrameReader } from "./programs.ts";

/**
 * Largest mean difference of two frames that are the same to a viewer, so that calling them frozen is not
 * wrong.
 */
const STILL_MEAN = 0.5;
const STILL_BLOCK = 6;
const SHORTEST_STILL_FRAMES = 5;

/** Whether a picture shows nothing new. */
export function isStill(picture: Picture, previous: Picture): boolean {
  const { luma, block } = difference(picture, previous);
  return luma <= STILL_MEAN && block <= STILL_BLOCK;
}

export interface Inspection {
  readonly frames: number;
  /** For each frame whether it shows nothing new; a coarse encoder makes a quiet scene stand still. */
  readonly still: readonly boolean[];
}

export async function inspect(path: string, size: Size): Promise<Inspection> {
  let picture = new Picture(size), previous = new Picture(size);
  const still: boolean[] = [];
  await using reader = new FrameReader([
    ...["-v", "quiet", "-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", "-pix_fmt", "yuv420p"],
  ]);
  while (await reader.read(picture.data)) {
    still.push(still.length > 0 && isStill(picture, previous));
    [picture, previous] = [previous, picture];
  }
  return { frames: still.length, still };
}

/**
 * The truth with what stands still. Frames are `static` where they stood still before encoding or do so
 * after, unless they are frozen or black.
 */
export function withStill(truth: FilmTruth, { frames, still }: Inspection): FilmTruth {
  const standing = [...still];
  const set = (ranges: readonly FrameRange[], value: boolean) => {
    for (const { start, end } of ranges) standing.fill(value, start, Math.min(end, frames));
  };
  set(truth.static, true);
  set(truth.freezes, false);
  set(truth.black, false);
  const ranges = rangesWhere(standing, Boolean).filter(({ start, end }) =>
    end - start >= SHORTEST_STILL_FRAMES
  );
  return { ...truth, static: ranges };
}

/** The longest ranges in which all values are of a kind. */
export function rangesWhere<Value>(values: readonly Value[], holds: (value: Value) => boolean): FrameRange[] {
  const ranges: FrameRange[] = [];
  let start = -1;
  for (let i = 0; i <= values.length; i++) {
    const inside = i < values.length && holds(values[i]!);
    if (inside && start < 0) start = i;
    if (!inside && start >= 0) {
      ranges.push({ start, end: i });
      start = -1;
    }
  }
  return ranges;
}
