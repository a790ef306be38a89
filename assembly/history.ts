/** What is the same for all cells of the newest frames that ranges are found in: sums over the cells of one
 * frame, and of two.
 */

import { sum4, wordsApart } from "./lanes";
import { CELL_BYTES, cellsOf, LUMA_BYTES, movesOf } from "./ranges/layout";

export { CELLS, FRAMES, MOVES, NUMBERS, PROFILES } from "./ranges/layout";
export { addMoves, CELL_SUMS, changed, clearMoves, measureMixes, measureWays } from "./ranges/cell_ways";
export { fitSlide } from "./ranges/slide_fit";
export { likeness, roughness } from "./ranges/structure";

/** Of the frame that was measured last: 6 x i32, see `measure`. */
export const STATS: usize = memory.data(6 * 4, 16);

/**
 * Writes STATS of a frame beside the one before it: the sum of its luma cells and of its moves, the sum of
 * the changes of all cells and the largest, and the least and the largest luma cell.
 */
export function measure(frame: i32, before: i32): void {
  const cells = cellsOf(frame), others = cellsOf(before), moves = movesOf(frame);
  let sums = i32x4.splat(0), moved = sums, steps = sums;
  let least = i16x8.splat(-1), most = i16x8.splat(0), change = most;
  for (let at: usize = 0; at < LUMA_BYTES; at += 16) {
    const own = v128.load(cells + at);
    const difference = wordsApart(own, v128.load(others + at));
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(own));
    moved = i32x4.add(moved, i32x4.extadd_pairwise_i16x8_u(v128.load(moves + at)));
    steps = i32x4.add(steps, i32x4.extadd_pairwise_i16x8_u(difference));
    least = i16x8.min_u(least, own);
    most = i16x8.max_u(most, own);
    change = i16x8.max_u(change, difference);
  }
  for (let at = LUMA_BYTES; at < CELL_BYTES; at += 16) {
    const difference = wordsApart(v128.load(cells + at), v128.load(others + at));
    steps = i32x4.add(steps, i32x4.extadd_pairwise_i16x8_u(difference));
    change = i16x8.max_u(change, difference);
  }
  store<i32>(STATS, sum4(sums));
  store<i32>(STATS, sum4(moved), 4);
  store<i32>(STATS, sum4(steps), 8);
  store<i32>(STATS, largest(change), 12);
  store<i32>(STATS, 0xffff - largest(v128.not(least)), 16);
  store<i32>(STATS, largest(most), 20);
}

/** The sum of the differences of all cells of two frames. */
export function apart(one: i32, other: i32): i32 {
  const a = cellsOf(one), b = cellsOf(other);
  let steps = i32x4.splat(0);
  for (let at: usize = 0; at < CELL_BYTES; at += 48) {
    const first = wordsApart(v128.load(a + at), v128.load(b + at));
    const second = wordsApart(v128.load(a + at, 16), v128.load(b + at, 16));
    const third = wordsApart(v128.load(a + at, 32), v128.load(b + at, 32));
    steps = i32x4.add(steps, i32x4.extadd_pairwise_i16x8_u(first));
    steps = i32x4.add(steps, i32x4.extadd_pairwise_i16x8_u(second));
    steps = i32x4.add(steps, i32x4.extadd_pairwise_i16x8_u(third));
  }
  return sum4(steps);
}

/** The largest of eight words without a sign. */
function largest(words: v128): i32 {
  let most = i16x8.max_u(words, v128.shuffle<i64>(words, words, 1, 0));
  most = i16x8.max_u(most, v128.shuffle<i32>(most, most, 1, 0, 3, 2));
  return max(<i32> i16x8.extract_lane_u(most, 0), <i32> i16x8.extract_lane_u(most, 1));
}
