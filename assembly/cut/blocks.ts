/** How well two frames match block by block, whatever their brightness and contrast. */

import { CELLS, CELLS_BYTES, COLUMNS, ROW_BYTES, ROWS, setNumber, STRUCTURE_MEAN } from "./layout";
import { sum4, sums4 } from "../lanes";

const BLOCK_COLUMNS: i32 = 8;
const BLOCK_ROWS: i32 = 5;
const WINDOW_COLUMNS: i32 = 33;
const WINDOW_BYTES: i32 = 16 * 33 * 4;
/** Of each window of a block, frame by frame, 16 rows of 33. Read four at a time, so 16 more bytes follow. */
const SUMS: usize = memory.data(32 * 16 * 33 * 4 + 16, 16);
const SCALES: usize = memory.data(32 * 16 * 33 * 4 + 16, 16);
const STRUCTURE: usize = memory.data(32 * 20 * 4, 16);

/** Cells in a window. Sums are not divided, so a variance here is 40^2 x 9^2 times that of luma levels. */
const WINDOW_CELLS: i32 = 40;
const NOISE_FLOOR: f32 = 4 * 40 * 40 * 9 * 9;
const STRUCTURE_KNEE: f32 = 16 * 40 * 40 * 9 * 9;
const WHOLE_MATCH: f32 = 0.85;
const AGREEMENT_PRIOR: f32 = 0.2;
const DISAGREEMENT_PRIOR: f32 = 0.6;

/** Fills SUMS, SCALES and STRUCTURE, for each block at its own position and at the eight around it. */
export function measureBlocks(slot: i32): void {
  let structure: f32 = 0;
  for (let row = 0; row < ROWS; row += BLOCK_ROWS) {
    const rowEnd = min(row + 1, ROWS - BLOCK_ROWS);
    for (let y = max(row - 1, 0); y <= rowEnd; y++) {
      for (let column = 0; column < COLUMNS; column += BLOCK_COLUMNS) {
        const variances = measureWindows(slot, y, max(column - 1, 0));
        if (y != row) continue;
        const variance = column > 0 ? f32x4.extract_lane(variances, 1) : f32x4.extract_lane(variances, 0);
        const block = slot * 20 + (row / BLOCK_ROWS) * 5 + column / BLOCK_COLUMNS;
        const own = variance / (variance + STRUCTURE_KNEE);
        structure += own;
        store<f32>(STRUCTURE + (block << 2), own);
      }
    }
  }
  setNumber(slot, STRUCTURE_MEAN, structure / 20);
}

/** Similarity of the frames in two slots, in [0,1]. */
export function similarity(later: i32, earlier: i32): f32 {
  let strongSum: f32 = 0;
  let strong: f32 = 0;
  let weakSum: f32 = 0;
  let weak: f32 = 0;
  for (let block = 0; block < 20; block++) {
    const match = blockMatch(later, earlier, (block / 5) * BLOCK_ROWS, (block % 5) * BLOCK_COLUMNS);
    const a = load<f32>(STRUCTURE + ((later * 20 + block) << 2));
    const b = load<f32>(STRUCTURE + ((earlier * 20 + block) << 2));
    const more = max(a, b);
    const less = min(a, b);
    strong += more;
    strongSum += more * match;
    weak += less;
    weakSum += less * match;
  }
  const whole = (strongSum + AGREEMENT_PRIOR) / (strong + AGREEMENT_PRIOR);
  const shared = weakSum / (weak + DISAGREEMENT_PRIOR);
  return max(whole, shared);
}

