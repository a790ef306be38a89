/** Frames that are held: motion that was smooth goes on in every second frame only, and each of these is shown twice. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** A frame that is shown again differs by at most this part of the steps before and behind it, which have so many levels. */
const REPEAT_MAX = 0.28;
const STEP_MIN = 0.5;
/** The step behind the newest frame, which is not known yet, counts as this part of the one before. */
const UNKNOWN_STEP = 0.6;
/** Each step leads so many times as far as the usual one before: two frames at once. */
const FURTHER_MIN = 1.2;
/** The larger of two steps over the smaller one. */
const EVEN_MAX = 4;

/** Frames of the same shot that must have moved smoothly: usual steps are those of the nearest. */
const SMOOTH_FRAMES = 16, USUAL_FRAMES = 10, SMOOTH_LEAST = 10;
/** None of their steps is so many times the usual one: behind an effect other pictures come. */
const JUMP_MIN = 5;
/**
 * So many of them may be alike, those by this part of the steps on either side, or by that of the usual step. A least step below half of the usual
 * one is what an encoder leaves of a picture that rests, and does not count.
 */
const ALIKE_FRAMES = 2;
const ALIKE_MAX = 0.3;
const ALIKE_USUAL_MAX = 0.15;
const REST_MAX = 0.5;
const USUAL_MIN = 0.3;
/** A plain picture has steps of whole levels: standard deviation of luma. */
const CONTRAST_MIN = 8;
/** Most of what changed before that light explains: the light of old film goes up and down. */
const LIGHT_MAX = 0.5;
/** Films of which pictures come faster were often made for half the rate. */
const LEAST_MS = 15;
/** Frames after which it counts as how the picture moves. */
const LONGEST = 60;

/** Frames are judged in order, each with the five behind it as far as they have come. Allocates nothing per frame. */
export class JudderingFrames {
  readonly #measures: ArtifactMeasures;
  readonly #steps = new Float64Array(USUAL_FRAMES);
  #shotStart = 0;
  #start = -1;
  #ms = NaN;
  /** Between the newest two frames. */
  #stepMs = 0;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  reset(): void {
    this.#shotStart = 0;
    this.#start = -1;
    this.#ms = NaN;
    this.#stepMs = 0;
  }

  push(ptsMs: number): void {
    this.#stepMs = ptsMs - this.#ms;
    this.#ms = ptsMs;
  }

  /** Whether later frames may show that the frame is held: it is the first one that is like the one before. */
  isOpen(frame: number): boolean {
    const before = this.#measures.at(MEASURES.luma1, frame - 1), least = REPEAT_MAX * before;
    return before >= STEP_MIN && this.#measures.at(MEASURES.luma1, frame) <= least &&
      this.#measures.at(MEASURES.luma1, frame - 2) > least;
  }

  /** Goes on to the next frame. Returns 1 where it is one of those that are held, else 0. */
  step(frame: number, isCut: boolean): number {
    if (isCut || frame === 0) {
      this.#shotStart = frame;
      this.#start = -1;
      return 0;
    }
    if (this.#start >= 0) {
      const goesOn = this.#repeats(frame, REPEAT_MAX) || this.#repeats(frame + 1, REPEAT_MAX);
      if (!goesOn || frame - this.#start >= LONGEST) this.#start = -1;
    } else if (this.#begins(frame, 1) || this.#begins(frame, 0)) this.#start = frame;
    return this.#start < 0 ? 0 : 1;
  }

  /** Whether three frames are shown again, the first one of them `ahead` frames later. */
  #begins(frame: number, ahead: 0 | 1): boolean {
    const first = frame + ahead, measures = this.#measures;
    if (first + 4 >= measures.count || frame - this.#shotStart < SMOOTH_LEAST) return false;
    if (!this.#repeats(first, REPEAT_MAX)) return false;
    if (!this.#repeats(first + 2, REPEAT_MAX) || !this.#repeats(first + 4, REPEAT_MAX)) return false;
    const one = measures.at(MEASURES.luma1, first + 1), two = measures.at(MEASURES.luma1, first + 3);
    const least = Math.min(measures.at(MEASURES.luma1, first - 1), one, two);
    if (least < STEP_MIN || this.#stepMs < LEAST_MS) return false;
    if (measures.at(MEASURES.contrast, frame) < CONTRAST_MIN) return false;
    if (measures.lightBefore(first, this.#shotStart) > LIGHT_MAX) return false;
    if (Math.max(one, two) > EVEN_MAX * Math.min(one, two)) return false;
    const usual = this.#usualStep(frame);
    return usual >= USUAL_MIN && (one + two) / 2 >= FURTHER_MIN * usual &&
      this.#isSmoothBefore(first - 1, usual);
  }

  /** The median of the steps just before. */
  #usualStep(frame: number): number {
    const steps = this.#steps;
    let count = 0;
    for (let back = Math.max(this.#shotStart + 1, frame - USUAL_FRAMES); back < frame; back++, count++) {
      const step = this.#measures.at(MEASURES.luma1, back);
      let at = count;
      for (; at > 0 && steps[at - 1]! > step; at--) steps[at] = steps[at - 1]!;
      steps[at] = step;
    }
    return steps[count >> 1]!;
  }

  #isSmoothBefore(end: number, usual: number): boolean {
    const first = Math.max(this.#shotStart + 2, end - SMOOTH_FRAMES);
    const least = this.#measures.leastBefore(MEASURES.luma1, end, end - first);
    const rest = least < REST_MAX * usual ? least : 0;
    let alike = 0;
    for (let at = first; at < end; at++) {
      const step = this.#measures.at(MEASURES.luma1, at);
      if (step >= JUMP_MIN * usual) return false;
      if (step - rest <= ALIKE_USUAL_MAX * usual || this.#repeats(at, ALIKE_MAX, rest)) alike++;
    }
    return alike <= ALIKE_FRAMES;
  }

  /** Whether the step to a frame, beyond what is left of a picture that rests, is at most so large beside those before and behind it. */
  #repeats(frame: number, most: number, rest = 0): boolean {
    const before = this.#measures.at(MEASURES.luma1, frame - 1);
    const isNewest = frame + 1 >= this.#measures.count;
    const behind = isNewest ? UNKNOWN_STEP * before : this.#measures.at(MEASURES.luma1, frame + 1);
    return this.#measures.at(MEASURES.luma1, frame) - rest <= most * (Math.min(before, behind) - rest);
  }
}
