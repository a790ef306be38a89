/** Finds gradual transitions: dissolves, fades, wipes, slides, and others in which one picture becomes
 * another step by step.
 */

import weights from "../../../../weights/gradual.json" with { type: "json" };
import { loadTrees, oddsByTrees } from "../../../base/fitted_trees.ts";
import type { FrameHistory } from "../ranges/frame_history.ts";
import type { RangeDetector, RangeSink } from "../ranges/range_sink.ts";
import { BREAK_DELAY_FRAMES, BREAK_DELAY_MS, StepBreaks } from "./step_breaks.ts";
import { ChosenStretches, LEAST_HALF_ODDS } from "./transition_choice.ts";
import { isOnlyRelit, isPlain, LONGEST_MS, SURROUNDINGS, TransitionRow } from "./transition_row.ts";

/*
 *   frames ─→ StepBreaks: where one may begin or end ─→ each pair of them: TransitionRow ─→ trees: odds
 *                                                                                             │
 *                             sink ←─ ChosenStretches: the best that do not overlap, fades joined
 *
 * A break may end many stretches, so they are judged over some frames, in the order of their ends.
 */

/** How many frames must have come after a break before the stretches that end with it are judged. */
const DELAY_FRAMES = Math.max(BREAK_DELAY_FRAMES, SURROUNDINGS);
/**
 * Effort that is spent at each frame, in units of EFFORT. It is as much again for each LATE_FRAMES frames
 * that the judging is behind.
 */
const FRAME_EFFORT = 24;
const LATE_FRAMES = 4;
/** Most breaks whose stretches wait to be judged: when one more comes, all of these are judged at once. */
const WAITING = 32;
/** A transition begins and ends where the steps become smaller than this share of their median. */
const EDGE = 0.4;
/** A step that is larger than the edge step times this belongs to something else, such as a cut. */
const CUT_STEP = 8;
/** Frames by which a stretch may grow beyond the breaks that it was judged with. */
const GROWTH = 6;
/**
 * Frames for which a picture at the begin or the end of the video must be shown to count as the first or
 * second picture of a transition. A plain picture need not be shown for so long.
 */
const SHOWN_FRAMES = 2;

const { transition: TRANSITION_TREES } = loadTrees(weights);

/**
 * The logarithm of the odds that a stretch with these numbers is a transition; `end` is the frame after the
 * second picture.
 */
export type StretchJudge = (values: Uint8Array, start: number, end: number) => number;

export class GradualDetector implements RangeDetector {
  readonly #judge: StretchJudge;
  readonly #breaks = new StepBreaks();
  readonly #row = new TransitionRow();
  readonly #chosen: ChosenStretches;
  /** Breaks up to here were judged or wait. */
  #due = 0;
  /**
   * Breaks whose stretches are judged next. `#settledMs` says for each the time before which no other stretch
   * could end when it was due.
   */
  readonly #waiting = new Int32Array(WAITING);
  readonly #settledMs = new Float64Array(WAITING);
  #count = 0;
  /**
   * Where the stretch began that was judged last of the first break that waits; that break itself before any
   * was judged.
   */
  #start = 0;
  #nowMs = -Infinity;

  constructor(sink: RangeSink, judge: StretchJudge = (values) => oddsByTrees(TRANSITION_TREES, values)) {
    this.#judge = judge;
    this.#chosen = new ChosenStretches(sink);
  }

  reset(): void {
    this.#breaks.reset();
    this.#chosen.reset();
    this.#due = this.#count = 0;
    this.#nowMs = -Infinity;
  }