/** How well the later frame's block at (row, column) matches the earlier frame, in [0,1]. */
function blockMatch(later: i32, earlier: i32, row: i32, column: i32): f32 {
  const cells = CELLS + later * CELLS_BYTES + row * ROW_BYTES + (column << 1);
  const first = v128.load(cells);
  const second = v128.load(cells + ROW_BYTES);
  const third = v128.load(cells + 2 * ROW_BYTES);
  const fourth = v128.load(cells + 3 * ROW_BYTES);
  const fifth = v128.load(cells + 4 * ROW_BYTES);
  const own = later * WINDOW_BYTES + ((row * WINDOW_COLUMNS + column) << 2);
  const sum = load<i32>(SUMS + own);
  const scale = load<f32>(SCALES + own);
  const others = CELLS + earlier * CELLS_BYTES;
  const windows = earlier * WINDOW_BYTES;
  // Its own place first: most blocks of most frames have not moved.
  const there = windows + ((row * WINDOW_COLUMNS + column) << 2);
  const dots = dotsAt(first, second, third, fourth, fifth, others + row * ROW_BYTES + (column << 1));
  // Both products stay below 40 x 40 x 1152^2 = 2,123,366,400, which fits an i32.
  const covariance = WINDOW_CELLS * sum4(dots) - sum * load<i32>(SUMS + there);
  const match = <f32> covariance * scale * load<f32>(SCALES + there);
  if (match >= WHOLE_MATCH) return 1;
  const columnStart = max(column - 1, 0);
  // Two places in a row at the sides; the others have no part.
  const taken = column == 0 || column == COLUMNS - BLOCK_COLUMNS ? i32x4(-1, -1, 0, 0) : i32x4(-1, -1, -1, 0);
  const rowEnd = min(row + 1, ROWS - BLOCK_ROWS);
  let best = f32x4.splat(0);
  for (let y = max(row - 1, 0); y <= rowEnd; y++) {
    const other = others + y * ROW_BYTES + (columnStart << 1);
    const left = dotsAt(first, second, third, fourth, fifth, other);
    const middle = dotsAt(first, second, third, fourth, fifth, other + 2);
    const right = dotsAt(first, second, third, fourth, fifth, other + 4);
    const window = windows + ((y * WINDOW_COLUMNS + columnStart) << 2);
    const covariances = i32x4.sub(
      i32x4.mul(i32x4.splat(WINDOW_CELLS), sums4(left, middle, right, right)),
      i32x4.mul(i32x4.splat(sum), v128.load(SUMS + window)),
    );
    const scaled = f32x4.mul(f32x4.convert_i32x4_s(covariances), f32x4.splat(scale));
    best = f32x4.pmax(best, v128.and(taken, f32x4.mul(scaled, v128.load(SCALES + window))));
  }
  best = f32x4.pmax(best, v128.shuffle<i32>(best, best, 2, 3, 0, 1));
  const most = max(f32x4.extract_lane(best, 0), f32x4.extract_lane(best, 1));
  return min(most / WHOLE_MATCH, <f32> 1);
}

/** The products of a block, its five rows of cells, with the cells at `other`, in four partial sums. */
function dotsAt(first: v128, second: v128, third: v128, fourth: v128, fifth: v128, other: usize): v128 {
  let dots = i32x4.dot_i16x8_s(first, v128.load(other));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(second, v128.load(other + ROW_BYTES)));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(third, v128.load(other + 2 * ROW_BYTES)));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(fourth, v128.load(other + 3 * ROW_BYTES)));
  return i32x4.add(dots, i32x4.dot_i16x8_s(fifth, v128.load(other + 4 * ROW_BYTES)));
}

/**
 * Measures three windows, from the one at (y, x) to the right; at the right side only two are windows.
 * Returns their variances.
 */
function measureWindows(slot: i32, y: i32, x: i32): v128 {
  const cells = CELLS + slot * CELLS_BYTES + y * ROW_BYTES + (x << 1);
  const sums = sums4(sumsAt(cells), sumsAt(cells + 2), sumsAt(cells + 4), i32x4.splat(0));
  const squares = sums4(squaresAt(cells), squaresAt(cells + 2), squaresAt(cells + 4), i32x4.splat(0));
  const variances = f32x4.convert_i32x4_s(
    i32x4.sub(i32x4.mul(squares, i32x4.splat(WINDOW_CELLS)), i32x4.mul(sums, sums)),
  );
  const scales = f32x4.div(
    f32x4.splat(1),
    f32x4.sqrt(f32x4.add(variances, f32x4.splat(NOISE_FLOOR))),
  );
  const window = slot * WINDOW_BYTES + ((y * WINDOW_COLUMNS + x) << 2);
  v128.store64_lane(SUMS + window, sums, 0);
  v128.store64_lane(SCALES + window, scales, 0);
  if (x < WINDOW_COLUMNS - 2) {
    v128.store32_lane(SUMS + window, sums, 2, 8);
    v128.store32_lane(SCALES + window, scales, 2, 8);
  }
  return variances;
}

/** The sum of a window's 8x5 cells, in four partial sums. */
function sumsAt(cells: usize): v128 {
  const upper = i16x8.add(v128.load(cells), v128.load(cells, ROW_BYTES));
  const lower = i16x8.add(v128.load(cells, 2 * ROW_BYTES), v128.load(cells, 3 * ROW_BYTES));
  // Five cells of at most 1152 fit an i16.
  const columns = i16x8.add(i16x8.add(upper, lower), v128.load(cells, 4 * ROW_BYTES));
  return i32x4.extadd_pairwise_i16x8_s(columns);
}

function squaresAt(cells: usize): v128 {
  const upper = i32x4.add(squares(v128.load(cells)), squares(v128.load(cells, ROW_BYTES)));
  const lower = i32x4.add(squares(v128.load(cells, 2 * ROW_BYTES)), squares(v128.load(cells, 3 * ROW_BYTES)));
  return i32x4.add(i32x4.add(upper, lower), squares(v128.load(cells, 4 * ROW_BYTES)));
}

function squares(lanes: v128): v128 {
  return i32x4.dot_i16x8_s(lanes, lanes);
}
