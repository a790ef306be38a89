/** Brightness that goes up and down from frame to frame. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/**
 * Least step of the mean luma, as a share of the darker frame, which counts as DARK levels at least.
 * MEAN_STEP_MIN is the least mean of all steps.
 */
const STEP_MIN = 0.045;
const MEAN_STEP_MIN = 0.09;
const DARK = 16;
/** Least contrast, in levels: in a plain picture an encoder rounds the level up and down. */
const CONTRAST_MIN = 1.5;
/** Most loss of correlation at a step: the picture itself stays. */
const STEP_LOSS_MAX = 0.32;
/** Most loss of correlation at the steps on average. */
const MEAN_LOSS_MAX = 0.17;
/**
 * Least change of the mean over the mean change: light changes nearly all of the picture in one direction,
 * motion does not.
 */
const LIGHT_MIN = 0.86;
/** Least number of steps up and down in turn, at most STEP_GAP frames apart. A strobe is dark for longer. */
const STEPS_MIN = 5;
const STEP_GAP = 2;
/**
 * A step counts from this part of the step beside it in the other direction: light that is held is not quite
 * steady.
 */
const STEP_PART = 0.2;
/**
 * Steps that are enough where they come at even distances, lie on both sides of the light before them, and
 * are nothing but light.
 */
const EVEN_STEPS_MIN = 3;
const EVEN_STEP_MIN = 0.06;
const EVEN_LIGHT_MIN = 0.9;
/** How far the second step must go beyond the light before the first one, as a part of the second step. */
const BEYOND_MIN = 0.2;
/** Frames to look back for steps. */
const REACH = 24;

/** How many frames are kept, a power of two: the reach and the look-ahead. */
const KEPT = 64;

/**
 * Finds flicker. Frames are pushed in order and judged in order, each with those that have come until then.
 * Allocates nothing per frame.
 */
export class FlickeringLight {
  /** How clearly the frame that was judged last flickers, if it does: 1 where the rule just holds. */
  strength = NaN;

  readonly #measures: ArtifactMeasures;
  /** The relative change of the mean luma to the frame before, 0 where it is no step; frame i at i % KEPT. */
  readonly #changes = new Float64Array(KEPT);
  /**
   * How many steps follow each other. `#first` is the frame of the first one, `#second` that of the one
   * behind it, or -1.
   */
  #count = 0;
  #first = 0;
  #second = -1;
  /**
   * Frames from one step to the next where that is always the same, else 0; -1 where there is only one step.
   */
  #gap = -1;
  #least = NaN;
  #sum = NaN;
  #loss = NaN;
  /** Sum over the steps of how far the mean changed; `#change` is that of how far the samples changed. */
  #lift = NaN;
  #change = NaN;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  /** Takes the newest frame of the measures. */
  push(): void {
    const frame = this.#measures.count - 1;
    this.#changes[frame % KEPT] = 0;
    if (frame < 1) return;
    const { values } = this.#measures;
    const now = this.#measures.placeOf(frame), last = this.#measures.placeOf(frame - 1);
    const mean = values[now + MEASURES.lumaMean]!, before = values[last + MEASURES.lumaMean]!;
    const step = (mean - before) / Math.max(DARK, Math.min(mean, before));
    if (Math.abs(step) <= STEP_MIN || values[now + MEASURES.contrast]! < CONTRAST_MIN) return;
    if (1 - values[now + MEASURES.correlation]! < STEP_LOSS_MAX) this.#changes[frame % KEPT] = step;
  }

  /** Whether later frames may show that the frame flickers. */
  isOpen(frame: number): boolean {
    for (let near = Math.max(1, frame - STEP_GAP + 1); near <= frame; near++) {
      if (this.#changes[near % KEPT]! !== 0) return true;
    }
    return false;
  }

  /** Whether the frame, which has come, flickers; then `strength` is how clearly. */
  judge(frame: number): boolean {
    let begin = -1, largest = 0;
    for (let near = frame; near > frame - STEP_GAP && near >= 1; near--) {
      const step = Math.abs(this.#changes[near % KEPT]!);
      if (step <= largest) continue;
      largest = step;
      begin = near;
    }
    if (begin < 0) return false;
    this.#count = 0;
    this.#second = this.#gap = -1;
    this.#least = Infinity;
    this.#sum = this.#loss = 0;
    this.#lift = this.#change = 0;
    let at = begin;
    this.#add(at);
    for (;;) {
      const next = this.#nextStep(at, 1);
      if (next < 0) break;
      this.#addGap(next - at);
      if (at === begin) this.#second = next;
      at = next;
      this.#add(at);
    }
    // Behind the last step the picture is as it was.
    if (at <= frame) return false;
    at = begin;
    while (frame - at < REACH) {
      const before = this.#nextStep(at, -1);
      if (before < 0) break;
      this.#addGap(at - before);
      this.#second = at;
      at = before;
      this.#add(at);
    }
    this.#first = at;
    this.strength = Math.min(this.#least / STEP_MIN, 4);
    return this.#isFlicker();
  }

  #add(at: number): void {
    const { values } = this.#measures, place = this.#measures.placeOf(at);
    const step = Math.abs(this.#changes[at % KEPT]!);
    this.#count++;
    this.#least = Math.min(this.#least, step);
    this.#sum += step;
    this.#loss += 1 - values[place + MEASURES.correlation]!;
    this.#lift += Math.abs(values[place + MEASURES.lift]!);
    this.#change += values[place + MEASURES.luma1]!;
  }

  #addGap(gap: number): void {
    this.#gap = this.#gap === -1 || this.#gap === gap ? gap : 0;
  }

  #isFlicker(): boolean {
    const count = this.#count;
    if (this.#loss > MEAN_LOSS_MAX * count || this.#sum < MEAN_STEP_MIN * count) return false;
    if (this.#lift < LIGHT_MIN * this.#change) return false;
    if (count >= STEPS_MIN) return true;
    if (count < EVEN_STEPS_MIN || this.#gap === 0 || this.#least < EVEN_STEP_MIN) return false;
    if (this.#lift < EVEN_LIGHT_MIN * this.#change) return false;
    // A flash or two begin and end with the light before.
    const measures = this.#measures, { values } = measures;
    const before = values[measures.placeOf(this.#first - 1) + MEASURES.lumaMean]!;
    const one = values[measures.placeOf(this.#first) + MEASURES.lumaMean]! - before;
    const two = values[measures.placeOf(this.#second) + MEASURES.lumaMean]! - before;
    return one * two < 0 && Math.abs(two) > BEYOND_MIN * Math.abs(one - two);
  }

  /**
   * The nearest step in `direction` that goes the other way than the step at `from`; -1 where none is near.
   */
  #nextStep(from: number, direction: 1 | -1): number {
    const own = this.#changes[from % KEPT]!;
    for (let gap = 1; gap <= STEP_GAP; gap++) {
      const at = from + gap * direction;
      if (at < 1 || at >= this.#measures.count) return -1;
      const step = this.#changes[at % KEPT]!;
      if (step * own < 0 && Math.abs(step) >= STEP_PART * Math.abs(own)) return at;
    }
    return -1;
  }
}
