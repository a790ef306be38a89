/** What is measured of a stretch of frames to say whether one picture becomes another in it, as numbers from 0 to 255. */

import { distanceOf, likenessWithin, roughnessOf } from "../cell_structure.ts";
import type { FrameHistory } from "../frame_history.ts";
import { CELL_SAMPLES, CELLS, HISTORY_FRAMES, LUMA_CELLS } from "../frame_history.ts";
import { SlideFit } from "./slide_fit.ts";

/*
 *            s-1 | s ............ e-1 | e
 *     picture A  |  A becomes B       |  picture B is frame e-1
 */
export const LEAST_MS = 130;
export const LONGEST_MS = 2500;
const LEAST_FRAMES = 4;
const DISTANCE_MIN = 8;
/** From or to a plain picture: a fade of a dark picture changes less, and fewer cells. */
const FADE_DISTANCE_MIN = 4;
/** The largest step of all of the way; more is a cut. */
const STEP_MAX = 0.5;
/** Root of the mean squared steps between the cells of a plain picture. */
const PLAIN_STEP = 2.5;
/** Frames before and after a stretch that are looked at. */
export const SURROUNDINGS = 8;
/** Levels by which a cell has changed between the two pictures to count as another. */
const OTHER = 6;
/** Steps below this share of the upper quartile are small. */
const LOW = 0.4;
/** Frames at which the way of a cell is looked at. */
const WAY_POINTS = 20;
const SIEVE = -900;
const FINER_SIEVE = -12800;

/** The numbers of a row, in order; the first ones are measured of each stretch, the others where those are promising. */
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
const PLAIN_BEFORE = NUMBERS.indexOf("plain_a");
const PLAIN_AFTER = NUMBERS.indexOf("plain_b");
const LIKENESS = NUMBERS.indexOf("likeness");
/** More alike, only the light has changed. */
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

/** From 0 to 1; likeness may be a little more than 1. */
function likenessShare(likeness: number): number {
  return (1 + likeness) / 2.2;
}

export function isPlain(history: FrameHistory, frame: number): boolean {
  return roughnessOf(history, frame) < PLAIN_STEP;
}

export class TransitionRow {
  /** The numbers of the stretch that was measured last. */
  readonly values = new Uint8Array(ROW_NUMBERS);
  /** The median of its steps. */
  core = 0;
  readonly #places = new Int32Array(WAY_POINTS + 1);
  readonly #fit = new SlideFit();
  readonly #sorted = new Float64Array(HISTORY_FRAMES);
  readonly #cellsA = new Uint16Array(CELLS);
  readonly #cellsB = new Uint16Array(CELLS);
  #at = 0;

