/** Frames in the wrong order: what moved evenly goes forth and back between places that were just shown. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";
import { mayBeFar, swapAt } from "./swapped_frames.ts";

/**
 * Least change of a frame, in levels, for it to contradict the order: it does where it is nearer to an
 * earlier frame than to the one before.
 */
const STEP_MIN = 1;
/** Levels of noise that are added to both differences. */
const NOISE = 0.7;
/** Most of the change that light may explain: brightness that returns is no order. */
const LIGHT_MAX = 0.75;
/**
 * Least logarithm of how much nearer a frame is to an earlier one. EVIDENCE_MIN is the least sum of these in
 * a stretch, CONTRADICTIONS_MIN the least number of such frames.
 */
const NEARER_MIN = 0.1;
const EVIDENCE_MIN = 1.05;
const CONTRADICTIONS_MIN = 3;

/** Frames before a stretch that must have moved evenly, in one direction. */
const CALM_FRAMES = 6;
/**
 * Each calm frame is further from the frame two before than from the one before by this least logarithm.
 * FURTHER_MIN is that of the frame three before beside the one two before.
 */
const ONWARD_MIN = 0.1;
const FURTHER_MIN = 0.08;
/** The most that the largest step of the calm frames may be over the smallest. */
const EVEN_MAX = 5;
/**
 * Light may explain at most this part of any step of the calm frames: in a film whose light flickers, places
 * that look alike say little.
 */
const CALM_LIGHT_MAX = 0.75;

/**
 * Least size of the largest step of the stretch, in steps of the calm frames: a motion that turns round makes
 * no large one.
 */
const FAR_MIN = 1.5;
/**
 * Contradictions from which on a smaller largest step is enough, if their sum is above LONG_EVIDENCE_MIN:
 * LONG_FAR_MIN.
 */
const LONG_CONTRADICTIONS_MIN = 5;
const LONG_EVIDENCE_MIN = 1.6;
const LONG_FAR_MIN = 1.25;
/**
 * How far, in steps of the calm frames, each frame may be from the nearest of the three before: a picture
 * that is shown only once is another picture.
 */
const NEAR_MAX = 3.5;
/**
 * A frame may be further than NEAR_MAX where its distance to the nearest of the three before is at most this
 * part of its own step.
 */
const NEAR_PART = 0.7;

/**
 * Light explains this part at most of what changed before: old film and a shaken camera look back by chance.
 */
const STEADY_LIGHT_MAX = 0.25;

/** Frames after which a stretch that is still not clear is given up. */
const DOUBTFUL_FRAMES = 8;
const LOOKAHEAD = 5;
/**
 * A stretch goes on while a frame from NEXT_FROM to NEXT_TO frames later contradicts the order: the two
 * frames behind its last one do too.
 */
const NEXT_FROM = 2, NEXT_TO = 4;
/** Frames after which a wrong order counts as what the picture is like. */
const LONGEST = 90;

/**
 * Finds frames in the wrong order. Frames are judged in order, each with those that have come until then.
 * Allocates nothing per frame.
 */
export class DisorderedFrames {
  /** How clearly the frame that was judged last is out of order: 0 for not, 1 where the rule just holds. */
  strength = NaN;

