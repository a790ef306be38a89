/** Follows stretches in which a picture stands still, and tells which of them were frozen. */

import { CUT_SCORE_THRESHOLD } from "../../../model/frames/signals.ts";
import { CELL_SAMPLES, CELLS, type FrameHistory, LUMA_CELLS } from "../ranges/frame_history.ts";
import { type BoundsOf, confidenceOf, type CutScores } from "../ranges/range_sink.ts";
import { MOTION_BOUNDS, MotionBefore, type MotionBounds } from "./motion_before.ts";
import { PictureDrift } from "./picture_drift.ts";
import { isRedrawn, REDRAWN_BOUNDS, type RedrawnBounds } from "./redrawn_picture.ts";

/*
 *     moving   | still still (keyframe) still ... still |  moving
 *   `---------'                                         `--------'
 *   MotionBefore                                        afterFrames
 *
 * What counts as still depends on the motion before: the more moved, the more noise a codec leaves in the
 * frames after it. A stretch of still frames is a freeze if the picture moved until it, stopped at once in
 * many places, stayed what it was, and moves again at once, in much the same cells. So a slide, a screen, an
 * empty room, and a subject that comes to rest are none.
 */
/** What makes a stretch that stands still a freeze. */
export const STILL_BOUNDS = {
  /**
   * A still frame moved by at most this share of the motion before, and by at most `movedMax` levels a
   * sample.
   */
  movedShare: 0.35,
  /** `movedShare` after motion that is known from the last frames only. */
  briefShare: 0.15,
  movedMax: 1.2,
  /**
   * In a still frame no cell changes its mean by more than this share of the largest change before, within
   * `changeMin` and `changeMax` levels. In the first `leadFrames` frames the bounds are `leadShare` and
   * `leadMax`.
   */
  changeShare: 0.15,
  changeMin: 1.3,
  changeMax: 2.2,
  leadFrames: 4,
  leadShare: 0.25,
  leadMax: 4,
  /** Most frames between two still ones that may have redrawn the picture. */
  keyframesMax: 2,
  /**
   * Frames that a stretch must have for each keyframe that could be motion: with more keyframes it is a film
   * drawn in steps.
   */
  framesAKeyframe: 8,
  /**
   * A frame repeats the one two or three before it where they differ by no more than this, a sum over the
   * cells.
   */
  returnMax: 0.004 * CELLS * CELL_SAMPLES,
  /** Levels a cell by which a frame that repeats an earlier one must differ from the frame just before it. */
  returnStepMin: 0.02,
  /**
   * Least motion before a freeze, in levels a sample. Below `clearMoved` it is faint, and more is asked of
   * everything else; above `fastMoved` it is fast.
   */
  leastMoved: 0.15,
  clearMoved: 0.6,
  fastMoved: 1.5,
  /**
   * Share of the frames before that must have moved; where fewer did, a low rate shows its frames more than
   * once.
   */
  movingMin: 0.48,
  /** A freeze lasts at least this many times as long as the longest hold before it. */
  holdsMin: 2.5,
  /**
   * Least motion of the last frames before, as a share of the motion before: of the frame that moved most.
   * `lastMiddleMin` is that of the middle one.
   */
  lastMin: 0.3,
  lastMiddleMin: 0.1,
  /**
   * Most of the motion before that may be a change of the mean luma; where more is, a fade ends and a title
   * stands.
   */
  lightMax: 0.9,
  /**
   * How many times the motion within the stretch the motion just before must be: a thing that comes to rest
   * slows down first.
   */
  dropMin: 5,
  /**
   * Most motion while the picture stands, as a share of the motion before where that was fast; below are the
   * shares for clear and for faint motion.
   */
  restFastMax: 0.085,
  restMax: 0.07,
  restFaintMax: 0.06,
  /**
   * Share of the frames within that must repeat exactly, after motion that is known from the last frames
   * only.
   */
  briefExactMin: 0.6,
  /**
   * Levels by which the picture may drift between keyframes, mean of the cells; `driftFaintMax` is for faint
   * motion.
   */
  driftMax: 0.42,
  driftFaintMax: 0.2,
  /**
   * `driftMax` after fast motion, where no cell drifts by `driftCellMax` levels: a codec then mends the
   * picture for long, everywhere alike.
   */
  driftEvenMax: 1,
  driftCellMax: 5,
  /**
   * Least share of the luma cells that moved before and stop. `resumedMin` is the part of these that must
   * move again in the `afterFrames` frames after the stretch.
   */
  stoppedMin: 0.22,
  stoppedFaintMin: 0.35,
  stoppedOpenMin: 0.44,
  resumedMin: 0.6,
  resumedMovedMin: 0.4,
  afterFrames: 8,
  /**
   * A stretch is sure where this share of its frames repeat exactly, `sureFrames` at least, and before it no
   * more than `sureHold` did in a row. Then less is asked of the cells.
   */
  sureMin: 0.8,
  sureFrames: 10,
  sureHold: 1,
  stoppedSureMin: 0.18,
  resumedSureMin: 0.35,
  resumedMovedSureMin: 0.15,
  /**
   * Sum over a cell from which on it moves: 0.1 levels a sample, or this share of a motion fainter than one
   * level.
   */
  cellMoves: 0.1 * CELL_SAMPLES,
  /** A cell has stopped where it moves by at most this share of its motion before. */
  cellRests: 0.25,
  /** Levels between the darkest and the brightest cell; a flat picture cannot freeze. */
  flatRange: 12,
  leastFrames: 5,
  leastMs: 190,
  /**
   * Levels a sample of motion within, above which the codec leaves noise. Such a stretch must last
   * `leastNoisyMs`; one that a cut ends `leastToCutMs`, one that the stream ends `leastToEndMs`.
   */
  cleanRest: 0.1,
  leastNoisyMs: 250,
  /**
   * Most motion within a noisy stretch, as a share of what is usual: a burst of faults before the stretch is
   * no motion.
   */
  usualShare: 0.3,
  leastToCutMs: 300,
  leastToEndMs: 1000,
  /**
   * After faint motion a stretch must last the longer the fainter the motion was: this is motion before times
   * length, in levels a sample times milliseconds.
   */
  leastFaintLevelMs: 170,
  leastSureLevelMs: 70,
  sureChangeMin: 0.8,
  /** A stretch that begins at most this many frames after a cut is a still shot. */
  cutReach: 5,
  /**
   * Motion after a stretch that is more than this times the motion before is a cut. Then at most `cutRestMax`
   * of the motion may be left in the stretch.
   */
  cutOff: 20,
  cutRestMax: 0.03,
} as const;

