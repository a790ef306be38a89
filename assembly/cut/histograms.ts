/** The histograms of luma and of colour of a frame, smoothed, and what they say alone: brightness, white, black. */

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
import { sum4 } from "../lanes";

/** The bin of each cell: of 1200 cells of luma, or of 600 of colour. */
const PLACES: usize = memory.data(1200, 16);
/** Counts of luma, four histograms that add up: equal cells in a row would wait for each other in one. */
const RAW_LUMA: usize = memory.data(4 * 32 * 2, 16);
/** An empty bin, 32 bins, an empty bin, and what whole vectors read beyond. */
const LUMA: usize = memory.data(34 * 2 + 32, 16);
/** Two histograms of 16x16 bins that add up. */
const RAW_COLOR: usize = memory.data(2 * 256 * 2, 16);
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
  let sums = i32x4.splat(0);
  for (let at = 0; at < 1200; at += 16) {
    const left = v128.load(middle + (at << 1));
    const right = v128.load(middle + (at << 1), 16);
    // Two cells of at most 12240 fit an i16.
    sums = i32x4.add(sums, i32x4.dot_i16x8_s(i16x8.add(left, right), i16x8.splat(1)));
    v128.store(PLACES + at, i8x16.narrow_i16x8_u(thirds(left, 7), thirds(right, 7)));
  }
  return sum4(sums);
}

/** Lanes / (3 << shift), rounded down: exact for quotients up to 42. */
function thirds(lanes: v128, shift: i32): v128 {
  return i16x8.shr_u(i16x8.mul(i16x8.shr_u(lanes, shift), i16x8.splat(43)), 7);
}

function countLuma(slot: i32): void {
  memory.fill(RAW_LUMA, 0, 256);
  for (let cell: usize = 0; cell < 1200; cell += 4) {
    count(RAW_LUMA, load<u8>(PLACES + cell));
    count(RAW_LUMA + 64, load<u8>(PLACES + cell, 1));
    count(RAW_LUMA + 128, load<u8>(PLACES + cell, 2));
    count(RAW_LUMA + 192, load<u8>(PLACES + cell, 3));
  }
  for (let at = 0; at < 64; at += 16) {
    const upper = i16x8.add(v128.load(RAW_LUMA + at), v128.load(RAW_LUMA + at, 64));
    const lower = i16x8.add(v128.load(RAW_LUMA + at, 128), v128.load(RAW_LUMA + at, 192));
    v128.store(LUMA + 2 + at, i16x8.add(upper, lower));
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

/** Every second cell of U and of V, in bins of eight levels from 64 to 192, 96 and 768 in the units of the cells. */
function placeColor(): void {
  for (let at = 0; at < 600; at += 8) {
    const cells = COLOR_CELLS + (at << 2);
    const left = colorPlaces(v128.load(cells), v128.load(cells, 2400));
    const right = colorPlaces(v128.load(cells, 16), v128.load(cells, 2416));
    const places = i16x8.narrow_i32x4_u(left, right);
    v128.store64_lane(PLACES + at, i8x16.narrow_i16x8_u(places, places), 0);
  }
}

function colorPlaces(u: v128, v: v128): v128 {
  const places = v128.or(i16x8.shl(colorBins(u), 4), colorBins(v));
  return v128.and(places, i32x4.splat(0xffff));
}

function colorBins(cells: v128): v128 {
  const above = i16x8.max_s(i16x8.sub(cells, i16x8.splat(768)), i16x8.splat(0));
  return i16x8.min_s(thirds(above, 5), i16x8.splat(15));
}

function countColor(): void {
  memory.fill(RAW_COLOR, 0, 1024);
  for (let cell: usize = 0; cell < 600; cell += 2) {
    count(RAW_COLOR, load<u8>(PLACES + cell));
    count(RAW_COLOR + 512, load<u8>(PLACES + cell, 1));
  }
  for (let at = 0; at < 512; at += 16) {
    v128.store(COLOR + 32 + at, i16x8.add(v128.load(RAW_COLOR + at), v128.load(RAW_COLOR + at, 512)));
  }
}
