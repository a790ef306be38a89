/** The cut score of each frame: how sure it is the first frame of a new shot; known five frames later. */

/*
 * THE METHOD
 *
 * A cut replaces the whole picture, permanently. Most other changes differ in one of these points: a flash, an inserted
 * frame or damage disappears again; a moving subject, a green lower half or scattered garbage changes only a part of
 * the picture; a flash or a change of exposure keeps the structure; a shaking or panning camera moves it. So the score
 * is computed from three quantities, which all use one similarity measure. See docs/frames.md#cut-score.
 *
 * Similarity of two frames, in [0,1]. Both are reduced to 40x20 cells of 8x9 samples and divided into 5x4 blocks of 8x5
 * cells. The match of a block is its normalized cross-correlation with the best of nine positions in the other frame:
 * its own and one cell around it (8 samples sideways, 9 up or down), for shake, pans and zooms. Correlation ignores
 * changes of brightness and contrast. 4 squared luma levels are added to both variances first, so that sensor noise
 * neither correlates nor counts as structure. A match of .85 or more counts as 1. The similarity is the weighted mean
 * of the block matches. The weight of a block is its structure, variance / (variance + 16), so sky and letterbox bars
 * hardly count. The mean is computed twice:
 *
 *   - with the stronger structure of the two frames as the weight, and .2 blocks of agreement added, so two blank frames
 *     are similar, and a blank one and a full one are not;
 *   - with the weaker structure as the weight, and .6 blocks of disagreement added, so only blocks with structure in
 *     both frames count: a frame whose lower two thirds are lost is still similar to its neighbours by the upper third.
 *
 * The larger of the two is the similarity. Across 185 labelled cuts it is below .41 for 95 % of the cuts (below .29 for
 * half of them); inside the shots of the same 17 videos, with much shake, flashes, noise and damage, it is above .8 for
 * 96 % of the pairs of neighbours.
 *
 * Black bars are removed first: their edge is the same in every shot and would make two of four rows of blocks match.
 * Dark and flat rows and columns of samples at the border are bars, and the cells that they touch are filled with the
 * mirror image of the picture between them. (With letterboxed copies of videos whose cuts were all found, the F1 score
 * fell to .52; with the mirror image it is .99.)
 *
 *   ... i-6   i-4   i-2  i-1 | i  i+1   i+3   i+5 ...
 *        `-----`-----`----`--|--'----'----'----'        change: 1 - the best similarity of these 16 pairs
 *
 * change  Is the picture permanently new? 1 - the largest similarity of any of four frames before and any of four
 *         frames from this one on. A picture that was there before and returns within five frames is not new. Six
 *         frames back and five ahead cover a shot of six frames, the shortest that is expected.
 * unrest  Is the change usual here? The mean difference of neighbours over four frames before, and after; the smaller
 *         one. Noise, shake and stop motion change the picture all the time, but a cut has a quiet side.
 * jolt    The same for the nearest frames: the larger difference of the two nearest pairs before, and after; the
 *         smaller one.
 *
 *   z = 24 change - 9 unrest - 14 jolt - 8.6          score = (1 + z / sqrt(z^2 + 4)) / 2
 *
 * The weights are near those of a logistic regression on edited videos that were made for this purpose, and small
 * changes of them matter little: with 1300 labelled cuts, 11 to 14 frames are decided wrongly when the weight of unrest
 * or jolt changes by a quarter, or when the change that is needed in a quiet place (8.6 / 24 = .36) is anywhere from
 * .33 to .39. The last step replaces the logistic function by operations that are exact on every machine.
 *
 * Two more rules lower a score of .5 or more to below .5. Of several large changes near each other, only the largest
 * within two frames to either side is the cut. And a frame that follows decoder gray (three quarters of the cells
 * within two levels of 128) is no cut: the decoder had lost its reference frames, and the same picture returns.
 *
 * Everything up to the correlation is exact in integers. After it there are single f32 additions, multiplications,
 * divisions and square roots in a fixed order, all correctly rounded, so the result is the same on every machine. Where
 * two neighbours differ by less than .2 the score cannot reach .5, and the other pairs are not computed.
 */

