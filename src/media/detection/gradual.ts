/** Finds gradual transitions: dissolves, fades, wipes, and others in which one picture becomes another step by step. */

import { distanceOf, likenessWithin, roughnessOf } from "./cell_structure.ts";
import type { FrameHistory } from "./frame_history.ts";
import { CELL_SAMPLES, CELLS, HISTORY_FRAMES } from "./frame_history.ts";
import type { RangeDetector, RangeSink } from "./range_sink.ts";

/*
 * In a transition each cell goes the straight way from what it was to what it will be, all at once or one after the
 * other. Where things or the camera move, cells go to and fro. So the measure is the efficiency of the way:
 *
 *   distance of the pictures before and after / sum of the distances of all neighbours between them
 *
 * It is 1 for a cut too, but there one step is all of the way.
 *
 *            s-1 | s ............ e-1 | e
 *     picture A  |  A becomes B       |  picture B
 *
 * 1. A frame is in motion on a straight way if the WINDOW_MS around it have an efficiency of WINDOW_EFFICIENCY, a
 *    distance of WINDOW_DISTANCE levels (mean over cells), and no single step that is most of it.
 * 2. Such frames in a row are a candidate. It begins and ends where the steps become smaller than EDGE of their median.
 * 3. Where its steps change, a transition may begin or end; the stretch with the best score counts, see `#score`.
 * 4. A fade out and a fade in from the same plain picture, with at most HOLD_MS between, are one.
 */
const WINDOW_MS = 240;
const WINDOW_EFFICIENCY = 0.55;
const WINDOW_DISTANCE = 2;
const WINDOW_STEP_MAX = 0.62;
const EDGE = 0.4;
/** A step that is larger than so many such edges belongs to something else. */
const CUT_STEP = 8;
const REACH_MS = 200;
const SURROUNDINGS = 8;
/** A longer candidate is cut in two, so that its frames are still there when it is judged. */
const CANDIDATE_FRAMES = 190;
const LEAST_FRAMES = 4;
const LEAST_MS = 150;
const LONGEST_MS = 2500;
const HOLD_MS = 510;
const DISTANCE_MIN = 12;
/** The largest step of all of the way; more is a cut. */
const STEP_MAX = 0.5;
/** From or to a plain picture: a fade of a dark picture changes less, and fewer cells. */
const FADE_DISTANCE_MIN = 5;
const FADE_OTHER = 0.75;
/** More alike, only the light has changed. */
const LIKENESS_MAX = 0.85;
/** A residual up to the first number costs nothing, one that is larger by the second number costs all. */
const RESIDUAL_FREE = 0.15;
const RESIDUAL_REACH = 0.2;
/** The efficiency from which on it may be a wipe; a picture that moves has parts of both by chance. */
const PARTS_EFFICIENCY = 0.62;
/** Where the mean of four steps changes by this factor, a transition may begin or end. */
const TURN_MIN = 1.6;
const TURN_FRAMES = 4;
const BREAKS_MAX = 9;
/** Levels by which a cell has changed between the two pictures to count as another. */
const OTHER = 6;
/** Root of the mean squared steps between the cells of a plain picture. */
const PLAIN_STEP = 2.5;

const STEP_WEIGHT = 8.5;
const OTHER_WEIGHT = 5.4;
const UNREST_WEIGHT = 2.4;
const LIKENESS_WEIGHT = 1.8;
const FADE_WEIGHT = 3.2;
const CROOKED_WEIGHT = 3.2;
const UNEVEN_WEIGHT = 2;
const BIAS = -0.1;
const SOFTNESS = 4;

/** Frames in a row that are on a straight way; the last one is inside. */
interface Stretch {
  readonly first: number;
  readonly last: number;
}

/** A transition that may be the first half of a fade. */
interface Found {
  start: number;
  end: number;
  startMs: number;
  endMs: number;
  /** Time of the first frame that is the second picture alone. */
  pureMs: number;
  confidence: number;
  endsPlain: boolean;
}

