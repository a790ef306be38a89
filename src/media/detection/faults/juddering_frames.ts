/** Frames that are held: motion that was smooth goes on in every second frame only, and each of these is
 * shown twice.
 */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/**
 * Largest step to a frame that is shown again, as a part of the steps before and behind it. STEP_MIN is the
 * least size of those, in levels.
 */
const REPEAT_MAX = 0.28;
const STEP_MIN = 0.5;
/** The step behind the newest frame, which is not known yet, counts as this part of the one before. */
const UNKNOWN_STEP = 0.6;
/**
 * Each step between held frames is at least this many times the usual one before: it makes up for two frames
 * at once.
 */
const FURTHER_MIN = 1.2;
/** The most that the larger of two steps may be over the smaller one. */
const EVEN_MAX = 4;

/**
 * Frames of the same shot that must have moved smoothly; how many of the nearest say which step is usual; and
 * the fewest that are enough.
 */
const SMOOTH_FRAMES = 16, USUAL_FRAMES = 10, SMOOTH_LEAST = 10;
/**
 * No step of the smooth frames may be this many times the usual one: behind an effect other pictures come.
 */
const JUMP_MIN = 5;
/**
 * How many of the smooth frames may be like the frame before. A frame is where its step is at most ALIKE_MAX
 * of the steps on either side, or ALIKE_USUAL_MAX of the usual one. A least step below REST_MAX of the usual
 * one is what an encoder leaves of a picture that rests, and does not count.
 */
const ALIKE_FRAMES = 2;
const ALIKE_MAX = 0.3;
const ALIKE_USUAL_MAX = 0.15;
const REST_MAX = 0.5;
const USUAL_MIN = 0.3;
/** Least standard deviation of luma, in levels: a plain picture moves by whole levels. */
const CONTRAST_MIN = 8;
/** Most of the change before that light may explain: the light of old film goes up and down. */
const LIGHT_MAX = 0.5;
/**
 * Least time between two frames, milliseconds: films with faster pictures were often made for half the rate.
 */
const LEAST_MS = 15;
/** Frames after which held frames count as how the picture moves. */
const LONGEST = 60;

/**
 * Finds held frames: judges frames in order, each with the five behind it as far as they have come. Allocates
 * nothing per frame.
 */
export class JudderingFrames {
  readonly #measures: ArtifactMeasures;
  readonly #steps = new Float64Array(USUAL_FRAMES);
  /** The median of the steps just before the frame that was asked for last. */
  #usual = NaN;
  #shotStart = 0;
  #start = -1;
  #ms = NaN;
  /** Milliseconds between the newest two frames. */
  #stepMs = NaN;

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

  /**
   * Whether later frames may show that the frame is held: it is the first one that is like the one before.
   */
  isOpen(frame: number): boolean {
    const measures = this.#measures, { values } = measures;
    const before = values[measures.placeOf(frame - 1) + MEASURES.luma1]!, least = REPEAT_MAX * before;
    return before >= STEP_MIN && values[measures.placeOf(frame) + MEASURES.luma1]! <= least &&
      values[measures.placeOf(frame - 2) + MEASURES.luma1]! > least;
  }

  /** Goes on to the next frame. Returns whether it is one of those that are held. */
  step(frame: number, isCut: boolean): boolean {
    if (isCut || frame === 0) {
      this.#shotStart = frame;
      this.#start = -1;
      return false;
    }
    if (this.#start >= 0) {
      const goesOn = this.#repeats(frame, REPEAT_MAX) || this.#repeats(frame + 1, REPEAT_MAX);
      if (!goesOn || frame - this.#start >= LONGEST) this.#start = -1;
    } else if (this.#begins(frame, 1) || this.#begins(frame, 0)) this.#start = frame;
    return this.#start >= 0;
  }

  /** Whether three frames are shown again, the first one of them `ahead` frames later. */
  #begins(frame: number, ahead: 0 | 1): boolean {
    const first = frame + ahead, measures = this.#measures;
    if (first + 4 >= measures.count || frame - this.#shotStart < SMOOTH_LEAST) return false;
    if (!this.#repeats(first, REPEAT_MAX)) return false;
    if (!this.#repeats(first + 2, REPEAT_MAX) || !this.#repeats(first + 4, REPEAT_MAX)) return false;
    const { values } = measures, now = measures.placeOf(frame);
    const one = values[measures.placeOf(first + 1) + MEASURES.luma1]!;
    const two = values[measures.placeOf(first + 3) + MEASURES.luma1]!;
    const least = Math.min(values[measures.placeOf(first - 1) + MEASURES.luma1]!, one, two);
    if (least < STEP_MIN || this.#stepMs < LEAST_MS) return false;
    if (values[now + MEASURES.contrast]! < CONTRAST_MIN) return false;
    if (measures.isLitBefore(first, this.#shotStart, LIGHT_MAX)) return false;
    if (Math.max(one, two) > EVEN_MAX * Math.min(one, two)) return false;
    this.#findUsual(frame);
    return this.#usual >= USUAL_MIN && (one + two) / 2 >= FURTHER_MIN * this.#usual &&
      this.#isSmoothBefore(first - 1);
  }

  #findUsual(frame: number): void {
    const steps = this.#steps, { values } = this.#measures;
    let count = 0;
    for (let back = Math.max(this.#shotStart + 1, frame - USUAL_FRAMES); back < frame; back++, count++) {
      const step = values[this.#measures.placeOf(back) + MEASURES.luma1]!;
      let at = count;
      for (; at > 0 && steps[at - 1]! > step; at--) steps[at] = steps[at - 1]!;
      steps[at] = step;
    }
    this.#usual = steps[count >> 1]!;
  }

  #isSmoothBefore(end: number): boolean {
    const { values } = this.#measures, usual = this.#usual;
    const first = Math.max(this.#shotStart + 2, end - SMOOTH_FRAMES);
    const least = this.#measures.leastBefore(MEASURES.luma1, end, end - first);
    const isRest = values[least]! < REST_MAX * usual;
    const rest = isRest ? values[least]! : 0;
    let alike = 0;
    for (let at = first; at < end; at++) {
      const step = values[this.#measures.placeOf(at) + MEASURES.luma1]!;
      if (step >= JUMP_MIN * usual) return false;
      if (step - rest <= ALIKE_USUAL_MAX * usual || this.#repeats(at, ALIKE_MAX, isRest ? least : -1)) {
        alike++;
      }
    }
    return alike <= ALIKE_FRAMES;
  }

  /**
   * Whether the step to a frame is at most the part `most` of the smaller of the steps before and behind it.
   * What is left of a picture that rests, the value at `restAt`, is first taken from all of them; -1 for
   * none.
   */
  #repeats(frame: number, most: number, restAt = -1): boolean {
    const measures = this.#measures, { values } = measures;
    const rest = restAt < 0 ? 0 : values[restAt]!;
    const before = values[measures.placeOf(frame - 1) + MEASURES.luma1]!;
    const isNewest = frame + 1 >= measures.count;
    const behind = isNewest ? UNKNOWN_STEP * before : values[measures.placeOf(frame + 1) + MEASURES.luma1]!;
    return values[measures.placeOf(frame) + MEASURES.luma1]! - rest <=
      most * (Math.min(before, behind) - rest);
  }
}
