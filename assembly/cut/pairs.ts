/** The distances of pairs of the newest frames: each is measured when it is first asked for, and kept. */

import { measureDistances, MEASURES } from "./compare";
import { SLOTS } from "./layout";
import { panResidual, residual } from "./motion";

/** Measures from this one on are of motion: residual, pan. */
export const MOTION: i32 = MEASURES;

/**
 * Distances of frame `later` and the frame `lag` before it, for each measure; known ones have their bit in
 * KNOWN.
 */
const LAGS: i32 = 32;
const DISTANCES: usize = memory.data(32 * 32 * 9 * 4 + 16, 16);
/** The distances of a pair that is not known. */
export const NOTHING: usize = memory.data<u32>([
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
  0x7fc00000,
], 16);
const KNOWN: usize = memory.data(32 * 4, 16);
/** The same for the two measures of motion, lags 1 to 3. */
const MOTION_LAGS: i32 = 4;
const MOTIONS: usize = memory.data(32 * 4 * 2 * 4, 16);
const MOTIONS_KNOWN: usize = memory.data(32 * 4, 16);

/** The newest frame; -1 when there is none. */
export let newest: i32 = -1;

/** Whether `between` measures nothing: what is not known is NaN then. */
let onlyKnown: bool = false;

export function pairsOnlyKnown(value: bool): void {
  onlyKnown = value;
}

export function pairsReset(): void {
  newest = -1;
}

/** Frame `frame` was reduced into its slot. Measures its distance to the one before. */
export function pairsPush(frame: i32): void {
  newest = frame;
  const slot = frame & (SLOTS - 1);
  store<u32>(KNOWN + (slot << 2), 0);
  store<u32>(MOTIONS_KNOWN + (slot << 2), 0);
  if (frame > 0) distances(frame, 1);
}

/** Address of the distances of all measures but those of motion. */
export function distances(later: i32, lag: i32): usize {
  const slot = later & (SLOTS - 1);
  const at = DISTANCES + (((slot * LAGS + lag) * MEASURES) << 2);
  const known = load<u32>(KNOWN + (slot << 2));
  if ((known >> lag) & 1) return at;
  measureDistances(at, slot, (later - lag) & (SLOTS - 1));
  store<u32>(KNOWN + (slot << 2), known | (1 << lag));
  return at;
}

function motions(later: i32, lag: i32): usize {
  const slot = later & (SLOTS - 1);
  const at = MOTIONS + (((slot * MOTION_LAGS + lag) * 2) << 2);
  const known = load<u32>(MOTIONS_KNOWN + (slot << 2));
  if ((known >> lag) & 1) return at;
  const earlier = (later - lag) & (SLOTS - 1);
  store<f32>(at, residual(slot, earlier, 3));
  store<f32>(at + 4, panResidual(slot, earlier));
  store<u32>(MOTIONS_KNOWN + (slot << 2), known | (1 << lag));
  return at;
}

/** NaN where one of the two frames does not exist, or where nothing is to be measured. */
export function between(measure: i32, later: i32, lag: i32): f32 {
  if (later > newest || later - lag < 0) return f32.NaN;
  if (onlyKnown && !isSettled(measure, later, lag)) return f32.NaN;
  if (measure < MOTION) return load<f32>(distances(later, lag) + (measure << 2));
  return load<f32>(motions(later, lag) + ((measure - MOTION) << 2));
}

/**
 * Address of the distances as by `between`, all measures but those of motion; they may be read in whole
 * vectors.
 */
export function allBetween(later: i32, lag: i32): usize {
  if (later > newest || later - lag < 0 || (onlyKnown && !isSettled(0, later, lag))) return NOTHING;
  return distances(later, lag);
}

/** Whether nothing is left to measure for `between`, now or later. */
export function isSettled(measure: i32, later: i32, lag: i32): bool {
  if (later - lag < 0) return true;
  if (later > newest) return false;
  const known = load<u32>((measure < MOTION ? KNOWN : MOTIONS_KNOWN) + ((later & (SLOTS - 1)) << 2));
  return ((known >> lag) & 1) == 1;
}