export type StillBounds = BoundsOf<typeof STILL_BOUNDS>;

/**
 * All numbers by which freezes are found: of the stretch, of the motion before it, and of what is drawn
 * within.
 */
export const FREEZE_BOUNDS = { still: STILL_BOUNDS, before: MOTION_BOUNDS, redrawn: REDRAWN_BOUNDS } as const;

export interface FreezeBounds {
  readonly still: StillBounds;
  readonly before: MotionBounds;
  readonly redrawn: RedrawnBounds;
}

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
  readonly #bounds: StillBounds;
  readonly #redrawnBounds: RedrawnBounds;
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

  constructor(
    cuts: CutScores,
    isBrief: boolean,
    { still, before, redrawn }: FreezeBounds,
    onFrozen: (frozen: Frozen) => void,
  ) {
    this.#cuts = cuts;
    this.#onFrozen = onFrozen;
    this.#before = new MotionBefore(isBrief, before);
    this.#bounds = still;
    this.#redrawnBounds = redrawn;
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
    const bounds = this.#bounds;
    const frame = history.count - 1;
    if (frame === 0) return;
    if (this.#end >= 0) {
      if (frame < this.#end + bounds.afterFrames) return;
      this.#judge(history, frame);
    }
    if (this.#start >= 0 && cut >= this.#start - bounds.cutReach && cut <= this.#start + 1) this.reset();
    if (this.#start < 0) return this.#mayBegin(history, frame, cut);
    if (this.#isStill(history, frame)) {
      if (this.#lastStill === frame - 1) return this.#count(history, frame);
      if (isRedrawn(history, this.#lastStill, frame, this.#before.moved, this.#redrawnBounds)) {
        this.#drift.measure(history, this.#lastStill);
        if (this.#couldBeMotion(history, frame - 1)) this.#redrawn++;
        return this.#count(history, frame);
      }
    } else if (frame - this.#lastStill <= bounds.keyframesMax) return;
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
    const bounds = this.#bounds;
    const moved = history.moved(frame), change = history.largestChange(frame);
    if (moved > bounds.movedMax || change > bounds.leadMax) return;
    const before = this.#before;
    const share = this.#isBrief ? bounds.briefShare : bounds.movedShare;
    before.look(history, frame, cut, moved, share);
    if (before.moved < bounds.leastMoved) return;
    this.#movedLimit = Math.min(bounds.movedMax, share * before.moved);
    if (moved > this.#movedLimit) return;
    before.take(history, frame, cut, this.#movedLimit);
    // A still shot that moved for a moment after its cut, as the codec mended it.
    if (before.hasCut && history.moved(frame - 1) <= this.#movedLimit) return;
    this.#changeLimit = Math.min(
      bounds.changeMax,
      Math.max(bounds.changeMin, bounds.changeShare * before.change),
    );
    this.#leadLimit = Math.max(this.#changeLimit, Math.min(bounds.leadMax, bounds.leadShare * before.change));
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
    const limit = frame < this.#start + this.#bounds.leadFrames ? this.#leadLimit : this.#changeLimit;
    return history.moved(frame) <= this.#movedLimit && history.largestChange(frame) <= limit;
  }

  /**
   * Whether a frame that is still after fast motion could also be motion: what is little beside fast motion
   * may be more than a codec leaves.
   */
  #couldBeMotion(history: FrameHistory, frame: number): boolean {
    return history.moved(frame) > this.#bounds.movedShare * this.#before.moved ||
      history.largestChange(frame) > this.#changeLimit;
  }

  #count(history: FrameHistory, frame: number): void {
    const bounds = this.#bounds;
    const { moved, step } = this.#before;
    // A codec may show two or three pictures in turn, which are alike but for its noise.
    const apart = Math.min(history.apart(frame, frame - 2), history.apart(frame, frame - 3));
    const returned = step > 0 ? apart / (CELLS * CELL_SAMPLES * step) : Infinity;
    const isReturn = apart <= bounds.returnMax && history.step(frame) >= bounds.returnStepMin;
    if (isReturn || history.moved(frame) <= this.#redrawnBounds.exactMax) this.#exact++;
    this.#sums[MOVED]! += history.moved(frame);
    this.#sums[REST]! += Math.min(history.moved(frame) / moved, returned);
    if (!isReturn && this.#movesWithin++ < MOVES_COUNTED) {
      history.kernel.addMoves(this.#before.place + WITHIN_OFFSET, frame);
    }
    this.#lastStill = frame;
    if (++this.#framesWithin >= bounds.leadFrames) this.#drift.anchor(history, frame);
  }

  #isLong(history: FrameHistory, leastMs: number): boolean {
    return this.#lastStill + 1 - this.#start >= this.#bounds.leastFrames &&
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
    const bounds = this.#bounds;
    this.#drift.measure(history, this.#lastStill);
    const { moved, last, lastMiddle, lightShare, movingShare, hold } = this.#before;
    const end = this.#lastStill + 1;
    const isFaint = moved < bounds.clearMoved, isOpen = this.#end < 0;
    const rest = this.#rest;
    const restMax = isFaint
      ? bounds.restFaintMax
      : moved < bounds.fastMoved
      ? bounds.restMax
      : bounds.restFastMax;
    if (!this.#isLong(history, this.#leastMs)) return -1;
    if (isOpen && !this.#isLong(history, bounds.leastToEndMs)) return -1;
    const shown = history.last(end - 1) + 1 - this.#first;
    if (movingShare < bounds.movingMin || shown < bounds.holdsMin * (hold + 1)) return -1;
    if (last < bounds.lastMin * moved || lastMiddle < bounds.lastMiddleMin * moved) return -1;
    if (lightShare > bounds.lightMax) return -1;
    if (rest > restMax || last < bounds.dropMin * rest * moved) return -1;
    const within = this.#meanWithin(MOVED);
    if (within > bounds.cleanRest && within > bounds.usualShare * this.#before.usual) return -1;
    if (this.#drift.mean > this.#driftMax) return -1;
    if (history.brightest(end - 1) - history.darkest(end - 1) < bounds.flatRange || this.#hasCut()) return -1;
    if ((this.#redrawn - 1) * bounds.framesAKeyframe > end - this.#start) return -1;
    if (this.#isBrief && this.#exact < bounds.briefExactMin * (end - this.#start - 1)) return -1;
    const stopped = this.#stopped(history);
    const stoppedMin = this.#stoppedMin;
    if (stopped < stoppedMin) return -1;
    return Math.min((stopped - stoppedMin) / 0.4, 1 - rest / restMax, moved - bounds.leastMoved);
  }

  /** Whether the stretch can only be a freeze: many of its frames repeat exactly, and none did before. */
  get #isSure(): boolean {
    return this.#isExact && this.#lastStill - this.#start >= this.#bounds.sureFrames;
  }

  /** Whether nearly all its frames repeat exactly, and none did before. */
  get #isExact(): boolean {
    const bounds = this.#bounds;
    return this.#before.hold <= bounds.sureHold &&
      this.#exact >= bounds.sureMin * (this.#lastStill - this.#start);
  }

  get #leastMs(): number {
    const bounds = this.#bounds;
    const { moved, change } = this.#before;
    // Noise, which changes no cell, may be left out by a codec for a while.
    const isSure = this.#isSure && change >= bounds.sureChangeMin;
    if (moved < bounds.clearMoved) {
      return (isSure ? bounds.leastSureLevelMs : bounds.leastFaintLevelMs) / moved;
    }
    return this.#meanWithin(MOVED) > bounds.cleanRest ? bounds.leastNoisyMs : bounds.leastMs;
  }

  get #stoppedMin(): number {
    const bounds = this.#bounds;
    if (this.#end < 0) return bounds.stoppedOpenMin;
    if (this.#isSure) return bounds.stoppedSureMin;
    return this.#before.moved < bounds.clearMoved ? bounds.stoppedFaintMin : bounds.stoppedMin;
  }

  get #driftMax(): number {
    const bounds = this.#bounds;
    const { moved } = this.#before;
    if (moved < bounds.clearMoved) return bounds.driftFaintMax;
    return moved > bounds.fastMoved && this.#drift.largest < bounds.driftCellMax
      ? bounds.driftEvenMax
      : bounds.driftMax;
  }

  /** Whether the stretch begins with a cut, or a few frames after one. */
  #hasCut(): boolean {
    for (let frame = this.#start - this.#bounds.cutReach; frame <= this.#start + 1; frame++) {
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
    return this.#bounds.cellMoves * Math.min(1, this.#before.moved);
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
      if (before >= this.#cellMoves && within <= this.#bounds.cellRests * before) stopped++;
    }
    return stopped / LUMA_CELLS;
  }

  /** By what margin the picture moves again after the stretch; -1 where it does not. */
  #resumption(history: FrameHistory, until: number): number {
    const bounds = this.#bounds;
    const { moved } = this.#before;
    const { moves } = history;
    const end = this.#end, last = Math.min(until, end + bounds.afterFrames);
    let resumed = 0, most = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      let frame = end;
      while (frame < last && moves[history.movesAt(frame) + cell]! < this.#cellMoves) frame++;
      if (frame < last) resumed++;
    }
    for (let frame = end; frame < last; frame++) most = Math.max(most, history.moved(frame));
    resumed /= LUMA_CELLS;
    const stopped = this.#stopped(history);
    const resumedMin = this.#isSure ? bounds.resumedSureMin : bounds.resumedMin;
    const movedMin = this.#isSure ? bounds.resumedMovedSureMin : bounds.resumedMovedMin;
    if (resumed < resumedMin * stopped || most < movedMin * moved) return -1;
    const isCutOff = most > bounds.cutOff * moved;
    if (isCutOff && this.#rest > bounds.cutRestMax) return -1;
    const isToCut = isCutOff || this.#cuts.cutScore(end) >= CUT_SCORE_THRESHOLD;
    // The jump over what a freeze has left out may look like a cut.
    if (isToCut && !this.#isExact && !this.#isLong(history, bounds.leastToCutMs)) return -1;
    return (resumed / stopped - resumedMin) / 0.2;
  }
}
