/** The restricted zone of a live session: entered and left when scores last for some frames. Allocates
 * nothing.
 */

/*
 *             score >= enter, `enterFrames` frames in a row
 *            ---------------------------------------------->
 *   outside                                                    inside
 *            <----------------------------------------------
 *             score <= exit, `exitFrames` frames in a row
 *
 * A frame that does not meet the condition restarts the count, and so does a frame whose score is NaN. See
 * docs/live/events.md#restricted-zone.
 *
 *   SCORE f64 | TRANSITION u8, in blocks of BLOCK_ROWS frames
 */

export const BLOCK_ROWS: i32 = 8192;
export const SCORE: usize = memory.data(8192 * 8, 16);
export const TRANSITION: usize = memory.data(8192, 16);

/** Indices into ZONE_TRANSITIONS of src/media/kernels/zone_kernel.ts. */
const NONE: i32 = 0;
const ENTERED: i32 = 1;
const LEFT: i32 = 2;

let enterScore: f64 = 0;
let exitScore: f64 = 0;
let enterFrames: i32 = 0;
let exitFrames: i32 = 0;
let isInside: bool = false;
let inARow: i32 = 0;

/** Starts outside, with these thresholds from now on. A change takes at least one frame. */
export function begin(enter: f64, exit: f64, enterAfterFrames: i32, exitAfterFrames: i32): void {
  enterScore = enter;
  exitScore = exit;
  enterFrames = enterAfterFrames;
  exitFrames = exitAfterFrames;
  isInside = false;
  inARow = 0;
}

/** Processes the score of the next frame; returns NONE, ENTERED or LEFT. */
export function step(score: f64): i32 {
  const meets = isInside ? score <= exitScore : score >= enterScore;
  const needed = isInside ? exitFrames : enterFrames;
  inARow = meets ? inARow + 1 : 0;
  if (inARow < needed) return NONE;
  isInside = !isInside;
  inARow = 0;
  return isInside ? ENTERED : LEFT;
}

/** Processes the first `rows` scores of the block. */
export function run(rows: i32): void {
  for (let row: usize = 0; row < <usize> rows; row++) {
    store<u8>(TRANSITION + row, step(load<f64>(SCORE + (row << 3))));
  }
}
