/** Borders of blocks: short straight edges where the picture is new, and whether they lie on the grid of a
 * codec's blocks.
 */

import { put } from "./measures";
import { MUCH, muchNew, newCells } from "./novelty";

/*
 * A cell of 4x4 samples that is new has a border down where the sums of its columns step once: over two
 * samples, as reducing the picture spreads a border over two, while the samples on either side of these are
 * alike. The share of the sample between says where in it the border lies. Borders along are found in the
 * sums of its rows.
 *
 * The borders of damaged blocks lie on multiples of 8 or 16 samples of the picture before it was reduced,
 * those of everything else lie anywhere. Where its size is not known there is no grid.
 *
 * Borders that came together on a grid are held: looked for again, in their places, in the frames behind.
 */

/** With fewer cells that are much new nothing is looked for; with more the whole picture is another one. */
const LEAST_CELLS: i32 = 5;
const MOST_CELLS: i32 = 2200;
/** So many cells are looked at, evenly spread where there are more. */
const LOOKED_AT: i32 = 320;
/** Least step of a border, summed over the four samples along it; that of one that is held. */
const STEP: i16 = 48;
const STEP_HELD: i16 = 20;
/** A place counts at most so often, as a long edge is one thing. */
const PLACE_MOST: i32 = 3;
/** With fewer borders than these there is no grid. */
const LEAST_BORDERS: i32 = 6;
/** The grid must be as clear to hold borders, and to hold more of the same grid. */
const CLEAR: f32 = 2.4;
const CLEAR_MORE: f32 = 1;
/** Frames after which borders that still are there belong to the picture. */
const HELD_FRAMES: i32 = 75;

const CELLS_ACROSS: i32 = 80;
const STRIDE: usize = 320;
/** Half samples across and down, in which places are counted. */
const PLACES_ACROSS: i32 = 640;
const PLACES_DOWN: i32 = 360;
const PLACES: i32 = 640 + 360;
/** A byte for each place: first those of borders down, then those of borders along. */
const COUNTS: usize = memory.data(1000 + 8, 16);
/** The sums of a cell: 8 words. */
const SUMS: usize = memory.data(16, 16);
/** How many of the four steps of a cell are behind each: of those down, and of those along. */
const STEPS_BEHIND: usize = memory.data<i16>([3, 2, 1, 0, 3, 2, 1, 0], 16);

/** A grid finer than this, in reduced samples, is not seen. */
const FINEST: f32 = 2.6;
/** A sample of the picture before it was reduced, in reduced samples; 0 where its size is not known. */
let acrossUnit: f32 = 0;
let downUnit: f32 = 0;

/*
 * A border is a word: the cell in bits 0 to 11, which of its four steps in 12 and 13, whether it is along in
 * 14, whether it was missing in the frame before in 15, its place from 16 on.
 */
const FRESH: usize = memory.data(2 * 320 * 4, 16);
const HELD_MOST: i32 = 512;
const HELD: usize = memory.data(512 * 4, 16);
let fresh: i32 = 0;
let held: i32 = 0;
let heldFrames: i32 = 0;
/** The grid of those that are held: 16 or 8. */
let heldGrid: f32 = 16;

/** Removes what is held. */
export function resetBorders(): void {
  held = 0;
}

/** The size of the pictures before they were reduced; 0 where it is not known. */
export function setPictureSize(width: i32, height: i32): void {
  acrossUnit = width > 0 ? <f32> 320 / <f32> width : 0;
  downUnit = height > 0 ? <f32> 180 / <f32> height : 0;
  held = 0;
}

/** Measures 30 to 34, after the novelty of the frame. */
export function measureBorders(luma: usize): void {
  const lost = held > 0 ? keepHeld(luma) : 0;
  const before = held;
  let heldClarity: f32 = 0, clarity: f32 = 0;
  if (before > 0) {
    count(HELD, before);
    heldClarity = clarityOf(heldGrid);
  }
  find(luma);
  if (fresh >= LEAST_BORDERS) {
    count(FRESH, fresh);
    if (before > 0) clarity = clarityOf(heldGrid);
    if (before > 0 && clarity >= CLEAR_MORE) hold();
    else {
      const coarse = clarityOf(16), fine = clarityOf(8);
      clarity = max(coarse, fine);
      if (clarity >= CLEAR) {
        heldGrid = coarse >= fine ? 16 : 8;
        heldFrames = 0;
        hold();
      }
    }
  }
  put(30, <f32> fresh);
  put(31, clarity);
  put(32, <f32> (before - lost));
  put(33, heldClarity);
  put(34, <f32> lost);
}

