/** The distances of two frames, each in its own sense. */

import { similarity } from "./blocks";
import {
  BINS,
  BINS_BYTES,
  CELLS,
  CELLS_BYTES,
  CHROMA,
  CHROMA_BYTES,
  FINE as FINE_CELLS,
  FINE_BYTES,
  MEANS,
  MEANS_BYTES,
  numberAt,
  SHARE,
  TEXTURE,
} from "./layout";
import { sum4, sum8 } from "../lanes";

export const MEASURES: i32 = 9;
export const BLOCKS: i32 = 0;
export const COLOR: i32 = 1;
export const LUMA: i32 = 2;
export const FINE: i32 = 3;
export const LUMA_BINS: i32 = 4;
export const COLOR_BINS: i32 = 5;
export const CHANGED_SHARE: i32 = 6;
export const FINE_TEXTURE: i32 = 7;
export const QUIETEST_BAND: i32 = 8;

/** Writes the distances of the frames in two slots to `out`, MEASURES x f32. */
export function measureDistances(out: usize, later: i32, earlier: i32): void {
  const share = max(numberAt(later, SHARE), numberAt(earlier, SHARE));
  put(out, BLOCKS, 1 - similarity(later, earlier));
  put(out, COLOR, colorDistance(later, earlier) / share);
  put(out, LUMA_BINS, min<f32>(1, lumaBinDistance(later, earlier) / share));
  put(out, COLOR_BINS, min<f32>(1, colorBinDistance(later, earlier) / share));
  compareCells(out, later, earlier);
  compareFine(out, later, earlier, share);
}

function put(out: usize, measure: i32, value: f32): void {
  store<f32>(out + (measure << 2), value);
}

/** Mean difference of U plus V, in [0,1]: 24 levels in a cell count as 1. */
function colorDistance(later: i32, earlier: i32): f32 {
  const a = CHROMA + later * CHROMA_BYTES;
  const b = CHROMA + earlier * CHROMA_BYTES;
  const cap = i16x8.splat(24 * 9);
  // 25 vectors of at most 216 fit.
  let sums = i16x8.splat(0);
  for (let at = 0; at < 400; at += 16) {
    const u = i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at)));
    const v = i16x8.abs(i16x8.sub(v128.load(a + at + 400), v128.load(b + at + 400)));
    sums = i16x8.add(sums, i16x8.min_s(i16x8.add(u, v), cap));
  }
  return <f32> sum8(sums) / (200 * 24 * 9);
}

/**
 * LUMA: the mean difference in [0,1], 48 levels in a cell count as 1. QUIETEST_BAND: the same in that of four
 * bands, from top to bottom, that differs least: damage and insets change only a part. CHANGED_SHARE: of the
 * cells, those that differ by more than 10 levels.
 */
function compareCells(out: usize, later: i32, earlier: i32): void {
  const a = CELLS + later * CELLS_BYTES;
  const b = CELLS + earlier * CELLS_BYTES;
  const cap = i16x8.splat(48 * 9);
  const changed = i16x8.splat(90);
  let counts = i16x8.splat(0);
  let whole = 0;
  let least = 0x7fffffff;
  for (let band = 0; band < CELLS_BYTES; band += CELLS_BYTES / 4) {
    // 25 vectors of at most 432 fit.
    let sums = i16x8.splat(0);
    for (let at = band; at < band + CELLS_BYTES / 4; at += 16) {
      const d = i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at)));
      sums = i16x8.add(sums, i16x8.min_s(d, cap));
      // A true lane is -1.
      counts = i16x8.sub(counts, i16x8.gt_s(d, changed));
    }
    const sum = sum8(sums);
    whole += sum;
    least = min(least, sum);
  }
  put(out, LUMA, <f32> whole / (800 * 48 * 9));
  put(out, QUIETEST_BAND, <f32> least / (200 * 48 * 9));
  put(out, CHANGED_SHARE, <f32> sum8(counts) / 800);
}

