/** How well two frames match block by block, whatever their brightness and contrast. */

import { CELLS, CELLS_BYTES, COLUMNS, ROW_BYTES, ROWS, setNumber, STRUCTURE_MEAN } from "./layout";
import { sum4 } from "../lanes";

const BLOCK_COLUMNS: i32 = 8;
const BLOCK_ROWS: i32 = 5;
const WINDOW_COLUMNS: i32 = 33;
const WINDOW_BYTES: i32 = 16 * 33 * 4;
const SUMS: usize = memory.data(32 * 16 * 33 * 4, 16);
const SCALES: usize = memory.data(32 * 16 * 33 * 4, 16);
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
        const columnEnd = min(column + 1, COLUMNS - BLOCK_COLUMNS);
        for (let x = max(column - 1, 0); x <= columnEnd; x++) {
          const variance = measureWindow(slot, y, x);
          if (y != row || x != column) continue;
          const block = slot * 20 + (row / BLOCK_ROWS) * 5 + column / BLOCK_COLUMNS;
          const own = variance / (variance + STRUCTURE_KNEE);
          structure += own;
          store<f32>(STRUCTURE + (block << 2), own);
        }
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
  const own = (row * WINDOW_COLUMNS + column) << 2;
  const sum = load<i32>(SUMS + later * WINDOW_BYTES + own);
  const scale = load<f32>(SCALES + later * WINDOW_BYTES + own);
  const rowEnd = min(row + 1, ROWS - BLOCK_ROWS);
  const columnStart = max(column - 1, 0);
  const columnEnd = min(column + 1, COLUMNS - BLOCK_COLUMNS);
  // Its own place first: most blocks of most frames have not moved.
  let best = matchAt(first, second, third, fourth, fifth, earlier, row, column, sum, scale);
  if (best >= WHOLE_MATCH) return 1;
  for (let y = max(row - 1, 0); y <= rowEnd; y++) {
    for (let x = columnStart; x <= columnEnd; x++) {
      best = max(best, matchAt(first, second, third, fourth, fifth, earlier, y, x, sum, scale));
    }
  }
  return min(max<f32>(best, 0) / WHOLE_MATCH, <f32> 1);
}

/** The correlation of a block, its five rows of cells, with the place (y, x) of the earlier frame. */
function matchAt(
  first: v128,
  second: v128,
  third: v128,
  fourth: v128,
  fifth: v128,
  earlier: i32,
  y: i32,
  x: i32,
  sum: i32,
  scale: f32,
): f32 {
  const other = CELLS + earlier * CELLS_BYTES + y * ROW_BYTES + (x << 1);
  let dots = i32x4.dot_i16x8_s(first, v128.load(other));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(second, v128.load(other + ROW_BYTES)));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(third, v128.load(other + 2 * ROW_BYTES)));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(fourth, v128.load(other + 3 * ROW_BYTES)));
  dots = i32x4.add(dots, i32x4.dot_i16x8_s(fifth, v128.load(other + 4 * ROW_BYTES)));
  const window = earlier * WINDOW_BYTES + ((y * WINDOW_COLUMNS + x) << 2);
  // Both products stay below 40 x 40 x 1152^2 = 2,123,366,400, which fits an i32.
  const covariance = WINDOW_CELLS * sum4(dots) - sum * load<i32>(SUMS + window);
  return <f32> covariance * scale * load<f32>(SCALES + window);
}

function measureWindow(slot: i32, y: i32, x: i32): f32 {
  const cells = CELLS + slot * CELLS_BYTES + y * ROW_BYTES + (x << 1);
  const first = v128.load(cells);
  const second = v128.load(cells + ROW_BYTES);
  const third = v128.load(cells + 2 * ROW_BYTES);
  const fourth = v128.load(cells + 3 * ROW_BYTES);
  const fifth = v128.load(cells + 4 * ROW_BYTES);
  // The sum of five cells of at most 1152 fits an i16.
  const columns = i16x8.add(i16x8.add(i16x8.add(first, second), i16x8.add(third, fourth)), fifth);
  const sum = sum4(i32x4.extadd_pairwise_i16x8_s(columns));
  let squares = i32x4.add(i32x4.dot_i16x8_s(first, first), i32x4.dot_i16x8_s(second, second));
  squares = i32x4.add(squares, i32x4.dot_i16x8_s(third, third));
  squares = i32x4.add(squares, i32x4.dot_i16x8_s(fourth, fourth));
  squares = i32x4.add(squares, i32x4.dot_i16x8_s(fifth, fifth));
  const variance = <f32> (WINDOW_CELLS * sum4(squares) - sum * sum);
  const window = slot * WINDOW_BYTES + ((y * WINDOW_COLUMNS + x) << 2);
  store<i32>(SUMS + window, sum);
  store<f32>(SCALES + window, <f32> 1 / sqrt<f32>(variance + NOISE_FLOOR));
  return variance;
}
