/** Finds gradual transitions: dissolves, fades, wipes, slides, and others in which one picture becomes another step by step. */

import { oddsByTrees } from "./gradual/fitted_trees.ts";
import type { FrameHistory } from "./frame_history.ts";
import { TRANSITION_TREES } from "./gradual/weights.ts";
import type { RangeDetector, RangeSink } from "./range_sink.ts";
import { BREAK_DELAY_FRAMES, BREAK_DELAY_MS, StepBreaks } from "./gradual/step_breaks.ts";
import { ChosenStretches, LEAST_HALF_ODDS } from "./gradual/transition_choice.ts";
import { isOnlyRelit, isPlain, LONGEST_MS, SURROUNDINGS, TransitionRow } from "./gradual/transition_row.ts";

/*
 *   frames ─→ StepBreaks: where one may begin or end ─→ each pair of them: TransitionRow ─→ trees: odds
 *                                                                                             │
 *                             sink ←─ ChosenStretches: the best that do not overlap, fades joined
 */

/** Frames after a break that must be there before stretches that end with it are judged. */
const DELAY_FRAMES = Math.max(BREAK_DELAY_FRAMES, SURROUNDINGS);
/** A transition begins and ends where the steps become smaller than this share of their median. */
const EDGE = 0.4;
/** A step that is larger than so many such edges belongs to something else. */
const CUT_STEP = 8;
/** Frames by which a stretch may grow. */
const GROWTH = 6;

/** The logarithm of the odds that a stretch with these numbers is a transition; `end` is the frame after the second picture. */
export type StretchJudge = (values: Uint8Array, start: number, end: number) => number;

export class GradualDetector implements RangeDetector {
  readonly #judge: StretchJudge;
  readonly #breaks = new StepBreaks();
  readonly #row = new TransitionRow();
  readonly #chosen: ChosenStretches;
  /** Stretches that end up to here were judged. */
  #judged = 0;

  constructor(sink: RangeSink, judge: StretchJudge = (values) => oddsByTrees(TRANSITION_TREES, values)) {
    this.#judge = judge;
    this.#chosen = new ChosenStretches(sink);
  }

  reset(): void {
    this.#breaks.reset();
    this.#chosen.reset();
    this.#judged = 0;
  }

  push(history: FrameHistory): void {
    this.#breaks.push(history);
    const newest = history.count - 1;
    const nowMs = history.ptsMs(newest);
    const { frames, length } = this.#breaks;
    let first = length;
    while (first > 0 && frames[first - 1]! > this.#judged) first--;
    for (let at = first; at < length; at++) {
      const end = frames[at]!;
      if (newest - end < DELAY_FRAMES || nowMs - history.ptsMs(end) <= BREAK_DELAY_MS) break;
      this.#judgeUntil(history, at);
    }
    if (newest < DELAY_FRAMES) return;
    this.#chosen.settle(Math.min(nowMs - BREAK_DELAY_MS, history.ptsMs(newest - DELAY_FRAMES)));
  }

  finish(history: FrameHistory): void {
    this.#breaks.finish(history);
    const { frames, length } = this.#breaks;
    for (let at = 0; at < length; at++) if (frames[at]! > this.#judged) this.#judgeUntil(history, at);
    this.#chosen.finish();
  }

  /** Judges all stretches that end with the break `at`. */
  #judgeUntil(history: FrameHistory, at: number): void {
    const { frames } = this.#breaks;
    const end = frames[at]!;
    this.#judged = end;
    for (let other = at - 1; other >= 0; other--) {
      const start = frames[other]!;
      if (start - 1 <= history.oldest && history.oldest > 0) return;
      if (history.ptsMs(end - 1) - history.ptsMs(start - 1) > LONGEST_MS) return;
      if (!this.#row.measure(history, start, end)) continue;
      const odds = this.#judge(this.#row.values, start, end);
      if (odds > LEAST_HALF_ODDS && !isOnlyRelit(this.#row.values)) this.#add(history, start, end, odds);
    }
  }

  #add(history: FrameHistory, from: number, until: number, odds: number): void {
    const least = EDGE * this.#row.core;
    let start = from, end = until;
    while (start < end - 2 && history.step(start) < least) start++;
    while (end > start + 2 && history.step(end - 1) < least) end--;
    while (from - start < GROWTH && start > history.oldest + 1 && isStep(history, start - 1, least)) start--;
    while (end - until < GROWTH && end < history.count && isStep(history, end, least)) end++;
    this.#chosen.add({
      ...{ start, end: end - 1, odds },
      startMs: history.ptsMs(start),
      lastMs: history.ptsMs(end - 2),
      endMs: history.ptsMs(end - 1),
      startsPlain: isPlain(history, start - 1),
      endsPlain: isPlain(history, end - 1),
    });
  }
}

/** A step like those of a transition with edges of `least`, and no cut beside it. */
function isStep(history: FrameHistory, frame: number, least: number): boolean {
  return history.step(frame) >= least && history.step(frame) < CUT_STEP * least;
}
