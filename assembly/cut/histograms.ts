/** The histograms of luma and of colour of a frame, smoothed, and what they say alone: brightness, white,
 * black.
 */

import {
  BINS,
  BINS_BYTES,
  BLACK,
  COLOR_CELLS,
  LUMA_MEAN,
  MIDDLE,
  MIDDLE_BYTES,
  setNumber,
  WHITE,
} from "./layout";
import { ONE_WORDS, sum4 } from "../lanes";

/** What `thirds` multiplies with; where the bins of colour begin; and the last of them. */
// deno-fmt-ignore
const THIRDS: usize = memory.data<i16>([
  43, 43, 43, 43, 43, 43, 43, 43,
  768, 768, 768, 768, 768, 768, 768, 768,
  15, 15, 15, 15, 15, 15, 15, 15,
], 16);
/** The bin of each cell: of 1200 cells of luma, or of 600 of colour. */
const PLACES: usize = memory.data(1200, 16);
/** Counts of luma, eight histograms that add up: equal cells in a row would wait for each other in one. */
const RAW_LUMA: usize = memory.data(8 * 32 * 2, 16);
/** An empty bin, 32 bins, an empty bin, and what whole vectors read beyond. */
const LUMA: usize = memory.data(34 * 2 + 32, 16);
/** Four histograms of 16x16 bins that add up. */
const RAW_COLOR: usize = memory.data(4 * 256 * 2, 16);
/** 18 rows of 16 bins: an empty row above and below. */
const COLOR: usize = memory.data(18 * 16 * 2 + 32, 16);

/** Fills the bins of the slot from its MIDDLE and from COLOR_CELLS. */
export function measureBins(slot: i32): void {
  const bins = BINS + slot * BINS_BYTES;
  const sum = placeLuma(MIDDLE + slot * MIDDLE_BYTES);
  setNumber(slot, LUMA_MEAN, <f32> sum / (1200 * 48 * 255));
  countLuma(slot);
  for (let at = 0; at < 64; at += 16) v128.store(bins + at, smoothed(LUMA + 2 + at));
  placeColor();
  countColor();
  for (let at = 0; at < 512; at += 16) {
    const own = COLOR + 32 + at;
    const aboveAndBelow = i16x8.add(v128.load(own - 32), v128.load(own + 32));
    v128.store(bins + 64 + at, i16x8.add(smoothed(own), aboveAndBelow));
  }
}

/** Each bin twice, and its neighbours to the left and to the right. */
function smoothed(at: usize): v128 {
  const own = v128.load(at);
  return i16x8.add(i16x8.add(v128.load(at - 2), v128.load(at + 2)), i16x8.add(own, own));
}

/** Bins of eight levels, 384 in the units of the cells. Returns the sum of the cells. */
function placeLuma(middle: usize): i32 {
  const factor = v128.load(THIRDS), ones = v128.load(ONE_WORDS);
  let sums = i32x4.splat(0);
  for (let at = 0; at < 1200; at += 16) {
    const left = v128.load(middle + (at << 1));
    const right = v128.load(middle + (at << 1), 16);
    // Two cells of at most 12240 fit an i16.
    sums = i32x4.add(sums, i32x4.dot_i16x8_s(i16x8.add(left, right), ones));
    v128.store(PLACES + at, i8x16.narrow_i16x8_u(thirds(left, 7, factor), thirds(right, 7, factor)));
  }
  return sum4(sums);
}

/** Lanes / (3 << shift), rounded down: exact for quotients up to 42. */
function thirds(lanes: v128, shift: i32, factor: v128): v128 {
  return i16x8.shr_u(i16x8.mul(i16x8.shr_u(lanes, shift), factor), 7);
}

function countLuma(slot: i32): void {
  memory.fill(RAW_LUMA, 0, 512);
  for (let cell: usize = 0; cell < 1200; cell += 8) {
    const places = load<u64>(PLACES + cell);
    count(RAW_LUMA, <usize> (places & 255));
    count(RAW_LUMA + 64, <usize> ((places >> 8) & 255));
    count(RAW_LUMA + 128, <usize> ((places >> 16) & 255));
    count(RAW_LUMA + 192, <usize> ((places >> 24) & 255));
    count(RAW_LUMA + 256, <usize> ((places >> 32) & 255));
    count(RAW_LUMA + 320, <usize> ((places >> 40) & 255));
    count(RAW_LUMA + 384, <usize> ((places >> 48) & 255));
    count(RAW_LUMA + 448, <usize> (places >> 56));
  }
  for (let at = 0; at < 64; at += 16) {
    let sum = v128.load(RAW_LUMA + at);
    for (let other = 64; other < 512; other += 64) sum = i16x8.add(sum, v128.load(RAW_LUMA + at + other));
    v128.store(LUMA + 2 + at, sum);
  }
  setNumber(slot, WHITE, <f32> (lumaBin(29) + lumaBin(30) + lumaBin(31)) / 1200);
  setNumber(slot, BLACK, <f32> (lumaBin(0) + lumaBin(1) + lumaBin(2)) / 1200);
}

function count(bins: usize, bin: usize): void {
  const at = bins + (bin << 1);
  store<u16>(at, load<u16>(at) + 1);
}

function lumaBin(bin: usize): i32 {
  return load<u16>(LUMA + 2 + (bin << 1));
}

/**
 * Every second cell of U and of V, in bins of eight levels from 64 to 192, 96 and 768 in the units of the
 * cells.
 */
function placeColor(): void {
  const factor = v128.load(THIRDS), floor = v128.load(THIRDS, 16), last = v128.load(THIRDS, 32);
  for (let at = 0; at < 600; at += 8) {
    const cells = COLOR_CELLS + (at << 2);
    const u = everySecond(v128.load(cells), v128.load(cells, 16));
    const v = everySecond(v128.load(cells, 2400), v128.load(cells, 2416));
    const places = v128.or(
      i16x8.shl(colorBins(u, floor, factor, last), 4),
      colorBins(v, floor, factor, last),
    );
    v128.store64_lane(PLACES + at, i8x16.narrow_i16x8_u(places, places), 0);
  }
}

function everySecond(left: v128, right: v128): v128 {
  return v128.shuffle<i16>(left, right, 0, 2, 4, 6, 8, 10, 12, 14);
}

function colorBins(cells: v128, floor: v128, factor: v128, last: v128): v128 {
  return i16x8.min_s(thirds(i16x8.sub_sat_u(cells, floor), 5, factor), last);
}

function countColor(): void {
  memory.fill(RAW_COLOR, 0, 2048);
  for (let cell: usize = 0; cell < 600; cell += 4) {
    const places = load<u32>(PLACES + cell);
    count(RAW_COLOR, places & 255);
    count(RAW_COLOR + 512, (places >> 8) & 255);
    count(RAW_COLOR + 1024, (places >> 16) & 255);
    count(RAW_COLOR + 1536, places >> 24);
  }
  for (let at = 0; at < 512; at += 16) {
    const upper = i16x8.add(v128.load(RAW_COLOR + at), v128.load(RAW_COLOR + at, 512));
    const lower = i16x8.add(v128.load(RAW_COLOR + at, 1024), v128.load(RAW_COLOR + at, 1536));
    v128.store(COLOR + 32 + at, i16x8.add(upper, lower));
  }
}
