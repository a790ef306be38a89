/** Texture: how far samples stick out of their neighbours, and steps between rows; what edges are found by is
 * made on the way.
 */

import { apart, EIGHTS, LANE_MASKS, ONE_WORDS, sum4, sums4 } from "../lanes";
import { acrossOf, EDGE_LEAST, STEPS, STEPS_BYTES, STRETCHES } from "./edges";

/*
 *   SPIKES  20x9 blocks of 16x20 luma samples: sum of how far samples stick out of both their neighbours in a row or column
 *   LINES   180 rows: sum of the steps between a row and the one above that have no like beside them
 *
 * for the newest two frames (frame i in slot i % 2). Along rows every second row is looked at, down columns
 * all of them. The plane is read in ten stretches of 32 samples, each from top to bottom, so that a step
 * between two rows is made once for all measures.
 */

const BLOCKS: i32 = 180;
const BLOCK_COLUMNS: i32 = 20;
const BLOCK_ROWS: i32 = 9;
const BLOCK_HEIGHT: i32 = 20;
const ROWS: i32 = 180;
const WIDTH: i32 = 320;
const CELL_COLUMNS: i32 = 80;

const SPIKES: usize = memory.data(2 * 180 * 4, 16);
const LINES: usize = memory.data(2 * 180 * 4, 16);
/** For each row of samples the steps of 8 places of columns. */
const LINE_PARTS: usize = memory.data(180 * 16, 16);
/** Differences up to this are no step. */
const STEP_FLOOR: usize = memory.data<u8>([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5], 16);
/** A block with less is flat. */
const FLAT_BELOW: i32 = 60;
/**
 * The most spikes in a row of blocks and in those above and below it, with room for a block on either side
 * that stays 0.
 */
const MOST: usize = memory.data(4 * 4 + 20 * 4 + 4 * 4, 16);

/** Of the newest frame: sums of the spikes along rows and down columns. */
export let spikesAcross: i32 = 0;
export let spikesDown: i32 = 0;

/**
 * Fills SPIKES and LINES, the counts of edges along rows, the steps of edges down columns, and 80x45 `cells`:
 * the rounded means of 4x4 samples.
 */
