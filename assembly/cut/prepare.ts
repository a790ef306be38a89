/** Divides the work for a decision among the frames that come before it, so that no single frame costs much.
 */

import { hasReturned, isClear, standsOut } from "./candidate";
import { isHopeless, isOut, judgeEarly, ruleOut } from "./early";
import { stepAt } from "./features";
import { between, isSettled, MOTION, newest } from "./pairs";

/** A decision is made when so many further frames are known. */
const LOOKAHEAD: i32 = 5;
/** Motion takes so many times as long as the other distances of a pair. */
const MOTION_COST: i32 = 4;

/**
 * What a decision asks for: a measure, the later frame of the pair, counted from the candidate, and the lag
 * to the earlier. The first ones are near, and enough to leave out most candidates.
 */
// deno-fmt-ignore
const NEEDS: usize = memory.data<i8>([
  0, 0, 2, 0, 0, 3, 0, -1, 2, 0, 1, 4, 0, 2, 2, 0, 2, 5,
  9, 0, 1, 0, 0, 4, 0, 0, 6, 9, 0, 2, 0, 0, 9, 9, -1, 1,
  0, 0, 12, 0, 3, 4, 9, 1, 1, 0, 0, 18, 0, 3, 6, 0, 0, 25,
  9, 1, 2, 0, 5, 6, 0, 5, 8,
]);
const NEEDS_COUNT: i32 = 21;
const NEAR_COUNT: i32 = 6;
/** So many frames behind the candidate the near ones are known. */
const NEAR_FRAMES: i32 = 2;
/** The same where every second frame is compared. */
// deno-fmt-ignore
const FAST_NEEDS: usize = memory.data<i8>([
  0, 0, 2, 0, 0, 3, 0, -1, 2, 0, 1, 4, 0, 2, 2, 0, -3, 2,
  0, -5, 2, 0, -7, 2, 0, 2, 5, 0, 3, 2,
  9, 0, 1, 0, 0, 4, 0, 0, 6, 9, 0, 2, 0, 0, 9, 9, -1, 2,
  0, 0, 12, 0, 3, 4, 9, 3, 2, 0, 0, 18, 0, 3, 6, 0, 0, 25,
  9, 1, 2, 0, 5, 6, 0, 5, 2, 0, 5, 8,
]);
const FAST_NEEDS_COUNT: i32 = 26;
const FAST_NEAR_COUNT: i32 = 10;
const FAST_NEAR_FRAMES: i32 = 3;

/**
 * Measures, for each frame that may be a cut, its share of what is left: later frames get the rest, and may
 * rule it out.
 */
export function prepare(): void {
  for (let ahead = LOOKAHEAD; ahead > 0; ahead--) {
    const frame = newest - ahead;
    if (frame < 1 || isOut(frame) || !standsOut(frame)) continue;
    const isFast = stepAt(frame) > 1;
    const needs = isFast ? FAST_NEEDS : NEEDS;
    const near = isFast ? FAST_NEAR_FRAMES : NEAR_FRAMES;
    // Most of those that do not stand out clearly need no more pairs, so their work waits until that is
    // known.
    if (ahead < near && !isClear(frame)) continue;
    if (ahead == near && isHopeless(frame)) {
      ruleOut(frame);
      continue;
    }
    if (hasReturned(frame)) continue;
    if (ahead <= near) {
      measureShare(frame, near + 1 - ahead, needs, isFast ? FAST_NEAR_COUNT : NEAR_COUNT);
      if (ahead < near || judgeEarly(frame)) continue;
    }
    measureShare(frame, LOOKAHEAD + 1 - ahead, needs, isFast ? FAST_NEEDS_COUNT : NEEDS_COUNT);
  }
}

function measureShare(frame: i32, pushes: i32, needs: usize, count: i32): void {
  const end = needs + count * 3;
  let left = 0;
  for (let need = needs; need < end; need += 3) left += costOf(need, frame);
  let share = (left + pushes - 1) / pushes;
  for (let need = needs; need < end && share > 0; need += 3) {
    const later = frame + load<i8>(need, 1);
    if (later > newest) continue;
    share -= costOf(need, frame);
    between(load<i8>(need), later, load<i8>(need, 2));
  }
}

/** 0 for what is known. */
function costOf(need: usize, frame: i32): i32 {
  const measure: i32 = load<i8>(need);
  if (isSettled(measure, frame + load<i8>(need, 1), load<i8>(need, 2))) return 0;
  return measure < MOTION ? 1 : MOTION_COST;
}
