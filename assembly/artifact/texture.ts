/** Texture: how far samples stick out of their neighbours, and steps between rows; edges along rows are found on the way. */

import { apart, LANE_MASKS, ONE_WORDS, sum4, sums4 } from "../lanes";
import { acrossOf, EDGE_LEAST, STRETCHES } from "./edges";

/*
 *   SPIKES  20x9 blocks of 16x20 luma samples: sum of how far samples stick out of both their neighbours in a row or column
 *   LINES   180 rows: sum of the steps between a row and the one above that have no like beside them
 *
 * for the newest two frames (frame i in slot i % 2). Along rows every second row is looked at, down columns all of them. The plane
 * is read in ten stretches of 32 samples, each from top to bottom, so that a step between two rows is made once for all measures.
 */

const BLOCKS: i32 = 180;
const BLOCK_COLUMNS: i32 = 20;
const BLOCK_ROWS: i32 = 9;
const BLOCK_HEIGHT: i32 = 20;
const ROWS: i32 = 180;
/** The last row that has one behind it. */
const LAST: i32 = 178;
const WIDTH: i32 = 320;

const SPIKES: usize = memory.data(2 * 180 * 4, 16);
const LINES: usize = memory.data(2 * 180 * 4, 16);
/** For each row of samples the steps of 8 places of columns. */
const LINE_PARTS: usize = memory.data(180 * 16, 16);
/** Differences up to this are no step. */
const STEP_FLOOR: usize = memory.data<u8>([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5], 16);
/** A block with less is flat. */
const FLAT_BELOW: i32 = 60;
/** The most spikes in a row of blocks and in those above and below it, with room for a block on either side that stays 0. */
const MOST: usize = memory.data(4 * 4 + 20 * 4 + 4 * 4, 16);

/** Of the newest frame: sums of the spikes along rows and down columns. */
export let spikesAcross: i32 = 0;
export let spikesDown: i32 = 0;

/** Fills SPIKES and LINES, and the counts of edges along rows. */
export function measureTexture(luma: usize, slot: i32): void {
  const spikes = SPIKES + slot * BLOCKS * 4, edges = acrossOf(slot);
  memory.fill(LINE_PARTS, 0, 16 * ROWS);
  let totals = i32x4.splat(0);
  for (let stretch = 0; stretch < STRETCHES; stretch++) {
    totals = i32x4.add(totals, measureStretch(luma + (stretch << 5), stretch, spikes, edges + stretch));
  }
  spikesDown = i32x4.extract_lane(totals, 0) + i32x4.extract_lane(totals, 1);
  spikesAcross = i32x4.extract_lane(totals, 2) + i32x4.extract_lane(totals, 3);
  const lines = LINES + slot * ROWS * 4, ones = v128.load(ONE_WORDS);
  for (let row = 0; row < ROWS; row += 4) {
    const parts = LINE_PARTS + (row << 4);
    const first = i32x4.dot_i16x8_s(v128.load(parts), ones);
    const second = i32x4.dot_i16x8_s(v128.load(parts, 16), ones);
    const third = i32x4.dot_i16x8_s(v128.load(parts, 32), ones);
    const fourth = i32x4.dot_i16x8_s(v128.load(parts, 48), ones);
    v128.store(lines + (row << 2), sums4(first, second, third, fourth));
  }
}

/**
 * Two columns of blocks. Returns the sums of their spikes down columns, left and right, and along rows. Edges are counted in the left
 * column; in rows 1 and 2 there are none, as rows above the picture count as steps of any height.
 */
