/** Tells whether frames between two that stand still only drew the same picture anew, or changed a part that
 * lies over it.
 */

import { changedCells, distanceOf } from "../ranges/cell_structure.ts";
import type { FrameHistory } from "../ranges/frame_history.ts";
import type { BoundsOf } from "../ranges/range_sink.ts";

/** What makes frames draw the same picture anew. */
export const REDRAWN_BOUNDS = {
  /**
   * The most that a keyframe moves, in levels a sample; `changeMax` is the most that it changes a cell,
   * `stepMax` all cells on average.
   */
  movedMax: 3,
  changeMax: 3.5,
  stepMax: 0.5,
  /** A keyframe moves by no more than this times the motion before. */
  beforeShare: 4,
  /**
   * A frame that moved by no more levels a sample repeats exactly. The keyframe behind it may be coarser,
   * within the bounds below.
   */
  exactMax: 0.02,
  coarseMovedMax: 5,
  coarseChangeMax: 9,
  coarseStepMax: 1.5,
  /**
   * The frame behind a coarse keyframe may move by this share of what that one moved, but then the keyframe
   * is bound by the motion before too.
   */
  coarseRest: 0.15,
  /**
   * A part of the picture may change, as a subtitle does, where no more than this share of the motion before
   * is left. Where that motion was below `partFast` levels, the frame before the change must repeat exactly.
   */
  partRest: 0.03,
  partFast: 5,
  /**
   * A part has changed where some cell changes by these levels, and no more than `partMax` cells by more than
   * `partLevels`.
   */
  partChangeMin: 8,
  partMax: 54,
  partLevels: 2,
} as const;

export type RedrawnBounds = BoundsOf<typeof REDRAWN_BOUNDS>;

/**
 * Whether the frames between `last` and `frame` only drew the picture anew or changed a part of it;
 * `movedBefore` is the motion before, in levels a sample.
 */
export function isRedrawn(
  history: FrameHistory,
  last: number,
  frame: number,
  movedBefore: number,
  bounds: RedrawnBounds,
): boolean {
  let moved = 0, change = 0;
  for (let i = last + 1; i < frame; i++) {
    moved = Math.max(moved, history.moved(i));
    change = Math.max(change, history.largestChange(i));
  }
  const step = distanceOf(history, last, frame);
  const share = bounds.beforeShare * movedBefore;
  const stillBefore = history.moved(last), stillAfter = history.moved(frame);
  if (stillBefore <= bounds.exactMax && stillAfter <= Math.max(bounds.exactMax, bounds.coarseRest * moved)) {
    const movedMax = stillAfter <= bounds.exactMax
      ? bounds.coarseMovedMax
      : Math.min(bounds.coarseMovedMax, share);
    if (step < bounds.coarseStepMax && moved <= movedMax && change <= bounds.coarseChangeMax) return true;
  }
  const partRest = Math.max(bounds.exactMax, bounds.partRest * movedBefore);
  if (stillBefore <= (movedBefore < bounds.partFast ? bounds.exactMax : partRest) && stillAfter <= partRest) {
    if (
      change >= bounds.partChangeMin &&
      changedCells(history, last, frame, bounds.partLevels) <= bounds.partMax
    ) return true;
  }
  // What comes back to the same picture may have changed more meanwhile.
  const changeMax = step < bounds.stepMax / 2 ? 2 * bounds.changeMax : bounds.changeMax;
  return step < bounds.stepMax && moved <= Math.min(bounds.movedMax, Math.max(1, share)) &&
    change <= changeMax;
}
