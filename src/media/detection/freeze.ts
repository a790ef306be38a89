/** Finds stretches in which a moving picture stands still: frames that repeat, exactly or but for the codec's noise. */

import type { FrameHistory } from "./frame_history.ts";
import { CELL_SAMPLES, HISTORY_FRAMES, LUMA_CELLS } from "./frame_history.ts";
import { confidenceOf, type CutScores, type RangeDetector, type RangeSink } from "./range_sink.ts";

/*
 * A frame is still if it differs from the one before by less than a codec leaves: MOVED_MAX levels a sample, and no cell
 * changes its mean by more than a level. One frame between still ones may differ more, if no cell does by much: a new
 * keyframe of the codec draws the same picture again.
 *
 *     moving   | still still still ... still still |  moving
 *   `---------'                                     `--------'
 *    BEFORE_MS                                      AFTER_FRAMES
 *
 * A stretch of still frames is a freeze if the picture moved just before, without a cut in between, and moves at once
 * afterwards, in much the same cells. So a slide, a screen, an empty room, and a subject that comes to rest are none.
 */
const MOVED_MAX = 0.35;
const CHANGE_MAX = 1;
/** After motion a codec leaves more noise: so much of the least motion of the three frames before, up to so much. */
const MOVED_SHARE = 0.06;
const MOVED_AFTER_MAX = 1;
const KEYFRAME_MOVED_MAX = 3;
const KEYFRAME_CHANGE_MAX = 1.7;
const KEYFRAMES_MAX = 2;

const LEAST_MS = 190;
const LEAST_FRAMES = 4;
const BEFORE_MS = 400;
const AFTER_FRAMES = 5;
/** A stretch that a cut ends, and one that lasts until the end, must be longer. */
const LEAST_TO_CUT_MS = 300;
const LEAST_TO_END_MS = 1000;
/** Of the frames before, so many must move; less is a low rate whose frames are shown more than once. */
const MOVING_SHARE = 0.4;
/** Motion before: so many levels a sample, or so many levels in one cell. */
const LEAST_MOVED = 0.6;
const LEAST_CHANGE = 2.2;
/** Frames that repeat exactly tell it after fainter motion too, if that was everywhere: sensor noise that stops. */
const EXACT_MAX = 0.004;
const LEAST_MOVED_EXACT = 0.25;
const LEAST_EXACT_MS = 600;
const STOPPED_FAINT_MIN = 0.6;
/** A stretch after a cut is a still shot: the frame that the cut falls on moves more than those before, by this factor. */
const JUMP_MAX = 1.6;
const CUT_REACH = 5;
/** The motion is still there just before; a subject that comes to rest slows down. */
const ABRUPT_MIN = 0.3;
/** What is left of the motion while the picture stands. */
const REST_MAX = 0.1;
/** Share of the cells that move before and stop; and how many of them move again. */
const STOPPED_MIN = 0.22;
const RESUMED_MIN = 0.65;
const RESUMED_MOVED_MIN = 0.25;
/** So much more motion after it than before is a cut. */
const CUT_OFF = 20;
/** Levels between the darkest and the brightest cell; a flat picture cannot freeze. */
const FLAT_RANGE = 12;
const CELL_MOVES = 0.1 * CELL_SAMPLES;

/** What a stretch was compared with, taken when it began. */
interface Before {
  moved: number;
  change: number;
  share: number;
  /** The longest stretch of still frames in it. */
  hold: number;
}

export class FreezeDetector implements RangeDetector {
  readonly #sink: RangeSink;
  readonly #cuts: CutScores;
  /** First still frame; -1 while the picture moves. */
  #start = -1;
  /** First frame that moved after a stretch; -1 while none waits for its verdict. */
  #end = -1;
  #startMs = 0;
  /** Time of the frame before it, which shows the same picture. */
  #shownMs = 0;
  /** How much the last two frames before the stretch moved at most. */
  #lastMoved = 0;
  /** One of the last frames before the stretch moved far more than those before. */
  #hasJump = false;
  /** A frame that may be a keyframe within the stretch; the next frame tells. */
  #doubt = -1;
  #limit = MOVED_MAX;
  readonly #before: Before = { moved: 0, change: 0, share: 0, hold: 0 };
  readonly #movesBefore = new Float64Array(LUMA_CELLS);
  readonly #movesWithin = new Float64Array(LUMA_CELLS);
  #framesWithin = 0;
  #movedWithin = 0;
  readonly #sorted = new Float64Array(HISTORY_FRAMES);