  readonly #measures: ArtifactMeasures;
  #shotStart = 0;
  /** The first frame of a stretch that is doubtful or goes on; -1 where none is. */
  #start = -1;
  /** The usual step, in levels, before the stretch. */
  #step = NaN;
  /** How clear the stretch is; 0 while it is doubtful. */
  #clearness = NaN;
  /**
   * Logarithm of how much nearer the frame that `#isNearer` was asked for last is to an earlier one; 0 where
   * it is not.
   */
  #nearness = NaN;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  reset(): void {
    this.#shotStart = 0;
    this.#start = -1;
  }

  /** Whether later frames may show that the frame is out of order. */
  isOpen(frame: number): boolean {
    return mayBeFar(this.#measures, frame) || mayBeFar(this.#measures, frame - 1);
  }

  /** Goes on to the next frame, and sets `strength`. */
  step(frame: number, isCut: boolean): void {
    this.strength = 0;
    if (isCut || frame === 0) {
      this.#shotStart = frame;
      this.#start = -1;
      return;
    }
    if (this.#start >= 0 && this.#hasEnded(frame)) this.#start = -1;
    if (this.#start < 0 && this.#mayBegin(frame) && this.#isSteadyBefore(frame)) {
      this.#start = frame;
      this.#clearness = 0;
    }
    if (this.#start >= 0 && this.#clearness === 0) this.#judgeUntil(frame + LOOKAHEAD);
    if (this.#start < 0 || this.#clearness === 0) {
      const swap = swapAt(this.#measures, frame);
      if (swap.strength === 0 || !this.#isSteadyBefore(frame)) return;
      this.#start = frame;
      this.#clearness = swap.strength;
    }
    this.strength = this.#clearness;
  }

  #isSteadyBefore(frame: number): boolean {
    return !this.#measures.isLitBefore(frame, this.#shotStart, STEADY_LIGHT_MAX);
  }

  #hasEnded(frame: number): boolean {
    if (this.#clearness === 0) return frame - this.#start > DOUBTFUL_FRAMES;
    if (frame - this.#start > LONGEST) return true;
    for (let next = NEXT_FROM; next <= NEXT_TO; next++) {
      if (this.#isNearer(frame + next)) return false;
    }
    return true;
  }

  /**
   * Whether a stretch may begin with a frame. Of two frames that changed places, the first one only steps
   * further; the second frame behind it contradicts the order.
   */
  #mayBegin(frame: number): boolean {
    const now = this.#isNearer(frame);
    if (!now && !this.#isNearer(frame + 2)) return false;
    if (!this.#isCalmBefore(frame)) return false;
    const { values } = this.#measures, place = this.#measures.placeOf(frame);
    return now || values[place + MEASURES.luma1]! > LONG_FAR_MIN * this.#step;
  }

  #isCalmBefore(frame: number): boolean {
    if (frame - CALM_FRAMES <= this.#shotStart) return false;
    const measures = this.#measures, { values } = measures;
    let largest = 0, smallest = Infinity, sum = 0;
    for (let at = frame - CALM_FRAMES; at < frame; at++) {
      const place = measures.placeOf(at);
      const step = values[place + MEASURES.luma1]!, two = values[place + MEASURES.luma2]! + NOISE;
      if (Math.log(two / (step + NOISE)) < ONWARD_MIN) return false;
      if (Math.log((values[place + MEASURES.luma3]! + NOISE) / two) < FURTHER_MIN) return false;
      const lift = values[place + MEASURES.lift]!;
      if (step > STEP_MIN && Math.abs(lift) > CALM_LIGHT_MAX * step) return false;
      largest = Math.max(largest, step);
      smallest = Math.min(smallest, step);
      sum += step;
    }
    this.#step = Math.max(NOISE, sum / CALM_FRAMES);
    return largest <= EVEN_MAX * Math.max(NOISE, smallest);
  }

  /** Makes `#clearness` that of the stretch, by its frames up to `last`. */
  #judgeUntil(last: number): void {
    const measures = this.#measures, { values } = measures;
    let contradictions = 0, evidence = 0, farthest = 0;
    const end = Math.min(last, measures.count - 1);
    for (let at = this.#start; at <= end; at++) {
      if (this.#isNearer(at)) contradictions++;
      evidence += this.#nearness;
      const place = measures.placeOf(at), step = values[place + MEASURES.luma1]!;
      farthest = Math.max(farthest, step);
      const nearest = Math.min(step, values[place + MEASURES.luma2]!, values[place + MEASURES.luma3]!);
      if (nearest > NEAR_MAX * this.#step && nearest > NEAR_PART * step) return;
    }
    const isFar = farthest > FAR_MIN * this.#step;
    const isLong = contradictions >= LONG_CONTRADICTIONS_MIN && evidence > LONG_EVIDENCE_MIN &&
      farthest > LONG_FAR_MIN * this.#step;
    if (contradictions < CONTRADICTIONS_MIN || !(isFar || isLong) || evidence < EVIDENCE_MIN) return;
    this.#clearness = Math.min(4, evidence / EVIDENCE_MIN);
  }

  /** Whether the frame is nearer to an earlier frame than to the one before; `#nearness` says how much. */
  #isNearer(frame: number): boolean {
    this.#nearness = 0;
    const { values, count } = this.#measures;
    if (frame - this.#shotStart < 4 || frame >= count) return false;
    const place = this.#measures.placeOf(frame), one = values[place + MEASURES.luma1]!;
    if (one <= STEP_MIN) return false;
    const two = values[place + MEASURES.luma2]!;
    const nearer = Math.max(
      (one + NOISE) / (two + NOISE),
      (two + NOISE) / (values[place + MEASURES.luma3]! + NOISE),
    );
    if (nearer <= 1 || Math.abs(values[place + MEASURES.lift]!) >= LIGHT_MAX * one) return false;
    this.#nearness = Math.log(nearer);
    return this.#nearness > NEARER_MIN;
  }
}
