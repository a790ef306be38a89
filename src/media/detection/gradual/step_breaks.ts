/** Where a transition may begin or end: frames at which the steps of the picture change, and ends of straight
 * ways.
 */

import { distanceOf } from "../ranges/cell_structure.ts";
import type { FrameHistory } from "../ranges/frame_history.ts";

/*
 * In a transition each cell goes the straight way from what it was to what it will be, all at once or one
 * after the other. Where things or the camera move, cells go to and fro. So the measure is the efficiency of
 * the way:
 *
 *   distance of the pictures before and after / sum of the distances of all neighbours between them
 *
 * It is 1 for a cut too, but there one step is all of the way. A frame is on a straight way if the WINDOW_MS
 * around it have an efficiency of WINDOW_EFFICIENCY, a distance of WINDOW_DISTANCE levels, and no single step
 * that is most of it. A run of such frames reaches as far as the steps do not fall below EDGE of their mean.
 */
const WINDOW_MS = 240;
const WINDOW_EFFICIENCY = 0.55;
const WINDOW_DISTANCE = 2;
const WINDOW_STEP_MAX = 0.62;
const EDGE = 0.4;
const REACH_MS = 200;
/**
 * The steps change where their means before and after differ by this factor, over TURN_MS, but four to ten
 * frames.
 */
const TURN_MIN = 1.6;
const TURN_MS = 130;
const TURN_FRAMES_MIN = 4;
const TURN_FRAMES_MAX = 10;
/** Levels that are added to both means. */
const TURN_NOISE = 0.05;
/** The newest breaks that are kept. */
const KEPT = 128;
/** How long after a frame it is known whether it is a break. */
export const BREAK_DELAY_MS = WINDOW_MS / 2 + REACH_MS;
export const BREAK_DELAY_FRAMES = TURN_FRAMES_MAX + 2;

export class StepBreaks {
  /** The first frames of what is different, ascending; `length` of them count. */
  readonly frames = new Int32Array(KEPT);
  length = 0;
  /** The frame whose window was looked at last. */
  #centre = 0;
  #isStraight = false;
  /** Mean step of the windows of the run. */
  #core = 0;
  #turned = 0;
  #turns = new Float64Array(3);

  constructor() {
    this.reset();
  }

  reset(): void {
    // The second frame: a transition may be there from the first one on.
    this.frames[0] = 1;
    this.length = 1;
    this.#centre = 0;
    this.#isStraight = false;
    this.#turned = 0;
    this.#turns.fill(0);
  }

  push(history: FrameHistory): void {
    const frame = history.count - 1;
    const nowMs = history.ptsMs(frame);
    while (this.#centre + 1 < frame && nowMs - history.ptsMs(this.#centre + 1) > WINDOW_MS / 2 + 1) {
      this.#look(history, ++this.#centre, frame - 1);
    }
    while (this.#turned + TURN_FRAMES_MAX < frame) this.#turnAt(history, ++this.#turned);
  }

  finish(history: FrameHistory): void {
    while (this.#centre + 1 < history.count) this.#look(history, ++this.#centre, history.count - 1);
    if (this.#isStraight) this.#endRun(history, history.count - 1);
    while (this.#turned + 1 < history.count) this.#turnAt(history, ++this.#turned);
    this.#add(history.count);
  }

  /** The newest break before a frame; -1 where there is none. */
  before(frame: number): number {
    let at = this.length - 1;
    while (at >= 0 && this.frames[at]! >= frame) at--;
    return at < 0 ? -1 : this.frames[at]!;
  }

  /**
   * Whether the window around `centre` is on a straight way; `newest` is the last frame that may lie in it.
   */
  #look(history: FrameHistory, centre: number, newest: number): void {
    const centreMs = history.ptsMs(centre);
    let from = centre, until = centre;
    let way = 0, most = 0;
    while (from > history.oldest && centreMs - history.ptsMs(from - 1) <= WINDOW_MS / 2 + 1) {
      way += history.step(from);
      most = Math.max(most, history.step(from));
      from--;
    }
    while (until < newest && history.ptsMs(until + 1) - centreMs <= WINDOW_MS / 2 + 1) {
      until++;
      way += history.step(until);
      most = Math.max(most, history.step(until));
    }
    let isStraight = from < centre && until > centre && way >= WINDOW_DISTANCE &&
      most <= WINDOW_STEP_MAX * way;
    if (isStraight) {
      const distance = distanceOf(history, from, until);
      isStraight = distance >= WINDOW_DISTANCE && distance >= WINDOW_EFFICIENCY * way;
    }
    const mean = way / Math.max(1, until - from);
    if (isStraight) {
      if (!this.#isStraight) {
        this.#core = mean;
        this.#beginRun(history, centre);
      }
      this.#core = mean;
    } else if (this.#isStraight) this.#endRun(history, centre - 1);
    this.#isStraight = isStraight;
  }

  #beginRun(history: FrameHistory, first: number): void {
    const least = EDGE * this.#core;
    let from = first;
    while (
      from > history.oldest + 1 && history.step(from - 1) >= least &&
      history.ptsMs(first) - history.ptsMs(from - 1) <= REACH_MS
    ) from--;
    this.#add(from);
  }

  #endRun(history: FrameHistory, last: number): void {
    const least = EDGE * this.#core;
    let until = last + 1;
    while (
      until < history.count && history.step(until) >= least &&
      history.ptsMs(until) - history.ptsMs(last) <= REACH_MS
    ) until++;
    this.#add(until);
  }

  /** Adds the frame before if the steps change there more than at its neighbours. */
  #turnAt(history: FrameHistory, frame: number): void {
    const turns = this.#turns;
    turns[0] = turns[1]!;
    turns[1] = turns[2]!;
    turns[2] = turn(history, frame);
    if (frame > 2 && turns[1]! >= TURN_MIN && turns[1]! >= turns[0]! && turns[1]! > turns[2]!) {
      this.#add(frame - 1);
    }
  }

  #add(frame: number): void {
    const { frames } = this;
    let at = this.length;
    while (at > 0 && frames[at - 1]! > frame) at--;
    if (at > 0 && frames[at - 1] === frame) return;
    if (this.length === KEPT) {
      if (at === 0) return;
      frames.copyWithin(0, 1, at);
      frames[at - 1] = frame;
      return;
    }
    frames.copyWithin(at + 1, at, this.length);
    frames[at] = frame;
    this.length++;
  }
}

/** How much the steps change at a frame: the larger mean of those before and from it on, by the smaller. */
function turn(history: FrameHistory, frame: number): number {
  const interval = history.ptsMs(frame) - history.ptsMs(frame - 1);
  const count = Math.max(TURN_FRAMES_MIN, Math.min(TURN_FRAMES_MAX, Math.round(TURN_MS / interval)));
  let before = TURN_NOISE * count, after = TURN_NOISE * count;
  for (let n = 0; n < count; n++) {
    if (frame - 1 - n > history.oldest) before += history.step(frame - 1 - n);
    if (frame + n < history.count) after += history.step(frame + n);
  }
  return Math.max(before / after, after / before);
}
