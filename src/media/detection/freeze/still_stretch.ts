/** Follows stretches in which a picture stands still, and tells which of them were frozen. */

import { CUT_SCORE_THRESHOLD } from "../../../model/frames/signals.ts";
import { CELL_SAMPLES, CELLS, type FrameHistory, LUMA_CELLS } from "../ranges/frame_history.ts";
import { confidenceOf, type CutScores } from "../ranges/range_sink.ts";
import { MotionBefore } from "./motion_before.ts";
import { PictureDrift } from "./picture_drift.ts";
import { EXACT_MAX, isRedrawn } from "./redrawn_picture.ts";

/*
 *     moving   | still still (keyframe) still ... still |  moving
 *   `---------'                                         `--------'
 *   MotionBefore                                        AFTER_FRAMES
 *
 * What counts as still depends on the motion before: the more moved, the more noise a codec leaves in the
 * frames after it. A stretch of still frames is a freeze if the picture moved until it, stopped at once in
 * many places, stayed what it was, and moves again at once, in much the same cells. So a slide, a screen, an
 * empty room, and a subject that comes to rest are none.
 */
/**
 * A still frame moved by at most this share of the motion before, and by at most MOVED_MAX levels a sample.
 */
const MOVED_SHARE = 0.35;
/** MOVED_SHARE after motion that is known from the last frames only. */
const BRIEF_SHARE = 0.15;
const MOVED_MAX = 1.2;
/**
 * In a still frame no cell changes its mean by more than this share of the largest change before, within
 * CHANGE_MIN and CHANGE_MAX levels. In the first LEAD_FRAMES frames the bounds are LEAD_SHARE and LEAD_MAX.
 */
const CHANGE_SHARE = 0.15;
const CHANGE_MIN = 1.3;
const CHANGE_MAX = 2.2;
const LEAD_FRAMES = 4;
const LEAD_SHARE = 0.25;
const LEAD_MAX = 4;
/** Most frames between two still ones that may have redrawn the picture. */
const KEYFRAMES_MAX = 2;
/**
 * Frames that a stretch must have for each keyframe that could be motion: with more keyframes it is a film
 * drawn in steps.
 */
const FRAMES_A_KEYFRAME = 8;
/**
 * A frame repeats the one two or three before it where they differ by no more than this, a sum over the
 * cells.
 */
const RETURN_MAX = 0.004 * CELLS * CELL_SAMPLES;
/** Levels a cell by which a frame that repeats an earlier one must differ from the frame just before it. */
const RETURN_STEP_MIN = 0.02;

/**
 * Least motion before a freeze, in levels a sample. Below CLEAR_MOVED it is faint, and more is asked of
 * everything else; above FAST_MOVED it is fast.
 */
const LEAST_MOVED = 0.15;
const CLEAR_MOVED = 0.6;
const FAST_MOVED = 1.5;
/**
 * Share of the frames before that must have moved; where fewer did, a low rate shows its frames more than
 * once.
 */
const MOVING_MIN = 0.48;
/** A freeze lasts at least this many times as long as the longest hold before it. */
const HOLDS_MIN = 2.5;
/**
 * Least motion of the last frames before, as a share of the motion before: of the frame that moved most.
 * LAST_MIDDLE_MIN is that of the middle one.
 */
const LAST_MIN = 0.3;
const LAST_MIDDLE_MIN = 0.1;
/**
 * Most of the motion before that may be a change of the mean luma; where more is, a fade ends and a title
 * stands.
 */
const LIGHT_MAX = 0.9;
/**
 * How many times the motion within the stretch the motion just before must be: a thing that comes to rest
 * slows down first.
 */
const DROP_MIN = 5;
/**
 * Most motion while the picture stands, as a share of the motion before where that was fast; below are the
 * shares for clear and for faint motion.
 */
const REST_FAST_MAX = 0.085;
const REST_MAX = 0.07;
const REST_FAINT_MAX = 0.06;
/**
 * Share of the frames within that must repeat exactly, after motion that is known from the last frames only.
 */
const BRIEF_EXACT_MIN = 0.6;
/**
 * Levels by which the picture may drift between keyframes, mean of the cells; DRIFT_FAINT_MAX is for faint
 * motion.
 */
