/** What faults of single frames are decided on: measures of the newest frame, alone and beside the three
 * before it.
 */

import { measureBorders, resetBorders } from "./artifact/block_borders";
import { measureCombing, resetCombing } from "./artifact/combing";
import { measureEdges } from "./artifact/edges";
import { measureAt, put } from "./artifact/measures";
import { measureNovelty } from "./artifact/novelty";
import {
  flatBlocks,
  grownShare,
  measureTexture,
  newLineStep,
  spikesAcross,
  spikesDown,
} from "./artifact/texture";
import { apart, EIGHTS, ONE_WORDS, sum4, sum8 } from "./lanes";

export { ARTIFACT_MEASURES } from "./artifact/measures";

/*
 * A fault is decided in src/media/detection/faults/artifact_detector.ts from 38 numbers a frame. See
 * docs/detection/faults.md. The frame is reduced to small planes, which are kept for the newest four frames
 * (frame i in slot i % 4):
 *
 *   FINE    80x45 means of 4x4 luma samples        to look for a part of the picture in the frame before
 *   COARSE  40x22 means of 2x2 of those; and 40x22 means of 4x4 samples of U and of V: whole pictures are compared on these
 *
 * Texture is in artifact/texture.ts, straight edges in artifact/edges.ts, which parts of the picture are new
 * in artifact/novelty.ts, and combing, which only lines that were not averaged show, in artifact/combing.ts.
 *
 * All sums are exact in integers; a measure is one division away from a sum, but for the correlation.
 */

const SLOTS: i32 = 4;
const FINE_BYTES: i32 = 80 * 45;
const COARSE_BYTES: i32 = 896;
const COARSE_CELLS: i32 = 880;
const BLOCK_COLUMNS: i32 = 20;
const BLOCK_ROWS: i32 = 9;
const COARSE_COLUMNS: i32 = 40;
const CHROMA_WIDTH: i32 = 160;
const LUMA_SAMPLES: i32 = 320 * 180;
/** The rows are 320 samples; U and V begin after the planes before them. */
const U_AT: usize = 57_600;
const V_AT: usize = 72_000;

/**
 * Squared luma levels that are added to both variances of a correlation, so that noise does not correlate.
 */
const CORRELATION_FLOOR: f32 = 2;
const TWOS: usize = memory.data<i16>([2, 2, 2, 2, 2, 2, 2, 2], 16);
/** Where a block is looked for: fine cells to the right and down, in pairs. */
// deno-fmt-ignore
const PLACES: usize = memory.data<i8>([
  -1, -1, 0, -1, 1, -1, -1, 0, 0, 0, 1, 0, -1, 1, 0, 1, 1, 1, -2, 0, 2, 0, 0, -2, 0, 2,
]);
/**
 * A block of luma is looked for in the frame before only when the whole picture moved by more levels than
 * this.
 */
const SEARCH_FROM: f32 = 4;

/** Decoder gray, how near to it a cell must be, the most of green in any plane, and one. */
// deno-fmt-ignore
const LEVELS: usize = memory.data<u8>([
  128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
  3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
  23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23,
  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
], 16);
const FINE: usize = memory.data(4 * 3600, 16);
const COARSE: usize = memory.data(3 * 4 * 896, 16);
const SUM: usize = memory.data(4 * 4, 16);
const SQUARES: usize = memory.data(4 * 4, 16);

let frames: i32 = 0;

/** Removes all frames. */
export function artifactReset(): void {
  resetBorders();
  frames = 0;
  resetCombing();
}

/** Measures the next frame, 320x180 yuv420p at any alignment, and its lines, see `measureCombing`. */
export function artifactPush(frame: usize, lines: usize): void {
  measureCombing(lines);
  const slot = frames & (SLOTS - 1);
  measureTexture(frame, slot & 1, FINE + slot * FINE_BYTES);
  halve(FINE + slot * FINE_BYTES, coarseOf(0, slot));
  reduceFour(frame + U_AT, coarseOf(1, slot));
  reduceFour(frame + V_AT, coarseOf(2, slot));
  measureAlone(slot);
  const known = min(frames, SLOTS - 1);
  for (let lag = 1; lag < SLOTS; lag++) compare(slot, lag, lag <= known);
  compareTexture(slot, (slot + SLOTS - (frames > 0 ? 1 : 0)) & (SLOTS - 1));
  measureEdges(slot & 1, frames == 0);
  measureNovelty(slot & 1, fineBefore(0), fineBefore(1), fineBefore(3));
  measureBorders(frame);
  frames++;
}

/** The fine plane of the frame that came `lag` frames before the newest, or of the first one. */
function fineBefore(lag: i32): usize {
  return FINE + ((frames - min(frames, lag)) & (SLOTS - 1)) * FINE_BYTES;
}

