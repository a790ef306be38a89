/** Reduces a frame to the small pictures, profiles and histograms that frames are compared by. */

import { coverBars } from "./bars";
import { measureBlocks } from "./blocks";
import {
  BINS,
  BINS_BYTES,
  BLACK,
  CELLS,
  CELLS_BYTES,
  CHROMA,
  CHROMA_BYTES,
  FINE,
  FINE_BYTES,
  GRAY,
  LOST,
  LUMA_MEAN,
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
  WHITE,
} from "./layout";
import { addDifferences, sum4 } from "../lanes";

const PLANE_ROW_BYTES: i32 = 320;
const CHROMA_ROW_BYTES: i32 = 160;
const U_PLANE: i32 = 320 * 180;
const V_PLANE: i32 = 320 * 180 + 160 * 90;
const COLOR_CELLS: usize = memory.data(2 * 30 * 40 * 2, 16);
/** 18 rows of 16 bins: one empty row above and below. */
const RAW_BINS: usize = memory.data(18 * 16 * 2 + 32, 16);
const RAW_LUMA: usize = memory.data(34 * 2 + 32, 16);
const ACROSS: usize = memory.data(40 * 2 * 4, 16);

/** Reduces the 320x180 yuv420p frame at `frame` (any alignment) into `slot`. */
export function reduceFrame(frame: usize, slot: i32): void {
  const fine = FINE + slot * FINE_BYTES;
  const middle = MIDDLE + slot * MIDDLE_BYTES;
  reduceFine(frame, fine);
  reduceMiddle(fine, middle);
  reduceCells(fine, CELLS + slot * CELLS_BYTES);
  reduceChroma(frame, CHROMA + slot * CHROMA_BYTES);
  setNumber(slot, GRAY, grayShare(CELLS + slot * CELLS_BYTES, CHROMA + slot * CHROMA_BYTES));
  setNumber(slot, SHARE, coverBars(frame, CELLS + slot * CELLS_BYTES));
  measureProfiles(fine, PROFILES + slot * PROFILE_BYTES, slot);
  measureTexture(fine, MEANS + slot * MEANS_BYTES, slot);
  measureLosses(middle, CHROMA + slot * CHROMA_BYTES, slot);
  measureBins(middle, BINS + slot * BINS_BYTES, slot);
  measureBlocks(slot);
}

/** 320x180 samples -> 80x60 sums of 4x3. */
function reduceFine(plane: usize, fine: usize): void {
  for (let row = 0; row < 60; row++) {
    const rows = plane + row * 3 * PLANE_ROW_BYTES;
    for (let x = 0; x < 10; x++) {
      v128.store(fine + row * 160 + x * 16, sums4x3(rows + x * 32, PLANE_ROW_BYTES));
    }
  }
}