function measureStretch(stretchAt: usize, stretch: i32, spikes: usize, edges: usize): v128 {
  const floor = v128.load(STEP_FLOOR), edgeLeast = v128.load(EDGE_LEAST), ones = v128.load(ONE_WORDS);
  // At the edges of the picture a sample stands for its missing neighbour, so it is no spike.
  const leftMask = v128.load(LANE_MASKS + (stretch == 0 ? 16 : 0));
  const rightMask = v128.load(LANE_MASKS + (stretch == STRETCHES - 1 ? 32 : 0));
  let at = stretchAt + 2 * WIDTH;
  let own = v128.load(at), right = v128.load(at, 16);
  let third = i8x16.splat(-1), second = third;
  let before = apart(v128.load(at - WIDTH), v128.load(stretchAt)), step = apart(own, v128.load(at - WIDTH));
  let beforeRight = apart(v128.load(at - WIDTH, 16), v128.load(stretchAt, 16));
  let stepRight = apart(right, v128.load(at - WIDTH, 16));
  let part = LINE_PARTS + 2 * 16;
  edges += STRETCHES;
  let totals = i32x4.splat(0);
  let y = 2;
  for (let row = 0; row < BLOCK_ROWS; row++) {
    let down = i16x8.splat(0), downRight = down;
    const until = (row + 1) * BLOCK_HEIGHT;
    while (true) {
      let next = v128.load(at, 320);
      let after = apart(next, own);
      own = next;
      next = v128.load(at, 336);
      let afterRight = apart(next, right);
      right = next;
      down = i16x8.add(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(step, after)));
      downRight = i16x8.add(downRight, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(stepRight, afterRight)));
      let lone = i8x16.sub_sat_u(i8x16.sub_sat_u(step, i8x16.max_u(before, after)), floor);
      let loneRight = i8x16.sub_sat_u(
        i8x16.sub_sat_u(stepRight, i8x16.max_u(beforeRight, afterRight)),
        floor,
      );
      addLines(part, lone, loneRight);
      countEdges(edges, i8x16.sub_sat_u(before, i8x16.max_u(third, after)), edgeLeast);
      if (y == LAST) break;

      next = v128.load(at, 640);
      const afterNext = apart(next, own);
      own = next;
      next = v128.load(at, 656);
      const afterNextRight = apart(next, right);
      right = next;
      down = i16x8.add(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(after, afterNext)));
      downRight = i16x8.add(
        downRight,
        i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(afterRight, afterNextRight)),
      );
      lone = i8x16.sub_sat_u(i8x16.sub_sat_u(after, i8x16.max_u(step, afterNext)), floor);
      loneRight = i8x16.sub_sat_u(i8x16.sub_sat_u(afterRight, i8x16.max_u(stepRight, afterNextRight)), floor);
      addLines(part + 16, lone, loneRight);
      countEdges(edges + STRETCHES, i8x16.sub_sat_u(step, i8x16.max_u(second, afterNext)), edgeLeast);

      third = before;
      second = step;
      before = after;
      step = afterNext;
      beforeRight = afterRight;
      stepRight = afterNextRight;
      at += 2 * WIDTH;
      part += 32;
      edges += 2 * STRETCHES;
      y += 2;
      if (y == until) break;
    }
    const top = stretchAt + row * BLOCK_HEIGHT * WIDTH;
    let across = i16x8.splat(0), acrossRight = across;
    for (let line = top; line < top + BLOCK_HEIGHT * WIDTH; line += 4 * WIDTH) {
      across = i16x8.add(across, spikesAlong(line, v128.load(line), leftMask));
      acrossRight = i16x8.add(acrossRight, spikesAlong(line + 16, v128.load(line, 16), rightMask));
      across = i16x8.add(across, spikesAlong(line + 640, v128.load(line, 640), leftMask));
      acrossRight = i16x8.add(acrossRight, spikesAlong(line + 656, v128.load(line, 656), rightMask));
    }
    const sums = sums4(
      i32x4.dot_i16x8_s(down, ones),
      i32x4.dot_i16x8_s(downRight, ones),
      i32x4.dot_i16x8_s(across, ones),
      i32x4.dot_i16x8_s(acrossRight, ones),
    );
    const both = i32x4.add(sums, i32x4.shl(v128.shuffle<i32>(sums, sums, 2, 3, 0, 1), 1));
    v128.store64_lane(spikes + ((row * BLOCK_COLUMNS + 2 * stretch) << 2), both, 0);
    totals = i32x4.add(totals, sums);
  }
  return totals;
}

