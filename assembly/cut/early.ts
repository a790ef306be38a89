/** Candidates that are none as far as near frames tell: what takes longest is not measured for them. */

import { isAtLeast, LEAF_ONE } from "./decision";
import { measureFeatures, MOTION_FEATURES, MOTION_FEATURES_AT, ROW } from "./features";
import { SLOTS } from "./layout";
import { pairsOnlyKnown } from "./pairs";

/**
 * A candidate is out where the logarithm of its odds is below this while nothing is said to be motion. Those of true cuts are
 * larger (docs/detection.md#cuts).
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

/** Judges a candidate by what was measured so far. Returns whether it is out. */
export function judgeEarly(frame: i32): bool {
  pairsOnlyKnown(true);
  measureFeatures(frame);
  pairsOnlyKnown(false);
  memory.fill(ROW + MOTION_FEATURES_AT, 255, MOTION_FEATURES);
  if (isAtLeast(ROW, <i32> (OUT * LEAF_ONE))) return false;
  store<u8>(IS_OUT + (frame & (SLOTS - 1)), 1);
  return true;
}
