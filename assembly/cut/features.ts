/** What is known of a frame that may be the first of a shot: numbers from 0 to 255, from its distances to its neighbours. */

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
import { between, MOTION, newest } from "./pairs";

const TIMES: usize = memory.data(32 * 8, 16);

/** The distance at which a number is 128, and what is added to the denominators of ratios, for each measure. */
const SCALES = memory.data<f32>([0.3, 0.15, 0.2, 0.15, 0.2, 0.3, 0.3, 0.4, 0.1, 0.6, 0.6]);
export const FLOORS = memory.data<f32>([0.05, 0.02, 0.02, 0.01, 0.03, 0.05, 0.02, 0.05, 0.02, 0.05, 0.05]);

/** Where the numbers of motion are in a row, and how many. */
export const MOTION_FEATURES_AT: i32 = 9 * 15;
export const MOTION_FEATURES: i32 = 2 * 7;
export const FEATURES: i32 = 9 * 15 + 2 * 7 + 20;
export const ROW: usize = memory.data(9 * 15 + 2 * 7 + 20, 16);
let filled: usize = 0;

/** The time of a frame, which must be known for the eight frames before one that is measured. */
export function setTime(frame: i32, ptsMs: f64): void {
  store<f64>(TIMES + ((frame & (SLOTS - 1)) << 3), ptsMs);
}

/** Every second frame where frames come faster than 38 a second. */
export function stepAt(frame: i32): i32 {
  const back = min(frame, 8);
  if (back == 0) return 1;
  const span = load<f64>(TIMES + ((frame & (SLOTS - 1)) << 3)) -
    load<f64>(TIMES + (((frame - back) & (SLOTS - 1)) << 3));
  return span < 26 * <f64> back ? 2 : 1;
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
