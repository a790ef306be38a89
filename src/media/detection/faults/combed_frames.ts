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
  /** Of the frame that was judged last: 0, or how clearly it is combed, 1 where the rule just holds. */
  strength = NaN;

  readonly #measures: ArtifactMeasures;
  /** Frames up to this one are combed, so clearly. */
  #end = -1;
  #clearness = NaN;
  /** How clear the run of frames is that was asked for last. */
  #found = NaN;
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
   * the least and the most of the first, and where the least alternation is.
   */
  #apart = NaN;
  #nearer = NaN;
  #lower = NaN;
  #upper = NaN;
  #leastAt = 0;

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
    const { values } = this.#measures, place = this.#measures.placeOf(frame);
    if (frame <= this.#end || values[place + MEASURES.alternation]! < ALTERNATION_MIN) return false;
    return Math.abs(values[place + MEASURES.fieldsApart]!) >= OPEN_MIN ||
      Math.abs(values[place + MEASURES.fieldsBefore]!) >= OPEN_MIN;
  }

  /** Judges the next frame with those that have come: sets `strength`. */
  step(frame: number, isCut: boolean): void {
    if (isCut) {
      this.#end = frame - 1;
      this.#shot = frame;
    }
    this.#noteBefore(frame, isCut);
    const isBehind = frame === this.#end + 1 || frame < this.#shot + SHOT_BEGIN;
    // A frame that is judged at once is also of the runs that began before it, which later frames have completed.
    for (let start = frame - TOGETHER + 1; start <= frame + (isBehind ? STILL_MAX : 0); start++) {
      if (!this.#alternates(start)) continue;
      const isOne = this.#isComb(start), clearness = isOne ? this.#found : 0;
      const isInTurn = this.#isCombInTurn(start);
      if (!isOne && !isInTurn) continue;
      this.#clearness = isInTurn ? Math.max(clearness, this.#found) : clearness;
      this.#end = Math.max(this.#end, start + (isInTurn ? TOGETHER_IN_TURN : TOGETHER) - 1);
      this.#isSuddenComb = this.#isSudden(start, this.#measures.placeOf(frame) + MEASURES.alternation);
      break;
    }
    if (frame > this.#end) {
      for (let start = frame - LONG_TOGETHER + 1; start <= frame && frame > this.#end; start++) {
        if (!this.#alternates(start) || !this.#isLongComb(start)) continue;
        this.#clearness = this.#found;
        this.#end = start + LONG_TOGETHER - 1;
      }
    }
    if (this.#isSuddenComb && frame === this.#end + 1 && this.#goesOn(frame)) this.#end = frame;
    this.strength = frame <= this.#end ? this.#clearness : 0;
  }

  /** Whether a run may begin with a frame: in most films there is none. */
  #alternates(start: number): boolean {
    return this.#measures.values[this.#measures.placeOf(start) + MEASURES.alternation]! >= ALTERNATION_MIN;
  }

  /** Of more frames from `start` on, in which the same field is the older one. */
  #isLongComb(start: number): boolean {
    if (!this.#compare(start, LONG_TOGETHER, false)) return false;
    if (Math.max(this.#lower, -this.#upper) < LONG_APART_LEAST || this.#isFine(start, LONG_TOGETHER, false)) {
      return false;
    }
    this.#found = Math.abs(this.#apart) / LONG_TOGETHER / LONG_APART_MIN;
    return this.#isFound();
  }

  /** Whether the lines of frames from `start` on, which alternate by the value at `least`, began to at once and just before, or in a sudden comb. */
  #isSudden(start: number, least: number): boolean {
    if (!(this.#measures.values[least]! >= SUDDEN * this.#before)) return false;
    return start <= this.#run + SUDDEN_WITHIN || (this.#isSuddenComb && start <= this.#end + 1 + STILL_MAX);
  }

  /** Whether the frames from `start` on alternate no more than fine texture does that moves, such as small text. */
  #isFine(start: number, frames: number, isSudden: boolean): boolean {
    const { values } = this.#measures;
    let alternation = 0, spikes = 0;
    for (let frame = start; frame < start + frames; frame++) {
      const place = this.#measures.placeOf(frame);
      alternation += values[place + MEASURES.alternation]!;
      spikes += values[place + MEASURES.spikesAcross]!;
    }
    return alternation < (isSudden ? SUDDEN_FINE_SHARE : FINE_SHARE) * spikes;
  }

  #goesOn(frame: number): boolean {
    return this.#measures.values[this.#measures.placeOf(frame) + MEASURES.alternation]! >=
      Math.max(ALTERNATION_MIN, GOES_ON * this.#before);
  }

  #noteBefore(frame: number, isCut: boolean): void {
    if (!this.#alternates(frame)) this.#before = NaN;
    else if (isCut || frame === 0) this.#before = Infinity;
    else if (Number.isNaN(this.#before)) {
      this.#run = frame;
      const measures = this.#measures, { values } = measures;
      const last = Math.max(0, frame - BLENDED_FRAMES);
      const frames = Math.min(last, BEFORE_FRAMES);
      const least = measures.leastBefore(MEASURES.contrast, frame, BEFORE_FRAMES + BLENDED_FRAMES);
      const contrast = values[measures.placeOf(frame) + MEASURES.contrast]!;
      if (values[least]! < CONTRAST_SHOWN * contrast) this.#before = Infinity;
      else if (frames === 0) this.#before = -Infinity;
      else this.#before = values[measures.largestBefore(MEASURES.alternation, last, frames)]!;
    }
  }

  /** Of the frames from `start` on: always the same field is the older one. */
  #isComb(start: number): boolean {
    if (!this.#compare(start, TOGETHER, false) || Math.min(-this.#lower, this.#upper) > OPPOSITE_MAX) {
      return false;
    }
    const apart = Math.abs(this.#apart) / TOGETHER, nearer = this.#nearer / TOGETHER;
    const isSudden = this.#isSudden(start, this.#leastAt);
    if (this.#isFine(start, TOGETHER, isSudden)) return false;
    const isSteady = isSudden && (this.#lower > 0 || this.#upper < 0);
    this.#found = Math.max(
      apart / APART_MIN,
      isSudden && this.#hasStrongLines() ? apart / SUDDEN_MIN : 0,
      isSteady ? Math.min(apart / STEADY_APART_MIN, nearer / STEADY_BEFORE_MIN) : 0,
    );
    return this.#isFound();
  }

  /** Of the frames from `start` on: the one field is the older one, and then the other one. */
  #isCombInTurn(start: number): boolean {
    if (!this.#compare(start, TOGETHER_IN_TURN, true)) return false;
    const isInTurn = this.#lower > APART_IN_TURN_LEAST || this.#upper < -APART_IN_TURN_LEAST;
    const apart = isInTurn ? Math.abs(this.#apart) / TOGETHER_IN_TURN : 0;
    const nearer = Math.abs(this.#nearer) / TOGETHER_IN_TURN;
    const isSudden = this.#isSudden(start, this.#leastAt);
    if (this.#isFine(start, TOGETHER_IN_TURN, isSudden)) return false;
    this.#found = Math.max(
      apart / APART_MIN,
      nearer / IN_TURN_MIN,
      isSudden && this.#hasStrongLines() ? Math.max(apart, nearer) / SUDDEN_MIN : 0,
    );
    return this.#isFound();
  }

  #hasStrongLines(): boolean {
    return this.#measures.values[this.#leastAt]! >= SUDDEN_FROM;
  }

  /** Whether a rule holds, which it just does with 1; it may be at most 4. */
  #isFound(): boolean {
    this.#found = Math.min(this.#found, 4);
    return this.#found >= 1;
  }

  /**
   * Compares the fields of so many frames from `start` on; `inTurn`: of every second one the other way round. False where they have not
   * come, are not of one picture, or their lines do not alternate.
   */
  #compare(start: number, frames: number, inTurn: boolean): boolean {
    const measures = this.#measures, { values } = measures;
    if (start + frames > measures.count || start < this.#shot + SHOT_BEGIN) return false;
    this.#apart = this.#nearer = 0;
    this.#lower = Infinity;
    this.#upper = -Infinity;
    this.#leastAt = measures.placeOf(start) + MEASURES.alternation;
    for (let n = 0; n < frames; n++) {
      const place = measures.placeOf(start + n);
      const sign = inTurn && n % 2 === 1 ? -1 : 1;
      const apart = sign * values[place + MEASURES.fieldsApart]!;
      const nearer = values[place + MEASURES.fieldsBefore]!;
      if (n > 0 && nearer < NEW_PICTURE) return false;
      this.#apart += apart;
      this.#nearer += sign * nearer;
      this.#lower = Math.min(this.#lower, apart);
      this.#upper = Math.max(this.#upper, apart);
      if (values[place + MEASURES.alternation]! < values[this.#leastAt]!) {
        this.#leastAt = place + MEASURES.alternation;
      }
    }
    return values[this.#leastAt]! >= ALTERNATION_MIN;
  }
}