export function measureTexture(luma: usize, slot: i32, cells: usize): void {
  const spikes = SPIKES + slot * BLOCKS * 4, edges = acrossOf(slot);
  memory.fill(LINE_PARTS, 0, 16 * ROWS);
  let totals = i32x4.splat(0);
  for (let stretch = 0; stretch < STRETCHES; stretch++) {
    totals = i32x4.add(
      totals,
      measureStretch(luma + (stretch << 5), stretch, spikes, edges + stretch, cells + (stretch << 3)),
    );
  }
  spikesDown = i32x4.extract_lane(totals, 0) + i32x4.extract_lane(totals, 1);
  spikesAcross = i32x4.extract_lane(totals, 2) + i32x4.extract_lane(totals, 3);
  // There is no line in the last row.
  memory.fill(LINE_PARTS + 16 * (ROWS - 1), 0, 16);
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
 * Two columns of blocks. Returns the sums of their spikes down columns, left and right, and along rows. Edges
 * are counted in the left column. Four rows at a time, as the steps that are kept then stay in their places:
 * s0 is that of the first row, above it p1 to p3.
 */
function measureStretch(stretchAt: usize, stretch: i32, spikes: usize, edges: usize, cells: usize): v128 {
  const floor = v128.load(STEP_FLOOR), edgeLeast = v128.load(EDGE_LEAST), ones = v128.load(ONE_WORDS);
  // At the edges of the picture a sample stands for its missing neighbour, so it is no spike.
  const leftMask = v128.load(LANE_MASKS + (stretch == 0 ? 16 : 0));
  const rightMask = v128.load(LANE_MASKS + (stretch == STRETCHES - 1 ? 32 : 0));
  // Rows above the picture count as steps of any height, so that there are no lines in rows 0 and 1, nor
  // edges in rows 0 to 2.
  let s0 = i8x16.splat(-1), p1 = s0, p2 = s0, p3 = s0, s0Right = s0, p1Right = s0;
  let own = v128.load(stretchAt), right = v128.load(stretchAt, 16);
  // What rows 0 and 1 will add, of which there are no spikes.
  let down = i16x8.neg(firstSpikes(stretchAt)), downRight = i16x8.neg(firstSpikes(stretchAt + 16));
  let at = stretchAt, part = LINE_PARTS, steps = STEPS + 16 + (stretch << 5);
  // The row before.
  edges -= STRETCHES;
  let totals = i32x4.splat(0);
  for (let row = 0; row < BLOCK_ROWS; row++) {
    const top = at, until = at + BLOCK_HEIGHT * WIDTH;
    for (; at < until; at += 4 * WIDTH) {
      let means = i16x8.extadd_pairwise_i8x16_u(own), meansRight = i16x8.extadd_pairwise_i8x16_u(right);
      let next = v128.load(at, 320);
      means = i16x8.add(means, i16x8.extadd_pairwise_i8x16_u(next));
      const s1 = apart(next, own);
      own = v128.load(at, 336);
      meansRight = i16x8.add(meansRight, i16x8.extadd_pairwise_i8x16_u(own));
      const s1Right = apart(own, right);
      down = i16x8.add(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s0, s1)));
      downRight = i16x8.add(downRight, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s0Right, s1Right)));
      v128.store(
        part,
        plusLines(v128.load(part), lone(s0, p1, s1, floor), lone(s0Right, p1Right, s1Right, floor)),
      );
      store<u8>(edges, countEdges(p1, p3, s1, edgeLeast));

      right = v128.load(at, 640);
      means = i16x8.add(means, i16x8.extadd_pairwise_i8x16_u(right));
      const s2 = apart(right, next);
      next = v128.load(at, 656);
      meansRight = i16x8.add(meansRight, i16x8.extadd_pairwise_i8x16_u(next));
      const s2Right = apart(next, own);
      down = i16x8.add(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s1, s2)));
      downRight = i16x8.add(downRight, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s1Right, s2Right)));
      v128.store(
        part,
        plusLines(v128.load(part, 16), lone(s1, s0, s2, floor), lone(s1Right, s0Right, s2Right, floor)),
        16,
      );
      store<u8>(edges, countEdges(s0, p2, s2, edgeLeast), 10);

      own = v128.load(at, 960);
      means = i16x8.add(means, i16x8.extadd_pairwise_i8x16_u(own));
      const s3 = apart(own, right);
      right = v128.load(at, 976);
      meansRight = i16x8.add(meansRight, i16x8.extadd_pairwise_i8x16_u(right));
      storeMeans(cells, means, meansRight);
      const s3Right = apart(right, next);
      down = i16x8.add(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s2, s3)));
      downRight = i16x8.add(downRight, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s2Right, s3Right)));
      v128.store(
        part,
        plusLines(v128.load(part, 32), lone(s2, s1, s3, floor), lone(s2Right, s1Right, s3Right, floor)),
        32,
      );
      store<u8>(edges, countEdges(s1, p1, s3, edgeLeast), 20);

      next = v128.load(at, 1280);
      const s4 = apart(next, own);
      own = next;
      next = v128.load(at, 1296);
      const s4Right = apart(next, right);
      right = next;
      down = i16x8.add(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s3, s4)));
      downRight = i16x8.add(downRight, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(s3Right, s4Right)));
      v128.store(
        part,
        plusLines(v128.load(part, 48), lone(s3, s2, s4, floor), lone(s3Right, s2Right, s4Right, floor)),
        48,
      );
      store<u8>(edges, countEdges(s2, s0, s4, edgeLeast), 30);

      p3 = s1;
      p2 = s2;
      p1 = s3;
      s0 = s4;
      p1Right = s3Right;
      s0Right = s4Right;
      part += 64;
      edges += 40;
      cells += CELL_COLUMNS;
    }
    if (row == BLOCK_ROWS - 1) {
      // What the last row added, which has no row behind it.
      down = i16x8.sub(down, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(p1, s0)));
      downRight = i16x8.sub(downRight, i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(p1Right, s0Right)));
    }
    let across = i16x8.splat(0), acrossRight = across;
    for (let line = top - 1; line < until - 1; line += 4 * WIDTH) {
      let left = v128.load(line, 1), other = v128.load(line, 17);
      let stepsLeft = apart(left, v128.load(line)), stepsOther = apart(other, shifted(left, other));
      v128.store(steps, stepsLeft);
      v128.store(steps, stepsOther, 16);
      steps += STEPS_BYTES;
      across = i16x8.add(across, spikesOf(stepsLeft, following(stepsLeft, stepsOther), leftMask));
      let last = apart(other, v128.load(line, 18));
      acrossRight = i16x8.add(acrossRight, spikesOf(stepsOther, last, rightMask));

      left = v128.load(line, 641), other = v128.load(line, 657);
      stepsLeft = apart(left, v128.load(line, 640)), stepsOther = apart(other, shifted(left, other));
      across = i16x8.add(across, spikesOf(stepsLeft, following(stepsLeft, stepsOther), leftMask));
      last = apart(other, v128.load(line, 658));
      acrossRight = i16x8.add(acrossRight, spikesOf(stepsOther, last, rightMask));
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
    down = i16x8.splat(0);
    downRight = down;
  }
  // The row behind the last but one is not in the picture.
  store<u8>(edges - STRETCHES, 0);
  return totals;
}

