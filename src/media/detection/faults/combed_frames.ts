/** Frames whose two fields show different moments, by measures of lines that nothing was averaged of: docs/detection.md#combing. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** Frames in a row that tell together whether the fields are of two moments, always in the same way; and whether they are in turn. */
const TOGETHER = 4;
const TOGETHER_IN_TURN = 6;
/** Least alternation of lines in each of them, in levels. */
const ALTERNATION_MIN = 0.15;
/** Least mean by which one field is older than the other: in all frames the same one, or in turn (a wrong order of fields). */
const APART_MIN = 0.28;
/** In turn it is so in each frame, by this at least; otherwise no frame says the opposite, by this. */
const APART_IN_TURN_LEAST = 0.04;
const OPPOSITE_MAX = 0.1;
/** The same, in turn, of how much nearer both fields are to the frame before than to each other: so frames of a wrong order are, every second one. */
const IN_TURN_MIN = 0.36;
/** Less is enough in so many frames: the least of each of them, in the same direction, and their mean. */
const LONG_TOGETHER = 8;
const LONG_APART_LEAST = 0.13;
const LONG_APART_MIN = 0.2;
/** Lines that alternate at once and so many times as much as in the frames before are no pattern of the scene, and then this is enough. */
const SUDDEN = 8;
const SUDDEN_FROM = 1.2;
const SUDDEN_MIN = 0.17;
/** Such a comb shows itself within so many frames after its lines began to alternate: a pattern that came and moves later is none. */
const SUDDEN_WITHIN = 8;
/** Small text that moves alternates by less than this share of how far samples stick out along rows; what came at once, by less than the second. */
const FINE_SHARE = 0.2;
const SUDDEN_FINE_SHARE = 0.08;
/** A picture with less than this part of the contrast, as a flash leaves it, does not show how much its lines alternate. */
const CONTRAST_SHOWN = 0.6;
/** Where they are fewer: the same field is the older one in all frames, and both are nearer to the frame before, by these means. */
const STEADY_APART_MIN = 0.07;
const STEADY_BEFORE_MIN = 0.1;
/** Lines that are further from the frame before than from each other, by this, are of a new picture. */
const NEW_PICTURE = -0.7;
/** Such a comb goes on while its lines alternate so many times as much as those before it. */
const GOES_ON = 3;
/** How far back the lines before are looked for, and how many frames are left out: an encoder draws them with those that follow. */
const BEFORE_FRAMES = 4;
const BLENDED_FRAMES = 2;
/** Frames of a shot that cannot be compared with three others of it. */
const SHOT_BEGIN = 3;
/** Frames between combed ones in which nothing moves, so that no comb is seen. */
const STILL_MAX = 2;
/** A frame that tells less than this is not combed, whatever follows. */
const OPEN_MIN = 0.08;

