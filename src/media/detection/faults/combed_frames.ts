/** Frames whose two fields show different moments, by measures of lines that nothing was averaged of:
 * docs/detection/faults.md#combing.
 */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/**
 * Frames in a row that tell together whether one field is always the older one. TOGETHER_IN_TURN is their
 * number where the two fields are older in turn.
 */
const TOGETHER = 4;
const TOGETHER_IN_TURN = 6;
/** Least alternation of lines in each of them, in levels. */
const ALTERNATION_MIN = 0.15;
/**
 * Least mean by which one field is older than the other: the same field in all frames, or the two in turn
 * where the order of fields is wrong.
 */
const APART_MIN = 0.28;
/**
 * Least value of each single frame where the fields are older in turn. Where the same field always is, no
 * frame may say the opposite by more than OPPOSITE_MAX.
 */
const APART_IN_TURN_LEAST = 0.04;
const OPPOSITE_MAX = 0.1;
/**
 * Least mean by which, in turn, both fields are nearer to the frame before than to each other and then
 * further from it: with a wrong order of fields every second frame is nearer.
 */
const IN_TURN_MIN = 0.36;
/**
 * Frames in a row for which less is enough: LONG_APART_LEAST in each of them, in the same direction, and the
 * mean LONG_APART_MIN.
 */
const LONG_TOGETHER = 8;
const LONG_APART_LEAST = 0.13;
const LONG_APART_MIN = 0.2;
/**
 * A comb is sudden where lines begin at once to alternate this many times as much as in the frames before:
 * that is no pattern of the scene. If they alternate by SUDDEN_FROM levels at least, SUDDEN_MIN is enough in
 * place of APART_MIN.
 */
const SUDDEN = 8;
const SUDDEN_FROM = 1.2;
const SUDDEN_MIN = 0.17;
/**
 * Frames after its lines began to alternate within which a sudden comb must show itself: a pattern that came
 * and moves later is none.
 */
const SUDDEN_WITHIN = 8;
/**
 * Small text that moves alternates by less than this share of how far samples stick out along rows. For what
 * came at once the share is SUDDEN_FINE_SHARE.
 */
const FINE_SHARE = 0.2;
const SUDDEN_FINE_SHARE = 0.08;
/**
 * Least contrast before, as a part of that now: a picture with less, as a flash leaves it, does not show how
 * much its lines alternate.
 */
const CONTRAST_SHOWN = 0.6;
/**
 * For a sudden comb these means are enough where the same field is the older one in every frame: by this, and
 * both fields nearer to the frame before than to each other by STEADY_BEFORE_MIN.
 */
const STEADY_APART_MIN = 0.07;
const STEADY_BEFORE_MIN = 0.1;
/**
 * Where the lines are further from the frame before than from each other by more than this, they are of a new
 * picture.
 */
const NEW_PICTURE = -0.7;
/** A sudden comb goes on while its lines alternate at least this many times as much as those before it. */
const GOES_ON = 3;
/**
 * Frames in which the alternation before a comb is looked for. The BLENDED_FRAMES just before the comb are
 * left out, as an encoder draws them with those that follow.
 */
const BEFORE_FRAMES = 4;
const BLENDED_FRAMES = 2;
/** Frames at the begin of a shot that cannot be compared with three earlier frames of it. */
const SHOT_BEGIN = 3;
/** Frames between combed ones in which nothing moves, so that no comb is seen. */
const STILL_MAX = 2;
/** Least value of a frame, by either measure of fields, for which later frames may still show a comb. */
const OPEN_MIN = 0.08;

/** Finds combed frames: judges frames in order. Allocates nothing per frame. */
export class CombedFrames {
  /** How clearly the frame that was judged last is combed: 0 for not, 1 where the rule just holds. */
  strength = NaN;

  readonly #measures: ArtifactMeasures;
  /** The last frame that is known to be combed; `#clearness` says how clearly. */
  #end = -1;
  #clearness = NaN;
  /** How clear the run of frames is that a rule looked at last. */
  #found = NaN;
  /** The first frame of the shot. */
  #shot = 0;
  /** The most alternation just before the present run of frames that alternate; NaN outside of one. */
  #before = NaN;
  /** The first frame of the present run of frames that alternate. */
  #run = 0;
  /** Whether frames of the present run are combed by a comb that came at once. */
  #isSuddenComb = false;
  /**
   * Sum over the frames that were compared last of how much one field is the older one. `#lower` and `#upper`
   * are the least and the most of these, `#nearer` is the sum of how much nearer both fields are to the frame
   * before, and `#leastAt` is where the least alternation is.
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
    // A frame that is judged at once is also of the runs that began before it, which later frames have
    // completed.
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

  /**
   * Whether the same field is the older one in LONG_TOGETHER frames from `start` on, for which less is
   * enough.
   */
  #isLongComb(start: number): boolean {
    if (!this.#compare(start, LONG_TOGETHER, false)) return false;
    if (Math.max(this.#lower, -this.#upper) < LONG_APART_LEAST || this.#isFine(start, LONG_TOGETHER, false)) {
      return false;
    }
    this.#found = Math.abs(this.#apart) / LONG_TOGETHER / LONG_APART_MIN;
    return this.#isFound();
  }

  /**
   * Whether the lines of the frames from `start` on, whose least alternation is the value at `least`, began
   * to alternate at once and just before, or belong to a sudden comb.
   */
  #isSudden(start: number, least: number): boolean {
    if (!(this.#measures.values[least]! >= SUDDEN * this.#before)) return false;
    return start <= this.#run + SUDDEN_WITHIN || (this.#isSuddenComb && start <= this.#end + 1 + STILL_MAX);
  }

  /**
   * Whether the frames from `start` on alternate no more than fine texture does that moves, such as small
   * text.
   */
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

  /** Whether in the frames from `start` on always the same field is the older one. */
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

  /**
   * Whether in the frames from `start` on the one field is the older one, and then the other one, in turn.
   */
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

  /** Limits `#found` to 4, and says whether a rule holds: it just does with 1. */
  #isFound(): boolean {
    this.#found = Math.min(this.#found, 4);
    return this.#found >= 1;
  }

  /**
   * Compares the fields of `frames` frames from `start` on; with `inTurn`, in every second frame with the
   * fields exchanged. False where these frames have not come, are not of one picture, or their lines do not
   * alternate.
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