  constructor(sink: RangeSink, cuts: CutScores) {
    this.#sink = sink;
    this.#cuts = cuts;
  }

  reset(): void {
    this.#start = this.#end = this.#doubt = -1;
  }

  push(history: FrameHistory): void {
    const frame = history.count - 1;
    if (frame === 0) return;
    const moved = history.moved(frame), change = history.largestChange(frame);
    const isStill = change <= CHANGE_MAX &&
      moved <= (this.#start < 0 ? this.#limitAfter(history, frame) : this.#limit);
    if (this.#end >= 0) {
      if (frame < this.#end + AFTER_FRAMES) return;
      this.#judge(history, frame);
    }
    if (this.#start < 0) {
      if (!isStill) return;
      this.#limit = this.#limitAfter(history, frame);
      return this.#begin(history, frame);
    }
    if (isStill) {
      this.#doubt = -1;
      this.#count(history, frame);
      return;
    }
    const mayBeKeyframe = moved <= KEYFRAME_MOVED_MAX && change <= KEYFRAME_CHANGE_MAX;
    if (
      mayBeKeyframe && frame > this.#start && (this.#doubt < 0 || frame - this.#doubt < KEYFRAMES_MAX)
    ) {
      if (this.#doubt < 0) this.#doubt = frame;
      return;
    }
    this.#end = this.#doubt >= 0 ? this.#doubt : frame;
    this.#doubt = -1;
    if (!this.#isLong(history, this.#end)) this.reset();
  }

  finish(history: FrameHistory): void {
    if (this.#start < 0) return;
    if (this.#end >= 0) this.#judge(history, history.count);
    else {
      const isSure = this.#confidence(history, history.count, true);
      if (isSure >= 0.5) this.#add(history, history.count - 1, isSure);
    }
    this.reset();
  }

  /** After strong motion a codec leaves more noise. */
  #limitAfter(history: FrameHistory, frame: number): number {
    let least = Infinity;
    for (let i = Math.max(1, frame - 3); i < frame; i++) least = Math.min(least, history.moved(i));
    return frame < 4 ? MOVED_MAX : Math.max(MOVED_MAX, Math.min(MOVED_AFTER_MAX, MOVED_SHARE * least));
  }

  #isLong(history: FrameHistory, end: number): boolean {
    if (end - this.#start < LEAST_FRAMES) return false;
    return history.ptsMs(end - 1) - this.#shownMs >= LEAST_MS;
  }

  #begin(history: FrameHistory, frame: number): void {
    this.#start = frame;
    this.#startMs = history.ptsMs(frame);
    this.#shownMs = history.ptsMs(frame - 1);
    this.#framesWithin = 0;
    this.#movedWithin = 0;
    this.#movesWithin.fill(0);
    this.#movesBefore.fill(0);
    const fromMs = history.ptsMs(frame) - BEFORE_MS;
    const before = this.#before;
    let count = 0, moving = 0, hold = 0;
    before.hold = 0;
    const { moves } = history;
    for (let i = frame - 1; i > history.oldest && i > 0; i--) {
      if (history.ptsMs(i) < fromMs && count >= LEAST_FRAMES) break;
      count++;
      const at = history.movesAt(i);
      for (let cell = 0; cell < LUMA_CELLS; cell++) this.#movesBefore[cell]! += moves[at + cell]!;
      const isStill = history.moved(i) <= MOVED_MAX && history.largestChange(i) <= CHANGE_MAX;
      hold = isStill ? hold + 1 : 0;
      if (hold > before.hold) before.hold = hold;
      if (!isStill) this.#sorted[moving++] = history.moved(i);
    }
    for (let cell = 0; cell < LUMA_CELLS; cell++) this.#movesBefore[cell]! /= Math.max(1, count);
    before.share = count > 0 ? moving / count : 0;
    before.moved = middle(this.#sorted, moving);
    moving = 0;
    for (let i = frame - 1, n = 0; n < count; i--, n++) {
      const isStill = history.moved(i) <= MOVED_MAX && history.largestChange(i) <= CHANGE_MAX;
      if (!isStill) this.#sorted[moving++] = history.largestChange(i);
    }
    before.change = middle(this.#sorted, moving);
    this.#lastMoved = Math.max(history.moved(frame - 1), history.moved(Math.max(1, frame - 2)));
    this.#hasJump = false;
    for (let i = Math.max(1, frame - CUT_REACH); i < frame; i++) {
      if (history.moved(i) > JUMP_MAX * before.moved) this.#hasJump = true;
    }
  }

  /** The first frame of a stretch still carries the codec's rest of the motion, so it does not count. */
  #count(history: FrameHistory, frame: number): void {
    const { moves } = history;
    const at = history.movesAt(frame);
    this.#framesWithin++;
    this.#movedWithin += history.moved(frame);
    for (let cell = 0; cell < LUMA_CELLS; cell++) this.#movesWithin[cell]! += moves[at + cell]!;
  }

  #judge(history: FrameHistory, until: number): void {
    const isSure = this.#confidence(history, until, false);
    if (isSure >= 0.5) this.#add(history, this.#end - 1, isSure);
    this.reset();
  }

  /** Whether it begins with a cut, or a few frames after one: a still shot. */
  #hasCut(): boolean {
    if (!this.#hasJump) return false;
    for (let frame = this.#start - CUT_REACH; frame <= this.#start + 1; frame++) {
      if (this.#cuts.cutScore(frame) >= 0.5) return true;
    }
    return false;
  }

  #add(history: FrameHistory, last: number, confidence: number): void {
    const [startMs, endMs] = [this.#startMs, history.ptsMs(last)];
    this.#sink.add("freeze", this.#start, last, startMs, endMs, confidence);
  }

  /** `until` is the frame after the last one that is known. Below .5: no freeze. */
  #confidence(history: FrameHistory, until: number, isOpen: boolean): number {
    const before = this.#before;
    const end = isOpen ? history.count : this.#end;
    const lastMs = history.ptsMs(end - 1) - this.#shownMs;
    if (lastMs < (isOpen ? LEAST_TO_END_MS : LEAST_MS) || end - this.#start < LEAST_FRAMES) return 0;
    if (before.share < MOVING_SHARE || end - this.#start < 2.5 * (before.hold + 1)) return 0;
    const rest = this.#movedWithin / Math.max(1, this.#framesWithin);
    const isExact = rest <= EXACT_MAX && before.moved >= LEAST_MOVED_EXACT && lastMs >= LEAST_EXACT_MS;
    if (before.moved < LEAST_MOVED && before.change < LEAST_CHANGE && !isExact) return 0;
    if (rest > REST_MAX * before.moved) return 0;
    if (history.brightest(end - 1) - history.darkest(end - 1) < FLAT_RANGE) return 0;
    if (this.#hasCut() || this.#lastMoved < ABRUPT_MIN * before.moved) return 0;
    let stopped = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      const moves = this.#movesBefore[cell]!;
      const within = this.#movesWithin[cell]! / Math.max(1, this.#framesWithin);
      if (moves >= CELL_MOVES && moves >= 4 * within) stopped++;
    }
    stopped /= LUMA_CELLS;
    const isFaint = before.moved < LEAST_MOVED && before.change < LEAST_CHANGE;
    if (stopped < (isFaint ? STOPPED_FAINT_MIN : STOPPED_MIN)) return 0;
    const margin = Math.min(
      (stopped - STOPPED_MIN) / 0.4,
      1 - rest / (REST_MAX * before.moved),
      isExact ? 1 : Math.max(before.moved - LEAST_MOVED, (before.change - LEAST_CHANGE) / 4),
    );
    const confidence = confidenceOf(margin);
    if (isOpen) return stopped >= 2 * STOPPED_MIN ? confidence : 0;
    let resumed = 0, most = 0;
    const { moves } = history;
    const last = Math.min(until, end + AFTER_FRAMES - 1);
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      for (let frame = end; frame < last; frame++) {
        if (moves[history.movesAt(frame) + cell]! < CELL_MOVES) continue;
        resumed++;
        break;
      }
    }
    for (let frame = end; frame < last; frame++) most = Math.max(most, history.moved(frame));
    resumed /= LUMA_CELLS;
    if (resumed < RESUMED_MIN * stopped || most < RESUMED_MOVED_MIN * before.moved) return 0;
    const isCutOff = most > CUT_OFF * before.moved || this.#cuts.cutScore(end) >= 0.5;
    if (isCutOff && lastMs < LEAST_TO_CUT_MS) return 0;
    return Math.min(confidence, confidenceOf((resumed / stopped - RESUMED_MIN) / 0.2));
  }
}

/** The middle one of the first `count` values, which it sorts. */
function middle(values: Float64Array, count: number): number {
  if (count === 0) return 0;
  return values.subarray(0, count).sort()[count >> 1]!;
}
