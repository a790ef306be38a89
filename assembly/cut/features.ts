/** What is known of a frame that may be the first of a shot: numbers from 0 to 255, from its distances to its neighbours. */

import {
  BLOCKS,
  CHANGED_SHARE,
  COLOR,
  COLOR_BINS,
  FINE_TEXTURE,
  LUMA,
  LUMA_BINS,
  measureDistances,
  MEASURES,
  QUIETEST_BAND,
} from "./compare";
import { panResidual, residual } from "./motion";
import {
  BLACK,
  GRAY,
  LOST,
  LUMA_MEAN,
  numberAt,
  PALE,
  SLOTS,
  STRUCTURE_MEAN,
  TEXTURE,
  WHITE,
} from "./layout";

/** Distances of frame `later` and the frame `lag` before it, for each measure; known ones have their bit in KNOWN. */
const LAGS: i32 = 32;
const DISTANCES: usize = memory.data(32 * 32 * 9 * 4, 16);
const KNOWN: usize = memory.data(32 * 4, 16);
/** The same for the two measures of motion, lags 1 to 3: residual, pan. */
const MOTION_LAGS: i32 = 4;
const MOTIONS: usize = memory.data(32 * 4 * 2 * 4, 16);
const MOTIONS_KNOWN: usize = memory.data(32 * 4, 16);
const TIMES: usize = memory.data(32 * 8, 16);

/** The distance at which a number is 128, and what is added to the denominators of ratios, for each measure. */
const SCALES = memory.data<f32>([0.3, 0.15, 0.2, 0.15, 0.2, 0.3, 0.3, 0.4, 0.1, 0.6, 0.6]);
const FLOORS = memory.data<f32>([0.05, 0.02, 0.02, 0.01, 0.03, 0.05, 0.02, 0.05, 0.02, 0.05, 0.05]);

/** Measures from this one on are of motion. */
const MOTION: i32 = 9;
/** The share of a frame that makes it a white or a gray one. */
const MOST: f32 = 0.75;
/** A change stands out that is so much larger than those of its neighbours. */
const PEAK: f32 = 1.2;

export const FEATURES: i32 = 9 * 15 + 2 * 7 + 20;
export const ROW: usize = memory.data(9 * 15 + 2 * 7 + 20, 16);
let filled: usize = 0;
let newest: i32 = -1;

export function featuresReset(): void {
  newest = -1;
}

/** Frame `frame` was reduced into its slot. Measures its distance to the one before. */
export function featuresPush(frame: i32, ptsMs: f64): void {
  newest = frame;
  const slot = frame & (SLOTS - 1);
  store<u32>(KNOWN + (slot << 2), 0);
  store<u32>(MOTIONS_KNOWN + (slot << 2), 0);
  store<f64>(TIMES + (slot << 3), ptsMs);
  if (frame > 0) distances(frame, 1);
}

