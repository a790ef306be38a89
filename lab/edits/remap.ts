/** Moves a truth to the frames that are left when some of a video were lost. */

import type { FrameRange } from "../scores/truth.ts";
import type { FilmTruth } from "./film.ts";

/**
 * The truth of the frames that are left. `kept` names, for each frame that comes out, the frame that it was;
 * it ascends.
 */
export function remap(truth: FilmTruth, kept: readonly number[]): FilmTruth {
  const place = (frame: number) => {
    let low = 0, high = kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (kept[middle]! >= frame) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const points = (frames: readonly number[]) =>
    [...new Set(frames.map(place))].filter((frame) => frame > 0 && frame < kept.length);
  const ranges = <Range extends FrameRange>(list: readonly Range[]) =>
    list.map((range) => ({ ...range, start: place(range.start), end: place(range.end) }))
      .filter(({ start, end }) => start < end);
  return {
    cuts: points(truth.cuts),
    gradual: ranges(truth.gradual),
    flashes: ranges(truth.flashes),
    freezes: ranges(truth.freezes),
    black: ranges(truth.black),
    loops: ranges(truth.loops),
    corruption: ranges(truth.corruption),
    faint: ranges(truth.faint),
    artifacts: ranges(truth.artifacts),
    shakes: ranges(truth.shakes),
    jumpcuts: points(truth.jumpcuts),
    jumps: points(truth.jumps),
    lightsteps: points(truth.lightsteps),
    static: ranges(truth.static),
    shots: truth.shots.map((shot) => ({ ...shot, start: Math.min(place(shot.start), kept.length - 1) })),
  };
}