function coarseOf(plane: i32, slot: i32): usize {
  return COARSE + (plane * SLOTS + slot) * COARSE_BYTES;
}

/** Rounded means of 4x4 samples of a plane of chroma, whose last two rows are left out. */
function reduceFour(plane: usize, out: usize): void {
  const ones = v128.load(ONE_WORDS), half = v128.load(EIGHTS);
  for (let row = 0; row < 22; row++) {
    let at = plane + (row * 4 * CHROMA_WIDTH);
    const until = out + COARSE_COLUMNS;
    for (; out < until; out += 8) {
      const left = fourRows(v128.load(at), v128.load(at, 160), v128.load(at, 320), v128.load(at, 480));
      const right = fourRows(
        v128.load(at, 16),
        v128.load(at, 176),
        v128.load(at, 336),
        v128.load(at, 496),
      );
      const sums = i16x8.narrow_i32x4_u(i32x4.dot_i16x8_s(left, ones), i32x4.dot_i16x8_s(right, ones));
      const means = i16x8.shr_u(i16x8.add(sums, half), 4);
      v128.store64_lane(out, i8x16.narrow_i16x8_u(means, means), 0);
      at += 32;
    }
  }
}

/** Sums of 2x4 samples. */
function fourRows(first: v128, second: v128, third: v128, fourth: v128): v128 {
  const upper = i16x8.add(i16x8.extadd_pairwise_i8x16_u(first), i16x8.extadd_pairwise_i8x16_u(second));
  const lower = i16x8.add(i16x8.extadd_pairwise_i8x16_u(third), i16x8.extadd_pairwise_i8x16_u(fourth));
  return i16x8.add(upper, lower);
}

/** Rounded means of 2x2 samples of an 80x45 plane, whose last row is left out. */
function halve(fine: usize, out: usize): void {
  const half = v128.load(TWOS);
  for (let row = 0; row < 22; row++) {
    for (let vector = 0; vector < 5; vector++) {
      const at = fine + row * 160 + (vector << 4);
      let sums = i16x8.extadd_pairwise_i8x16_u(v128.load(at));
      sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(v128.load(at, 80)));
      const means = i16x8.shr_u(i16x8.add(sums, half), 2);
      store<u64>(out + row * 40 + (vector << 3), i64x2.extract_lane(i8x16.narrow_i16x8_u(means, means), 0));
    }
  }
}

/** Measures 0 to 6. */
function measureAlone(slot: i32): void {
  const luma = coarseOf(0, slot), u = coarseOf(1, slot), v = coarseOf(2, slot);
  const middle = v128.load(LEVELS), near = v128.load(LEVELS, 16), low = v128.load(LEVELS, 32);
  const zero = i8x16.splat(0);
  const one = v128.load(LEVELS, 48);
  let sums = i32x4.splat(0);
  let squares = i32x4.splat(0);
  let gray = i16x8.splat(0);
  let green = i16x8.splat(0);
  for (let at = 0; at < COARSE_CELLS; at += 16) {
    const y = v128.load(luma + at), cb = v128.load(u + at), cr = v128.load(v + at);
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(y)));
    const lower = i16x8.extend_low_i8x16_u(y), upper = i16x8.extend_high_i8x16_u(y);
    squares = i32x4.add(squares, i32x4.add(i32x4.dot_i16x8_s(lower, lower), i32x4.dot_i16x8_s(upper, upper)));
    const off = i8x16.max_u(apart(y, middle), i8x16.max_u(apart(cb, middle), apart(cr, middle)));
    const isGray = v128.and(i8x16.eq(i8x16.sub_sat_u(off, near), zero), one);
    gray = i16x8.add(gray, i16x8.extadd_pairwise_i8x16_u(isGray));
    const highest = i8x16.max_u(y, i8x16.max_u(cb, cr));
    const isGreen = v128.and(i8x16.eq(i8x16.sub_sat_u(highest, low), zero), one);
    green = i16x8.add(green, i16x8.extadd_pairwise_i8x16_u(isGreen));
  }
  const sum = sum4(sums), square = sum4(squares);
  store<i32>(SUM + (slot << 2), sum);
  store<i32>(SQUARES + (slot << 2), square);
  put(0, <f32> spikesAcross / <f32> (LUMA_SAMPLES / 2));
  put(1, <f32> spikesDown / <f32> LUMA_SAMPLES);
  put(2, <f32> sum / <f32> COARSE_CELLS);
  put(3, sqrt<f32>(variance(sum, square) / <f32> COARSE_CELLS));
  put(4, <f32> sum8(gray) / <f32> COARSE_CELLS);
  put(5, <f32> sum8(green) / <f32> COARSE_CELLS);
  put(6, <f32> flatBlocks(slot & 1) / <f32> (BLOCK_COLUMNS * BLOCK_ROWS));
}

