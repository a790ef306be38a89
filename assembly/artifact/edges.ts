/** Straight edges along rows and columns: the borders of damaged blocks, at any place, and everything else
 * that is straight.
 */

import { put } from "./measures";

/*
 * A sample is part of an edge when its step to the sample before it is EDGE_LEAST levels larger than the
 * steps two samples before and behind: reducing the picture spreads an edge over two steps. The samples of an
 * edge are counted
 *
 *   ACROSS  in 180 rows of 10 stretches: the first 16 of each 32 samples
 *   DOWN    in 9 bands of 320 columns: every fourth of the 20 rows of a band
 *
 * for the newest two frames (frame i in slot i % 2).
 */

/** Larger than the steps nearby by at least so many levels. */
export const EDGE_LEAST: usize = memory.data<u8>([8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8], 16);
/**
 * Samples of a stretch, and of a column of a band, from which on it is an edge, and below which it is clearly
 * none.
 */
const ACROSS_MIN: i8 = 10;
const ACROSS_NONE: i8 = 5;
const DOWN_MIN: i8 = 3;
const DOWN_NONE: i8 = 2;

const WIDTH: i32 = 320;
const HEIGHT: i32 = 180;
export const STRETCHES: i32 = 10;
const BANDS: i32 = 9;
/** 8 bytes more than there are stretches, which are 0. */
const ACROSS_BYTES: i32 = 180 * 10 + 8;
const DOWN_BYTES: i32 = 9 * 320;
/** Rows of a band that are looked at. */
const BAND_ROWS: i32 = 5;
/**
 * The steps along each of the rows that are looked at, written by the measure of texture, with room on both
 * sides.
 */
export const STEPS_BYTES: i32 = 16 + 320 + 16;
export const STEPS: usize = memory.data(9 * 5 * 352, 16);
/** Between the slots, for the neighbours of the first and the last counts. */
const PAD: i32 = 32;
const ACROSS: usize = memory.data(2 * 1808 + 3 * 32, 16);
const DOWN: usize = memory.data(2 * 2880 + 3 * 32, 16);

/**
 * Measures 17 to 22: thousandths of edges, of new ones and of those that are gone, along rows and then down
 * columns.
 */
export function measureEdges(slot: i32, isFirst: bool): void {
  const across = acrossOf(slot), down = DOWN + PAD + slot * (DOWN_BYTES + PAD);
  findDown(down);
  const other = isFirst ? slot : slot ^ 1;
  compareEdges(
    across,
    acrossOf(other),
    ACROSS_BYTES,
    STRETCHES,
    ACROSS_MIN,
    ACROSS_NONE,
  );
  putShares(17, STRETCHES * HEIGHT);
  compareEdges(down, DOWN + PAD + other * (DOWN_BYTES + PAD), DOWN_BYTES, 1, DOWN_MIN, DOWN_NONE);
  putShares(20, DOWN_BYTES);
}

/**
 * Where the counts of edges along rows are, to be filled for rows 3 to 177, which have steps two rows before
 * and behind.
 */
export function acrossOf(slot: i32): usize {
  return ACROSS + PAD + slot * (ACROSS_BYTES + PAD);
}

/** In columns 3 to 317, which have steps two columns before and behind. */
function findDown(out: usize): void {
  const least = v128.load(EDGE_LEAST);
  for (let band: i32 = 0; band < BANDS; band++) {
    const counts = out + band * WIDTH;
    for (let x: i32 = 0; x < WIDTH; x += 16) {
      const steps = STEPS + band * BAND_ROWS * STEPS_BYTES + x;
      // A true lane is -1.
      let found = i8x16.add(foundAt(steps, least), foundAt(steps + STEPS_BYTES, least));
      found = i8x16.add(found, foundAt(steps + 2 * STEPS_BYTES, least));
      found = i8x16.add(found, foundAt(steps + 3 * STEPS_BYTES, least));
      found = i8x16.add(found, foundAt(steps + 4 * STEPS_BYTES, least));
      v128.store(counts + x, i8x16.neg(found));
    }
    store<u16>(counts, 0);
    store<u8>(counts, 0, 2);
    store<u16>(counts, 0, WIDTH - 2);
  }
}

/** Which of sixteen steps are those of an edge; the first is 16 bytes behind `steps`. */
function foundAt(steps: usize, least: v128): v128 {
  const beside = i8x16.max_u(v128.load(steps, 14), v128.load(steps, 18));
  return i8x16.ge_u(i8x16.sub_sat_u(v128.load(steps, 16), beside), least);
}

let edges: i32 = 0;
let added: i32 = 0;
let gone: i32 = 0;

/**
 * An edge is new where the frame before had none in the same place nor in the places `stride` before and
 * behind it.
 */
function compareEdges(now: usize, before: usize, bytes: i32, stride: i32, least: i8, none: i8): void {
  edges = 0;
  added = 0;
  gone = 0;
  const edge = i8x16.splat(least), clear = i8x16.splat(none);
  for (let i = 0; i < bytes; i += 16) {
    const own = v128.load(now + i), old = v128.load(before + i);
    const isEdge = i8x16.ge_u(own, edge), wasEdge = i8x16.ge_u(old, edge);
    if (!v128.any_true(v128.or(isEdge, wasEdge))) continue;
    const most = i8x16.max_u(own, i8x16.max_u(v128.load(now + i - stride), v128.load(now + i + stride)));
    const mostBefore = i8x16.max_u(
      old,
      i8x16.max_u(v128.load(before + i - stride), v128.load(before + i + stride)),
    );
    edges += popcnt<i32>(i8x16.bitmask(isEdge));
    added += popcnt<i32>(i8x16.bitmask(v128.and(isEdge, i8x16.lt_u(mostBefore, clear))));
    gone += popcnt<i32>(i8x16.bitmask(v128.and(wasEdge, i8x16.lt_u(most, clear))));
  }
}

function putShares(index: i32, places: i32): void {
  const scale: f32 = 1000 / <f32> places;
  put(index, <f32> edges * scale);
  put(index + 1, <f32> added * scale);
  put(index + 2, <f32> gone * scale);
}
