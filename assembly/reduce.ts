/** Scales a plane of a live picture to 320x180 samples or fewer by area averages; differs from ffmpeg's
 * scaler by at most 1.
 */

/*
 * The vertical pass is first: it makes up to 180 lines of the source's width from all source rows, with whole
 * vectors. The horizontal pass is slower for each sample, but has to read those lines only.
 *
 *   BAND      256 KiB + 32 KiB    whole rows of the source, copied here by the caller without changes
 *   LINE      8192 x i16 + 64     one line: the weighted mean of some rows, 128 units for each level
 *   PLANE     320 x 180 x u8      the result, whose rows have no padding
 *   ROW_*     180 rows            the source rows of each output row: the first, how many, and their weights
 *   COLUMN_*  320 columns         the same for columns
 *
 * Weights have 14 bits, and those of one output sample sum to exactly 16384. Where the source is larger, a
 * weight is the share of the output sample's area that the source sample covers; where it is smaller, the
 * weights are those of linear interpolation between sample centres. Sums stay below 255 * 128 * 16384 < 2^31.
 */

export const BAND_BYTES: i32 = 1 << 18;
export const EDGE_MAX: i32 = 8192;
export const BAND: usize = memory.data((1 << 18) + (1 << 15), 16);
export const PLANE: usize = memory.data(320 * 180, 16);
export const ROW_FIRST: usize = memory.data(180 * 4, 16);
export const ROW_COUNT: usize = memory.data(180 * 4, 16);

const LINE: usize = memory.data(8192 * 2 + 128, 16);
/** At least 8192 / 180 rows (4096 / 90 of chroma) and two that are covered partly; an even number. */
const ROW_TAPS: i32 = 48;
const ROW_WEIGHTS: usize = memory.data(180 * 48 * 2, 16);
/** At least 8192 / 320 columns (4096 / 160 of chroma) and two that are covered partly; whole vectors. */
const COLUMN_TAPS: i32 = 32;
const COLUMN_FIRST: usize = memory.data(320 * 4, 16);
const COLUMN_COUNT: usize = memory.data(320 * 4, 16);
const COLUMN_WEIGHTS: usize = memory.data(320 * 32 * 2, 16);

const ONE: i64 = 16384;
/** A line keeps 7 of the 14 bits of the weights; the last step removes those and 14 more. */
const LINE_SHIFT: i32 = 7;
const LINE_HALF: i32 = 64;
const RESULT_SHIFT: i32 = 21;
const RESULT_HALF: i32 = 1 << 20;

let width: i32 = 0;
let outputWidth: i32 = 0;
/** How many vectors of eight weights a column needs, 1 to 4. */
let columnVectors: usize = 1;

/**
 * Sets the sizes from now on: of the regions, each edge 1 to EDGE_MAX, and of the result, at most 320x180 and
 * its width a multiple of four. A region is at most 8192 / 180 times as high and 8192 / 320 times as wide as
 * the result.
 */
export function configure(regionWidth: i32, regionHeight: i32, resultWidth: i32, resultHeight: i32): void {
  width = regionWidth;
  outputWidth = resultWidth;
  fillTaps(regionHeight, resultHeight, ROW_FIRST, ROW_COUNT, ROW_WEIGHTS, ROW_TAPS);
  const most = fillTaps(regionWidth, resultWidth, COLUMN_FIRST, COLUMN_COUNT, COLUMN_WEIGHTS, COLUMN_TAPS);
  columnVectors = <usize> ((most + 7) >> 3);
}

/**
 * Makes the output rows `from` to `to` (exclusive). BAND has the source rows from ROW_FIRST of row `from` on,
 * `stride` bytes each; the region starts `left` bytes into each row.
 */
export function reduce(from: i32, to: i32, stride: i32, left: i32): void {
  const bandFirst = load<i32>(ROW_FIRST + (<usize> from << 2));
  for (let row = from; row < to; row++) {
    const first = load<i32>(ROW_FIRST + (<usize> row << 2)) - bandFirst;
    const weights = ROW_WEIGHTS + <usize> (row * ROW_TAPS * 2);
    sumRows(
      BAND + <usize> (first * stride + left),
      stride,
      weights,
      load<i32>(ROW_COUNT + (<usize> row << 2)),
    );
    sumColumns(PLANE + <usize> (row * outputWidth));
  }
}

/**
 * Sixteen samples at a time. Samples to the right of the region are summed too, but later get the weight 0.
 */