export class GradualDetector implements RangeDetector {
  readonly #sink: RangeSink;
  /** The frame whose window was looked at last. */
  #centre = 0;
  #first = -1;
  #waiting: Stretch[] = [];
  #held: Found | null = null;
  readonly #breaks: number[] = [];
  readonly #sorted = new Float64Array(HISTORY_FRAMES);

  constructor(sink: RangeSink) {
    this.#sink = sink;
  }

  reset(): void {
    this.#centre = 0;
    this.#first = -1;
    this.#waiting = [];
    this.#held = null;
  }

  push(history: FrameHistory): void {
    const frame = history.count - 1;
    const nowMs = history.ptsMs(frame);
    while (this.#centre + 1 < frame && nowMs - history.ptsMs(this.#centre + 1) > WINDOW_MS / 2 + 1) {
      this.#look(history, ++this.#centre, frame - 1);
    }
    const next = this.#waiting[0];
    if (next && this.#isKnown(history, next)) {
      this.#waiting.shift();
      this.#judge(history, next);
    }
    const isIdle = this.#first < 0 && this.#waiting.length === 0;
    if (this.#held && isIdle && nowMs - this.#held.endMs > HOLD_MS + WINDOW_MS + REACH_MS) this.#give();
  }

  finish(history: FrameHistory): void {
    while (this.#centre + 1 < history.count) this.#look(history, ++this.#centre, history.count - 1);
    this.#close(history.count - 1);
    for (const candidate of this.#waiting) this.#judge(history, candidate);
    this.#give();
    this.reset();
  }

  /** Whether the window around `centre` is on a straight way; `newest` is the last frame that may lie in it. */
  #look(history: FrameHistory, centre: number, newest: number): void {
    const centreMs = history.ptsMs(centre);
    let from = centre, until = centre;
    let way = 0, most = 0;
    while (from > history.oldest && centreMs - history.ptsMs(from - 1) <= WINDOW_MS / 2 + 1) {
      way += history.step(from);
      most = Math.max(most, history.step(from));
      from--;
    }
    while (until < newest && history.ptsMs(until + 1) - centreMs <= WINDOW_MS / 2 + 1) {
      until++;
      way += history.step(until);
      most = Math.max(most, history.step(until));
    }
    let isStraight = from < centre && until > centre && way >= WINDOW_DISTANCE &&
      most <= WINDOW_STEP_MAX * way;
    if (isStraight) {
      const distance = distanceOf(history, from, until);
      isStraight = distance >= WINDOW_DISTANCE && distance >= WINDOW_EFFICIENCY * way;
    }
    if (!isStraight || this.#first >= 0 && centre - this.#first > CANDIDATE_FRAMES) this.#close(centre - 1);
    if (!isStraight) return;
    if (this.#first < 0) this.#first = centre;
  }

  #close(last: number): void {
    if (this.#first < 0) return;
    this.#waiting.push({ first: this.#first, last });
    this.#first = -1;
  }

  /** Whether all frames are there that its judgement needs. */
  #isKnown(history: FrameHistory, { last }: Stretch): boolean {
    const frame = history.count - 1 - SURROUNDINGS;
    if (frame <= last) return false;
    return history.ptsMs(frame) - history.ptsMs(last) > REACH_MS;
  }

  /**
   * A candidate may be several transitions with rest between: its parts are judged first. If none of them is one, it is
   * judged as a whole.
   */
  #judge(history: FrameHistory, { first, last }: Stretch): void {
    const oldest = history.oldest + 1;
    if (first <= oldest) return;
    const core = this.#median(history, first, last + 1);
    const least = EDGE * core;
    let from = first, until = last + 1;
    while (
      from > oldest && history.step(from - 1) >= least &&
      history.ptsMs(first) - history.ptsMs(from - 1) <= REACH_MS
    ) from--;
    while (
      until < history.count && history.step(until) >= least &&
      history.ptsMs(until) - history.ptsMs(last) <= REACH_MS
    ) until++;
    this.#breakAt(history, from, until);
    this.#judgeBetween(history, from, until);
  }

  /** Fills `#breaks` with the ends and the frames between them where the steps change most, in order. */
  #breakAt(history: FrameHistory, from: number, until: number): void {
    const breaks = this.#breaks;
    breaks.length = 0;
    breaks.push(from);
    for (let frame = from + 2; frame < until - 1; frame++) {
      const here = this.#turn(history, frame);
      if (
        here < TURN_MIN || here < this.#turn(history, frame - 1) || here <= this.#turn(history, frame + 1)
      ) continue;
      if (breaks.length < BREAKS_MAX) breaks.push(frame);
    }
    breaks.push(until);
  }

  /** How much the steps change at a frame: the larger mean of the four before and from it on, by the smaller. */
  #turn(history: FrameHistory, frame: number): number {
    let before = 0.2, after = 0.2;
    for (let n = 0; n < TURN_FRAMES; n++) {
      if (frame - 1 - n > history.oldest) before += history.step(frame - 1 - n);
      if (frame + n < history.count) after += history.step(frame + n);
    }
    return Math.max(before / after, after / before);
  }

