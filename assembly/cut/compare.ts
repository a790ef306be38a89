/** The distances of two frames, each in its own sense: what was measured once is kept. */

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
import { addDifferences, sum4 } from "../lanes";

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

export function distance(measure: i32, later: i32, earlier: i32): f32 {
  if (measure == BLOCKS) return 1 - similarity(later, earlier);
  const share = max(numberAt(later, SHARE), numberAt(earlier, SHARE));
  if (measure == COLOR) return colorDistance(later, earlier) / share;
  if (measure == LUMA) return lumaDistance(later, earlier);
  if (measure == FINE) return fineDistance(later, earlier) / share;
  if (measure == LUMA_BINS) return min<f32>(1, lumaBinDistance(later, earlier) / share);
  if (measure == COLOR_BINS) return min<f32>(1, colorBinDistance(later, earlier) / share);
  if (measure == CHANGED_SHARE) return changedShare(later, earlier);
  if (measure == QUIETEST_BAND) return quietestBand(later, earlier);
  return textureDistance(later, earlier);
}

/** Mean difference of U plus V, in [0,1]: 24 levels in a cell count as 1. */
function colorDistance(later: i32, earlier: i32): f32 {
  const a = CHROMA + later * CHROMA_BYTES;
  const b = CHROMA + earlier * CHROMA_BYTES;
  const cap = i16x8.splat(24 * 9);
  let sums = i32x4.splat(0);
  for (let at = 0; at < 400; at += 16) {
    const u = i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at)));
    const v = i16x8.abs(i16x8.sub(v128.load(a + at + 400), v128.load(b + at + 400)));
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_s(i16x8.min_s(i16x8.add(u, v), cap)));
  }
  return <f32> sum4(sums) / (200 * 24 * 9);
}

/** Mean difference of luma, in [0,1]: 48 levels in a cell count as 1. */
function lumaDistance(later: i32, earlier: i32): f32 {
  const a = CELLS + later * CELLS_BYTES;
  const b = CELLS + earlier * CELLS_BYTES;
  const cap = i16x8.splat(48 * 9);
  let sums = i32x4.splat(0);
  for (let at = 0; at < CELLS_BYTES; at += 16) {
    const d = i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at)));
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_s(i16x8.min_s(d, cap)));
  }
  return <f32> sum4(sums) / (800 * 48 * 9);
}

/** The same in that of four bands, from top to bottom, that differs least: damage and insets change only a part. */
function quietestBand(later: i32, earlier: i32): f32 {
  const a = CELLS + later * CELLS_BYTES;
  const b = CELLS + earlier * CELLS_BYTES;
  const cap = i16x8.splat(48 * 9);
  let least = 0x7fffffff;
  for (let band = 0; band < CELLS_BYTES; band += CELLS_BYTES / 4) {
    let sums = i32x4.splat(0);
    for (let at = band; at < band + CELLS_BYTES / 4; at += 16) {
      const d = i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at)));
      sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_s(i16x8.min_s(d, cap)));
    }
    least = min(least, sum4(sums));
  }
  return <f32> least / (200 * 48 * 9);
}

/** Mean difference of the fine cells, in levels / 64. */
function fineDistance(later: i32, earlier: i32): f32 {
  const a = FINE_CELLS + later * FINE_BYTES;
  const b = FINE_CELLS + earlier * FINE_BYTES;
  let sums = i32x4.splat(0);
  for (let at = 0; at < FINE_BYTES; at += 16) {
    sums = addDifferences(sums, v128.load(a + at), v128.load(b + at));
  }
  return <f32> sum4(sums) / (4800 * 12 * 64);
}

function lumaBinDistance(later: i32, earlier: i32): f32 {
  const a = BINS + later * BINS_BYTES;
  const b = BINS + earlier * BINS_BYTES;
  let sums = i32x4.splat(0);
  for (let at = 0; at < 64; at += 16) sums = addDifferences(sums, v128.load(a + at), v128.load(b + at));
  return <f32> sum4(sums) / (2 * 4 * 1200);
}

function colorBinDistance(later: i32, earlier: i32): f32 {
  const a = BINS + 64 + later * BINS_BYTES;
  const b = BINS + 64 + earlier * BINS_BYTES;
  let sums = i32x4.splat(0);
  for (let at = 0; at < 512; at += 16) sums = addDifferences(sums, v128.load(a + at), v128.load(b + at));
  return <f32> sum4(sums) / (2 * 6 * 600);
}

/** The share of the cells whose luma differs by more than 10 levels. */
function changedShare(later: i32, earlier: i32): f32 {
  const a = CELLS + later * CELLS_BYTES;
  const b = CELLS + earlier * CELLS_BYTES;
  const least = i16x8.splat(90);
  let counts = i16x8.splat(0);
  for (let at = 0; at < CELLS_BYTES; at += 16) {
    counts = i16x8.sub(counts, i16x8.gt_s(i16x8.abs(i16x8.sub(v128.load(a + at), v128.load(b + at))), least));
  }
  return <f32> sum4(i32x4.extadd_pairwise_i16x8_s(counts)) / 800;
}

/** How much the fine texture differs, of what there is of it: 8x6 cells at a time, without their mean. */
function textureDistance(later: i32, earlier: i32): f32 {
  const a = FINE_CELLS + later * FINE_BYTES;
  const b = FINE_CELLS + earlier * FINE_BYTES;
  let sums = i32x4.splat(0);
  for (let row = 0; row < 10; row++) {
    for (let x = 0; x < 10; x++) {
      const mean = (row * 10 + x) << 1;
      const step = i16x8.splat(
        load<i16>(MEANS + later * MEANS_BYTES + mean) - load<i16>(MEANS + earlier * MEANS_BYTES + mean),
      );
      const at = row * 960 + x * 16;
      for (let line = at; line < at + 960; line += 160) {
        sums = addDifferences(sums, i16x8.sub(v128.load(a + line), v128.load(b + line)), step);
      }
    }
  }
  return <f32> sum4(sums) / (numberAt(later, TEXTURE) + numberAt(earlier, TEXTURE) + <f32> (4800 * 12));
}
