/** Tells whether frames between two that stand still only drew the same picture anew, or changed a part that
 * lies over it.
 */

import { changedCells, distanceOf } from "../ranges/cell_structure.ts";
import type { FrameHistory } from "../ranges/frame_history.ts";

/**
 * The most that a keyframe moves, in levels a sample; CHANGE_MAX is the most that it changes a cell, STEP_MAX
 * all cells on average.
 */
const MOVED_MAX = 3;
const CHANGE_MAX = 3.5;
const STEP_MAX = 0.5;
/** A keyframe moves by no more than this times the motion before. */
const BEFORE_SHARE = 4;
/**
 * A frame that moved by no more levels a sample repeats exactly. The keyframe behind it may be coarser,
 * within the bounds below.
 */
export const EXACT_MAX = 0.02;
const COARSE_MOVED_MAX = 5;
const COARSE_CHANGE_MAX = 9;
const COARSE_STEP_MAX = 1.5;
/**
 * The frame behind a coarse keyframe may move by this share of what that one moved, but then the keyframe is
 * bound by the motion before too.
 */
const COARSE_REST = 0.15;
/**
 * A part of the picture may change, as a subtitle does, where no more than this share of the motion before is
 * left. Where that motion was below PART_FAST levels, the frame before the change must repeat exactly.
 */
const PART_REST = 0.03;
const PART_FAST = 5;
/**
 * A part has changed where some cell changes by these levels, and no more than PART_MAX cells by more than
 * PART_LEVELS.
 */
const PART_CHANGE_MIN = 8;
const PART_MAX = 54;
const PART_LEVELS = 2;

/**
 * Whether the frames between `last` and `frame` only drew the picture anew or changed a part of it;
 * `movedBefore` is the motion before, in levels a sample.
 */
export function isRedrawn(history: FrameHistory, last: number, frame: number, movedBefore: number): boolean {
  let moved = 0, change = 0;
  for (let i = last + 1; i < frame; i++) {
    moved = Math.max(moved, history.moved(i));
    change = Math.max(change, history.largestChange(i));
  }
  const step = distanceOf(history, last, frame);
  const share = BEFORE_SHARE * movedBefore;
  const stillBefore = history.moved(last), stillAfter = history.moved(frame);
  if (stillBefore <= EXACT_MAX && stillAfter <= Math.max(EXACT_MAX, COARSE_REST * moved)) {
    const movedMax = stillAfter <= EXACT_MAX ? COARSE_MOVED_MAX : Math.min(COARSE_MOVED_MAX, share);
    if (step < COARSE_STEP_MAX && moved <= movedMax && change <= COARSE_CHANGE_MAX) return true;
  }
  const partRest = Math.max(EXACT_MAX, PART_REST * movedBefore);
  if (stillBefore <= (movedBefore < PART_FAST ? EXACT_MAX : partRest) && stillAfter <= partRest) {
    if (change >= PART_CHANGE_MIN && changedCells(history, last, frame, PART_LEVELS) <= PART_MAX) return true;
  }
  // What comes back to the same picture may have changed more meanwhile.
  const changeMax = step < STEP_MAX / 2 ? 2 * CHANGE_MAX : CHANGE_MAX;
  return step < STEP_MAX && moved <= Math.min(MOVED_MAX, Math.max(1, share)) && change <= changeMax;
}