  push(history: FrameHistory): void {
    this.#breaks.push(history);
    const newest = history.count - 1;
    const nowMs = history.ptsMs(newest);
    const { frames, length } = this.#breaks;
    let first = length;
    while (first > 0 && frames[first - 1]! > this.#due) first--;
    for (let at = first; at < length; at++) {
      const end = frames[at]!;
      if (newest - end < DELAY_FRAMES || nowMs - history.ptsMs(end) <= BREAK_DELAY_MS) break;
      this.#await(history, end);
    }
    if (newest >= DELAY_FRAMES) {
      this.#nowMs = Math.min(nowMs - BREAK_DELAY_MS, history.ptsMs(newest - DELAY_FRAMES));
    }
    const lateFrames = this.#count === 0 ? 0 : newest - DELAY_FRAMES - this.#waiting[0]!;
    this.#work(history, FRAME_EFFORT * (1 + lateFrames / LATE_FRAMES));
    if (this.#count === 0) this.#chosen.settle(this.#nowMs);
  }

  finish(history: FrameHistory): void {
    this.#breaks.finish(history);
    const { frames, length } = this.#breaks;
    for (let at = 0; at < length; at++) if (frames[at]! > this.#due) this.#await(history, frames[at]!);
    this.#work(history, Infinity);
    this.#chosen.finish();
  }

  #await(history: FrameHistory, end: number): void {
    if (this.#count === WAITING) this.#work(history, Infinity);
    this.#due = end;
    if (this.#count === 0) this.#begin(history, end);
    this.#waiting[this.#count] = end;
    this.#settledMs[this.#count++] = this.#nowMs;
  }

  #begin(history: FrameHistory, end: number): void {
    this.#start = end;
    this.#row.begin(history, end);
  }

  /** Judges stretches that end with the breaks that wait, about as many as the effort is for. */
  #work(history: FrameHistory, effort: number): void {
    while (this.#count > 0 && effort > 0) {
      const start = this.#breaks.before(this.#start), end = this.#waiting[0]!;
      if (this.#isOut(history, start, end)) {
        this.#goOn(history);
        continue;
      }
      this.#start = start;
      if (this.#row.measure(history, start)) this.#judgeRow(history, start, end);
      effort -= this.#row.effort;
    }
  }

  /** Goes on to the next break that waits. */
  #goOn(history: FrameHistory): void {
    this.#count--;
    if (this.#count === 0) return;
    this.#waiting.copyWithin(0, 1);
    this.#settledMs.copyWithin(0, 1);
    this.#chosen.settle(this.#settledMs[0]!);
    this.#begin(history, this.#waiting[0]!);
  }

  /** Whether no stretch from `start` on, or from an earlier frame, can be measured. */
  #isOut(history: FrameHistory, start: number, end: number): boolean {
    if (start < 0 || start - 1 <= history.oldest && history.oldest > 0) return true;
    return history.ptsMs(end - 1) - history.ptsMs(start - 1) > LONGEST_MS;
  }

  #judgeRow(history: FrameHistory, start: number, end: number): void {
    const odds = this.#judge(this.#row.values, start, end);
    if (odds > LEAST_HALF_ODDS && !isOnlyRelit(this.#row.values)) this.#add(history, start, end, odds);
  }

  #add(history: FrameHistory, from: number, until: number, odds: number): void {
    const least = EDGE * this.#row.core;
    let start = from, end = until;
    while (start < end - 2 && history.step(start) < least) start++;
    while (end > start + 2 && history.step(end - 1) < least) end--;
    while (from - start < GROWTH && start > history.oldest + 1 && isStep(history, start - 1, least)) start--;
    while (end - until < GROWTH && end < history.count && isStep(history, end, least)) end++;
    const startsPlain = isPlain(history, start - 1), endsPlain = isPlain(history, end - 1);
    // Movement at the end of a video looks like a change to a picture that nobody sees.
    if (start < SHOWN_FRAMES && !startsPlain) return;
    if (history.count - (end - 1) < SHOWN_FRAMES && !endsPlain) return;
    this.#chosen.add({
      ...{ start, end: end - 1, odds, startsPlain, endsPlain },
      startMs: history.ptsMs(start),
      lastMs: history.lastMs(end - 2),
      endMs: history.ptsMs(end - 1),
      first: history.first(start),
      last: history.last(end - 2),
    });
  }
}

/** A step like those of a transition with edges of `least`, and no cut beside it. */
function isStep(history: FrameHistory, frame: number, least: number): boolean {
  return history.step(frame) >= least && history.step(frame) < CUT_STEP * least;
}