function spikesAlong(at: usize, own: v128, mask: v128): v128 {
  const spike = i8x16.min_u(apart(own, v128.load(at - 1)), apart(own, v128.load(at, 1)));
  return i16x8.extadd_pairwise_i8x16_u(v128.and(spike, mask));
}

function addLines(part: usize, left: v128, right: v128): void {
  const both = i16x8.add(i16x8.extadd_pairwise_i8x16_u(left), i16x8.extadd_pairwise_i8x16_u(right));
  v128.store(part, i16x8.add(v128.load(part), both));
}

function countEdges(edges: usize, lone: v128, least: v128): void {
  store<u8>(edges, <u8> popcnt<i32>(i8x16.bitmask(i8x16.ge_u(lone, least))));
}

/** How many blocks of a frame are flat. */
export function flatBlocks(slot: i32): i32 {
  const spikes = SPIKES + slot * BLOCKS * 4;
  let flat = i32x4.splat(0);
  for (let at = 0; at < BLOCKS * 4; at += 16) {
    // A true lane is -1.
    flat = i32x4.sub(flat, i32x4.lt_s(v128.load(spikes + at), i32x4.splat(FLAT_BELOW)));
  }
  return sum4(flat);
}

/** The share of the blocks whose texture grew; `slot` and `other` are those of a frame and of the one before. */
export function grownShare(slot: i32, other: i32): f32 {
  return <f32> grownBlocks(SPIKES + slot * BLOCKS * 4, SPIKES + other * BLOCKS * 4) / <f32> BLOCKS;
}

/** The strongest new step between two rows, mean of its samples. */
export function newLineStep(slot: i32, other: i32): f32 {
  return <f32> newLine(LINES + slot * ROWS * 4, LINES + other * ROWS * 4) / 320;
}

/** How many blocks have more spikes than they and those around them had before, as what was there may have moved here. */
function grownBlocks(spikes: usize, before: usize): i32 {
  let grown = i32x4.splat(0);
  for (let row: i32 = 0; row < BLOCK_ROWS; row++) {
    const above = before + max(0, row - 1) * BLOCK_COLUMNS * 4;
    const here = before + row * BLOCK_COLUMNS * 4;
    const below = before + min(BLOCK_ROWS - 1, row + 1) * BLOCK_COLUMNS * 4;
    for (let at = 0; at < BLOCK_COLUMNS * 4; at += 16) {
      const most = i32x4.max_s(
        v128.load(above + at),
        i32x4.max_s(v128.load(here + at), v128.load(below + at)),
      );
      v128.store(MOST + 16 + at, most);
    }
    for (let at = 0; at < BLOCK_COLUMNS * 4; at += 16) {
      const own = v128.load(spikes + row * BLOCK_COLUMNS * 4 + at);
      let most = i32x4.max_s(v128.load(MOST + at, 12), v128.load(MOST + at, 20));
      most = i32x4.max_s(most, v128.load(MOST + at, 16));
      const quarterMore = i32x4.shr_s(i32x4.add(most, i32x4.shl(most, 2)), 2);
      grown = i32x4.sub(grown, i32x4.gt_s(own, i32x4.add(quarterMore, i32x4.splat(150))));
    }
  }
  return sum4(grown);
}

/** By how much the lines of a row are more than those of the three rows there before, at most; of rows 1 to 178. */
function newLine(lines: usize, before: usize): i32 {
  let most = i32x4.splat(0);
  for (let row: usize = 1; row < <usize> ROWS - 1; row += 4) {
    // The last four rows were in part in the vector before.
    const at = min(row, <usize> ROWS - 5) << 2;
    const sides = i32x4.max_s(v128.load(before + at - 4), v128.load(before + at + 4));
    const were = i32x4.max_s(v128.load(before + at), sides);
    most = i32x4.max_s(most, i32x4.sub(v128.load(lines + at), were));
  }
  most = i32x4.max_s(most, v128.shuffle<i32>(most, most, 2, 3, 0, 1));
  return max(i32x4.extract_lane(most, 0), i32x4.extract_lane(most, 1));
}
