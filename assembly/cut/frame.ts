/** Reduces a frame to the small pictures, profiles and histograms that frames are compared by. */

import { coverBars } from "./bars";
import { measureBlocks } from "./blocks";
import { measureBins } from "./histograms";
import {
  CELLS,
  CELLS_BYTES,
  CHROMA,
  CHROMA_BYTES,
  COLOR_CELLS,
  FINE,
  FINE_BYTES,
  GRAY,
  LOST,
  MEANS,
  MEANS_BYTES,
  MIDDLE,
  MIDDLE_BYTES,
  PALE,
  PROFILE_BYTES,
  PROFILE_CONTRAST,
  PROFILES,
  ROW_BYTES,
  setNumber,
  SHARE,
  TEXTURE,
} from "./layout";
import { ONE_WORDS, sum4, sum8, sums4 } from "../lanes";

const CHROMA_ROW_BYTES: i32 = 160;
/** The middle of the units of CELLS, and what takes the lower and the upper four of eight words. */
const CENTERS: usize = memory.data<i16>([1152, 1152, 1152, 1152, 1152, 1152, 1152, 1152], 16);
const HALVES: usize = memory.data<i16>([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1], 16);
const U_PLANE: i32 = 320 * 180;
const V_PLANE: i32 = 320 * 180 + 160 * 90;

/**
 * Reduces the 320x180 yuv420p frame at `frame` (any alignment) into `slot`, which has its fine cells already.
 */
export function reduceFrame(frame: usize, slot: i32): void {
  const fine = FINE + slot * FINE_BYTES;
  const middle = MIDDLE + slot * MIDDLE_BYTES;
  reduceMiddle(fine, middle);
  reduceCells(fine, CELLS + slot * CELLS_BYTES);
  reduceChroma(frame, CHROMA + slot * CHROMA_BYTES);
  setNumber(slot, GRAY, grayShare(CELLS + slot * CELLS_BYTES, CHROMA + slot * CHROMA_BYTES));
  setNumber(slot, SHARE, coverBars(frame, CELLS + slot * CELLS_BYTES));
  measureProfiles(fine, PROFILES + slot * PROFILE_BYTES, slot);
  measureTexture(fine, MEANS + slot * MEANS_BYTES, slot);
  measureLosses(middle, CHROMA + slot * CHROMA_BYTES, slot);
  measureBins(slot);
  measureBlocks(slot);
}

/** 3 rows of 32 samples -> 8 sums of 4x3. */
function sums4x3(at: usize, stride: i32, ones: v128): v128 {
  return i16x8.narrow_i32x4_s(
    i32x4.dot_i16x8_s(sums2x3(at, stride), ones),
    i32x4.dot_i16x8_s(sums2x3(at + 16, stride), ones),
  );
}

function sums2x3(at: usize, stride: i32): v128 {
  const upper = i16x8.add(
    i16x8.extadd_pairwise_i8x16_u(v128.load(at)),
    i16x8.extadd_pairwise_i8x16_u(v128.load(at + stride)),
  );
  return i16x8.add(upper, i16x8.extadd_pairwise_i8x16_u(v128.load(at + 2 * stride)));
}

/** Sums of two neighbours: 16 lanes -> 8. */
function pairs(left: v128, right: v128, ones: v128): v128 {
  return i16x8.narrow_i32x4_s(i32x4.dot_i16x8_s(left, ones), i32x4.dot_i16x8_s(right, ones));
}

function reduceMiddle(fine: usize, middle: usize): void {
  const ones = v128.load(ONE_WORDS);
  for (let row = 0; row < 30; row++) {
    const rows = fine + row * 320;
    for (let x = 0; x < 5; x++) {
      const left = i16x8.add(v128.load(rows + x * 32), v128.load(rows + x * 32 + 160));
      const right = i16x8.add(v128.load(rows + x * 32 + 16), v128.load(rows + x * 32 + 176));
      v128.store(middle + row * 80 + x * 16, pairs(left, right, ones));
    }
  }
}

function reduceCells(fine: usize, cells: usize): void {
  const ones = v128.load(ONE_WORDS), center = v128.load(CENTERS);
  for (let row = 0; row < 20; row++) {
    const rows = fine + row * 480;
    for (let x = 0; x < 5; x++) {
      const at = rows + x * 32;
      const left = i16x8.add(i16x8.add(v128.load(at), v128.load(at + 160)), v128.load(at + 320));
      const right = i16x8.add(i16x8.add(v128.load(at + 16), v128.load(at + 176)), v128.load(at + 336));
      const cell = i16x8.sub(i16x8.shr_u(pairs(left, right, ones), 3), center);
      v128.store(cells + row * ROW_BYTES + x * 16, cell);
    }
  }
}