/** Judges frames in order. Allocates nothing per frame. */
export class CombedFrames {
  readonly #measures: ArtifactMeasures;
  /** Frames up to this one are combed. */
  #end = -1;
  #strength = 0;
  /** The first frame of the shot. */
  #shot = 0;
  /** The most alternation just before the present run of frames that alternate; NaN outside of one. */
  #before = NaN;
  /** The first frame of that run. */
  #run = 0;
  /** Whether frames of that run are combed, and it came at once. */
  #isSuddenComb = false;
  /**
   * Of the frames that were compared last: sums of how much one field is the older one, and of how much nearer both are to the frame before;
   * the least and the most of the first, and the least alternation.
   */
  #apart = 0;
  #nearer = 0;
  #lower = 0;
  #upper = 0;
  #least = 0;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  reset(): void {
    this.#end = -1;
    this.#shot = 0;
    this.#before = NaN;
    this.#run = 0;
    this.#isSuddenComb = false;
  }

  /** Whether frames behind it may yet show that a frame, which is the next to be judged, is combed. */
  isOpen(frame: number): boolean {
    if (frame <= this.#end || this.#measures.at(MEASURES.alternation, frame) < ALTERNATION_MIN) return false;
    return Math.abs(this.#measures.at(MEASURES.fieldsApart, frame)) >= OPEN_MIN ||
      Math.abs(this.#measures.at(MEASURES.fieldsBefore, frame)) >= OPEN_MIN;
  }

  /** Judges the next frame with those that have come: 0, or how clearly it is combed, 1 where the rule just holds. */
  step(frame: number, isCut: boolean): number {
    if (isCut) {
      this.#end = frame - 1;
      this.#shot = frame;
    }
    this.#noteBefore(frame, isCut);
    const isBehind = frame === this.#end + 1 || frame < this.#shot + SHOT_BEGIN;
    // A frame that is judged at once is also of the runs that began before it, which later frames have completed.
    for (let start = frame - TOGETHER + 1; start <= frame + (isBehind ? STILL_MAX : 0); start++) {
      const strength = this.#strengthOf(start), inTurn = this.#strengthInTurnOf(start);
      if (strength === 0 && inTurn === 0) continue;
      this.#strength = Math.max(strength, inTurn);
      this.#end = Math.max(this.#end, start + (inTurn > 0 ? TOGETHER_IN_TURN : TOGETHER) - 1);
      this.#isSuddenComb = this.#isSudden(start, this.#measures.at(MEASURES.alternation, frame));
      break;
    }
    if (frame > this.#end) {
      for (let start = frame - LONG_TOGETHER + 1; start <= frame && frame > this.#end; start++) {
        const strength = this.#longStrengthOf(start);
        if (strength === 0) continue;
        this.#strength = strength;
        this.#end = start + LONG_TOGETHER - 1;
      }
    }
    if (this.#isSuddenComb && frame === this.#end + 1 && this.#goesOn(frame)) this.#end = frame;
    return frame <= this.#end ? this.#strength : 0;
  }

  /** Of more frames from `start` on, in which the same field is the older one. */
  #longStrengthOf(start: number): number {
    if (!this.#compare(start, LONG_TOGETHER, false)) return 0;
    if (Math.max(this.#lower, -this.#upper) < LONG_APART_LEAST || this.#isFine(start, LONG_TOGETHER, false)) {
      return 0;
    }
    return clearness(Math.abs(this.#apart) / LONG_TOGETHER / LONG_APART_MIN);
  }

  /** Whether the lines of frames from `start` on, which alternate by this, began to at once and just before, or in a sudden comb. */
  #isSudden(start: number, alternation: number): boolean {
    if (!(alternation >= SUDDEN * this.#before)) return false;
    return start <= this.#run + SUDDEN_WITHIN || (this.#isSuddenComb && start <= this.#end + 1 + STILL_MAX);
  }

  /** Whether the frames from `start` on alternate no more than fine texture does that moves, such as small text. */
  #isFine(start: number, frames: number, isSudden: boolean): boolean {
    let alternation = 0, spikes = 0;
    for (let frame = start; frame < start + frames; frame++) {
      alternation += this.#measures.at(MEASURES.alternation, frame);
      spikes += this.#measures.at(MEASURES.spikesAcross, frame);
    }
    return alternation < (isSudden ? SUDDEN_FINE_SHARE : FINE_SHARE) * spikes;
  }

  #goesOn(frame: number): boolean {
    return this.#measures.at(MEASURES.alternation, frame) >=
      Math.max(ALTERNATION_MIN, GOES_ON * this.#before);
  }

  #noteBefore(frame: number, isCut: boolean): void {
    if (this.#measures.at(MEASURES.alternation, frame) < ALTERNATION_MIN) this.#before = NaN;
    else if (isCut || frame === 0) this.#before = Infinity;
    else if (Number.isNaN(this.#before)) {
      this.#run = frame;
      const last = Math.max(0, frame - BLENDED_FRAMES);
      const frames = Math.min(last, BEFORE_FRAMES);
      const contrast = this.#measures.leastBefore(MEASURES.contrast, frame, BEFORE_FRAMES + BLENDED_FRAMES);
      const isShown = contrast >= CONTRAST_SHOWN * this.#measures.at(MEASURES.contrast, frame);
      this.#before = isShown ? this.#measures.largestBefore(MEASURES.alternation, last, frames) : Infinity;
    }
  }

  /** Of the frames from `start` on: always the same field is the older one. */
  #strengthOf(start: number): number {
    if (!this.#compare(start, TOGETHER, false) || Math.min(-this.#lower, this.#upper) > OPPOSITE_MAX) {
      return 0;
    }
    const apart = Math.abs(this.#apart) / TOGETHER, nearer = this.#nearer / TOGETHER;
    const isSudden = this.#isSudden(start, this.#least);
    if (this.#isFine(start, TOGETHER, isSudden)) return 0;
    const isSteady = isSudden && (this.#lower > 0 || this.#upper < 0);
    return clearness(Math.max(
      apart / APART_MIN,
      isSudden && this.#least >= SUDDEN_FROM ? apart / SUDDEN_MIN : 0,
      isSteady ? Math.min(apart / STEADY_APART_MIN, nearer / STEADY_BEFORE_MIN) : 0,
    ));
  }

  /** Of the frames from `start` on: the one field is the older one, and then the other one. */
  #strengthInTurnOf(start: number): number {
    if (!this.#compare(start, TOGETHER_IN_TURN, true)) return 0;
    const isInTurn = this.#lower > APART_IN_TURN_LEAST || this.#upper < -APART_IN_TURN_LEAST;
    const apart = isInTurn ? Math.abs(this.#apart) / TOGETHER_IN_TURN : 0;
    const nearer = Math.abs(this.#nearer) / TOGETHER_IN_TURN;
    const isSudden = this.#isSudden(start, this.#least);
    if (this.#isFine(start, TOGETHER_IN_TURN, isSudden)) return 0;
    return clearness(Math.max(
      apart / APART_MIN,
      nearer / IN_TURN_MIN,
      isSudden && this.#least >= SUDDEN_FROM ? Math.max(apart, nearer) / SUDDEN_MIN : 0,
    ));
  }

  /**
   * Compares the fields of so many frames from `start` on; `inTurn`: of every second one the other way round. False where they have not
   * come, are not of one picture, or their lines do not alternate.
   */
  #compare(start: number, frames: number, inTurn: boolean): boolean {
    const measures = this.#measures;
    if (start + frames > measures.count || start < this.#shot + SHOT_BEGIN) return false;
    if (measures.at(MEASURES.alternation, start) < ALTERNATION_MIN) return false;
    this.#apart = this.#nearer = 0;
    this.#lower = this.#least = Infinity;
    this.#upper = -Infinity;
    for (let n = 0; n < frames; n++) {
      const sign = inTurn && n % 2 === 1 ? -1 : 1;
      const apart = sign * measures.at(MEASURES.fieldsApart, start + n);
      const nearer = measures.at(MEASURES.fieldsBefore, start + n);
      if (n > 0 && nearer < NEW_PICTURE) return false;
      this.#apart += apart;
      this.#nearer += sign * nearer;
      this.#lower = Math.min(this.#lower, apart);
      this.#upper = Math.max(this.#upper, apart);
      this.#least = Math.min(this.#least, measures.at(MEASURES.alternation, start + n));
    }
    return this.#least >= ALTERNATION_MIN;
  }
}

/** 0 where no rule holds, which it just does with 1; at most 4. */
function clearness(strength: number): number {
  return strength < 1 ? 0 : Math.min(strength, 4);
}