/** Removes borders that were missing twice. Returns how many are newly missing. */
function keepHeld(luma: usize): i32 {
  if (++heldFrames > HELD_FRAMES) {
    held = 0;
    return 0;
  }
  let kept = 0, lost = 0;
  for (let i = 0; i < held; i++) {
    let border = load<u32>(HELD + (i << 2));
    const cell = <i32> (border & 0xfff), step = (border >> 12) & 3, isAlong = (border & 0x4000) != 0;
    const sums = sumsOf(luma, cell, isAlong);
    v128.store(SUMS, bothSteps(sums, sums));
    if (load<i16>(SUMS + (<usize> step << 1)) < STEP_HELD) {
      if (border & 0x8000) continue;
      border |= 0x8000;
      lost++;
    } else border &= ~0x8000;
    store<u32>(HELD + (kept++ << 2), border);
  }
  held = kept;
  return lost;
}

/** Fills FRESH. */
function find(luma: usize): void {
  fresh = 0;
  if (muchNew < LEAST_CELLS || muchNew > MOST_CELLS) return;
  const cells = newCells();
  const least = i8x16.splat(MUCH);
  const stride = (muchNew + LOOKED_AT - 1) / LOOKED_AT;
  // New cells that are passed over before the next one that is looked at.
  let passed = 0;
  for (let i = 0; i < 3600; i += 16) {
    let mask = i8x16.bitmask(i8x16.ge_u(v128.load(cells + i), least));
    for (; mask != 0; mask &= mask - 1) {
      if (--passed >= 0) continue;
      passed = stride - 1;
      const cell = i + ctz<i32>(mask);
      findIn(luma, cell);
    }
  }
}

/**
 * Adds the clearest border of a cell down and that along, where there is one; found without branches, which a
 * processor guesses wrong.
 */
function findIn(luma: usize, cell: i32): void {
  const x = cell % CELLS_ACROSS, y = cell / CELLS_ACROSS;
  const down = sumsOf(luma, cell, false), along = sumsOf(luma, cell, true);
  // Four times each step and how many are behind it, so that the first of equal ones is the largest.
  let keys = v128.or(i16x8.shl(bothSteps(down, along), 2), v128.load(STEPS_BEHIND));
  if (x == 0 || x == 79 || y == 0 || y == 44) keys = withoutEdges(keys, x, y);
  keys = i16x8.max_s(keys, v128.shuffle<i32>(keys, keys, 1, 0, 3, 2));
  keys = i16x8.max_s(keys, v128.shuffle<i16>(keys, keys, 1, 0, 3, 2, 5, 4, 7, 6));
  const keyDown: i32 = i16x8.extract_lane_s(keys, 0), keyAlong: i32 = i16x8.extract_lane_s(keys, 4);
  if (keyDown >= STEP << 2) add(cell, down, x, 3 - (keyDown & 3), 0);
  if (keyAlong >= STEP << 2) add(cell, along, y, 3 - (keyAlong & 3), 0x4000);
}

/** At the edges of the picture there is nothing to compare with. */
function withoutEdges(keys: v128, x: i32, y: i32): v128 {
  const none = i16.MIN_VALUE;
  if (x == 0) keys = i16x8.replace_lane(i16x8.replace_lane(keys, 0, none), 1, none);
  if (x == 79) keys = i16x8.replace_lane(i16x8.replace_lane(keys, 2, none), 3, none);
  if (y == 0) keys = i16x8.replace_lane(i16x8.replace_lane(keys, 4, none), 5, none);
  if (y == 44) keys = i16x8.replace_lane(i16x8.replace_lane(keys, 6, none), 7, none);
  return keys;
}

/** Adds a border of a cell that is so far across or down, at one of its four steps. */
function add(cell: i32, sums: v128, at: i32, step: i32, along: i32): void {
  v128.store(SUMS, sums);
  const middle = SUMS + 4 + (<usize> step << 1);
  const before = <i32> load<i16>(middle - 2),
    own = <i32> load<i16>(middle),
    after = <i32> load<i16>(middle + 2);
  const whole = abs(before - after);
  // The part of the sample that belongs to what is before it, rounded to half samples.
  const part = 4 * min(whole, max(0, before > after ? own - after : after - own));
  const halves = i32(part >= whole) + i32(part >= 3 * whole);
  const place = 2 * (4 * at + step) + halves;
  store<u32>(FRESH + (fresh++ << 2), <u32> (cell | (step << 12) | along | (place << 16)));
}