/** U and V: 160x90 samples -> 40x30 sums of 4x3 in COLOR_CELLS -> 20x10 sums of 8x9 / 8. */
function reduceChroma(frame: usize, chroma: usize): void {
  const ones = v128.load(ONE_WORDS);
  for (let plane = 0; plane < 2; plane++) {
    const samples = frame + (plane == 0 ? U_PLANE : V_PLANE);
    const cells = COLOR_CELLS + plane * 2400;
    for (let row = 0; row < 30; row++) {
      const rows = samples + row * 3 * CHROMA_ROW_BYTES;
      for (let x = 0; x < 5; x++) {
        v128.store(cells + row * 80 + x * 16, sums4x3(rows + x * 32, CHROMA_ROW_BYTES, ones));
      }
    }
    for (let row = 0; row < 10; row++) {
      const rows = cells + row * 240;
      for (let x = 0; x < 5; x++) {
        const at = rows + x * 16;
        const column = i16x8.add(i16x8.add(v128.load(at), v128.load(at + 80)), v128.load(at + 160));
        const sums = i32x4.dot_i16x8_s(column, ones);
        const narrow = i16x8.shr_u(i16x8.narrow_i32x4_s(sums, sums), 3);
        v128.store64_lane(chroma + plane * 400 + row * 40 + x * 8, narrow, 0);
      }
    }
  }
}

/**
 * Mean luma (8 a level) of each column in three bands of 20 fine rows, and of each row in four bands of 20
 * columns.
 */
function measureProfiles(fine: usize, profiles: usize, slot: i32): void {
  let contrast = 0;
  for (let band = 0; band < 3; band++) contrast += columnProfile(fine + band * 3200, profiles + band * 160);
  const ones = v128.load(ONE_WORDS), low = v128.load(HALVES), high = v128.load(HALVES, 16);
  for (let row = 0; row < 60; row++) {
    rowProfile(fine + row * 160, profiles + 480 + row * 2, ones, low, high);
  }
  setNumber(slot, PROFILE_CONTRAST, <f32> contrast / 240);
}

/** Returns how much the means of the 80 columns differ from their mean. */
function columnProfile(fine: usize, profile: usize): i32 {
  const ones = v128.load(ONE_WORDS);
  let sums = i32x4.splat(0);
  for (let x = 0; x < 160; x += 16) {
    // 20 x 3060 = 61200 fits a u16
    let column = v128.load(fine + x);
    for (let row = 160; row < 3200; row += 160) column = i16x8.add(column, v128.load(fine + row + x));
    column = i16x8.shr_u(column, 5);
    v128.store(profile + x, column);
    sums = i32x4.add(sums, i32x4.dot_i16x8_s(column, ones));
  }
  const mean = i16x8.splat(<i16> (sum4(sums) / 80));
  let spread = i16x8.splat(0);
  for (let x = 0; x < 160; x += 16) {
    spread = i16x8.add(spread, i16x8.abs(i16x8.sub(v128.load(profile + x), mean)));
  }
  return sum8(spread);
}

/** A band has two and a half vectors. */
function rowProfile(fine: usize, profile: usize, ones: v128, low: v128, high: v128): void {
  const third = v128.load(fine, 32), eighth = v128.load(fine, 112);
  const first = i32x4.add(
    i32x4.dot_i16x8_s(i16x8.add(v128.load(fine), v128.load(fine, 16)), ones),
    i32x4.dot_i16x8_s(third, low),
  );
  const second = i32x4.add(
    i32x4.dot_i16x8_s(i16x8.add(v128.load(fine, 48), v128.load(fine, 64)), ones),
    i32x4.dot_i16x8_s(third, high),
  );
  const next = i32x4.add(
    i32x4.dot_i16x8_s(i16x8.add(v128.load(fine, 80), v128.load(fine, 96)), ones),
    i32x4.dot_i16x8_s(eighth, low),
  );
  const last = i32x4.add(
    i32x4.dot_i16x8_s(i16x8.add(v128.load(fine, 128), v128.load(fine, 144)), ones),
    i32x4.dot_i16x8_s(eighth, high),
  );
  const means = i32x4.shr_u(sums4(first, second, next, last), 5);
  v128.store16_lane(profile, means, 0);
  v128.store16_lane(profile, means, 2, 128);
  v128.store16_lane(profile, means, 4, 256);
  v128.store16_lane(profile, means, 6, 384);
}

