/** What is measured of a stretch of frames to say whether one picture becomes another in it, as numbers from
 * 0 to 255.
 */

import { changedCells, distanceOf, likenessWithin, roughnessOf } from "../ranges/cell_structure.ts";
import type { FrameHistory } from "../ranges/frame_history.ts";
import { CELL_SAMPLES, CELLS, HISTORY_FRAMES, LUMA_CELLS } from "../ranges/frame_history.ts";
import { MIXES, SLIDE, WAYS } from "../../kernels/history_kernel.ts";

/*
 *            s-1 | s ............ e-1 | e
 *     picture A  |  A becomes B       |  picture B is frame e-1
 */
export const LEAST_MS = 130;
export const LONGEST_MS = 2500;
const LEAST_FRAMES = 4;
const DISTANCE_MIN = 8;
/**
 * Least distance of the two pictures where one is plain: a fade of a dark picture changes less, and fewer
 * cells.
 */
const FADE_DISTANCE_MIN = 4;
/** Largest step as a share of the whole way; a larger one is a cut. */
const STEP_MAX = 0.5;
/** Root of the mean squared steps between the cells of a plain picture. */
const PLAIN_STEP = 2.5;
/** Frames before and after a stretch that are looked at. */
export const SURROUNDINGS = 8;
/** Levels by which a cell must differ between the two pictures to count as changed. */
const OTHER = 6;
/** Steps below this share of the upper quartile are small. */
const LOW = 0.4;
/** Frames at which the way of a cell is looked at. */
const WAY_POINTS = 20;
const SIEVE = -900;
const FINER_SIEVE = -12800;

/**
 * The numbers of a row, in order; the first ones are measured of each stretch, the others where those are
 * promising.
 */
export const NUMBERS = [
  ...["most", "efficiency", "distance", "ms", "frames", "other", "before", "after"] as const,
  ...["changes_before", "changes_after", "returns"] as const,
  ...["unsteady", "mix", "parts", "off_time", "bends", "contrast"] as const,
  ...["straight", "sudden", "color"] as const,
  ...["far_before", "far_after", "first", "last", "head", "tail", "uneven"] as const,
  ...["likeness", "plain_a", "plain_b", "luma_a", "luma_b", "sorted", "sorted_color"] as const,
  ...["calm", "calm_outside", "moved_before", "moved_after"] as const,
  ...["slide", "slide_moved", "slide_middle", "wipe", "pan", "sharpness"] as const,
];
export const ROW_NUMBERS = NUMBERS.length;
const FIRST_NUMBERS = NUMBERS.indexOf("unsteady");
const BEFORE = NUMBERS.indexOf("before");
const CHANGES_BEFORE = NUMBERS.indexOf("changes_before");
const PLAIN_BEFORE = NUMBERS.indexOf("plain_a");
const PLAIN_AFTER = NUMBERS.indexOf("plain_b");
const LIKENESS = NUMBERS.indexOf("likeness");
/** Likeness of the two pictures above which only the light has changed. */
const LIKENESS_MAX = 0.85;
/** Units of roughness in a level. */
const ROUGHNESS_SCALE = 10;

/** Whether the picture before or after the stretch with these numbers is plain, as far as bytes tell. */
export function isPlainIn(values: Uint8Array, side: "before" | "after"): boolean {
  return values[side === "before" ? PLAIN_BEFORE : PLAIN_AFTER]! < PLAIN_STEP * ROUGHNESS_SCALE;
}

/** Whether the pictures before and after the stretch with these numbers have the same structure. */
export function isOnlyRelit(values: Uint8Array): boolean {
  return values[LIKENESS]! > 255 * likenessShare(LIKENESS_MAX);
}

/** Likeness as a number from 0 to 1; it may itself be a little more than 1. */
function likenessShare(likeness: number): number {
  return (1 + likeness) / 2.2;
}

export function isPlain(history: FrameHistory, frame: number): boolean {
  return roughnessOf(history, frame) < PLAIN_STEP;
}

/** How much was measured of a stretch. */
export const EFFORT = { little: 1, half: 12, whole: 40 } as const;

