/** Black bars at the edges of a frame: the cells that they touch get the mirror image of the picture between
 * them.
 */

import { CELL_MOVES } from "../luma";
import { COLUMNS, ROW_BYTES, ROWS } from "./layout";

const PLANE_ROW_BYTES: i32 = 320;
const BAR_LUMA_MAX: i32 = 40;
const BAR_RANGE_MAX: i32 = 12;
const TOP_BAR_CELLS_MAX: i32 = 7;
const SIDE_BAR_CELLS_MAX: i32 = 15;

/** For each row and for each strip of 16 columns whether it is known what was found of it, and that. */
const ROW_STATES: usize = memory.data(180 + 12, 16);
const UNKNOWN: i32 = 0, NO_BAR: i32 = 1, BAR: i32 = 2;
const STRIPS_KNOWN: usize = memory.data(20 * 2 + 8, 16);
const STRIPS: usize = memory.data(20 * 2, 16);
const BANDS: i32 = 12;
const BAND_ROWS: i32 = 15;
const LAST_STRIP: i32 = 19;

/** The next frame has none before it. */
export function resetBars(): void {
  memory.fill(ROW_STATES, <u8> UNKNOWN, 180);
  memory.fill(STRIPS_KNOWN, 0, 40);
}

/** Replaces the cells that bars touch. Returns the share of the cells that they do not touch. */
export function coverBars(plane: usize, cells: usize): f32 {
  forgetMoved();
  const top = touchedCells(barRows(plane, 0, 1), 9, TOP_BAR_CELLS_MAX);
  const bottom = touchedCells(barRows(plane, 179, -1), 9, TOP_BAR_CELLS_MAX);
  const left = touchedCells(leftBarColumns(plane), 8, SIDE_BAR_CELLS_MAX);
  const right = touchedCells(rightBarColumns(plane), 8, SIDE_BAR_CELLS_MAX);
  if ((top | bottom) != 0) mirrorRows(cells, top, ROWS - 1 - bottom);
  if ((left | right) != 0) mirrorColumns(cells, left, COLUMNS - 1 - right);
  return <f32> ((ROWS - top - bottom) * (COLUMNS - left - right)) / 800;
}

/** What lies in cells of the ranges that moved is not known; all else is as it was in the frame before. */
function forgetMoved(): void {
  const none = i16x8.splat(0);
  let first = none, second = none, third = none;
  for (let band = 0; band < BANDS; band++) {
    const moves = CELL_MOVES + band * 40;
    const a = v128.load(moves), b = v128.load(moves, 16), c = v128.load64_zero(moves, 32);
    if (!v128.any_true(v128.or(v128.or(a, b), c))) continue;
    first = v128.or(first, a);
    second = v128.or(second, b);
    third = v128.or(third, c);
    const rows = ROW_STATES + band * BAND_ROWS;
    store<u64>(rows, 0);
    store<u64>(rows, 0, 7);
  }
  keep(STRIPS_KNOWN, i16x8.eq(first, none));
  keep(STRIPS_KNOWN + 16, i16x8.eq(second, none));
  keep(STRIPS_KNOWN + 32, i16x8.eq(third, none));
}

function keep(known: usize, mask: v128): void {
  v128.store(known, v128.and(v128.load(known), mask));
}

/**
 * One more sample than the bar, as its edge is blended. A bar over the limit is a dark part of the picture:
 * 0.
 */
function touchedCells(samples: i32, cellSamples: i32, limit: i32): i32 {
  if (samples == 0) return 0;
  const touched = (samples + cellSamples) / cellSamples;
  return touched > limit ? 0 : touched;
}

/** How many rows from an edge inwards belong to a bar; stops counting above the limit. */
function barRows(plane: usize, edge: i32, step: i32): i32 {
  const limit = 9 * TOP_BAR_CELLS_MAX + 1;
  let count = 0;
  while (count < limit && isBar(plane, edge + count * step)) count++;
  return count;
}

function isBar(plane: usize, row: i32): bool {
  const state: i32 = load<u8>(ROW_STATES + row);
  if (state != UNKNOWN) return state == BAR;
  const found = isBarRow(plane + row * PLANE_ROW_BYTES);
  store<u8>(ROW_STATES + row, found ? BAR : NO_BAR);
  return found;
}