/*
 * MEMORY: 16 slots, frame i is in slot i % 16; the pairs of one decision reach 11 frames back from the newest.
 *
 *   slot:  CELLS      20 rows x 40 x i16    sum of 72 samples / 8 - 1152, so 9 a luma level, at most +-1152
 *          SUMS       16 x 33 x i32         sum of the 8x5 window whose first cell is (row, column) ...
 *          SCALES     16 x 33 x f32         ... and 1 / sqrt(its variance + floor); only the 130 positions that
 *                                           some block may move to are filled
 *          STRUCTURE  4 x 5 x f32           variance / (variance + 16) of each block at its own position
 *   SIMILARITY  16 slots x 12 x f32         to the frame `lag` frames before; -1 until it is computed
 *   DIFFERENCE  16 x f32                    1 - similarity to the frame before
 *   GRAY        16 x u8                     is decoder gray
 *   SCORES      64 x f32                    final (settled) scores, frame i at i % 64
 */

export const CUT_LOOKAHEAD: i32 = 5;

const SLOTS: i32 = 16;
const LAGS: i32 = 12;
const COLUMNS: i32 = 40;
const ROWS: i32 = 20;
const BLOCK_COLUMNS: i32 = 8;
const BLOCK_ROWS: i32 = 5;
const WINDOW_COLUMNS: i32 = 33;
const ROW_BYTES: i32 = 80;
const PLANE_ROW_BYTES: i32 = 320;
const CELL_BIAS: i32 = 1152;
const SCORE_RING: i32 = 64;

const CELLS_BYTES: i32 = 20 * 80;
const WINDOW_BYTES: i32 = 16 * 33 * 4;
const CELLS: usize = memory.data(16 * 20 * 80, 16);
const SUMS: usize = memory.data(16 * 16 * 33 * 4, 16);
const SCALES: usize = memory.data(16 * 16 * 33 * 4, 16);
const STRUCTURE: usize = memory.data(16 * 20 * 4, 16);
const SIMILARITY: usize = memory.data(16 * 12 * 4, 16);
const DIFFERENCE: usize = memory.data(16 * 4, 16);
const GRAY: usize = memory.data(16, 16);
const SCORES: usize = memory.data(64 * 4, 16);

/** Cells in a window. Sums are not divided, so a variance here is 40^2 x 9^2 times that of luma levels. */
const WINDOW_CELLS: i32 = 40;
const NOISE_FLOOR: f32 = 4 * 40 * 40 * 9 * 9;
const STRUCTURE_KNEE: f32 = 16 * 40 * 40 * 9 * 9;
const WHOLE_MATCH: f32 = 0.85;
const AGREEMENT_PRIOR: f32 = 0.2;
const DISAGREEMENT_PRIOR: f32 = 0.6;

const QUIET: f32 = 0.2;
const SURROUNDINGS: i32 = 4;
const CHANGE_WEIGHT: f32 = 24;
const UNREST_WEIGHT: f32 = 9;
const JOLT_WEIGHT: f32 = 14;
const BIAS: f32 = 8.6;
const SOFTNESS: f32 = 4;
const OVERRULED: f32 = 0.49;
const GRAY_REACH: i16 = 18;
const GRAY_CELLS: i32 = 600;
const BAR_LUMA_MAX: i32 = 40;
const BAR_RANGE_MAX: i32 = 12;
const TOP_BAR_CELLS_MAX: i32 = 7;
const SIDE_BAR_CELLS_MAX: i32 = 15;

let frames: i32 = 0;
let settled: i32 = 0;

/** Removes all frames. */
export function cutReset(): void {
  frames = 0;
  settled = 0;
}

/**
 * Adds the next frame's plane, 320x180 bytes at any alignment; the score of the frame CUT_LOOKAHEAD before is final.
 */