const DRIFT_MAX = 0.42;
const DRIFT_FAINT_MAX = 0.2;
/**
 * DRIFT_MAX after fast motion, where no cell drifts by DRIFT_CELL_MAX levels: a codec then mends the picture
 * for long, everywhere alike.
 */
const DRIFT_EVEN_MAX = 1;
const DRIFT_CELL_MAX = 5;
/**
 * Least share of the luma cells that moved before and stop. RESUMED_MIN is the part of these that must move
 * again in the AFTER_FRAMES frames after the stretch.
 */
const STOPPED_MIN = 0.22;
const STOPPED_FAINT_MIN = 0.35;
const STOPPED_OPEN_MIN = 0.44;
const RESUMED_MIN = 0.6;
const RESUMED_MOVED_MIN = 0.4;
const AFTER_FRAMES = 8;
/**
 * A stretch is sure where this share of its frames repeat exactly, SURE_FRAMES at least, and before it no
 * more than SURE_HOLD did in a row. Then less is asked of the cells.
 */
const SURE_MIN = 0.8;
const SURE_FRAMES = 10;
const SURE_HOLD = 1;
const STOPPED_SURE_MIN = 0.18;
const RESUMED_SURE_MIN = 0.35;
const RESUMED_MOVED_SURE_MIN = 0.15;
/**
 * Sum over a cell from which on it moves: 0.1 levels a sample, or this share of a motion fainter than one
 * level.
 */
const CELL_MOVES = 0.1 * CELL_SAMPLES;
/** A cell has stopped where it moves by at most this share of its motion before. */
const CELL_RESTS = 0.25;
/** Levels between the darkest and the brightest cell; a flat picture cannot freeze. */
const FLAT_RANGE = 12;

const LEAST_FRAMES = 5;
const LEAST_MS = 190;
/**
 * Levels a sample of motion within, above which the codec leaves noise. Such a stretch must last
 * LEAST_NOISY_MS; one that a cut ends LEAST_TO_CUT_MS, one that the stream ends LEAST_TO_END_MS.
 */
const CLEAN_REST = 0.1;
const LEAST_NOISY_MS = 250;
/**
 * Most motion within a noisy stretch, as a share of what is usual: a burst of faults before the stretch is no
 * motion.
 */
const USUAL_SHARE = 0.3;
const LEAST_TO_CUT_MS = 300;
const LEAST_TO_END_MS = 1000;
/**
 * After faint motion a stretch must last the longer the fainter the motion was: this is motion before times
 * length, in levels a sample times milliseconds.
 */
const LEAST_FAINT_LEVEL_MS = 170;
const LEAST_SURE_LEVEL_MS = 70;
const SURE_CHANGE_MIN = 0.8;
/** A stretch that begins at most this many frames after a cut is a still shot. */
const CUT_REACH = 5;
/**
 * Motion after a stretch that is more than this times the motion before is a cut. Then at most CUT_REST_MAX
 * of the motion may be left in the stretch.
 */
const CUT_OFF = 20;
const CUT_REST_MAX = 0.03;

/** Places of the sums over still frames. */
const MOVED = 0;
const REST = 1;

/** Places in the history's sums of moves from the sums before the stretch to those within it. */
const WITHIN_OFFSET = 2;
/** Most frames whose moves are summed, so that the sums stay below 2^32. */
const MOVES_COUNTED = 60_000;

/** A stretch that was frozen; the last frame is inside. */
export interface Frozen {
  readonly startFrame: number;
  readonly lastFrame: number;
  /** The first frame, counted among all frames of the stream; `last` is the last one. */
  readonly first: number;
  readonly last: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly confidence: number;
}

/**
 * Follows one stretch at a time, measured by the motion of the half second before it. With `isBrief` it is
 * measured by the last frames only, which tells more where the motion had nearly died down.
 */
