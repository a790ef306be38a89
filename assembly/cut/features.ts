/** What is known of a frame that may be the first of a shot: numbers from 0 to 255, from its distances to its
 * neighbours.
 */

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
import { allBetween, between, MOTION, newest, NOTHING, pairsOnlyKnown } from "./pairs";

const TIMES: usize = memory.data(32 * 8, 16);

/**
 * The distance at which a number is 128, and what is added to the denominators of ratios, for each measure.
 */
const SCALES = memory.data<f32>([0.3, 0.15, 0.2, 0.15, 0.2, 0.3, 0.3, 0.4, 0.1, 0.6, 0.6, 1], 16);
export const FLOORS = memory.data<f32>(
  [0.05, 0.02, 0.02, 0.01, 0.03, 0.05, 0.02, 0.05, 0.02, 0.05, 0.05, 1],
  16,
);

/** How many numbers of motion are in a row. */
const MOTION_FEATURES: i32 = 2 * 7;
export const FEATURES: i32 = 9 * 15 + 2 * 7 + 20;
/** With room for three measures that there are not, as measures are taken four at a time. */
export const ROW: usize = memory.data(12 * 15, 16);
/** Of numbers that are known by their bounds only, the least; the largest are in ROW then. */
export const LEAST_ROW: usize = memory.data(9 * 15 + 2 * 7 + 20, 16);
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

/** Numbers of a measure that is not of motion. */
const NUMBERS: i32 = 15;
/** Addresses of the distances that `putFour` asks for. */
const ASKED: usize = memory.data(36 * 4, 16);
const BEFORE: i32 = 0, AFTER: i32 = 4, SIDE: i32 = 4;
const FIRST: i32 = 8, ACROSS: i32 = 9, NEAR: i32 = 10, SHORT: i32 = 12, CO_AFTER: i32 = 20;
const CO_BEFORE: i32 = 23, LATE: i32 = 26, BACK: i32 = 30, FAR: i32 = 34;
/** From the frame: the later one of a pair, and the lag to the earlier; from NEAR on. */
// deno-fmt-ignore
const PAIRS: usize = memory.data<i8>([
  -1, 1, 1, 1,
  0, 2, 1, 2, 0, 3, 1, 3, 1, 4, 2, 3, 2, 4, 2, 5,
  1, 1, 2, 1, 2, 2,
  -1, 1, -2, 1, -1, 2,
  3, 4, 3, 6, 5, 6, 5, 8,
  0, 4, 0, 6, 0, 9, 0, 12,
  0, 18, 0, 25,
]);
const PAIRS_END: i32 = 36;

/**
 * Fills ROW for a frame that is at most 5 before the newest. With `isNear` frames that are far away count as
 * near, and nothing is said to be motion.
 */