export function cutPush(plane: usize): void {
  const frame = frames++;
  reduce(plane, cellsOf(frame));
  coverBars(plane, cellsOf(frame));
  measureWindows(frame);
  const slot = frame & (SLOTS - 1);
  store<u8>(GRAY + slot, isGray(cellsOf(frame)) ? 1 : 0);
  for (let lag = 1; lag < LAGS; lag++) store<f32>(SIMILARITY + ((slot * LAGS + lag) << 2), -1);
  store<f32>(DIFFERENCE + (slot << 2), frame > 0 ? 1 - similarity(frame, frame - 1) : 0);
  if (frame >= CUT_LOOKAHEAD) settle();
}

/** Call after the last frame: makes the scores of the remaining frames final. */
export function cutFinish(): void {
  while (settled < frames) settle();
}

/** How many frames, from the first on, have a final score. */
export function cutSettled(): i32 {
  return settled;
}

/** The score of a frame, which must be among the last 64 final ones. */
export function cutScore(index: i32): f32 {
  return load<f32>(SCORES + ((index & (SCORE_RING - 1)) << 2));
}

/**
 * Whether the final score of the frame, one of the newest CUT_LOOKAHEAD, may be .5 or more. Each further frame can only
 * lower its change, and unrest and jolt are only subtracted, so the answer false does not change later. Most frames get
 * it at once.
 */
export function cutIsOpen(frame: i32): bool {
  if (frame == 0) return false;
  const difference = differenceAt(frame);
  const change = difference < QUIET ? difference : changeOver(frame, 6, 5);
  return CHANGE_WEIGHT * change - BIAS >= 0;
}

/** The final score that the frame, one of the newest CUT_LOOKAHEAD, would get if no frame followed. */
export function cutScoreSoFar(frame: i32): f32 {
  return score(frame);
}

function settle(): void {
  store<f32>(SCORES + ((settled & (SCORE_RING - 1)) << 2), score(settled));
  settled++;
}

function score(frame: i32): f32 {
  if (frame == 0) return 0;
  const difference = differenceAt(frame);
  const change = difference < QUIET ? difference : changeOver(frame, 6, 5);
  const before = min(SURROUNDINGS, frame - 1);
  const after = min(SURROUNDINGS, frames - 1 - frame);
  // At either end of the video the one existing side is used for both.
  const left = before > 0 ? before : after;
  const leftStart = before > 0 ? frame - before : frame + 1;
  const right = after > 0 ? after : before;
  const rightStart = after > 0 ? frame + 1 : frame - before;
  const unrest = min(meanDifference(leftStart, left), meanDifference(rightStart, right));
  // The nearest two pairs on each side.
  const leftNear = min(2, left);
  const rightNear = min(2, right);
  const jolt = min(
    largestDifference(before > 0 ? frame - leftNear : frame + 1, leftNear),
    largestDifference(after > 0 ? frame + 1 : frame - rightNear, rightNear),
  );
  const z = CHANGE_WEIGHT * change - UNREST_WEIGHT * unrest - JOLT_WEIGHT * jolt - BIAS;
  const confidence: f32 = 0.5 + 0.5 * (z / sqrt<f32>(z * z + SOFTNESS));
  if (z < 0) return confidence;
  const overruled = isGrayAt(frame - 1) || !isLargestNearby(frame);
  return overruled ? confidence * OVERRULED : confidence;
}

/** 1 - the largest similarity of one of the frames 1, 2, 4, 6 before (to `back`) and 0, 1, 3, 5 after (to `ahead`). */
function changeOver(frame: i32, back: i32, ahead: i32): f32 {
  let largest: f32 = 0;
  for (let a = 0; a <= ahead; a = a == 0 ? 1 : a + 2) {
    if (frame + a >= frames) break;
    for (let b = 1; b <= back; b = b == 1 ? 2 : b + 2) {
      if (frame - b < 0) break;
      largest = max(largest, similarity(frame + a, frame - b));
    }
  }
  return 1 - largest;
}