/** The means of blocks of 8x6 fine cells, and how much the cells differ from them. */
function measureTexture(fine: usize, means: usize, slot: i32): void {
  const ones = v128.load(ONE_WORDS);
  let spread = i32x4.splat(0);
  for (let row = 0; row < 10; row++) {
    for (let x = 0; x < 10; x++) {
      const at = fine + row * 960 + x * 16;
      const l0 = v128.load(at), l1 = v128.load(at, 160), l2 = v128.load(at, 320);
      const l3 = v128.load(at, 480), l4 = v128.load(at, 640), l5 = v128.load(at, 800);
      const upper = i16x8.add(i16x8.add(l0, l1), l2), lower = i16x8.add(i16x8.add(l3, l4), l5);
      const mean = sum8(i16x8.add(upper, lower)) / 48;
      store<i16>(means + (row * 10 + x) * 2, <i16> mean);
      const center = i16x8.splat(<i16> mean);
      // Six differences of at most 3060 fit an i16.
      let apart = i16x8.add(i16x8.abs(i16x8.sub(l0, center)), i16x8.abs(i16x8.sub(l1, center)));
      apart = i16x8.add(apart, i16x8.abs(i16x8.sub(l2, center)));
      apart = i16x8.add(apart, i16x8.abs(i16x8.sub(l3, center)));
      apart = i16x8.add(apart, i16x8.abs(i16x8.sub(l4, center)));
      apart = i16x8.add(apart, i16x8.abs(i16x8.sub(l5, center)));
      spread = i32x4.add(spread, i32x4.dot_i16x8_s(apart, ones));
    }
  }
  setNumber(slot, TEXTURE, <f32> sum4(spread));
}

/**
 * LOST: the share of the chroma cells that are green without anything else, or gray, as decoders leave them.
 * PALE: of those that are nearly gray, as where only changes were drawn on it.
 */
function measureLosses(middle: usize, chroma: usize, slot: i32): void {
  let lost = i16x8.splat(0), pale = i16x8.splat(0);
  for (let row = 0; row < 10; row++) {
    for (let column = 0; column < 20; column += 8) {
      // The last four columns of a row are half a vector.
      const taken = column == 16 ? i16x8(-1, -1, -1, -1, 0, 0, 0, 0) : i16x8.splat(-1);
      const at = chroma + (row * 20 + column) * 2;
      const u = i16x8.sub(v128.load(at), i16x8.splat(1152));
      const v = i16x8.sub(v128.load(at, 400), i16x8.splat(1152));
      // One of the six cells that lie there.
      const cells = middle + (row * 3 + 1) * 80 + column * 4;
      const even = v128.shuffle<i16>(v128.load(cells), v128.load(cells, 16), 0, 2, 4, 6, 8, 10, 12, 14);
      const luma = i16x8.abs(i16x8.sub(even, i16x8.splat(6144)));
      const color = i16x8.max_s(i16x8.abs(u), i16x8.abs(v));
      const isGray = v128.and(i16x8.le_s(color, i16x8.splat(18)), i16x8.le_s(luma, i16x8.splat(144)));
      const isGreen = i16x8.lt_s(i16x8.max_s(u, v), i16x8.splat(-900));
      const isPale = v128.and(i16x8.le_s(color, i16x8.splat(63)), i16x8.le_s(luma, i16x8.splat(960)));
      // A true lane is -1.
      lost = i16x8.sub(lost, v128.and(taken, v128.or(isGray, isGreen)));
      pale = i16x8.sub(pale, v128.and(taken, isPale));
    }
  }
  setNumber(slot, LOST, <f32> sum8(lost) / 200);
  setNumber(slot, PALE, <f32> sum8(pale) / 200);
}

/** The share of the picture that is decoder gray: luma and chroma within two levels of 128. */
function grayShare(cells: usize, chroma: usize): f32 {
  return min(
    <f32> cellsNear(cells, CELLS_BYTES, 0) / 800,
    <f32> cellsNear(chroma, CHROMA_BYTES, 1152) / 400,
  );
}

function cellsNear(cells: usize, bytes: i32, gray: i16): i32 {
  let counts = i16x8.splat(0);
  const center = i16x8.splat(gray);
  const reach = i16x8.splat(18);
  for (let at = 0; at < bytes; at += 16) {
    // A true lane is -1.
    const apart = i16x8.abs(i16x8.sub(v128.load(cells + at), center));
    counts = i16x8.sub(counts, i16x8.le_s(apart, reach));
  }
  return sum8(counts);
}
