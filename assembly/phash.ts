/** The 64-bit DCT hash of a 32x36 grid of centred cells, in integers only, so it is equal on every machine.
 */

import { sum4, sums4 } from "./lanes";
import { CELL_COLUMNS, CELL_ROWS, CELLS } from "./luma";

/*
 * hash bit 8v+u <-> coefficient (u, v) of the two-dimensional DCT-II, u horizontal, v vertical, 0 <= u, v < 8
 *
 *   bit 0       always 0: (0, 0) is the mean, which says only how bright the picture is
 *   bits 1..63  1 if and only if coefficient > median of the 63 + FLOOR
 *
 *   CELLS 36 x 32 x i16 --COSINE_X--> ROWS 36 x 8 x f64 --COSINE_Y >> 18--> COEFFICIENTS 64 x i32
 *
 * A cosine of even frequency is the same at both ends of a row, one of odd frequency is its opposite: so a
 * row is folded into the sums and the differences of its two halves, and so are the columns; half the
 * products are enough.
 *
 * Cosines are rounded to 1/8192. Their rows for u, v > 0 sum to exactly 0 by symmetry, so adding the same
 * brightness everywhere changes no coefficient. Bounds: 6375 * 8192 * 32 < 2^31 for ROWS; the vertical sum
 * needs 49 bits, and so is exact in an f64; >> 18 leaves 8 fractional bits (8192 * 8192 = 2^26) and fits an
 * i32. See docs/frames.md#signals.
 */

/**
 * Without it the noise would decide the bits of coefficients that are nearly 0, so the hash of a flat picture
 * or one with few edges would differ from frame to frame. A pattern cos(u x) cos(v y), u, v > 0, with an
 * amplitude of A grey levels has the coefficient A * 50 * 32/2 * 36/2 * 2^8 = A * 3,686,400, so FLOOR is a
 * quarter of a grey level.
 */
const FLOOR: i32 = 921_600;

const COSINE_X: usize = memory.data(8 * 32 * 2, 16); // i16
const COSINE_Y: usize = memory.data(8 * 36 * 8, 16); // f64
const ROWS: usize = memory.data(36 * 8 * 8, 16);
const ROW_BYTES: usize = 8 * 8;
const COEFFICIENTS: usize = memory.data(64 * 4, 16);

/** round(8192 * cos(k * pi / 64)), k = 0..32. */
// deno-fmt-ignore
const QUARTER_OF_64: usize = memory.data<i16>([
  8192, 8182, 8153, 8103, 8035, 7946, 7839, 7713, 7568, 7405, 7225, 7027, 6811, 6580, 6333, 6070, 5793,
  5501, 5197, 4880, 4551, 4212, 3862, 3503, 3135, 2760, 2378, 1990, 1598, 1202, 803, 402, 0,
]);
/** round(8192 * cos(k * pi / 72)), k = 0..36. */
// deno-fmt-ignore
const QUARTER_OF_72: usize = memory.data<i16>([
  8192, 8184, 8161, 8122, 8068, 7998, 7913, 7813, 7698, 7568, 7424, 7266, 7094, 6909, 6710, 6499, 6275,
  6040, 5793, 5534, 5266, 4987, 4699, 4402, 4096, 3783, 3462, 3135, 2802, 2463, 2120, 1773, 1423, 1069,
  714, 357, 0,
]);

/** Fills the cosine tables. Call it once, before the first hash. */
export function prepareHash(): void {
  for (let frequency: i32 = 0; frequency < 8; frequency++) {
    for (let x: i32 = 0; x < 32; x++) {
      const cosine = cosineAt(QUARTER_OF_64, 64, (2 * x + 1) * frequency);
      store<i16>(COSINE_X + ((frequency * 32 + x) << 1), <i16> cosine);
    }
    for (let y: i32 = 0; y < 36; y++) {
      const cosine = cosineAt(QUARTER_OF_72, 72, (2 * y + 1) * frequency);
      store<f64>(COSINE_Y + ((frequency * 36 + y) << 3), <f64> cosine);
    }
  }
}

/** 8192 * cos(step * pi / half), from a quarter wave. */
function cosineAt(quarter: usize, half: i32, step: i32): i32 {
  let folded = step % (2 * half);
  if (folded > half) folded = 2 * half - folded;
  if (folded * 2 > half) return -<i32> load<i16>(quarter + ((half - folded) << 1));
  return <i32> load<i16>(quarter + (folded << 1));
}

/** The hash of the grid in CELLS. */
export function hashCells(): u64 {
  transformRows();
  transformColumns();
  const threshold = i32x4.splat(medianCoefficient() + FLOOR);
  let hash: u64 = 0;
  for (let i: usize = 0; i < 64; i += 4) {
    const above = i32x4.gt_s(v128.load(COEFFICIENTS + i * 4), threshold);
    hash |= (<u64> <u32> i32x4.bitmask(above)) << i;
  }
  return hash & ~(<u64> 1);
}