/** Times the number of cells. */
function variance(sum: i32, squares: i32): f32 {
  const whole = <f64> squares - <f64> sum * <f64> sum / <f64> COARSE_CELLS;
  return <f32> max<f64>(0, whole);
}

/**
 * Measures 7 to 9 (luma) and 10 to 12 (chroma): mean differences to the frame `lag` before; 13: the
 * correlation with the last.
 */
function compare(slot: i32, lag: i32, isKnown: bool): void {
  const other = (slot + SLOTS - lag) & (SLOTS - 1);
  let luma = i32x4.splat(0);
  let chroma = i32x4.splat(0);
  let dots = i32x4.splat(0);
  for (let at = 0; isKnown && at < COARSE_CELLS; at += 16) {
    const a = v128.load(coarseOf(0, slot) + at), b = v128.load(coarseOf(0, other) + at);
    luma = i32x4.add(luma, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(apart(a, b))));
    const u = apart(v128.load(coarseOf(1, slot) + at), v128.load(coarseOf(1, other) + at));
    const v = apart(v128.load(coarseOf(2, slot) + at), v128.load(coarseOf(2, other) + at));
    const both = i16x8.add(i16x8.extadd_pairwise_i8x16_u(u), i16x8.extadd_pairwise_i8x16_u(v));
    chroma = i32x4.add(chroma, i32x4.extadd_pairwise_i16x8_u(both));
    if (lag > 1) continue;
    dots = i32x4.add(dots, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(a), i16x8.extend_low_i8x16_u(b)));
    dots = i32x4.add(dots, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(a), i16x8.extend_high_i8x16_u(b)));
  }
  put(6 + lag, <f32> sum4(luma) / <f32> COARSE_CELLS);
  put(9 + lag, <f32> sum4(chroma) / <f32> COARSE_CELLS);
  if (lag > 1) return;
  const sum = load<i32>(SUM + (slot << 2)), sumBefore = load<i32>(SUM + (other << 2));
  const covariance = <f32> (<f64> sum4(dots) - <f64> sum * <f64> sumBefore / <f64> COARSE_CELLS);
  const floor: f32 = CORRELATION_FLOOR * <f32> COARSE_CELLS;
  const own = variance(sum, load<i32>(SQUARES + (slot << 2))) + floor;
  const before = variance(sumBefore, load<i32>(SQUARES + (other << 2))) + floor;
  put(13, isKnown ? (covariance + floor) / sqrt<f32>(own * before) : 1);
}

/** Measures 14 to 16. */
function compareTexture(slot: i32, other: i32): void {
  put(14, grownShare(slot & 1, other & 1));
  put(15, newLineStep(slot & 1, other & 1));
  const moved = measureAt(7);
  put(16, moved > SEARCH_FROM ? unexplained(FINE + slot * FINE_BYTES, FINE + other * FINE_BYTES) : moved);
}

/**
 * Mean difference of luma after each block of 4x5 fine cells was looked for in the frame before, at its own
 * place and at twelve around it: 4 samples in every direction, and 8 along rows and columns.
 */
function unexplained(fine: usize, before: usize): f32 {
  const ones = v128.load(ONE_WORDS);
  let total = i32x4.splat(0);
  for (let row = 0; row < BLOCK_ROWS; row++) {
    for (let column = 0; column < BLOCK_COLUMNS; column += 4) {
      const own = fine + row * 400 + (column << 2);
      const first = v128.load(own), second = v128.load(own, 80), third = v128.load(own, 160);
      const fourth = v128.load(own, 240), fifth = v128.load(own, 320);
      let least = i32x4.splat(i32.MAX_VALUE);
      for (let place = PLACES; place < PLACES + 26; place += 2) {
        const x = (column << 2) + load<i8>(place), y = row * 5 + load<i8>(place, 1);
        if (x < 0 || x > 64 || y < 0 || y > 40) continue;
        const other = before + y * 80 + x;
        let sums = i16x8.extadd_pairwise_i8x16_u(apart(first, v128.load(other)));
        sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(apart(second, v128.load(other, 80))));
        sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(apart(third, v128.load(other, 160))));
        sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(apart(fourth, v128.load(other, 240))));
        sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(apart(fifth, v128.load(other, 320))));
        least = i32x4.min_s(least, i32x4.dot_i16x8_s(sums, ones));
      }
      total = i32x4.add(total, least);
    }
  }
  return <f32> sum4(total) / <f32> FINE_BYTES;
}