function sumRows(rows: usize, stride: i32, weights: usize, count: i32): void {
  for (let x: i32 = 0; x < width; x += 16) {
    let first = i32x4.splat(LINE_HALF);
    let second = first;
    let third = first;
    let fourth = first;
    let at = rows + <usize> x;
    // Two rows in each step, interleaved in 16-bit lanes. For an odd number of rows the last weight is 0.
    for (let row: i32 = 0; row < count; row += 2) {
      const pair = v128.load32_splat(weights + (<usize> row << 1));
      const upper = v128.load(at);
      const lower = v128.load(at + <usize> stride);
      const left = v128.shuffle<i8>(upper, lower, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const right = v128.shuffle<i8>(
        upper,
        lower,
        8,
        24,
        9,
        25,
        10,
        26,
        11,
        27,
        12,
        28,
        13,
        29,
        14,
        30,
        15,
        31,
      );
      first = i32x4.add(first, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(left), pair));
      second = i32x4.add(second, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(left), pair));
      third = i32x4.add(third, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(right), pair));
      fourth = i32x4.add(fourth, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(right), pair));
      at += <usize> (stride << 1);
    }
    const line = LINE + (<usize> x << 1);
    v128.store(line, narrow(first, second));
    v128.store(line + 16, narrow(third, fourth));
  }
}

function narrow(low: v128, high: v128): v128 {
  return i16x8.narrow_i32x4_s(i32x4.shr_s(low, LINE_SHIFT), i32x4.shr_s(high, LINE_SHIFT));
}

/** Four output samples at a time. */
function sumColumns(output: usize): void {
  for (let column: usize = 0; column < <usize> outputWidth; column += 4) {
    const first = columnSums(column);
    const second = columnSums(column + 1);
    const third = columnSums(column + 2);
    const fourth = columnSums(column + 3);
    const left = addPairs(first, second);
    const right = addPairs(third, fourth);
    let sums = i32x4.add(
      v128.shuffle<i32>(left, right, 0, 1, 4, 5),
      v128.shuffle<i32>(left, right, 2, 3, 6, 7),
    );
    sums = i32x4.shr_s(i32x4.add(sums, i32x4.splat(RESULT_HALF)), RESULT_SHIFT);
    const words = i16x8.narrow_i32x4_s(sums, sums);
    store<i32>(output + column, i32x4.extract_lane(i8x16.narrow_i16x8_u(words, words), 0));
  }
}

/** Four partial sums of one output sample. */
function columnSums(column: usize): v128 {
  const samples = LINE + (<usize> load<i32>(COLUMN_FIRST + (column << 2)) << 1);
  const weights = COLUMN_WEIGHTS + column * <usize> COLUMN_TAPS * 2;
  let sums = i32x4.dot_i16x8_s(v128.load(samples), v128.load(weights));
  for (let vector: usize = 1; vector < columnVectors; vector++) {
    const at = vector << 4;
    sums = i32x4.add(sums, i32x4.dot_i16x8_s(v128.load(samples + at), v128.load(weights + at)));
  }
  return sums;
}

/** a0 a1 a2 a3, b0 b1 b2 b3 -> a0+a2, b0+b2, a1+a3, b1+b3. */
function addPairs(a: v128, b: v128): v128 {
  return i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
}

/** Fills the tables of one axis; returns the largest number of source samples of one output sample. */
function fillTaps(source: i32, output: i32, firsts: usize, counts: usize, weights: usize, taps: i32): i32 {
  memory.fill(weights, 0, <usize> (output * taps * 2));
  let most: i32 = 1;
  for (let index: i32 = 0; index < output; index++) {
    const row = weights + <usize> (index * taps * 2);
    const place = <usize> index << 2;
    const count = source >= output
      ? areaTaps(source, output, index, firsts + place, row)
      : linearTaps(source, output, index, firsts + place, row);
    store<i32>(counts + place, count);
    most = max(most, count);
  }
  return most;
}

/**
 * In units of 1 / output of a source sample, output sample i covers i * source to (i + 1) * source. Weights
 * are the differences of rounded cumulative shares, so that their sum is exact.
 */
function areaTaps(source: i32, output: i32, index: i32, first: usize, weights: usize): i32 {
  const start = <i64> index * <i64> source;
  const end = start + <i64> source;
  const from = start / <i64> output;
  const to = (end + <i64> output - 1) / <i64> output;
  let before: i64 = 0;
  for (let sample = from; sample < to; sample++) {
    const covered = min<i64>((sample + 1) * <i64> output, end) - start;
    const until = (2 * ONE * covered + <i64> source) / (2 * <i64> source);
    store<i16>(weights + (<usize> (sample - from) << 1), <i16> (until - before));
    before = until;
  }
  store<i32>(first, <i32> from);
  return <i32> (to - from);
}

/**
 * In units of 1 / (2 * output), the centre of output sample i is (2i + 1) * source - output after the first
 * one's.
 */
function linearTaps(source: i32, output: i32, index: i32, first: usize, weights: usize): i32 {
  const unit = 2 * output;
  const position = (2 * index + 1) * source - output;
  const from = position / unit;
  if (position <= 0 || from >= source - 1) {
    store<i32>(first, position <= 0 ? 0 : source - 1);
    store<i16>(weights, <i16> ONE);
    return 1;
  }
  const next = (<i32> ONE * (position % unit) + output) / unit;
  store<i32>(first, from);
  store<i16>(weights, <i16> (<i32> ONE - next));
  store<i16>(weights + 2, <i16> next);
  return 2;
}
