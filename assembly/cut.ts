/** The cut score of each frame: how sure it is the first frame of a new shot; known five frames later. */

import { decide, LEAF_ONE } from "./cut/decision";
import { resetBars } from "./cut/bars";
import { isCandidate } from "./cut/candidate";
import { earlyPush, isOut } from "./cut/early";
import { FEATURES, measureFeatures, ROW, setTime } from "./cut/features";
import { reduceFrame } from "./cut/frame";
import { FINE, FINE_BYTES, PROFILE_BYTES, PROFILES, SLOTS } from "./cut/layout";
import { pairsPush, pairsReset } from "./cut/pairs";
import { isPlainCut, plainPush } from "./cut/plain";
import { prepare } from "./cut/prepare";

export { prepareDecision } from "./cut/decision";
export const CUT_LOOKAHEAD: i32 = 5;

/**
 * Mean luma of the newest frame, 7.5 a level, i16: of 80 columns in each of three bands, one above the other,
 * then of 60 rows in each of four bands side by side, 64 to a band.
 */
export const NEWEST_PROFILES: usize = memory.data(992, 16);

const SCORE_RING: i32 = 64;
/** Final scores, frame i at i % 64. */
const SCORES: usize = memory.data(64 * 4, 16);
/** The same before neighbours are looked at: the logarithm of the odds. */
const ODDS: usize = memory.data(64 * 4, 16);
/** Two cuts are at least this many frames apart, as no shot is shorter. */
const LEAST_SHOT: i32 = 3;
const NO_CHANCE: f32 = -100;
const SOFTNESS: f32 = 4;
/** The odds of a cut between two plain pictures. */
const PLAIN_ODDS: f32 = 4;
const OVERRULED: f32 = 0.49;

let frames: i32 = 0;
let settled: i32 = 0;

/** Removes all frames. */
export function cutReset(): void {
  frames = 0;
  settled = 0;
  pairsReset();
  resetBars();
}

/** Where the fine cells of luma of the next frame must be when it is added. */
export function nextFineCells(): usize {
  return FINE + (frames & (SLOTS - 1)) * FINE_BYTES;
}

/**
 * Adds the next frame, 320x180 yuv420p at any alignment, whose fine cells are at `nextFineCells`; the score
 * of the frame CUT_LOOKAHEAD before is final.
 */
export function cutPush(frame: usize, ptsMs: f64): void {
  const slot = frames & (SLOTS - 1);
  reduceFrame(frame, slot);
  memory.copy(NEWEST_PROFILES, PROFILES + slot * PROFILE_BYTES, PROFILE_BYTES);
  setTime(frames, ptsMs);
  pairsPush(frames);
  earlyPush(frames);
  plainPush(frames, ptsMs);
  frames++;
  prepare();
  if (frames > CUT_LOOKAHEAD) settle();
}

/** Address of the fine cells of luma of the newest frame, 60 x 80 x i16: sums of 4x3 samples. */
export function newestFineCells(): usize {
  return FINE + ((frames - 1) & (SLOTS - 1)) * FINE_BYTES;
}

/** Call after the last frame: makes the scores of the remaining frames final. */
export function cutFinish(): void {
  while (settled < frames) settle();
}

/** How many frames, from the first on, have a final score. */
export function cutSettled(): i32 {
  return settled;
}

/** The score of a frame, which must be among the last 64 final ones. */
export function cutScore(index: i32): f32 {
  return load<f32>(SCORES + ((index & (SCORE_RING - 1)) << 2));
}

/**
 * Whether the final score of the frame, one of the newest CUT_LOOKAHEAD, may be .5 or more. Further frames
 * can only rule a candidate out, so the answer false does not change later. Most frames get it at once, and
 * most others within two frames.
 */
export function cutIsOpen(frame: i32): bool {
  return !isOut(frame) && isCandidate(frame) || isPlainCut(frame);
}

/** The final score that the frame, one of the newest CUT_LOOKAHEAD, would get if no frame followed. */
export function cutScoreSoFar(frame: i32): f32 {
  return score(frame, oddsOf(frame));
}

function settle(): void {
  const odds = oddsOf(settled);
  const at = (settled & (SCORE_RING - 1)) << 2;
  store<f32>(ODDS + at, odds);
  store<f32>(SCORES + at, score(settled, odds));
  settled++;
}

/** The logarithm of the odds that the frame is a cut, as far as frames are known. */
function oddsOf(frame: i32): f32 {
  if (frame < settled) return load<f32>(ODDS + ((frame & (SCORE_RING - 1)) << 2));
  const odds = oddsByTrees(frame);
  return odds < 0 && isPlainCut(frame) ? PLAIN_ODDS : odds;
}

function oddsByTrees(frame: i32): f32 {
  if (isOut(frame) || !isCandidate(frame)) return NO_CHANCE;
  measureFeatures(frame);
  return <f32> decide(ROW) / LEAF_ONE;
}

function score(frame: i32, odds: f32): f32 {
  if (odds == NO_CHANCE) return 0;
  const confidence: f32 = 0.5 + 0.5 * (odds / sqrt<f32>(odds * odds + SOFTNESS));
  if (odds < 0) return confidence;
  return isOverruled(frame, odds) ? confidence * OVERRULED : confidence;
}

/**
 * Whether a neighbour is the cut rather than this frame: an earlier one that was called one, or a surer one.
 */
function isOverruled(frame: i32, odds: f32): bool {
  for (let other = max(1, frame - LEAST_SHOT + 1); other < frame; other++) {
    if (other < settled ? cutScore(other) >= 0.5 : oddsOf(other) >= odds) return true;
  }
  for (let other = frame + 1; other < min(frames, frame + LEAST_SHOT); other++) {
    if (oddsOf(other) > odds) return true;
  }
  return false;
}

/** For fitting: measures a candidate of the newest CUT_LOOKAHEAD + 1 frames; 0 for any other frame. */
export function cutRow(frame: i32): usize {
  if (!isCandidate(frame)) return 0;
  measureFeatures(frame);
  return ROW;
}

export { FEATURES as CUT_ROW_BYTES };
