/** Candidates that are none as far as near frames tell: what takes longest is not measured for them. */

import { isAtLeast, LEAF_ONE, mayBeAtLeast } from "./decision";
import { boundFeatures, LEAST_ROW, measureFeatures, ROW } from "./features";
import { SLOTS } from "./layout";

/**
 * A candidate is out where the logarithm of its odds is below this while nothing is said to be motion. Those
 * of true cuts are larger (docs/detection.md#cuts).
 */
const OUT: f32 = -4;

/** 1 for a frame that is out, by slot. */
const IS_OUT: usize = memory.data(32, 16);

/** A frame was added. */
export function earlyPush(frame: i32): void {
  store<u8>(IS_OUT + (frame & (SLOTS - 1)), 0);
}

/** Whether the frame, one of the newest 32, is out for good. */
export function isOut(frame: i32): bool {
  return load<u8>(IS_OUT + (frame & (SLOTS - 1))) != 0;
}

/** Judges a candidate by near frames, which must have come. Returns whether it is out. */
export function judgeEarly(frame: i32): bool {
  measureFeatures(frame, true);
  if (isAtLeast(ROW, <i32> (OUT * LEAF_ONE))) return false;
  ruleOut(frame);
  return true;
}

/**
 * Whether a candidate will be out, whatever those pairs of near frames say that were not measured. The near
 * frames must have come.
 */
export function isHopeless(frame: i32): bool {
  boundFeatures(frame);
  return !mayBeAtLeast(LEAST_ROW, ROW, <i32> (OUT * LEAF_ONE));
}

/** A frame is out for good. */
export function ruleOut(frame: i32): void {
  store<u8>(IS_OUT + (frame & (SLOTS - 1)), 1);
}