export class StillStretch {
  readonly #cuts: CutScores;
  readonly #onFrozen: (frozen: Frozen) => void;
  readonly #isBrief: boolean;
  /** First still frame; -1 while the picture moves. */
  #start = -1;
  /** First frame that moved after a stretch; -1 while none waits for its verdict. */
  #end = -1;
  #startMs = 0;
  /** Number among all frames of the stream of the first still frame. */
  #first = 0;
  /** Time of the frame before the stretch, which shows the same picture, milliseconds. */
  #shownMs = 0;
  #lastStill = -1;
  #movedLimit = 0;
  #changeLimit = 0;
  #leadLimit = 0;
  readonly #before: MotionBefore;
  /** Still frames within, without the first one, in which the codec leaves noise of the motion. */
  #framesWithin = 0;
  readonly #sums = new Float64Array(2);
  /** How many of the frames within have their moves in the kernel's sums, beside those of `#before`. */
  #movesWithin = 0;
  readonly #drift = new PictureDrift();
  /** Frames within that repeat exactly. */
  #exact = 0;
  /** Keyframes within. */
  #redrawn = 0;

  constructor(cuts: CutScores, isBrief: boolean, onFrozen: (frozen: Frozen) => void) {
    this.#cuts = cuts;
    this.#onFrozen = onFrozen;
    this.#before = new MotionBefore(isBrief);
    this.#isBrief = isBrief;
  }

  /** First still frame of the stretch that is not decided; -1: there is none. */
  get start(): number {
    return this.#start;
  }

  reset(): void {
    this.#start = this.#end = -1;
  }