/** Address of the distances of all measures. */
function distances(later: i32, lag: i32): usize {
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

/** NaN where one of the two frames does not exist. */
function between(measure: i32, later: i32, lag: i32): f32 {
  if (later > newest || later - lag < 0) return f32.NaN;
  if (measure < MOTION) return load<f32>(distances(later, lag) + (measure << 2));
  return load<f32>(motions(later, lag) + ((measure - MOTION) << 2));
}

/**
 * Whether the frame may be a cut: it differs enough from the one before, by more than its neighbours differ from theirs,
 * and no frame from before it has returned. Only becomes false with further frames.
 */
export function isCandidate(frame: i32): bool {
  if (frame == 0) return false;
  const d = distances(frame, 1);
  if (isSmall(d, 2) || !isPeak(frame, d)) return false;
  // The decoder had lost its references: what follows is no new shot.
  if (numberAt((frame - 1) & (SLOTS - 1), GRAY) >= MOST) return false;
  return !hasReturned(frame);
}

function isPeak(frame: i32, d: usize): bool {
  const before = frame > 1 ? distances(frame - 1, 1) : 0;
  const after = frame < newest ? distances(frame + 1, 1) : 0;
  for (let m = 0; m < MEASURES; m++) {
    if (m == COLOR_BINS || m == CHANGED_SHARE || m == QUIETEST_BAND) continue;
    const own = load<f32>(d + (m << 2));
    let other: f32 = 0;
    if (before) other = load<f32>(before + (m << 2));
    if (after) other = max(other, load<f32>(after + (m << 2)));
    if (own > PEAK * (other + load<f32>(FLOORS + (m << 2)))) return true;
  }
  return false;
}

/**
 * Whether one of the two frames that follow is nearly one of the two before. White lasts up to five frames and is a flash:
 * both its edges are ruled out, if the picture before it returns.
 */
function hasReturned(frame: i32): bool {
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

/**
 * Measures, for the frames that may be cuts, some of the distances that their decision needs, so that no single frame
 * costs much. Those of the newest frame come first: they may rule the candidate out.
 */
export function prepare(): void {
  for (let ahead = 1; ahead <= 5; ahead++) {
    const frame = newest - ahead;
    if (frame < 1 || !isCandidate(frame)) continue;
    if (ahead == 1) {
      between(0, frame, 2);
      between(0, frame, 3);
      between(0, frame + 1, 4);
    } else if (ahead == 2) {
      between(0, frame + 2, 2);
      between(0, frame + 2, 5);
      between(0, frame, 4);
      between(0, frame, 6);
    } else if (ahead == 3) {
      between(0, frame + 3, 4);
      between(0, frame + 3, 6);
      between(0, frame, 9);
      between(MOTION, frame, 1);
    } else if (ahead == 4) {
      between(0, frame, 12);
      between(0, frame, 18);
      between(0, frame, 25);
      between(MOTION, frame, 2);
    } else {
      between(0, frame + 5, 8);
      between(MOTION, frame + 1, 2);
      between(MOTION, frame - 1, 1);
    }
  }
}

function put(value: f32): void {
  store<u8>(ROW + filled++, <u8> <i32> min<f32>(255, max<f32>(0, value)));
}

function lesser(a: f32, b: f32): f32 {
  return isNaN(a) ? b : isNaN(b) ? a : min(a, b);
}

function greater(a: f32, b: f32): f32 {
  return isNaN(a) ? b : isNaN(b) ? a : max(a, b);
}

function known(a: f32): f32 {
  return isNaN(a) ? 0 : a;
}

/** Every second frame where frames come faster than 38 a second. */
function stepAt(frame: i32): i32 {
  const back = min(frame, 8);
  if (back == 0) return 1;
  const span = load<f64>(TIMES + ((frame & (SLOTS - 1)) << 3)) -
    load<f64>(TIMES + (((frame - back) & (SLOTS - 1)) << 3));
  return span < 26 * <f64> back ? 2 : 1;
}

/** Fills ROW for a frame that is at most 5 before the newest. */
export function measureFeatures(frame: i32): void {
  filled = 0;
  const step = stepAt(frame);
  for (let m = 0; m < MOTION + 2; m++) {
    const isMotion = m >= MOTION;
    const scale = load<f32>(SCALES + (m << 2));
    const floor = load<f32>(FLOORS + (m << 2));
    const reach = isMotion ? 1 : 4;
    let meanBefore: f32 = 0, meanAfter: f32 = 0, countBefore: f32 = 0, countAfter: f32 = 0;
    let joltBefore: f32 = f32.NaN, joltAfter: f32 = f32.NaN;
    for (let k = 0; k < reach; k++) {
      const b = between(m, frame - 1 - k * step, step);
      if (!isNaN(b)) {
        meanBefore += b;
        countBefore += 1;
        if (k < 2) joltBefore = greater(joltBefore, b);
      }
      const later = step - 1 + (k + 1) * step;
      const a = later <= 5 ? between(m, frame + later, step) : f32.NaN;
      if (!isNaN(a)) {
        meanAfter += a;
        countAfter += 1;
        if (k < 2) joltAfter = greater(joltAfter, a);
      }
    }
    meanBefore = countBefore > 0 ? meanBefore / countBefore : f32.NaN;
    meanAfter = countAfter > 0 ? meanAfter / countAfter : f32.NaN;
    const jolt = known(lesser(joltBefore, joltAfter)), jump = known(greater(joltBefore, joltAfter));
    const first = between(m, frame, 1);
    let across = between(m, frame + step - 1, step);
    if (isNaN(across)) across = first;
    put(255 * first / (first + scale));
    put(255 * jolt / (jolt + scale));
    put(255 * jump / (jump + scale));
    put(255 * across / (across + jolt + floor));
    put(255 * across / (across + jump + floor));
    let short: f32 = first;
    short = lesser(short, between(m, frame, 2));
    short = lesser(short, between(m, frame + 1, 2));
    if (isMotion) {
      put(255 * short / (short + scale));
      put(255 * short / (short + jolt + floor));
      continue;
    }
    const unrest = known(lesser(meanBefore, meanAfter)), bustle = known(greater(meanBefore, meanAfter));
    put(255 * unrest / (unrest + scale));
    put(255 * bustle / (bustle + scale));
    const near = greater(between(m, frame - 1, 1), between(m, frame + 1, 1));
    put(255 * first / (first + known(near) + floor));
    short = lesser(short, between(m, frame, 3));
    short = lesser(short, between(m, frame + 1, 3));
    short = lesser(short, between(m, frame + 1, 4));
    short = lesser(short, between(m, frame + 2, 3));
    short = lesser(short, between(m, frame + 2, 4));
    short = lesser(short, between(m, frame + 2, 5));
    put(255 * short / (short + scale));
    put(255 * short / (short + jolt + floor));
    const coAfter = known(
      greater(greater(between(m, frame + 1, 1), between(m, frame + 2, 1)), between(m, frame + 2, 2)),
    );
    const coBefore = known(
      greater(greater(between(m, frame - 1, 1), between(m, frame - 2, 1)), between(m, frame - 1, 2)),
    );
    put(255 * coAfter / (coAfter + scale));
    put(255 * coBefore / (coBefore + scale));
    let late = lesser(between(m, frame + 3, 4), between(m, frame + 3, 6));
    late = lesser(late, lesser(between(m, frame + 5, 6), between(m, frame + 5, 8)));
    if (isNaN(late)) late = short;
    put(255 * late / (late + scale));
    let back = lesser(between(m, frame, 4), between(m, frame, 6));
    back = lesser(back, lesser(between(m, frame, 9), between(m, frame, 12)));
    if (isNaN(back)) back = short;
    put(255 * back / (back + scale));
    let far = lesser(between(m, frame, 18), between(m, frame, 25));
    if (isNaN(far)) far = back;
    put(255 * far / (far + scale));
  }
  const now = frame & (SLOTS - 1), before = (frame - 1) & (SLOTS - 1);
  const soon = min(newest, frame + 2) & (SLOTS - 1), later = min(newest, frame + 3) & (SLOTS - 1);
  putBoth(numberAt(now, STRUCTURE_MEAN), numberAt(before, STRUCTURE_MEAN), 255);
  putBoth(numberAt(now, WHITE), numberAt(before, WHITE), 255);
  putBoth(numberAt(now, BLACK), numberAt(before, BLACK), 255);
  putBoth(numberAt(now, TEXTURE) / (4800 * 12 * 64), numberAt(before, TEXTURE) / (4800 * 12 * 64), 1020);
  put(128 + 127 * (numberAt(now, WHITE) - numberAt(before, WHITE)));
  put(128 + 127 * (numberAt(now, WHITE) - numberAt(soon, WHITE)));
  put(255 * numberAt(before, GRAY));
  put(255 * numberAt(now, GRAY));
  put(255 * numberAt(before, LOST));
  put(255 * numberAt(now, LOST));
  put(255 * numberAt(before, PALE));
  put(255 * numberAt(now, PALE));
  put(128 + 127 * (numberAt(now, LUMA_MEAN) - numberAt(before, LUMA_MEAN)));
  put(128 + 127 * (numberAt(later, LUMA_MEAN) - numberAt(before, LUMA_MEAN)));
  put(255 * abs(numberAt(now, LUMA_MEAN) - numberAt(before, LUMA_MEAN)));
  const back = min(frame, 8);
  const span = load<f64>(TIMES + (now << 3)) - load<f64>(TIMES + (((frame - back) & (SLOTS - 1)) << 3));
  put(2 * <f32> span / <f32> back);
}

function putBoth(a: f32, b: f32, scale: f32): void {
  put(scale * min(a, b));
  put(scale * max(a, b));
}