/** Of several large changes within two frames only the largest is a cut; of equal ones the first. */
function isLargestNearby(frame: i32): bool {
  const own = changeOver(frame, 4, 3);
  for (let other = max(1, frame - 2); other < frame; other++) {
    if (changeOver(other, 4, 3) >= own) return false;
  }
  for (let other = frame + 1; other <= min(frames - 1, frame + 2); other++) {
    if (changeOver(other, 4, 3) > own) return false;
  }
  return true;
}

function meanDifference(start: i32, count: i32): f32 {
  if (count == 0) return 0;
  let sum: f32 = 0;
  for (let i = 0; i < count; i++) sum += differenceAt(start + i);
  return sum / <f32> count;
}

function largestDifference(start: i32, count: i32): f32 {
  let largest: f32 = 0;
  for (let i = 0; i < count; i++) largest = max(largest, differenceAt(start + i));
  return largest;
}

function differenceAt(frame: i32): f32 {
  return load<f32>(DIFFERENCE + ((frame & (SLOTS - 1)) << 2));
}

function isGrayAt(frame: i32): bool {
  return load<u8>(GRAY + (frame & (SLOTS - 1))) != 0;
}

/** Similarity of two frames; `later` was pushed after `earlier`. It is computed once and stored. */
function similarity(later: i32, earlier: i32): f32 {
  const at = SIMILARITY + (((later & (SLOTS - 1)) * LAGS + (later - earlier)) << 2);
  const known = load<f32>(at);
  if (known >= 0) return known;
  const value = compare(later & (SLOTS - 1), earlier & (SLOTS - 1));
  store<f32>(at, value);
  return value;
}

function compare(later: i32, earlier: i32): f32 {
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
  let best: f32 = 0;
  for (let y = max(row - 1, 0); y <= rowEnd; y++) {
    for (let x = columnStart; x <= columnEnd; x++) {
      const other = CELLS + earlier * CELLS_BYTES + y * ROW_BYTES + (x << 1);
      let dots = i32x4.dot_i16x8_s(first, v128.load(other));
      dots = i32x4.add(dots, i32x4.dot_i16x8_s(second, v128.load(other + ROW_BYTES)));
      dots = i32x4.add(dots, i32x4.dot_i16x8_s(third, v128.load(other + 2 * ROW_BYTES)));
      dots = i32x4.add(dots, i32x4.dot_i16x8_s(fourth, v128.load(other + 3 * ROW_BYTES)));
      dots = i32x4.add(dots, i32x4.dot_i16x8_s(fifth, v128.load(other + 4 * ROW_BYTES)));
      const window = earlier * WINDOW_BYTES + ((y * WINDOW_COLUMNS + x) << 2);
      // Both products stay below 40 x 40 x 1152^2 = 2,123,366,400, which fits an i32.
      const covariance = WINDOW_CELLS * total(dots) - sum * load<i32>(SUMS + window);
      best = max(best, <f32> covariance * scale * load<f32>(SCALES + window));
    }
  }
  return min(best / WHOLE_MATCH, <f32> 1);
}

/** Fills SUMS, SCALES and STRUCTURE, for each block at its own position and at the eight around it. */
function measureWindows(frame: i32): void {
  const slot = frame & (SLOTS - 1);
  for (let row = 0; row < ROWS; row += BLOCK_ROWS) {
    const rowEnd = min(row + 1, ROWS - BLOCK_ROWS);
    for (let y = max(row - 1, 0); y <= rowEnd; y++) {
      for (let column = 0; column < COLUMNS; column += BLOCK_COLUMNS) {
        const columnEnd = min(column + 1, COLUMNS - BLOCK_COLUMNS);
        for (let x = max(column - 1, 0); x <= columnEnd; x++) {
          const variance = measureWindow(slot, y, x);
          if (y != row || x != column) continue;
          const block = slot * 20 + (row / BLOCK_ROWS) * 5 + column / BLOCK_COLUMNS;
          store<f32>(STRUCTURE + (block << 2), variance / (variance + STRUCTURE_KNEE));
        }
      }
    }
  }
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
  const sum = total(i32x4.extadd_pairwise_i16x8_s(columns));
  let squares = i32x4.add(i32x4.dot_i16x8_s(first, first), i32x4.dot_i16x8_s(second, second));
  squares = i32x4.add(squares, i32x4.dot_i16x8_s(third, third));
  squares = i32x4.add(squares, i32x4.dot_i16x8_s(fourth, fourth));
  squares = i32x4.add(squares, i32x4.dot_i16x8_s(fifth, fifth));
  const variance = <f32> (WINDOW_CELLS * total(squares) - sum * sum);
  const window = slot * WINDOW_BYTES + ((y * WINDOW_COLUMNS + x) << 2);
  store<i32>(SUMS + window, sum);
  store<f32>(SCALES + window, <f32> 1 / sqrt<f32>(variance + NOISE_FLOOR));
  return variance;
}