  /** Measures a stretch; false if it cannot be a transition, then `values` say nothing. */
  measure(history: FrameHistory, start: number, end: number): boolean {
    const one = start - 1, other = end - 1;
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
    this.#share(otherShare(history, one, other));
    const core = this.core = this.#median(history, start, end) + 0.01;
    const outside = Math.min(history.count, end + SURROUNDINGS);
    this.#ratio(this.#median(history, start - SURROUNDINGS, start) / core);
    this.#ratio(this.#median(history, end, outside) / core);
    const before = Math.max(history.oldest, one - SURROUNDINGS);
    const after = Math.min(history.count - 1, other + SURROUNDINGS);
    this.#ratio(distanceOf(history, before, one) / distance);
    this.#ratio(distanceOf(history, other, after) / distance);
    this.#ratio(distanceOf(history, before, after) / distance);
    if (!this.#isPromising()) return false;
    const mean = way / (end - start);
    this.#ratio(Math.sqrt(Math.max(0, squares / (end - start) - mean * mean)) / (mean + 0.02));
    this.#measureMixes(history, one, other);
    this.#measureCells(history, one, other);
    if (!this.#isStillPromising()) return false;
    this.#measureSteps(history, start, end);
    this.#share(likenessShare(likenessWithin(history, one, other, 3, 2)));
    this.#level(roughnessOf(history, one), ROUGHNESS_SCALE);
    this.#level(roughnessOf(history, other), ROUGHNESS_SCALE);
    this.#level(history.lumaMean(one), 1);
    this.#level(history.lumaMean(other), 1);
    this.#measureSorted(history, one, other, distance);
    this.#measureMotion(history, start, end, moved, way);
    const fit = this.#fit;
    fit.measure(history, one, other);
    this.#share(fit.slide);
    this.#share((1 + fit.moved) / 2);
    this.#share(fit.middle);
    this.#share(fit.wipe);
    this.#share(fit.pan);
    this.#ratio(fit.sharpness);
    return true;
  }

  /** A sieve by the first numbers: a fifth of all stretches passes it. */
  #isPromising(): boolean {
    const [most, efficiency, distance, ms, , other, before, after, changesBefore, changesAfter] = this.values;
    const against = 65 * most! + 22 * ms! + 17 * Math.min(before!, after!) +
      20 * Math.min(changesBefore!, changesAfter!);
    return 24 * Math.min(128, distance!) + 17 * other! + 18 * Math.min(128, efficiency!) - against > SIEVE;
  }

  /** A finer sieve by the first twenty: half of what comes here passes it, of transitions 98 in 100. */
  #isStillPromising(): boolean {
    const { values } = this, at = FIRST_NUMBERS;
    const [most, , distance, , frames, other, , , changesBefore, changesAfter] = values;
    const unsteady = values[at], bends = values[at + 4], contrast = values[at + 5], sudden = values[at + 7];
    const against = 58 * most! + 44 * frames! + 47 * Math.min(changesBefore!, changesAfter!) +
      51 * unsteady! + 8 * bends! + 34 * contrast!;
    return 33 * Math.min(128, distance!) + 12 * other! + 6 * sudden! - against > FINER_SIEVE;
  }

  /** How the steps of the stretch stand to those around it, and to each other. */
  #measureSteps(history: FrameHistory, start: number, end: number): void {
    const { core } = this;
    this.#median(history, start, end);
    const quartile = this.#sorted[Math.floor((end - start) * 0.75)]!;
    let low = 0;
    while (low < end - start && this.#sorted[low]! < LOW * quartile) low++;
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

  /** How far the distributions of brightness and colour differ, wherever things are. */
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
   * How far frames between are from what a straight way leads through, as a share of the distance of the two: from a mix of
   * them, from pictures of which each cell is from the one or from the other, and from the mix that their time asks for; the
   * worst of three. How much the way bends from a quarter to the next, and the contrast of the middle beside both ends.
   */
  #measureMixes(history: FrameHistory, one: number, other: number): void {
    const { sums } = history;
    const a = history.cellsAt(one), b = history.cellsAt(other);
    let square = 0, distance = 0;
    for (let cell = 0; cell < CELLS; cell++) {
      const way = sums[b + cell]! - sums[a + cell]!;
      square += way * way;
      distance += Math.abs(way);
    }
    let fromMix = 0, fromParts = 0, fromTime = 0, bends = 0;
    for (let part = 1; part < 4; part++) {
      const frame = quarterOf(one, other, part);
      const before = history.cellsAt(quarterOf(one, other, part - 1));
      const x = history.cellsAt(frame);
      const after = history.cellsAt(quarterOf(one, other, part + 1));
      let along = 0, offMix = 0, offParts = 0;
      for (let cell = 0; cell < CELLS; cell++) {
        along += (sums[x + cell]! - sums[a + cell]!) * (sums[b + cell]! - sums[a + cell]!);
      }
      along /= square;
      for (let cell = 0; cell < CELLS; cell++) {
        const fromOne = sums[x + cell]! - sums[a + cell]!;
        offMix += Math.abs(fromOne - along * (sums[b + cell]! - sums[a + cell]!));
        offParts += Math.min(Math.abs(fromOne), Math.abs(sums[x + cell]! - sums[b + cell]!));
        bends += Math.abs(sums[before + cell]! - 2 * sums[x + cell]! + sums[after + cell]!);
      }
      fromMix = Math.max(fromMix, offMix / distance);
      fromParts = Math.max(fromParts, offParts / distance);
      fromTime = Math.max(fromTime, Math.abs(along - (frame - one) / (other - one)));
    }
    this.#share(fromMix);
    this.#share(fromParts * 2);
    this.#share(fromTime * 2);
    this.#ratio(bends / distance);
    const ends = roughnessOf(history, one) + roughnessOf(history, other);
    this.#ratio(2 * roughnessOf(history, quarterOf(one, other, 2)) / (ends + 0.5));
  }

