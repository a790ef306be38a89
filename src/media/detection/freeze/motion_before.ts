/** How a picture moved just before a frame: what a stretch that stands still is compared with. */

import type { FrameHistory } from "../ranges/frame_history.ts";
import type { BoundsOf } from "../ranges/range_sink.ts";

/** Which frames tell how a picture moved. */
export const MOTION_BOUNDS = {
  /** Milliseconds that count as just before; at a low rate `framesMin` frames do. */
  beforeMs: 500,
  framesMin: 6,
  /** Milliseconds whose frames say what motion is usual: `usualQuantile` of them move no more than that. */
  usualMs: 1000,
  usualQuantile: 0.7,
  /** Fewer frames than this tell nothing. */
  knownMin: 4,
  /**
   * Place, among the frames sorted by motion, of the one that stands for all. Where each picture is shown two
   * or three times, this is one that moves.
   */
  quantile: 0.8,
  /** `quantile` where only the last frames count: the middle one. */
  briefQuantile: 0.5,
  /**
   * A frame that moved more than this times `moved` is a keyframe or a cut, which says nothing of single
   * cells.
   */
  redrawn: 3,
} as const;

export type MotionBounds = BoundsOf<typeof MOTION_BOUNDS>;

/** Most frames that are looked at. */
const FRAMES_MAX = 60;
/** The last frames, of which the middle one counts too. */
const LAST_FRAMES = 3;

export class MotionBefore {
  /**
   * Mean absolute difference of luma samples to the frame before, in levels, of a frame that stands for all
   * of them.
   */
  moved = 0;
  /**
   * The largest change of a cell, in levels, of a frame that stands for all of them; `step` is its mean
   * change of the cells.
   */
  change = 0;
  step = 0;
  /** The most motion of the last three frames; `lastMiddle` is the middle one. */
  last = 0;
  lastMiddle = 0;
  /**
   * How much of the motion of the last three frames is a change of the mean luma: nearly all of it in a fade.
   */
  lightShare = 0;
  /**
   * Share of the frames of the half second that moved more than the limit. `hold` is the longest row of
   * others, with the frames that only show a picture again.
   */
  movingShare = 0;
  hold = 0;
  /**
   * The motion that most frames of the last second stay below, so that a few faults and transitions do not
   * count.
   */
  usual = 0;
  /** Whether a cut lies within the half second; what is before it does not count. */
  hasCut = false;
  /**
   * Place in the kernel where the sums of the absolute differences of each luma cell are. `counted` is the
   * number of frames in them.
   */
  readonly place: number;
  counted = 0;
  readonly #sorted = new Float64Array(FRAMES_MAX);
  readonly #isBrief: boolean;
  readonly #bounds: MotionBounds;

  /** `isBrief`: only the last frames count. */
  constructor(isBrief: boolean, bounds: MotionBounds) {
    this.#isBrief = isBrief;
    this.#bounds = bounds;
    this.place = isBrief ? 1 : 0;
  }

  /**
   * The motion before `frame` in the shot that begins with `cut`, of which only `moved` is set; 0 where too
   * little is known, or where `moved` is more than that share of any motion there.
   */
  look(history: FrameHistory, frame: number, cut: number, moved: number, share: number): void {
    const bounds = this.#bounds;
    const count = this.#countBefore(history, frame, cut, this.#isBrief ? 0 : bounds.beforeMs);
    this.moved = 0;
    if (count < bounds.knownMin || share * largest(history, frame, count) < moved) return;
    this.moved = this.#sort(history, "moved", frame, count)[this.#place(count)]!;
  }

  /** Sets all of the motion before `frame`; a frame is still that moved by at most `limit`. */
  take(history: FrameHistory, frame: number, cut: number, limit: number): void {
    const bounds = this.#bounds;
    const count = this.#countBefore(history, frame, cut, this.#isBrief ? 0 : bounds.beforeMs);
    const place = this.#place(count);
    this.change = this.#sort(history, "largestChange", frame, count)[place]!;
    this.step = this.#sort(history, "step", frame, count)[place]!;
    const lastSorted = this.#sort(history, "moved", frame, LAST_FRAMES);
    this.last = lastSorted[LAST_FRAMES - 1]!;
    this.lastMiddle = lastSorted[1]!;
    this.lightShare = lightShareOf(history, frame);
    const { kernel } = history;
    kernel.clearMoves(this.place);
    this.counted = 0;
    for (let i = frame - count; i < frame; i++) {
      if (history.moved(i) > bounds.redrawn * this.moved) continue;
      this.counted++;
      kernel.addMoves(this.place, i);
    }
    this.#takeHolds(history, frame, cut, limit);
    const long = this.#countBefore(history, frame, cut, bounds.usualMs);
    this.usual = this.#sort(history, "moved", frame, long)[Math.floor(bounds.usualQuantile * (long - 1))]!;
  }

  #takeHolds(history: FrameHistory, frame: number, cut: number, limit: number): void {
    const count = this.#countBefore(history, frame, cut, this.#bounds.beforeMs);
    let moving = 0, shown = history.first(frame - count) - 1;
    this.hold = 0;
    for (let i = frame - count; i < frame; i++) {
      if (history.moved(i) > limit) {
        moving++;
        shown = history.first(i);
      }
      this.hold = Math.max(this.hold, history.last(i) - shown);
    }
    this.movingShare = moving / count;
    this.hasCut = frame - count === cut + 1;
  }

  #place(count: number): number {
    const bounds = this.#bounds;
    return Math.floor((this.#isBrief ? bounds.briefQuantile : bounds.quantile) * (count - 1));
  }

  /**
   * How many frames the time before has: six at least, in the same shot. Frame 0 has no motion, nor has the
   * first one after a cut.
   */
  #countBefore(history: FrameHistory, frame: number, cut: number, timeMs: number): number {
    const fromMs = history.ptsMs(frame) - timeMs;
    let count = 0;
    while (count < FRAMES_MAX) {
      const i = frame - 1 - count;
      if (i < 1 || i <= cut || i <= history.oldest) break;
      if (history.ptsMs(i) < fromMs && count >= this.#bounds.framesMin) break;
      count++;
    }
    return count;
  }

  /**
   * What the `count` frames before `frame` measure, from the least to the most; overwritten by the next call.
   */
  #sort(
    history: FrameHistory,
    measure: "moved" | "largestChange" | "step",
    frame: number,
    count: number,
  ): Float64Array {
    const sorted = this.#sorted;
    for (let n = 0; n < count; n++) {
      const value = history[measure](frame - 1 - n);
      let at = n;
      while (at > 0 && sorted[at - 1]! > value) sorted[at] = sorted[--at]!;
      sorted[at] = value;
    }
    return sorted;
  }
}

/** The most that one of the `count` frames before a frame moved. */
function largest(history: FrameHistory, frame: number, count: number): number {
  let most = 0;
  for (let i = frame - count; i < frame; i++) most = Math.max(most, history.moved(i));
  return most;
}

function lightShareOf(history: FrameHistory, frame: number): number {
  let light = 0, moved = 0;
  for (let i = Math.max(1, frame - LAST_FRAMES); i < frame; i++) {
    light += Math.abs(history.lumaMean(i) - history.lumaMean(i - 1));
    moved += history.moved(i);
  }
  return moved > 0 ? light / moved : 0;
}