function total(lanes: v128): i32 {
  const pairs = i32x4.add(lanes, v128.shuffle<i32>(lanes, lanes, 2, 3, 0, 1));
  return i32x4.extract_lane(pairs, 0) + i32x4.extract_lane(pairs, 1);
}

function isGray(cells: usize): bool {
  let counts = i16x8.splat(0);
  const reach = i16x8.splat(GRAY_REACH);
  for (let at = 0; at < CELLS_BYTES; at += 16) {
    // A true lane is -1.
    counts = i16x8.sub(counts, i16x8.le_s(i16x8.abs(v128.load(cells + at)), reach));
  }
  return total(i32x4.extadd_pairwise_i16x8_s(counts)) >= GRAY_CELLS;
}

/** 320x180 samples -> 40x20 cells of 8x9. */
function reduce(plane: usize, cells: usize): void {
  for (let row = 0; row < ROWS; row++) {
    const rows = plane + row * 9 * PLANE_ROW_BYTES;
    for (let x = 0; x < 5; x++) {
      const at = rows + x * 64;
      const sums = i16x8.narrow_i32x4_s(cellSums(at), cellSums(at + 32));
      const cell = i16x8.sub(i16x8.shr_u(sums, 3), i16x8.splat(<i16> CELL_BIAS));
      v128.store(cells + row * ROW_BYTES + x * 16, cell);
    }
  }
}

/** 9 rows of 32 samples -> 4 sums of 8x9, at most 18360 each. */
function cellSums(at: usize): v128 {
  const ones = i16x8.splat(1);
  const left = i32x4.dot_i16x8_s(pairSums(at), ones);
  const right = i32x4.dot_i16x8_s(pairSums(at + 16), ones);
  return i32x4.dot_i16x8_s(i16x8.narrow_i32x4_s(left, right), ones);
}

/** 9 rows of 16 samples -> 8 sums of 2x9, at most 4590 each. */
function pairSums(at: usize): v128 {
  let sums = i16x8.extadd_pairwise_i8x16_u(v128.load(at));
  for (let row = 1; row < 9; row++) {
    sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(v128.load(at + row * PLANE_ROW_BYTES)));
  }
  return sums;
}

/** Replaces the cells that black bars touch by the mirror image of the picture between the bars. */
function coverBars(plane: usize, cells: usize): void {
  const top = touchedCells(barRows(plane, PLANE_ROW_BYTES), 9, TOP_BAR_CELLS_MAX);
  const bottom = touchedCells(barRows(plane + 179 * PLANE_ROW_BYTES, -PLANE_ROW_BYTES), 9, TOP_BAR_CELLS_MAX);
  const left = touchedCells(leftBarColumns(plane), 8, SIDE_BAR_CELLS_MAX);
  const right = touchedCells(rightBarColumns(plane), 8, SIDE_BAR_CELLS_MAX);
  if ((top | bottom) != 0) mirrorRows(cells, top, ROWS - 1 - bottom);
  if ((left | right) != 0) mirrorColumns(cells, left, COLUMNS - 1 - right);
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

function cellsOf(frame: i32): usize {
  return CELLS + <usize> ((frame & (SLOTS - 1)) * CELLS_BYTES);
}