  /** How much samples move beside what their cells do, inside and outside. */
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
   * Of the changed cells, the share that went most of their way without turning back, and how much of a cell's way is one
   * step, beside the steps of noise; and the share of colour in all change.
   */
  #measureCells(history: FrameHistory, one: number, other: number): void {
    const { sums } = history;
    const a = history.cellsAt(one), b = history.cellsAt(other);
    const points = Math.min(WAY_POINTS, other - one);
    for (let n = 1; n <= points; n++) {
      this.#places[n] = history.cellsAt(one + Math.round((other - one) * n / points));
    }
    let straight = 0, sudden = 0, changed = 0, color = 0, all = 0;
    for (let cell = 0; cell < CELLS; cell++) {
      const apart = Math.abs(sums[b + cell]! - sums[a + cell]!);
      all += apart;
      if (cell >= LUMA_CELLS) color += apart;
      if (apart <= OTHER * CELL_SAMPLES) continue;
      let way = 0, most = 0;
      let last = sums[a + cell]!;
      for (let n = 1; n <= points; n++) {
        const value = sums[this.#places[n]! + cell]!;
        const step = Math.abs(value - last);
        way += step;
        if (step > most) most = step;
        last = value;
      }
      changed++;
      sudden += most / way;
      if (apart >= 0.8 * way) straight++;
    }
    this.#share(straight / Math.max(1, changed));
    this.#share(sudden / Math.max(1, changed) * Math.sqrt(points) / 4);
    this.#share(color / all);
  }

  /** The median of the steps of the frames `from` to `until` (exclusive); 0 for none; leaves them sorted. */
  #median(history: FrameHistory, from: number, until: number): number {
    let count = 0;
    for (let frame = Math.max(from, history.oldest + 1); frame < until; frame++) {
      this.#sorted[count++] = history.step(frame);
    }
    if (count === 0) return 0;
    return this.#sorted.subarray(0, count).sort()[count >> 1]!;
  }

  #largest(history: FrameHistory, from: number, until: number): number {
    let most = 0;
    for (let frame = Math.max(from, history.oldest + 1); frame < until; frame++) {
      most = Math.max(most, history.step(frame));
    }
    return most;
  }

  /** A number from 0 to 1; what is outside counts as the nearest. */
  #share(value: number): void {
    this.values[this.#at++] = Math.round(255 * Math.max(0, Math.min(1, value)));
  }

  /** A number from 0 on; 1 is in the middle. */
  #ratio(value: number): void {
    this.values[this.#at++] = Math.round(255 * value / (1 + value));
  }

  #level(value: number, scale: number): void {
    this.values[this.#at++] = Math.max(0, Math.min(255, Math.round(scale * value)));
  }
}

function quarterOf(one: number, other: number, quarters: number): number {
  return one + Math.round((other - one) * quarters / 4);
}

/** The share of cells that are others. */
function otherShare(history: FrameHistory, one: number, other: number): number {
  const { sums } = history;
  const a = history.cellsAt(one), b = history.cellsAt(other);
  let others = 0;
  for (let cell = 0; cell < CELLS; cell++) {
    if (Math.abs(sums[a + cell]! - sums[b + cell]!) > OTHER * CELL_SAMPLES) others++;
  }
  return others / CELLS;
}