  /** Takes the newest frame; `cut` is the first frame of the newest shot that is known to be one. */
  push(history: FrameHistory, cut: number): void {
    const frame = history.count - 1;
    if (frame === 0) return;
    if (this.#end >= 0) {
      if (frame < this.#end + AFTER_FRAMES) return;
      this.#judge(history, frame);
    }
    if (this.#start >= 0 && cut >= this.#start - CUT_REACH && cut <= this.#start + 1) this.reset();
    if (this.#start < 0) return this.#mayBegin(history, frame, cut);
    if (this.#isStill(history, frame)) {
      if (this.#lastStill === frame - 1) return this.#count(history, frame);
      if (isRedrawn(history, this.#lastStill, frame, this.#before.moved)) {
        this.#drift.measure(history, this.#lastStill);
        if (this.#couldBeMotion(history, frame - 1)) this.#redrawn++;
        return this.#count(history, frame);
      }
    } else if (frame - this.#lastStill <= KEYFRAMES_MAX) return;
    this.#end = this.#lastStill + 1;
    if (this.#margin(history) >= 0) return;
    this.reset();
    this.#mayBegin(history, frame, cut);
  }

  finish(history: FrameHistory): void {
    if (this.#start >= 0) this.#judge(history, history.count);
    this.reset();
  }

  #mayBegin(history: FrameHistory, frame: number, cut: number): void {
    const moved = history.moved(frame), change = history.largestChange(frame);
    if (moved > MOVED_MAX || change > LEAD_MAX) return;
    const before = this.#before;
    const share = this.#isBrief ? BRIEF_SHARE : MOVED_SHARE;
    before.look(history, frame, cut, moved, share);
    if (before.moved < LEAST_MOVED) return;
    this.#movedLimit = Math.min(MOVED_MAX, share * before.moved);
    if (moved > this.#movedLimit) return;
    before.take(history, frame, cut, this.#movedLimit);
    // A still shot that moved for a moment after its cut, as the codec mended it.
    if (before.hasCut && history.moved(frame - 1) <= this.#movedLimit) return;
    this.#changeLimit = Math.min(CHANGE_MAX, Math.max(CHANGE_MIN, CHANGE_SHARE * before.change));
    this.#leadLimit = Math.max(this.#changeLimit, Math.min(LEAD_MAX, LEAD_SHARE * before.change));
    if (change > this.#leadLimit) return;
    this.#start = this.#lastStill = frame;
    this.#startMs = history.ptsMs(frame);
    this.#first = history.first(frame);
    this.#shownMs = history.ptsMs(frame - 1);
    this.#framesWithin = 0;
    this.#sums.fill(0);
    history.kernel.clearMoves(this.#before.place + WITHIN_OFFSET);
    this.#movesWithin = 0;
    this.#drift.reset();
    this.#redrawn = this.#exact = 0;
  }

  #isStill(history: FrameHistory, frame: number): boolean {
    const limit = frame < this.#start + LEAD_FRAMES ? this.#leadLimit : this.#changeLimit;
    return history.moved(frame) <= this.#movedLimit && history.largestChange(frame) <= limit;
  }

  /**
   * Whether a frame that is still after fast motion could also be motion: what is little beside fast motion
   * may be more than a codec leaves.
   */
  #couldBeMotion(history: FrameHistory, frame: number): boolean {
    return history.moved(frame) > MOVED_SHARE * this.#before.moved ||
      history.largestChange(frame) > this.#changeLimit;
  }

  #count(history: FrameHistory, frame: number): void {
    const { moved, step } = this.#before;
    // A codec may show two or three pictures in turn, which are alike but for its noise.
    const apart = Math.min(history.apart(frame, frame - 2), history.apart(frame, frame - 3));
    const returned = step > 0 ? apart / (CELLS * CELL_SAMPLES * step) : Infinity;
    const isReturn = apart <= RETURN_MAX && history.step(frame) >= RETURN_STEP_MIN;
    if (isReturn || history.moved(frame) <= EXACT_MAX) this.#exact++;
    this.#sums[MOVED]! += history.moved(frame);
    this.#sums[REST]! += Math.min(history.moved(frame) / moved, returned);
    if (!isReturn && this.#movesWithin++ < MOVES_COUNTED) {
      history.kernel.addMoves(this.#before.place + WITHIN_OFFSET, frame);
    }
    this.#lastStill = frame;
    if (++this.#framesWithin >= LEAD_FRAMES) this.#drift.anchor(history, frame);
  }

  #isLong(history: FrameHistory, leastMs: number): boolean {
    return this.#lastStill + 1 - this.#start >= LEAST_FRAMES &&
      history.ptsMs(this.#lastStill) - this.#shownMs >= leastMs;
  }

  /**
   * Judges the stretch, and tells it if it was frozen; `until` is the frame after the last one that is known.
   */
  #judge(history: FrameHistory, until: number): void {
    const last = this.#lastStill;
    let margin = this.#margin(history);
    if (this.#end >= 0) margin = Math.min(margin, this.#resumption(history, until));
    if (margin >= 0) {
      const endMs = history.lastMs(last);
      this.#onFrozen({
        startFrame: this.#start,
        lastFrame: last,
        first: this.#first,
        last: history.last(last),
        startMs: this.#startMs,
        endMs,
        confidence: confidenceOf(margin),
      });
    }
    this.reset();
  }

  /** How far the stretch and the motion before it are inside the bounds, see `confidenceOf`; -1 outside. */
  #margin(history: FrameHistory): number {
    this.#drift.measure(history, this.#lastStill);
    const { moved, last, lastMiddle, lightShare, movingShare, hold } = this.#before;
    const end = this.#lastStill + 1;
    const isFaint = moved < CLEAR_MOVED, isOpen = this.#end < 0;
    const rest = this.#rest;
    const restMax = isFaint ? REST_FAINT_MAX : moved < FAST_MOVED ? REST_MAX : REST_FAST_MAX;
    if (!this.#isLong(history, this.#leastMs)) return -1;
    if (isOpen && !this.#isLong(history, LEAST_TO_END_MS)) return -1;
    const shown = history.last(end - 1) + 1 - this.#first;
    if (movingShare < MOVING_MIN || shown < HOLDS_MIN * (hold + 1)) return -1;
    if (last < LAST_MIN * moved || lastMiddle < LAST_MIDDLE_MIN * moved) return -1;
    if (lightShare > LIGHT_MAX) return -1;
    if (rest > restMax || last < DROP_MIN * rest * moved) return -1;
    const within = this.#meanWithin(MOVED);
    if (within > CLEAN_REST && within > USUAL_SHARE * this.#before.usual) return -1;
    if (this.#drift.mean > this.#driftMax) return -1;
    if (history.brightest(end - 1) - history.darkest(end - 1) < FLAT_RANGE || this.#hasCut()) return -1;
    if ((this.#redrawn - 1) * FRAMES_A_KEYFRAME > end - this.#start) return -1;
    if (this.#isBrief && this.#exact < BRIEF_EXACT_MIN * (end - this.#start - 1)) return -1;
    const stopped = this.#stopped(history);
    const stoppedMin = this.#stoppedMin;
    if (stopped < stoppedMin) return -1;
    return Math.min((stopped - stoppedMin) / 0.4, 1 - rest / restMax, moved - LEAST_MOVED);
  }

  /** Whether the stretch can only be a freeze: many of its frames repeat exactly, and none did before. */
  get #isSure(): boolean {
    return this.#isExact && this.#lastStill - this.#start >= SURE_FRAMES;
  }

  /** Whether nearly all its frames repeat exactly, and none did before. */
  get #isExact(): boolean {
    return this.#before.hold <= SURE_HOLD && this.#exact >= SURE_MIN * (this.#lastStill - this.#start);
  }

  get #leastMs(): number {
    const { moved, change } = this.#before;
    // Noise, which changes no cell, may be left out by a codec for a while.
    const isSure = this.#isSure && change >= SURE_CHANGE_MIN;
    if (moved < CLEAR_MOVED) return (isSure ? LEAST_SURE_LEVEL_MS : LEAST_FAINT_LEVEL_MS) / moved;
    return this.#meanWithin(MOVED) > CLEAN_REST ? LEAST_NOISY_MS : LEAST_MS;
  }

  get #stoppedMin(): number {
    if (this.#end < 0) return STOPPED_OPEN_MIN;
    if (this.#isSure) return STOPPED_SURE_MIN;
    return this.#before.moved < CLEAR_MOVED ? STOPPED_FAINT_MIN : STOPPED_MIN;
  }

  get #driftMax(): number {
    const { moved } = this.#before;
    if (moved < CLEAR_MOVED) return DRIFT_FAINT_MAX;
    return moved > FAST_MOVED && this.#drift.largest < DRIFT_CELL_MAX ? DRIFT_EVEN_MAX : DRIFT_MAX;
  }

  /** Whether the stretch begins with a cut, or a few frames after one. */
  #hasCut(): boolean {
    for (let frame = this.#start - CUT_REACH; frame <= this.#start + 1; frame++) {
      if (this.#cuts.cutScore(frame) >= CUT_SCORE_THRESHOLD) return true;
    }
    return false;
  }

  /** What is left of the motion, as a share of the motion before; mean of the frames within. */
  get #rest(): number {
    return this.#meanWithin(REST);
  }

  #meanWithin(sum: typeof MOVED | typeof REST): number {
    return this.#sums[sum]! / Math.max(1, this.#framesWithin);
  }

  /** The sum of differences from which on a cell moves. */
  get #cellMoves(): number {
    return CELL_MOVES * Math.min(1, this.#before.moved);
  }

  /** Share of the luma cells that moved before and rest. */
  #stopped(history: FrameHistory): number {
    const { place, counted } = this.#before;
    const movesBefore = history.kernel.cellSums[place]!,
      movesWithin = history.kernel.cellSums[place + WITHIN_OFFSET]!;
    const framesWithin = Math.max(1, Math.min(this.#framesWithin, MOVES_COUNTED));
    let stopped = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      const before = movesBefore[cell]! / counted;
      const within = movesWithin[cell]! / framesWithin;
      if (before >= this.#cellMoves && within <= CELL_RESTS * before) stopped++;
    }
    return stopped / LUMA_CELLS;
  }

  /** By what margin the picture moves again after the stretch; -1 where it does not. */
  #resumption(history: FrameHistory, until: number): number {
    const { moved } = this.#before;
    const { moves } = history;
    const end = this.#end, last = Math.min(until, end + AFTER_FRAMES);
    let resumed = 0, most = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      let frame = end;
      while (frame < last && moves[history.movesAt(frame) + cell]! < this.#cellMoves) frame++;
      if (frame < last) resumed++;
    }
    for (let frame = end; frame < last; frame++) most = Math.max(most, history.moved(frame));
    resumed /= LUMA_CELLS;
    const stopped = this.#stopped(history);
    const resumedMin = this.#isSure ? RESUMED_SURE_MIN : RESUMED_MIN;
    const movedMin = this.#isSure ? RESUMED_MOVED_SURE_MIN : RESUMED_MOVED_MIN;
    if (resumed < resumedMin * stopped || most < movedMin * moved) return -1;
    const isCutOff = most > CUT_OFF * moved;
    if (isCutOff && this.#rest > CUT_REST_MAX) return -1;
    const isToCut = isCutOff || this.#cuts.cutScore(end) >= CUT_SCORE_THRESHOLD;
    // The jump over what a freeze has left out may look like a cut.
    if (isToCut && !this.#isExact && !this.#isLong(history, LEAST_TO_CUT_MS)) return -1;
    return (resumed / stopped - resumedMin) / 0.2;
  }
}