  /** Takes the best stretch between two breaks, then the best ones before and after it. */
  #judgeBetween(history: FrameHistory, from: number, until: number): void {
    let best = 0, bestStart = -1, bestEnd = -1;
    for (const start of this.#breaks) {
      if (start < from) continue;
      for (const end of this.#breaks) {
        if (end > until || end - start < LEAST_FRAMES) continue;
        const z = this.#score(history, start, end, best);
        if (z > best) [best, bestStart, bestEnd] = [z, start, end];
      }
    }
    if (bestStart < 0) return;
    const least = EDGE * this.#median(history, bestStart, bestEnd);
    while (history.step(bestStart) < least) bestStart++;
    while (history.step(bestEnd - 1) < least) bestEnd--;
    while (bestStart > from && this.#isStep(history, bestStart - 1, least)) bestStart--;
    while (bestEnd < until && this.#isStep(history, bestEnd, least)) bestEnd++;
    this.#judgeBetween(history, from, bestStart);
    this.#found(history, {
      start: bestStart,
      end: bestEnd - 1,
      pureMs: history.ptsMs(bestEnd - 1),
      startMs: history.ptsMs(bestStart),
      endMs: history.ptsMs(bestEnd - 2),
      confidence: (1 + best / Math.sqrt(best * best + SOFTNESS)) / 2,
      endsPlain: isPlain(history, bestEnd - 1),
    });
    this.#judgeBetween(history, bestEnd, until);
  }

  /** A step like those of a transition with edges of `least`, and no cut beside it. */
  #isStep(history: FrameHistory, frame: number, least: number): boolean {
    return history.step(frame) >= least && history.step(frame) < CUT_STEP * least;
  }

  /**
   * A logistic score of seven numbers, above 0 for a transition. Its weights are near those of a logistic regression on
   * candidates in edited videos. Stops early where it cannot reach more than `least`; then it is too high.
   */
  #score(history: FrameHistory, start: number, end: number, least: number): number {
    const oldest = history.oldest + 1;
    const ms = history.ptsMs(end - 1) - history.ptsMs(start - 1);
    if (ms < LEAST_MS || ms > LONGEST_MS) return -1;
    const distance = distanceOf(history, start - 1, end - 1);
    const isFade = isPlain(history, start - 1) !== isPlain(history, end - 1);
    if (distance < (isFade ? FADE_DISTANCE_MIN : DISTANCE_MIN)) return -1;
    let way = 0, most = 0;
    for (let frame = start; frame < end; frame++) {
      way += history.step(frame);
      most = Math.max(most, history.step(frame));
    }
    const core = this.#median(history, start, end) + 0.01;
    const before = this.#median(history, Math.max(oldest, start - SURROUNDINGS), start);
    const after = this.#median(history, end, Math.min(history.count, end + SURROUNDINGS));
    if (most > STEP_MAX * way) return -1;
    let z = OTHER_WEIGHT * Math.max(isFade ? FADE_OTHER : 0, otherShare(history, start - 1, end - 1)) +
      (isFade ? FADE_WEIGHT : 0) - STEP_WEIGHT * most / way -
      UNREST_WEIGHT * (Math.min(1.2, before / core) + Math.min(1.2, after / core)) - BIAS;
    z -= UNEVEN_WEIGHT * this.#unevenness(history, start, end);
    if (z <= least) return -1;
    const crooked =
      (residualOf(history, start - 1, end - 1, distance / way >= PARTS_EFFICIENCY) - RESIDUAL_FREE) /
      RESIDUAL_REACH;
    z -= CROOKED_WEIGHT * Math.max(0, Math.min(1, crooked));
    if (z <= least) return -1;
    const likeness = likenessWithin(history, start - 1, end - 1, 3, 2);
    return likeness > LIKENESS_MAX ? -1 : z - LIKENESS_WEIGHT * Math.max(0, likeness);
  }

  #found(history: FrameHistory, found: Found): void {
    const held = this.#held;
    if (held) {
      const isOne = held.endsPlain && found.startMs - held.pureMs <= HOLD_MS &&
        isPlain(history, found.start - 1);
      if (isOne || found.start < held.end) {
        held.end = found.end;
        held.endMs = found.endMs;
        held.pureMs = found.pureMs;
        held.confidence = Math.max(held.confidence, found.confidence);
        held.endsPlain = found.endsPlain;
        if (held.endsPlain) return;
        return this.#give();
      }
      this.#give();
    }
    this.#held = found;
    if (!found.endsPlain) this.#give();
  }

  #give(): void {
    const held = this.#held;
    if (!held) return;
    this.#sink.add("gradual_transition", held.start, held.end - 1, held.startMs, held.endMs, held.confidence);
    this.#held = null;
  }

  /** The share of steps that are below `EDGE` of the upper quartile. */
  #unevenness(history: FrameHistory, start: number, end: number): number {
    this.#median(history, start, end);
    const count = end - start;
    const least = EDGE * this.#sorted[Math.floor(count * 0.75)]!;
    let low = 0;
    while (low < count && this.#sorted[low]! < least) low++;
    return low / count;
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
}