/** Measures the stretches that end at one place, from the latest start to the earliest. */
export class TransitionRow {
  /** The numbers of the stretch that was measured last. */
  readonly values = new Uint8Array(ROW_NUMBERS);
  /** The median of its steps. */
  core = 0;
  /** How much of it was measured, one of EFFORT. */
  effort: number = EFFORT.little;
  /** The steps of the stretch, from the least to the most. */
  readonly #steps = new Float64Array(HISTORY_FRAMES);
  readonly #sorted = new Float64Array(HISTORY_FRAMES);
  readonly #cellsA = new Uint16Array(CELLS);
  readonly #cellsB = new Uint16Array(CELLS);
  #end = 0;
  /** The first frame whose step is in `#steps`. */
  #from = 0;
  /** The median of the steps behind the end. */
  #after = 0;
  #at = 0;

  /** Stretches end at this frame from now on. */
  begin(history: FrameHistory, end: number): void {
    this.#end = this.#from = end;
    this.#after = this.#median(history, end, Math.min(history.count, end + SURROUNDINGS));
  }

  /**
   * Measures a stretch, which begins before those that were measured; false if it cannot be a transition,
   * then `values` say nothing.
   */
  measure(history: FrameHistory, start: number): boolean {
    const end = this.#end;
    const one = start - 1, other = end - 1;
    this.effort = EFFORT.little;
    this.#addSteps(history, start);
    if (end - start < LEAST_FRAMES) return false;
    const ms = history.ptsMs(other) - history.ptsMs(one);
    if (ms < LEAST_MS || ms > LONGEST_MS) return false;
    let way = 0, squares = 0, most = 0, moved = 0;
    for (let frame = start; frame < end; frame++) {
      const step = history.step(frame);
      way += step;
      squares += step * step;
      most = Math.max(most, step);
      moved += history.moved(frame);
    }
    if (most > STEP_MAX * way) return false;
    const distance = distanceOf(history, one, other);
    if (distance < FADE_DISTANCE_MIN) return false;
    if (distance < DISTANCE_MIN && isPlain(history, one) === isPlain(history, other)) return false;
    this.#at = 0;
    this.#share(most / way);
    this.#share(distance / way);
    this.#level(distance, 4);
    this.#level(ms, 0.1);
    this.#level(end - start, 2);
    this.#share(changedCells(history, one, other, OTHER) / CELLS);
    let promise = this.#promiseOfPictures();
    if (promise <= SIEVE) return false;
    const core = this.core = this.#steps[(end - start) >> 1]! + 0.01;
    this.#ratio(this.#median(history, start - SURROUNDINGS, start) / core);
    this.#ratio(this.#after / core);
    promise -= 17 * Math.min(this.values[BEFORE]!, this.values[BEFORE + 1]!);
    if (promise <= SIEVE) return false;
    const before = Math.max(history.oldest, one - SURROUNDINGS);
    const after = Math.min(history.count - 1, other + SURROUNDINGS);
    this.#ratio(distanceOf(history, before, one) / distance);
    this.#ratio(distanceOf(history, other, after) / distance);
    promise -= 20 * Math.min(this.values[CHANGES_BEFORE]!, this.values[CHANGES_BEFORE + 1]!);
    if (promise <= SIEVE) return false;
    this.#ratio(distanceOf(history, before, after) / distance);
    this.effort = EFFORT.half;
    const mean = way / (end - start);
    this.#ratio(Math.sqrt(Math.max(0, squares / (end - start) - mean * mean)) / (mean + 0.02));
    this.#measureMixes(history, one, other);
    this.#measureWays(history, one, other);
    if (!this.#isStillPromising()) return false;
    this.effort = EFFORT.whole;
    this.#measureSteps(history, start, end);
    this.#share(likenessShare(likenessWithin(history, one, other, 3, 2)));
    this.#level(roughnessOf(history, one), ROUGHNESS_SCALE);
    this.#level(roughnessOf(history, other), ROUGHNESS_SCALE);
    this.#level(history.lumaMean(one), 1);
    this.#level(history.lumaMean(other), 1);
    this.#measureSorted(history, one, other, distance);
    this.#measureMotion(history, start, end, moved, way);
    this.#measureSlide(history, one, other);
    return true;
  }

  /** Keeps the steps from a frame on in order. */
  #addSteps(history: FrameHistory, start: number): void {
    const steps = this.#steps;
    for (; this.#from > start; this.#from--) {
      const step = history.step(this.#from - 1);
      let at = this.#end - this.#from;
      for (; at > 0 && steps[at - 1]! > step; at--) steps[at] = steps[at - 1]!;
      steps[at] = step;
    }
  }

  /**
   * A sieve by the first numbers: how much the two pictures promise, less what the frames around the stretch
   * count against it. Stretches above SIEVE pass, which are a fifth of all.
   */
  #promiseOfPictures(): number {
    const { values } = this;
    const most = values[0]!,
      efficiency = values[1]!,
      distance = values[2]!,
      ms = values[3]!,
      other = values[5]!;
    return 24 * Math.min(128, distance) + 17 * other + 18 * Math.min(128, efficiency) - 65 * most - 22 * ms;
  }