/** The samples before those of `right`, which lie behind `left`. */
function shifted(left: v128, right: v128): v128 {
  return v128.shuffle<i8>(left, right, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
}

/** The samples behind those of `left`, which lie before `right`. */
function following(left: v128, right: v128): v128 {
  return v128.shuffle<i8>(left, right, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
}

/** Sums of the spikes of sixteen samples, by the steps before and behind each. */
function spikesOf(before: v128, behind: v128, mask: v128): v128 {
  return i16x8.extadd_pairwise_i8x16_u(v128.and(i8x16.min_u(before, behind), mask));
}

/** Stores eight cells, of which there are the sums of 2x4 samples. */
function storeMeans(cells: usize, left: v128, right: v128): void {
  const ones = v128.load(ONE_WORDS);
  const sums = i16x8.narrow_i32x4_u(i32x4.dot_i16x8_s(left, ones), i32x4.dot_i16x8_s(right, ones));
  const means = i16x8.shr_u(i16x8.add(sums, v128.load(EIGHTS)), 4);
  v128.store64_lane(cells, i8x16.narrow_i16x8_u(means, means), 0);
}

/** What rows 0 and 1 seem to stick out by, where everything is above the picture. */
function firstSpikes(at: usize): v128 {
  const second = v128.load(at, 320);
  const first = apart(second, v128.load(at)), next = apart(v128.load(at, 640), second);
  return i16x8.add(
    i16x8.extadd_pairwise_i8x16_u(first),
    i16x8.extadd_pairwise_i8x16_u(i8x16.min_u(first, next)),
  );
}

/** By how much a step is larger than those before and behind it, beyond the floor. */
function lone(step: v128, before: v128, behind: v128, floor: v128): v128 {
  return i8x16.sub_sat_u(i8x16.sub_sat_u(step, i8x16.max_u(before, behind)), floor);
}

function plusLines(sums: v128, left: v128, right: v128): v128 {
  const both = i16x8.add(i16x8.extadd_pairwise_i8x16_u(left), i16x8.extadd_pairwise_i8x16_u(right));
  return i16x8.add(sums, both);
}

function countEdges(step: v128, before: v128, behind: v128, least: v128): u8 {
  const above = i8x16.sub_sat_u(step, i8x16.max_u(before, behind));
  return <u8> popcnt<i32>(i8x16.bitmask(i8x16.ge_u(above, least)));
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

/**
 * The share of the blocks whose texture grew; `slot` and `other` are those of a frame and of the one before.
 */
export function grownShare(slot: i32, other: i32): f32 {
  return <f32> grownBlocks(SPIKES + slot * BLOCKS * 4, SPIKES + other * BLOCKS * 4) / <f32> BLOCKS;
}

/** The strongest new step between two rows, mean of its samples. */
export function newLineStep(slot: i32, other: i32): f32 {
  return <f32> newLine(LINES + slot * ROWS * 4, LINES + other * ROWS * 4) / 320;
}

/**
 * How many blocks have more spikes than they and those around them had before, as what was there may have
 * moved here.
 */
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

/**
 * By how much the lines of a row are more than those of the three rows there before, at most; of rows 1 to
 * 178.
 */
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
