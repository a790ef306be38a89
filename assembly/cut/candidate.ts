/** Whether a frame may be a cut at all: most frames are out after one comparison. */

import {
  BLOCKS,
  CHANGED_SHARE,
  COLOR,
  COLOR_BINS,
  FINE_TEXTURE,
  LUMA,
  LUMA_BINS,
  MEASURES,
  QUIETEST_BAND,
} from "./compare";
import { GRAY, numberAt, SLOTS, WHITE } from "./layout";
import { distances, newest } from "./pairs";
import { FLOORS } from "./features";

/** The share of a frame that makes it a white or a gray one. */
const MOST: f32 = 0.75;
/** A change stands out that is so much larger than those of its neighbours. */
const PEAK: f32 = 1.2;
/**
 * A frame stands out clearly, as most cuts do, where so many of the six distances are so many times as large.
 */
const CLEAR_PEAK: f32 = 2;
const CLEAR_COUNT: i32 = 5;

/**
 * Whether the frame may be a cut: it differs enough from the one before, by more than its neighbours differ
 * from theirs, and no frame from before it has returned. Only becomes false with further frames.
 */
export function isCandidate(frame: i32): bool {
  return standsOut(frame) && !hasReturned(frame);
}

/** The same where no frame has returned, which takes longer to tell. */
export function standsOut(frame: i32): bool {
  if (frame == 0) return false;
  const d = distances(frame, 1);
  if (isSmall(d, 2) || peaksOf(frame, d, PEAK) == 0) return false;
  // The decoder had lost its references: what follows is no new shot.
  return numberAt((frame - 1) & (SLOTS - 1), GRAY) < MOST;
}

/** Whether a frame that stands out does so clearly. */
export function isClear(frame: i32): bool {
  return peaksOf(frame, distances(frame, 1), CLEAR_PEAK) >= CLEAR_COUNT;
}

/** How many distances are `factor` times as large as those of the frames next to it. */
function peaksOf(frame: i32, d: usize, factor: f32): i32 {
  let peaks = 0;
  const before = frame > 1 ? distances(frame - 1, 1) : 0;
  const after = frame < newest ? distances(frame + 1, 1) : 0;
  for (let m = 0; m < MEASURES; m++) {
    if (m == COLOR_BINS || m == CHANGED_SHARE || m == QUIETEST_BAND) continue;
    const own = load<f32>(d + (m << 2));
    let other: f32 = 0;
    if (before) other = load<f32>(before + (m << 2));
    if (after) other = max(other, load<f32>(after + (m << 2)));
    if (own > factor * (other + load<f32>(FLOORS + (m << 2)))) peaks++;
  }
  return peaks;
}

/**
 * Whether one of the two frames that follow is nearly one of the two before. White lasts up to five frames
 * and is a flash: both its edges are ruled out, if the picture before it returns.
 */
export function hasReturned(frame: i32): bool {
  const before = (frame - 1) & (SLOTS - 1);
  const ahead = min(isWhite(frame & (SLOTS - 1)) ? 5 : 2, newest - frame);
  const back = min(2, frame);
  for (let a = 1; a <= ahead; a++) {
    for (let b = 1; b <= back; b++) if (isSmall(distances(frame + a, a + b), 1)) return true;
  }
  if (!isWhite(before)) return false;
  for (let b = 2; b <= min(6, frame); b++) if (isSmall(distances(frame, b), 1)) return true;
  return false;
}

function isWhite(slot: i32): bool {
  return numberAt(slot, WHITE) >= MOST;
}

/** Whether no distance matters, with limits in tenths. */
function isSmall(d: usize, factor: f32): bool {
  return load<f32>(d + (BLOCKS << 2)) <= 0.1 * factor && load<f32>(d + (COLOR << 2)) <= 0.025 * factor &&
    load<f32>(d + (LUMA << 2)) <= 0.06 * factor && load<f32>(d + (LUMA_BINS << 2)) <= 0.06 * factor &&
    load<f32>(d + (FINE_TEXTURE << 2)) <= 0.2 * factor;
}