export function measureFeatures(frame: i32, isNear: bool = false): void {
  const step = stepAt(frame);
  for (let k = 0; k < SIDE; k++) {
    ask(BEFORE + k, allBetween(frame - 1 - k * step, step));
    const later = step - 1 + (k + 1) * step;
    ask(AFTER + k, later <= 5 ? allBetween(frame + later, step) : NOTHING);
  }
  ask(FIRST, allBetween(frame, 1));
  ask(ACROSS, allBetween(frame + step - 1, step));
  for (let at = NEAR; at < PAIRS_END; at++) {
    const pair = PAIRS + ((at - NEAR) << 1);
    const isLeftOut = isNear && at >= LATE;
    ask(at, isLeftOut ? NOTHING : allBetween(frame + load<i8>(pair), load<i8>(pair, 1)));
  }
  for (let four = 0; four < 3; four++) putFour(four);
  filled = MOTION * NUMBERS;
  if (isNear) {
    memory.fill(ROW + filled, 255, MOTION_FEATURES);
    filled += MOTION_FEATURES;
  } else {
    putMotion(frame, step, MOTION);
    putMotion(frame, step, MOTION + 1);
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

/** The numbers of a measure of motion. */
function putMotion(frame: i32, step: i32, m: i32): void {
  const scale = load<f32>(SCALES + (m << 2)), floor = load<f32>(FLOORS + (m << 2));
  const before = between(m, frame - 1, step);
  const after = 2 * step - 1 <= 5 ? between(m, frame + 2 * step - 1, step) : f32.NaN;
  const jolt = known(lesser(before, after)), jump = known(greater(before, after));
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
  put(255 * short / (short + scale));
  put(255 * short / (short + jolt + floor));
}

/**
 * Fills LEAST_ROW and ROW with the bounds of the near numbers of a frame, whatever those pairs say that were
 * not measured: the shortest distance can only become shorter by them, the coherence only larger. A bound is
 * one wider than what was computed, as that is rounded.
 */
export function boundFeatures(frame: i32): void {
  pairsOnlyKnown(true);
  measureFeatures(frame, true);
  pairsOnlyKnown(false);
  memory.copy(LEAST_ROW, ROW, FEATURES);
  for (let at = 0; at < MOTION * NUMBERS; at += NUMBERS) {
    openBelow(at + 8);
    openBelow(at + 9);
    openAbove(at + 10);
    openAbove(at + 11);
    openBelow(at + 12);
    openBelow(at + 13);
    openBelow(at + 14);
  }
}

function openBelow(number: i32): void {
  store<u8>(LEAST_ROW + number, 0);
  store<u8>(ROW + number, <u8> min<i32>(255, <i32> load<u8>(ROW + number) + 1));
}

function openAbove(number: i32): void {
  store<u8>(LEAST_ROW + number, <u8> max<i32>(0, <i32> load<u8>(ROW + number) - 1));
  store<u8>(ROW + number, 255);
}

function ask(index: i32, distances: usize): void {
  store<usize>(ASKED + (index << 2), distances);
}

/** Four measures of a pair; NaN where it is not known. */
function fourOf(index: i32, four: i32): v128 {
  return v128.load(load<usize>(ASKED + (index << 2)) + (four << 4));
}

/** The numbers of the measures from 4 x `four` on. */
function putFour(four: i32): void {
  const scale = v128.load(SCALES + (four << 4)), floor = v128.load(FLOORS + (four << 4));
  const one = f32x4.splat(1), none = f32x4.splat(f32.NaN);
  let meanBefore = f32x4.splat(0), meanAfter = meanBefore, countBefore = meanBefore, countAfter = meanBefore;
  let joltBefore = none, joltAfter = none;
  for (let k = 0; k < SIDE; k++) {
    const b = fourOf(BEFORE + k, four), a = fourOf(AFTER + k, four);
    meanBefore = f32x4.add(meanBefore, knownOf(b));
    countBefore = f32x4.add(countBefore, v128.and(one, f32x4.eq(b, b)));
    meanAfter = f32x4.add(meanAfter, knownOf(a));
    countAfter = f32x4.add(countAfter, v128.and(one, f32x4.eq(a, a)));
    if (k > 1) continue;
    joltBefore = greaterOf(joltBefore, b);
    joltAfter = greaterOf(joltAfter, a);
  }
  // NaN where there are none.
  meanBefore = f32x4.div(meanBefore, countBefore);
  meanAfter = f32x4.div(meanAfter, countAfter);
  const jolt = knownOf(lesserOf(joltBefore, joltAfter)), jump = knownOf(greaterOf(joltBefore, joltAfter));
  const first = fourOf(FIRST, four);
  const across = orElse(fourOf(ACROSS, four), first);
  putPart(four, 0, first, scale);
  putPart(four, 1, jolt, scale);
  putPart(four, 2, jump, scale);
  putPart(four, 3, across, jolt, floor);
  putPart(four, 4, across, jump, floor);
  putPart(four, 5, knownOf(lesserOf(meanBefore, meanAfter)), scale);
  putPart(four, 6, knownOf(greaterOf(meanBefore, meanAfter)), scale);
  const near = knownOf(greaterOf(fourOf(NEAR, four), fourOf(NEAR + 1, four)));
  putPart(four, 7, first, near, floor);
  let short = first;
  for (let at = SHORT; at < CO_AFTER; at++) short = lesserOf(short, fourOf(at, four));
  putPart(four, 8, short, scale);
  putPart(four, 9, short, jolt, floor);
  putPart(four, 10, knownOf(largestOf(CO_AFTER, CO_BEFORE, four)), scale);
  putPart(four, 11, knownOf(largestOf(CO_BEFORE, LATE, four)), scale);
  const late = orElse(leastOf(LATE, BACK, four), short), back = orElse(leastOf(BACK, FAR, four), short);
  putPart(four, 12, late, scale);
  putPart(four, 13, back, scale);
  putPart(four, 14, orElse(leastOf(FAR, PAIRS_END, four), back), scale);
}

function leastOf(from: i32, end: i32, four: i32): v128 {
  let least = fourOf(from, four);
  for (let at = from + 1; at < end; at++) least = lesserOf(least, fourOf(at, four));
  return least;
}

function largestOf(from: i32, end: i32, four: i32): v128 {
  let most = fourOf(from, four);
  for (let at = from + 1; at < end; at++) most = greaterOf(most, fourOf(at, four));
  return most;
}

/** The number of four measures: a value as a part of itself and of what is beside it. */
function putPart(four: i32, number: i32, value: v128, beside: v128, more: v128 = f32x4.splat(0)): void {
  const part = f32x4.div(
    f32x4.mul(f32x4.splat(255), value),
    f32x4.add(f32x4.add(value, beside), more),
  );
  const bytes = i32x4.trunc_sat_f32x4_s(f32x4.min(f32x4.splat(255), f32x4.max(f32x4.splat(0), part)));
  const at = ROW + (four << 2) * NUMBERS + number;
  v128.store8_lane(at, bytes, 0);
  v128.store8_lane(at, bytes, 4, NUMBERS);
  v128.store8_lane(at, bytes, 8, 2 * NUMBERS);
  v128.store8_lane(at, bytes, 12, 3 * NUMBERS);
}

/** The lesser one of what is known of two. */
function lesserOf(a: v128, b: v128): v128 {
  return v128.bitselect(f32x4.pmin(a, b), b, f32x4.eq(a, a));
}

function greaterOf(a: v128, b: v128): v128 {
  return v128.bitselect(f32x4.pmax(a, b), b, f32x4.eq(a, a));
}

/** 0 where it is not known. */
function knownOf(a: v128): v128 {
  return v128.and(a, f32x4.eq(a, a));
}

function orElse(a: v128, b: v128): v128 {
  return v128.bitselect(a, b, f32x4.eq(a, a));
}

function putBoth(a: f32, b: f32, scale: f32): void {
  put(scale * min(a, b));
  put(scale * max(a, b));
}
