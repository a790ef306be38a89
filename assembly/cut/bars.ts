/** Black bars at the edges of a frame: the cells that they touch get the mirror image of the picture between them. */

import { COLUMNS, ROW_BYTES, ROWS } from "./layout";

const PLANE_ROW_BYTES: i32 = 320;
const BAR_LUMA_MAX: i32 = 40;
const BAR_RANGE_MAX: i32 = 12;
const TOP_BAR_CELLS_MAX: i32 = 7;
const SIDE_BAR_CELLS_MAX: i32 = 15;

/** Replaces the cells that bars touch. Returns the share of the cells that they do not touch. */
export function coverBars(plane: usize, cells: usize): f32 {
  const top = touchedCells(barRows(plane, PLANE_ROW_BYTES), 9, TOP_BAR_CELLS_MAX);
  const bottom = touchedCells(barRows(plane + 179 * PLANE_ROW_BYTES, -PLANE_ROW_BYTES), 9, TOP_BAR_CELLS_MAX);
  const left = touchedCells(leftBarColumns(plane), 8, SIDE_BAR_CELLS_MAX);
  const right = touchedCells(rightBarColumns(plane), 8, SIDE_BAR_CELLS_MAX);
  if ((top | bottom) != 0) mirrorRows(cells, top, ROWS - 1 - bottom);
  if ((left | right) != 0) mirrorColumns(cells, left, COLUMNS - 1 - right);
  return <f32> ((ROWS - top - bottom) * (COLUMNS - left - right)) / 800;
}

/** One more sample than the bar, as its edge is blended. A bar over the limit is a dark part of the picture: 0. */
function touchedCells(samples: i32, cellSamples: i32, limit: i32): i32 {
  if (samples == 0) return 0;
  const touched = (samples + cellSamples) / cellSamples;
  return touched > limit ? 0 : touched;
}

/** How many rows from an edge inwards belong to a bar; stops counting above the limit. */
function barRows(edge: usize, step: i32): i32 {
  const limit = 9 * TOP_BAR_CELLS_MAX + 1;
  let count = 0;
  while (count < limit && isBarRow(edge + count * step)) count++;
  return count;
}

function isBarRow(row: usize): bool {
  let brightest = v128.load(row);
  let darkest = brightest;
  for (let x = 16; x < PLANE_ROW_BYTES; x += 16) {
    const samples = v128.load(row + x);
    brightest = i8x16.max_u(brightest, samples);
    darkest = i8x16.min_u(darkest, samples);
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
    const found = ctz<i32>(~barColumns(plane + count, plane + count));
    count += found;
    if (found < 16) break;
  }
  return count;
}

function rightBarColumns(plane: usize): i32 {
  let count = 0;
  while (count < 8 * SIDE_BAR_CELLS_MAX + 1) {
    const strip = plane + PLANE_ROW_BYTES - 16 - count;
    const found = clz<i32>(~(barColumns(strip, strip + 15) << 16));
    count += found;
    if (found < 16) break;
  }
  return count;
}

/** Bit x is set if column x of the 16 at `strip` belongs to a bar. Returns 0 early if the outer column is not dark. */
function barColumns(strip: usize, outer: usize): i32 {
  for (let row = 22; row < 180; row += 45) {
    if (<i32> load<u8>(outer + row * PLANE_ROW_BYTES) > BAR_LUMA_MAX) return 0;
  }
  let brightest = v128.load(strip);
  let darkest = brightest;
  for (let row = 1; row < 180; row++) {
    const samples = v128.load(strip + row * PLANE_ROW_BYTES);
    brightest = i8x16.max_u(brightest, samples);
    darkest = i8x16.min_u(darkest, samples);
  }
  const isDark = i8x16.le_u(brightest, i8x16.splat(<i8> BAR_LUMA_MAX));
  const isFlat = i8x16.le_u(i8x16.sub(brightest, darkest), i8x16.splat(<i8> BAR_RANGE_MAX));
  return i8x16.bitmask(v128.and(isDark, isFlat));
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