/**
 * FINE: the mean difference of the fine cells, in levels / 64. FINE_TEXTURE: how much the fine texture
 * differs, of what there is of it: 8x6 cells at a time, without their mean.
 */
function compareFine(out: usize, later: i32, earlier: i32, share: f32): void {
  const a = FINE_CELLS + later * FINE_BYTES;
  const b = FINE_CELLS + earlier * FINE_BYTES;
  const meansOfA = MEANS + later * MEANS_BYTES;
  const meansOfB = MEANS + earlier * MEANS_BYTES;
  let fine = i32x4.splat(0);
  let texture = i32x4.splat(0);
  for (let row = 0; row < 10; row++) {
    for (let x = 0; x < 10; x++) {
      const mean = (row * 10 + x) << 1;
      const step = i16x8.splat(load<i16>(meansOfA + mean) - load<i16>(meansOfB + mean));
      const at = row * 960 + x * 16;
      const own = a + row * 960 + x * 16, other = b + row * 960 + x * 16;
      const d0 = i16x8.sub(v128.load(own), v128.load(other));
      const d1 = i16x8.sub(v128.load(own, 160), v128.load(other, 160));
      const d2 = i16x8.sub(v128.load(own, 320), v128.load(other, 320));
      const d3 = i16x8.sub(v128.load(own, 480), v128.load(other, 480));
      const d4 = i16x8.sub(v128.load(own, 640), v128.load(other, 640));
      const d5 = i16x8.sub(v128.load(own, 800), v128.load(other, 800));
      // Six differences of at most 3060, and of twice as much, fit a u16.
      const whole = sumOfSix(
        i16x8.abs(d0),
        i16x8.abs(d1),
        i16x8.abs(d2),
        i16x8.abs(d3),
        i16x8.abs(d4),
        i16x8.abs(d5),
      );
      const rest = sumOfSix(
        i16x8.abs(i16x8.sub(d0, step)),
        i16x8.abs(i16x8.sub(d1, step)),
        i16x8.abs(i16x8.sub(d2, step)),
        i16x8.abs(i16x8.sub(d3, step)),
        i16x8.abs(i16x8.sub(d4, step)),
        i16x8.abs(i16x8.sub(d5, step)),
      );
      fine = i32x4.add(fine, i32x4.extadd_pairwise_i16x8_u(whole));
      texture = i32x4.add(texture, i32x4.extadd_pairwise_i16x8_u(rest));
    }
  }
  put(out, FINE, <f32> sum4(fine) / (4800 * 12 * 64) / share);
  const ofBoth = numberAt(later, TEXTURE) + numberAt(earlier, TEXTURE) + <f32> (4800 * 12);
  put(out, FINE_TEXTURE, <f32> sum4(texture) / ofBoth);
}

function sumOfSix(a: v128, b: v128, c: v128, d: v128, e: v128, f: v128): v128 {
  return i16x8.add(i16x8.add(i16x8.add(a, b), i16x8.add(c, d)), i16x8.add(e, f));
}

function lumaBinDistance(later: i32, earlier: i32): f32 {
  return <f32> binDistance(BINS + later * BINS_BYTES, BINS + earlier * BINS_BYTES, 64) / (2 * 4 * 1200);
}

function colorBinDistance(later: i32, earlier: i32): f32 {
  return <f32> binDistance(BINS + 64 + later * BINS_BYTES, BINS + 64 + earlier * BINS_BYTES, 512) /
    (2 * 6 * 600);
}

/** The sum of the differences of all bins, which fits an i16, as the bins of a histogram have a fixed sum. */
function binDistance(a: usize, b: usize, bytes: i32): i32 {
  let sums = i16x8.splat(0);
  for (let at = 0; at < bytes; at += 16) {
    sums = i16x8.add(sums, i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at))));
  }
  return sum8(sums);
}