/**
 * How far frames between are from what a straight way leads through, as a share of the distance of the two: from a mix of
 * them, or from pictures of which each cell is from the one or from the other, whichever is nearer. The worst of three.
 */
function residualOf(history: FrameHistory, one: number, other: number, mayBeParts: boolean): number {
  const { sums } = history;
  const a = history.cellsAt(one), b = history.cellsAt(other);
  let square = 0, distance = 0;
  for (let cell = 0; cell < CELLS; cell++) {
    const way = sums[b + cell]! - sums[a + cell]!;
    square += way * way;
    distance += Math.abs(way);
  }
  let fromMix = 0, fromParts = 0;
  for (let part = 1; part < 4; part++) {
    const x = history.cellsAt(one + Math.round((other - one) * part / 4));
    let along = 0, offMix = 0, offParts = 0;
    for (let cell = 0; cell < CELLS; cell++) {
      along += (sums[x + cell]! - sums[a + cell]!) * (sums[b + cell]! - sums[a + cell]!);
    }
    along /= square;
    for (let cell = 0; cell < CELLS; cell++) {
      const fromOne = sums[x + cell]! - sums[a + cell]!;
      offMix += Math.abs(fromOne - along * (sums[b + cell]! - sums[a + cell]!));
      offParts += Math.min(Math.abs(fromOne), Math.abs(sums[x + cell]! - sums[b + cell]!));
    }
    fromMix = Math.max(fromMix, offMix / distance);
    fromParts = Math.max(fromParts, offParts / distance);
  }
  return mayBeParts ? Math.min(fromMix, fromParts) : fromMix;
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

function isPlain(history: FrameHistory, frame: number): boolean {
  return roughnessOf(history, frame) < PLAIN_STEP;
}