  /**
   * A finer sieve by the first twenty numbers: half of the stretches that come here pass it, and 98 in 100
   * transitions.
   */
  #isStillPromising(): boolean {
    const { values } = this, at = FIRST_NUMBERS;
    const most = values[0]!, distance = values[2]!, frames = values[4]!, other = values[5]!;
    const changes = Math.min(values[CHANGES_BEFORE]!, values[CHANGES_BEFORE + 1]!);
    const unsteady = values[at]!, bends = values[at + 4]!;
    const contrast = values[at + 5]!, sudden = values[at + 7]!;
    const against = 58 * most + 44 * frames + 47 * changes + 51 * unsteady + 8 * bends + 34 * contrast;
    return 33 * Math.min(128, distance) + 12 * other + 6 * sudden - against > FINER_SIEVE;
  }

  /** Measures how the steps of the stretch compare with those around it, and with each other. */
  #measureSteps(history: FrameHistory, start: number, end: number): void {
    const { core } = this, steps = this.#steps;
    const quartile = steps[Math.floor((end - start) * 0.75)]!;
    let low = 0;
    while (low < end - start && steps[low]! < LOW * quartile) low++;
    const outside = Math.min(history.count, end + SURROUNDINGS);
    this.#ratio(this.#largest(history, start - SURROUNDINGS, start) / core);
    this.#ratio(this.#largest(history, end, outside) / core);
    this.#ratio(start - 1 > history.oldest ? history.step(start - 1) / (history.step(start) + 0.05) : 0);
    this.#ratio(end < history.count ? history.step(end) / (history.step(end - 1) + 0.05) : 0);
    const third = Math.max(1, Math.floor((end - start) / 3));
    this.#ratio(this.#median(history, start, start + third) / core);
    this.#ratio(this.#median(history, end - third, end) / core);
    this.#share(low / (end - start));
  }

  /** Measures how far the distributions of brightness and colour differ, wherever things are. */
  #measureSorted(history: FrameHistory, one: number, other: number, distance: number): void {
    const a = this.#cellsA, b = this.#cellsB;
    const atA = history.cellsAt(one), atB = history.cellsAt(other);
    for (let cell = 0; cell < CELLS; cell++) {
      a[cell] = history.sums[atA + cell]!;
      b[cell] = history.sums[atB + cell]!;
    }
    this.#share(this.#sortedDistance(0, LUMA_CELLS) / (distance + 1));
    const color = this.#sortedDistance(LUMA_CELLS, (LUMA_CELLS + CELLS) / 2) +
      this.#sortedDistance((LUMA_CELLS + CELLS) / 2, CELLS);
    this.#level(color, 8);
  }

  #sortedDistance(from: number, until: number): number {
    const a = this.#cellsA.subarray(from, until).sort(), b = this.#cellsB.subarray(from, until).sort();
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += Math.abs(a[i]! - b[i]!);
    return sum / (a.length * CELL_SAMPLES);
  }

  /**
   * Measures how far three frames between are from a straight way between the two pictures, the worst of
   * them; how much the way bends from a quarter to the next; and the contrast of the middle frame beside both
   * pictures.
   */
  #measureMixes(history: FrameHistory, one: number, other: number): void {
    const { kernel } = history, { numbers } = kernel;
    kernel.measureMixes(one, other);
    this.#share(numbers[MIXES.fromMix]!);
    this.#share(numbers[MIXES.fromParts]! * 2);
    this.#share(numbers[MIXES.fromTime]! * 2);
    this.#ratio(numbers[MIXES.bends]!);
    const ends = roughnessOf(history, one) + roughnessOf(history, other);
    this.#ratio(2 * roughnessOf(history, one + Math.round((other - one) / 2)) / (ends + 0.5));
  }

  /** Measures how much samples move beside their cells, inside and outside of the stretch. */
  #measureMotion(history: FrameHistory, start: number, end: number, moved: number, way: number): void {
    this.#ratio(moved / (way + 0.05) / 2);
    let outside = 0, outsideWay = 0, before = 0, after = 0;
    const until = Math.min(history.count, end + SURROUNDINGS);
    const from = Math.max(history.oldest + 1, start - SURROUNDINGS);
    for (let frame = from; frame < until; frame++) {
      if (frame >= start && frame < end) continue;
      outside += history.moved(frame);
      outsideWay += history.step(frame);
      if (frame < start) before += history.moved(frame);
      else after += history.moved(frame);
    }
    const mean = moved / (end - start) + 0.05;
    this.#ratio(outside / (outsideWay + 0.05) / 2);
    this.#ratio(before / Math.max(1, start - from) / mean);
    this.#ratio(after / Math.max(1, until - end) / mean);
  }

  /**
   * Measures the ways of the changed cells: the share of cells that went most of their way without turning
   * back, and how much of a cell's way is one step, beside the steps of noise. Then the share of colour in
   * all change.
   */
  #measureWays(history: FrameHistory, one: number, other: number): void {
    const { kernel } = history, { numbers } = kernel;
    kernel.measureWays(one, other, OTHER * CELL_SAMPLES);
    const changed = Math.max(1, numbers[WAYS.changed]!), points = Math.min(WAY_POINTS, other - one);
    this.#share(numbers[WAYS.straight]! / changed);
    this.#share(numbers[WAYS.sudden]! / changed * Math.sqrt(points) / 4);
    this.#share(numbers[WAYS.color]! / numbers[WAYS.all]!);
  }

  /** Measures how well the one picture slides into the other. */
  #measureSlide(history: FrameHistory, one: number, other: number): void {
    const { kernel } = history, { numbers } = kernel;
    kernel.fitSlide(one, other);
    this.#share(numbers[SLIDE.slide]!);
    this.#share((1 + numbers[SLIDE.moved]!) / 2);
    this.#share(numbers[SLIDE.middle]!);
    this.#share(numbers[SLIDE.wipe]!);
    this.#share(numbers[SLIDE.pan]!);
    this.#ratio(numbers[SLIDE.sharpness]!);
  }

  /** The median of the steps of the frames `from` to `until` (exclusive), which are a few; 0 for none. */
  #median(history: FrameHistory, from: number, until: number): number {
    const sorted = this.#sorted;
    let count = 0;
    for (let frame = Math.max(from, history.oldest + 1); frame < until; frame++, count++) {
      const step = history.step(frame);
      let at = count;
      for (; at > 0 && sorted[at - 1]! > step; at--) sorted[at] = sorted[at - 1]!;
      sorted[at] = step;
    }
    return count === 0 ? 0 : sorted[count >> 1]!;
  }

  #largest(history: FrameHistory, from: number, until: number): number {
    let most = 0;
    for (let frame = Math.max(from, history.oldest + 1); frame < until; frame++) {
      most = Math.max(most, history.step(frame));
    }
    return most;
  }

  /** Adds a number from 0 to 1 to the row; a value outside counts as the nearest. */
  #share(value: number): void {
    this.values[this.#at++] = Math.round(255 * Math.max(0, Math.min(1, value)));
  }

  /** Adds a number from 0 on to the row; 1 is in the middle. */
  #ratio(value: number): void {
    this.values[this.#at++] = Math.round(255 * value / (1 + value));
  }

  #level(value: number, scale: number): void {
    this.values[this.#at++] = Math.max(0, Math.min(255, Math.round(scale * value)));
  }
}
