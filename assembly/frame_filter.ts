/** The signals of each decoded frame. This is the hot path: it never allocates. */

import { artifactPush, artifactReset } from "./artifact";
import { LINES_BYTES } from "./artifact/combing";
import {
  cutFinish,
  cutIsOpen,
  cutPush,
  cutReset,
  cutScore,
  cutScoreSoFar,
  cutSettled,
  newestFineCells,
  nextFineCells,
  prepareDecision,
} from "./cut";
import { CELL_MOVES, lumaSquareSum, lumaSum, measurePlane, PLANE_BYTES } from "./luma";
import { hashCells, prepareHash } from "./phash";
import { measureRanges } from "./range_measures";

export { ARTIFACT_MEASURES } from "./artifact";
export { setPictureSize } from "./artifact/block_borders";
export { CUT_LOOKAHEAD, CUT_ROW_BYTES, cutRow, NEWEST_PROFILES } from "./cut";
export { CELL_MOVES };
export { BRIGHT_SAMPLES, CELL_SUMS } from "./range_measures";

/*
 * The rows are in a ring buffer with a column for each signal; frame i is in slot i % RING_ROWS. The caller
 * copies rows before they are overwritten. See docs/frames.md#signals.
 *
 *   PTS_MS f64 | HASH u64 | LUMA_MEAN f32 | FLICKER f32 | GHOSTING f32 | NOISE f32 | CUT_SCORE f32
 *
 * FLICKER and GHOSTING compare a frame with the row before it, which is the last frame that was pushed as a
 * row. CUT_SCORE is NaN until it is final (settled): CUT_LOOKAHEAD frames after its frame, or at the end.
 */

export const RING_ROWS: i32 = 4096;
export const STAGING_BYTES: i32 = 1 << 20;
export const STAGING: usize = memory.data(1 << 20, 16);
export const PTS_MS: usize = memory.data(4096 * 8, 16);
export const HASH: usize = memory.data(4096 * 8, 16);
export const LUMA_MEAN: usize = memory.data(4096 * 4, 16);
export const FLICKER: usize = memory.data(4096 * 4, 16);
export const GHOSTING: usize = memory.data(4096 * 4, 16);
export const NOISE: usize = memory.data(4096 * 4, 16);
export const CUT_SCORE: usize = memory.data(4096 * 4, 16);

const FULL_SCALE: f64 = 255.0 * <f64> PLANE_BYTES;
/** Var / 4096 with Var = (n * squares - sum^2) / n^2; all steps before the single division are exact. */
const NOISE_SCALE: f64 = 4096.0 * <f64> PLANE_BYTES * <f64> PLANE_BYTES;

let frames: i32 = 0;
let settled: i32 = 0;
let hasRow: bool = false;
let rowSum: u32 = 0;
let rowHash: u64 = 0;

prepareHash();
prepareDecision();
cutReset();

/** Removes all frames. */
export function reset(): void {
  frames = 0;
  settled = 0;
  hasRow = false;
  cutReset();
  artifactReset();
}

/**
 * Analyses the next frame, which starts at `offset` bytes in STAGING. Later frames are compared with it if it
 * `isRow`. With `hasLines`, 32 lines of the picture that nothing was averaged of come before it, 320 samples
 * each.
 */
export function push(offset: usize, ptsMs: f64, isRow: bool, hasLines: bool): void {
  const plane = STAGING + offset;
  measurePlane(plane, nextFineCells(), newestFineCells(), frames == 0);
  const sum = lumaSum();
  const hash = hashCells();
  const slot: usize = (frames & (RING_ROWS - 1)) << 2;
  const flicker = hasRow ? abs<f64>(<f64> sum - <f64> rowSum) / FULL_SCALE : 0;
  const ghosting = hasRow ? <f64> popcnt<u64>(hash ^ rowHash) / 64 : 0;
  store<f64>(PTS_MS + (slot << 1), ptsMs);
  store<u64>(HASH + (slot << 1), hash);
  store<f32>(LUMA_MEAN + slot, <f32> (<f64> sum / FULL_SCALE));
  store<f32>(FLICKER + slot, <f32> flicker);
  store<f32>(GHOSTING + slot, <f32> ghosting);
  store<f32>(NOISE + slot, noiseVarianceScore(sum));
  store<f32>(CUT_SCORE + slot, f32.NaN);
  if (isRow) {
    hasRow = true;
    rowSum = sum;
    rowHash = hash;
  }
  artifactPush(plane, hasLines ? plane - LINES_BYTES : 0);
  cutPush(plane, ptsMs);
  measureRanges(plane, newestFineCells(), sum);
  frames++;
  settleCutScores();
}

/** Call after the last frame: all cut scores become final. Returns the number of frames. */
export function finish(): i32 {
  cutFinish();
  settleCutScores();
  return frames;
}

/** Whether the final score of one of the newest CUT_LOOKAHEAD frames may be .5 or more. */
export function isCutOpen(frame: i32): bool {
  return cutIsOpen(frame);
}

/** The final cut score that one of the newest CUT_LOOKAHEAD frames would get if no frame followed. */
export function scoreSoFar(frame: i32): f32 {
  return cutScoreSoFar(frame);
}

function noiseVarianceScore(sum: u32): f32 {
  const scaled = <u64> PLANE_BYTES * <u64> lumaSquareSum() - <u64> sum * <u64> sum;
  return <f32> min<f64>(1, <f64> scaled / NOISE_SCALE);
}

function settleCutScores(): void {
  const until = cutSettled();
  for (; settled < until; settled++) {
    store<f32>(CUT_SCORE + ((<usize> settled & (RING_ROWS - 1)) << 2), cutScore(settled));
  }
}