function transformRows(): void {
  for (let y: usize = 0; y < CELL_ROWS; y++) {
    const cells = CELLS + y * CELL_COLUMNS * 2;
    const first = v128.load(cells), second = v128.load(cells, 16);
    const third = reversed(v128.load(cells, 32)), fourth = reversed(v128.load(cells, 48));
    const row = ROWS + y * ROW_BYTES;
    // At most 2 x 6375 = 12750 in the sums and differences.
    const evenLeft = i16x8.add(first, fourth), evenRight = i16x8.add(second, third);
    const oddLeft = i16x8.sub(first, fourth), oddRight = i16x8.sub(second, third);
    for (let half: usize = 0; half < 2; half++) {
      const cosines = COSINE_X + half * 4 * CELL_COLUMNS * 2;
      const sums = sums4(
        dots(evenLeft, evenRight, cosines),
        dots(oddLeft, oddRight, cosines + CELL_COLUMNS * 2),
        dots(evenLeft, evenRight, cosines + 2 * CELL_COLUMNS * 2),
        dots(oddLeft, oddRight, cosines + 3 * CELL_COLUMNS * 2),
      );
      v128.store(row + half * 32, f64x2.convert_low_i32x4_s(sums));
      v128.store(row + half * 32, f64x2.convert_low_i32x4_s(v128.shuffle<i64>(sums, sums, 1, 0)), 16);
    }
  }
}

function reversed(words: v128): v128 {
  return v128.shuffle<i16>(words, words, 7, 6, 5, 4, 3, 2, 1, 0);
}

/** The products of half a row, 16 cells, with the first 16 of the cosines, in four partial sums. */
function dots(left: v128, right: v128, cosines: usize): v128 {
  return i32x4.add(
    i32x4.dot_i16x8_s(left, v128.load(cosines)),
    i32x4.dot_i16x8_s(right, v128.load(cosines, 16)),
  );
}

function transformColumns(): void {
  // The upper half of ROWS becomes the sums of the rows that are equally far from the ends, the lower half
  // the differences.
  for (let at: usize = 0; at < CELL_ROWS / 2 * ROW_BYTES; at += 16) {
    const row = at & ~(ROW_BYTES - 1);
    const upper = ROWS + at, lower = ROWS + (CELL_ROWS - 1) * ROW_BYTES - row + (at - row);
    const a = v128.load(upper), b = v128.load(lower);
    v128.store(upper, f64x2.add(a, b));
    v128.store(lower, f64x2.sub(a, b));
  }
  for (let v: usize = 0; v < 8; v++) {
    let u01 = f64x2.splat(0), u23 = u01, u45 = u01, u67 = u01;
    const cosines = COSINE_Y + v * CELL_ROWS * 8;
    let row = (v & 1) == 0 ? ROWS : ROWS + (CELL_ROWS - 1) * ROW_BYTES;
    const step: isize = (v & 1) == 0 ? ROW_BYTES : -<isize> ROW_BYTES;
    for (let at = cosines; at < cosines + CELL_ROWS / 2 * 8; at += 8) {
      const cosine = v128.load64_splat(at);
      u01 = f64x2.add(u01, f64x2.mul(v128.load(row), cosine));
      u23 = f64x2.add(u23, f64x2.mul(v128.load(row, 16), cosine));
      u45 = f64x2.add(u45, f64x2.mul(v128.load(row, 32), cosine));
      u67 = f64x2.add(u67, f64x2.mul(v128.load(row, 48), cosine));
      row += step;
    }
    const coefficients = COEFFICIENTS + v * 32;
    v128.store(coefficients, narrow(u01, u23));
    v128.store(coefficients + 16, narrow(u45, u67));
  }
}

/** Four exact sums without their lowest 18 bits, as i32. */
function narrow(first: v128, second: v128): v128 {
  const part = f64x2.splat(1.0 / 262_144);
  const low = i32x4.trunc_sat_f64x2_s_zero(f64x2.floor(f64x2.mul(first, part)));
  const high = i32x4.trunc_sat_f64x2_s_zero(f64x2.floor(f64x2.mul(second, part)));
  return v128.shuffle<i32>(low, high, 0, 1, 4, 5);
}

/**
 * The 32nd smallest of the 63 coefficients, by binary search over the values: the smallest m with at least 32
 * coefficients <= m. Coefficient (0, 0) is set to the largest value first, so that it does not count.
 */
function medianCoefficient(): i32 {
  store<i32>(COEFFICIENTS, i32.MAX_VALUE);
  let low: i32 = i32.MIN_VALUE;
  let high: i32 = i32.MAX_VALUE;
  while (low < high) {
    const middle = (low & high) + ((low ^ high) >> 1);
    if (countUpTo(middle) >= 32) high = middle;
    else low = middle + 1;
  }
  return low;
}

function countUpTo(limit: i32): i32 {
  const limits = i32x4.splat(limit);
  // A true lane is -1. Addresses that are constant need no check.
  let above = i32x4.gt_s(v128.load(COEFFICIENTS), limits);
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 16), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 32), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 48), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 64), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 80), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 96), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 112), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 128), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 144), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 160), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 176), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 192), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 208), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 224), limits));
  above = i32x4.add(above, i32x4.gt_s(v128.load(COEFFICIENTS, 240), limits));
  return 64 + sum4(above);
}