/** The sums of the eight columns, or rows, around the four of a cell. */
function sumsOf(luma: usize, cell: i32, isAlong: bool): v128 {
  const x = cell % CELLS_ACROSS, y = cell / CELLS_ACROSS;
  if (!isAlong) {
    const at = luma + <usize> (4 * y) * STRIDE + (4 * x - 2);
    const upper = i16x8.add(v128.load_ext<u8>(at), v128.load_ext<u8>(at, 320));
    return i16x8.add(upper, i16x8.add(v128.load_ext<u8>(at, 640), v128.load_ext<u8>(at, 960)));
  }
  const at = luma + <usize> ((4 * y - 2) * <i32> STRIDE) + (4 * x);
  return i16x8.narrow_i32x4_u(fourRows(at), fourRows(at + 4 * STRIDE));
}

/** The sums of four samples in each of four rows. */
function fourRows(at: usize): v128 {
  let rows = v128.load32_zero(at);
  rows = v128.load32_lane(at, rows, 1, 320);
  rows = v128.load32_lane(at, rows, 2, 640);
  rows = v128.load32_lane(at, rows, 3, 960);
  return i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(rows));
}

/** The four steps in the middle of the sums of columns, and then those of the sums of rows. */
function bothSteps(down: v128, along: v128): v128 {
  return stepsBetween(
    v128.shuffle<i64>(down, along, 0, 2),
    v128.shuffle<i16>(down, along, 1, 2, 3, 4, 9, 10, 11, 12),
    v128.shuffle<i16>(down, along, 3, 4, 5, 6, 11, 12, 13, 14),
    v128.shuffle<i64>(down, along, 1, 3),
  );
}

/** How far the sums before and behind are apart, less twice the larger step beside them. */
function stepsBetween(twoBefore: v128, before: v128, behind: v128, twoBehind: v128): v128 {
  const beside = i16x8.max_s(
    i16x8.abs(i16x8.sub(before, twoBefore)),
    i16x8.abs(i16x8.sub(twoBehind, behind)),
  );
  return i16x8.sub(i16x8.abs(i16x8.sub(behind, before)), i16x8.shl(beside, 1));
}

/** Adds what was found to what is held. */
function hold(): void {
  const more = min(fresh, HELD_MOST - held);
  memory.copy(HELD + (held << 2), FRESH, <usize> more << 2);
  held += more;
}

/** Fills COUNTS. */
function count(borders: usize, many: i32): void {
  memory.fill(COUNTS, 0, PLACES);
  for (let i = 0; i < many; i++) {
    const border = load<u32>(borders + (i << 2));
    if (border & 0x8000) continue;
    const place = COUNTS + <usize> (border >> 16) + <usize> (border & 0x4000 ? PLACES_ACROSS : 0);
    store<u8>(place, <u8> min(PLACE_MOST, <i32> load<u8>(place) + 1));
  }
}

/**
 * How clearly the borders in COUNTS lie on a grid, across and down, the less clear of the two: 1 is what
 * chance gives.
 */
function clarityOf(grid: f32): f32 {
  const across = grid * acrossUnit, down = grid * downUnit;
  if (min(across, down) < FINEST) return 0;
  const first = clarityAlong(COUNTS, PLACES_ACROSS, across);
  return first <= 0 ? 0 : max<f32>(0, min(first, clarityAlong(COUNTS + PLACES_ACROSS, PLACES_DOWN, down)));
}

/** The sum of how near places are to a multiple of `period`, 1 to -1, divided by what chance gives. */
function clarityAlong(counts: usize, places: i32, period: f32): f32 {
  const turn = <i32> (<f32> 32768 / period + 0.5);
  let sum = 0, squares = 0;
  for (let from = 0; from < places; from += 8) {
    if (load<u64>(counts + from) == 0) continue;
    for (let place = from; place < from + 8; place++) {
      const often = <i32> load<u8>(counts + place);
      if (often == 0) continue;
      const angle = (place * turn) & 0xffff;
      sum += often * (16384 - min(angle, 65536 - angle));
      squares += often * often;
    }
  }
  return squares == 0 ? 0 : <f32> sum / 16384 / sqrt<f32>(<f32> squares / 3);
}