function isBarRow(row: usize): bool {
  const limit = i8x16.splat(<i8> BAR_LUMA_MAX);
  let brightest = v128.load(row);
  let darkest = brightest;
  for (let at = row; at < row + PLANE_ROW_BYTES; at += 64) {
    const a = v128.load(at), b = v128.load(at, 16), c = v128.load(at, 32), d = v128.load(at, 48);
    brightest = i8x16.max_u(brightest, i8x16.max_u(i8x16.max_u(a, b), i8x16.max_u(c, d)));
    darkest = i8x16.min_u(darkest, i8x16.min_u(i8x16.min_u(a, b), i8x16.min_u(c, d)));
    if (v128.any_true(i8x16.sub_sat_u(brightest, limit))) return false;
  }
  // The extremes of all lanes: each vector is combined with its own shuffled halves.
  brightest = i8x16.max_u(brightest, v128.shuffle<i64>(brightest, brightest, 1, 0));
  darkest = i8x16.min_u(darkest, v128.shuffle<i64>(darkest, darkest, 1, 0));
  brightest = i8x16.max_u(brightest, v128.shuffle<i32>(brightest, brightest, 1, 0, 3, 2));
  darkest = i8x16.min_u(darkest, v128.shuffle<i32>(darkest, darkest, 1, 0, 3, 2));
  brightest = i8x16.max_u(brightest, v128.shuffle<i16>(brightest, brightest, 1, 0, 3, 2, 5, 4, 7, 6));
  darkest = i8x16.min_u(darkest, v128.shuffle<i16>(darkest, darkest, 1, 0, 3, 2, 5, 4, 7, 6));
  const high = max<i32>(i8x16.extract_lane_u(brightest, 0), i8x16.extract_lane_u(brightest, 1));
  const low = min<i32>(i8x16.extract_lane_u(darkest, 0), i8x16.extract_lane_u(darkest, 1));
  return high <= BAR_LUMA_MAX && high - low <= BAR_RANGE_MAX;
}

function leftBarColumns(plane: usize): i32 {
  let count = 0;
  while (count < 8 * SIDE_BAR_CELLS_MAX + 1) {
    const found = ctz<i32>(~stripAt(plane, count >> 4, 0));
    count += found;
    if (found < 16) break;
  }
  return count;
}

function rightBarColumns(plane: usize): i32 {
  let count = 0;
  while (count < 8 * SIDE_BAR_CELLS_MAX + 1) {
    const found = clz<i32>(~(stripAt(plane, LAST_STRIP - (count >> 4), 15) << 16));
    count += found;
    if (found < 16) break;
  }
  return count;
}

/** Bit x is set if column x of a strip of 16 belongs to a bar; none is set if column `outer` does not. */
function stripAt(plane: usize, strip: i32, outer: i32): i32 {
  const at = strip << 1;
  if (load<u16>(STRIPS_KNOWN + at)) return load<u16>(STRIPS + at);
  const columns = barColumns(plane + (strip << 4), outer);
  store<u16>(STRIPS + at, columns);
  store<u16>(STRIPS_KNOWN + at, 0xffff);
  return columns;
}

function barColumns(strip: usize, outer: i32): i32 {
  for (let row = 22; row < 180; row += 45) {
    if (<i32> load<u8>(strip + outer + row * PLANE_ROW_BYTES) > BAR_LUMA_MAX) return 0;
  }
  const most = i8x16.splat(<i8> BAR_LUMA_MAX), range = i8x16.splat(<i8> BAR_RANGE_MAX);
  let brightest = v128.load(strip);
  let darkest = brightest;
  let columns = 0;
  for (let from = strip; from < strip + 180 * PLANE_ROW_BYTES; from += 30 * PLANE_ROW_BYTES) {
    for (let at = from; at < from + 30 * PLANE_ROW_BYTES; at += 3 * PLANE_ROW_BYTES) {
      const a = v128.load(at), b = v128.load(at, 320), c = v128.load(at, 640);
      brightest = i8x16.max_u(i8x16.max_u(brightest, a), i8x16.max_u(b, c));
      darkest = i8x16.min_u(i8x16.min_u(darkest, a), i8x16.min_u(b, c));
    }
    const isDark = i8x16.le_u(brightest, most);
    const isFlat = i8x16.le_u(i8x16.sub(brightest, darkest), range);
    columns = i8x16.bitmask(v128.and(isDark, isFlat));
    if (((columns >> outer) & 1) == 0) return 0;
  }
  return columns;
}

function mirrorRows(cells: usize, first: i32, last: i32): void {
  for (let row = 0; row < ROWS; row++) {
    const source = mirrored(row, first, last);
    if (source != row) memory.copy(cells + row * ROW_BYTES, cells + source * ROW_BYTES, ROW_BYTES);
  }
}

function mirrorColumns(cells: usize, first: i32, last: i32): void {
  for (let column = 0; column < COLUMNS; column++) {
    const source = mirrored(column, first, last);
    if (source == column) continue;
    for (let row = 0; row < ROWS; row++) {
      const line = cells + row * ROW_BYTES;
      store<i16>(line + (column << 1), load<i16>(line + (source << 1)));
    }
  }
}

/** The mirror image of `index` in [first, last], mirrored at both ends. */
function mirrored(index: i32, first: i32, last: i32): i32 {
  while (index < first || index > last) {
    index = index < first ? 2 * first - 1 - index : 2 * last + 1 - index;
  }
  return index;
}