/** 3 rows of 32 samples -> 8 sums of 4x3. */
function sums4x3(at: usize, stride: i32): v128 {
  const ones = i16x8.splat(1);
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
function pairs(left: v128, right: v128): v128 {
  const ones = i16x8.splat(1);
  return i16x8.narrow_i32x4_s(i32x4.dot_i16x8_s(left, ones), i32x4.dot_i16x8_s(right, ones));
}

function reduceMiddle(fine: usize, middle: usize): void {
  for (let row = 0; row < 30; row++) {
    const rows = fine + row * 320;
    for (let x = 0; x < 5; x++) {
      const left = i16x8.add(v128.load(rows + x * 32), v128.load(rows + x * 32 + 160));
      const right = i16x8.add(v128.load(rows + x * 32 + 16), v128.load(rows + x * 32 + 176));
      v128.store(middle + row * 80 + x * 16, pairs(left, right));
    }
  }
}

function reduceCells(fine: usize, cells: usize): void {
  for (let row = 0; row < 20; row++) {
    const rows = fine + row * 480;
    for (let x = 0; x < 5; x++) {
      const at = rows + x * 32;
      const left = i16x8.add(i16x8.add(v128.load(at), v128.load(at + 160)), v128.load(at + 320));
      const right = i16x8.add(i16x8.add(v128.load(at + 16), v128.load(at + 176)), v128.load(at + 336));
      const cell = i16x8.sub(i16x8.shr_u(pairs(left, right), 3), i16x8.splat(1152));
      v128.store(cells + row * ROW_BYTES + x * 16, cell);
    }
  }
}

/** U and V: 160x90 samples -> 40x30 sums of 4x3 in COLOR_CELLS -> 20x10 sums of 8x9 / 8. */
function reduceChroma(frame: usize, chroma: usize): void {
  for (let plane = 0; plane < 2; plane++) {
    const samples = frame + (plane == 0 ? U_PLANE : V_PLANE);
    const cells = COLOR_CELLS + plane * 2400;
    for (let row = 0; row < 30; row++) {
      const rows = samples + row * 3 * CHROMA_ROW_BYTES;
      for (let x = 0; x < 5; x++) {
        v128.store(cells + row * 80 + x * 16, sums4x3(rows + x * 32, CHROMA_ROW_BYTES));
      }
    }
    for (let row = 0; row < 10; row++) {
      const rows = cells + row * 240;
      for (let x = 0; x < 5; x++) {
        const at = rows + x * 16;
        const column = i16x8.add(i16x8.add(v128.load(at), v128.load(at + 80)), v128.load(at + 160));
        const sums = i32x4.dot_i16x8_s(column, i16x8.splat(1));
        const narrow = i16x8.shr_u(i16x8.narrow_i32x4_s(sums, sums), 3);
        v128.store64_lane(chroma + plane * 400 + row * 40 + x * 8, narrow, 0);
      }
    }
  }
}

/** Mean luma (8 a level) of each column in three bands of 20 fine rows, and of each row in four bands of 20 columns. */
function measureProfiles(fine: usize, profiles: usize, slot: i32): void {
  let contrast = 0;
  for (let band = 0; band < 3; band++) {
    const at = fine + band * 20 * 160;
    let sum = 0;
    for (let x = 0; x < 10; x++) {
      // 20 x 3060 = 61200 fits a u16
      let column = v128.load(at + x * 16);
      for (let row = 1; row < 20; row++) column = i16x8.add(column, v128.load(at + row * 160 + x * 16));
      column = i16x8.shr_u(column, 5);
      v128.store(profiles + band * 160 + x * 16, column);
      sum += sum4(i32x4.extadd_pairwise_i16x8_s(column));
    }
    const mean = i16x8.splat(<i16> (sum / 80));
    let spread = i32x4.splat(0);
    for (let x = 0; x < 10; x++) {
      spread = addDifferences(spread, v128.load(profiles + band * 160 + x * 16), mean);
    }
    contrast += sum4(spread);
  }
  for (let row = 0; row < 60; row++) {
    const at = fine + row * 160;
    for (let band = 0; band < 4; band++) {
      const from = at + band * 40;
      let sum = i32x4.extadd_pairwise_i16x8_s(i16x8.add(v128.load(from), v128.load(from + 16)));
      const rest = v128.load64_zero(from + 32);
      sum = i32x4.add(sum, i32x4.extadd_pairwise_i16x8_s(rest));
      store<i16>(profiles + 480 + band * 128 + row * 2, <i16> (sum4(sum) >> 5));
    }
  }
  setNumber(slot, PROFILE_CONTRAST, <f32> contrast / 240);
}

/** The means of blocks of 8x6 fine cells, and how much the cells differ from them. */
function measureTexture(fine: usize, means: usize, slot: i32): void {
  let spread = i32x4.splat(0);
  for (let row = 0; row < 10; row++) {
    for (let x = 0; x < 10; x++) {
      const at = fine + row * 960 + x * 16;
      let column = i16x8.add(v128.load(at), v128.load(at + 160));
      column = i16x8.add(column, i16x8.add(v128.load(at + 320), v128.load(at + 480)));
      column = i16x8.add(column, i16x8.add(v128.load(at + 640), v128.load(at + 800)));
      const mean = sum4(i32x4.extadd_pairwise_i16x8_s(column)) / 48;
      store<i16>(means + (row * 10 + x) * 2, <i16> mean);
      const center = i16x8.splat(<i16> mean);
      for (let line = 0; line < 6; line++) {
        spread = addDifferences(spread, v128.load(at + line * 160), center);
      }
    }
  }
  setNumber(slot, TEXTURE, <f32> sum4(spread));
}

function measureBins(middle: usize, bins: usize, slot: i32): void {
  memory.fill(RAW_LUMA, 0, 68);
  memory.fill(RAW_BINS, 0, 18 * 32 + 32);
  let sum = 0;
  for (let i = 0; i < 1200; i++) {
    const value = <i32> load<i16>(middle + (i << 1));
    sum += value;
    const at = RAW_LUMA + 2 + ((value / 384) << 1);
    store<u16>(at, load<u16>(at) + 1);
  }
  for (let i = 0; i < 1200; i += 2) {
    const u = min(15, max(0, (<i32> load<i16>(COLOR_CELLS + (i << 1)) - 768) / 96));
    const v = min(15, max(0, (<i32> load<i16>(COLOR_CELLS + 2400 + (i << 1)) - 768) / 96));
    const at = RAW_BINS + 32 + (((u << 4) + v) << 1);
    store<u16>(at, load<u16>(at) + 1);
  }
  for (let i = 0; i < 4; i++) {
    const at = RAW_LUMA + i * 16;
    const mid = v128.load(at + 2);
    const smooth = i16x8.add(i16x8.add(v128.load(at), v128.load(at + 4)), i16x8.add(mid, mid));
    v128.store(bins + i * 16, smooth);
  }
  for (let i = 0; i < 32; i++) {
    const at = RAW_BINS + 32 + i * 16;
    const mid = v128.load(at);
    let smooth = i16x8.add(i16x8.add(mid, mid), i16x8.add(v128.load(at - 32), v128.load(at + 32)));
    smooth = i16x8.add(smooth, i16x8.add(v128.load(at - 2), v128.load(at + 2)));
    v128.store(bins + 64 + i * 16, smooth);
  }
  const raw = RAW_LUMA + 2;
  setNumber(slot, LUMA_MEAN, <f32> sum / (1200 * 48 * 255));
  setNumber(
    slot,
    WHITE,
    <f32> (<i32> load<u16>(raw + 58) + <i32> load<u16>(raw + 60) + <i32> load<u16>(raw + 62)) / 1200,
  );
  setNumber(
    slot,
    BLACK,
    <f32> (<i32> load<u16>(raw) + <i32> load<u16>(raw + 2) + <i32> load<u16>(raw + 4)) / 1200,
  );
}

/**
 * LOST: the share of the chroma cells that are green without anything else, or gray, as decoders leave them. PALE: of those
 * that are nearly gray, as where only changes were drawn on it.
 */
function measureLosses(middle: usize, chroma: usize, slot: i32): void {
  let lost = 0, pale = 0;
  for (let row = 0; row < 10; row++) {
    for (let column = 0; column < 20; column++) {
      const at = chroma + (row * 20 + column) * 2;
      const u = <i32> load<i16>(at) - 1152, v = <i32> load<i16>(at + 400) - 1152;
      // One of the six cells that lie there.
      const luma = (<i32> load<i16>(middle + (row * 3 + 1) * 80 + column * 4)) - 6144;
      const isGray = abs(u) <= 18 && abs(v) <= 18 && abs(luma) <= 144;
      if (isGray || u < -900 && v < -900) lost++;
      if (abs(u) <= 63 && abs(v) <= 63 && abs(luma) <= 960) pale++;
    }
  }
  setNumber(slot, LOST, <f32> lost / 200);
  setNumber(slot, PALE, <f32> pale / 200);
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
  return sum4(i32x4.extadd_pairwise_i16x8_s(counts));
}
