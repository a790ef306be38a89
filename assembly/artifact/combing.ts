/** Whether neighbouring lines of the picture show two moments in turn: measures of combing, on lines that
 * nothing was averaged of.
 */

import { apart, sum8 } from "../lanes";
import { put } from "./measures";

/*
 * The lines come in groups of four neighbours, 320 samples each: first line a of all groups, then b, c, and
 * d. Those of the newest four frames are kept: frame i in slot i % 4.
 *
 *   a  ---- x ----      A sample place is combed where all steps between the four lines go up and down in turn, each by more
 *   b  ------ x --      than TREMOR levels. Of four lines a and c belong to one field, b and d to the other.
 *   c  ---- x ----
 *   d  ------ x --
 *
 * At newly combed places line b is compared with the mean of a and c of this frame and of the three before
 * it, and line c likewise with b and d. If nothing is wrong, both differ alike from an older frame: it is as
 * old for either field. If one field is of another moment, an older frame is nearer to one of them.
 */

/** One line of each group. */
const LINE: i32 = 8 * 320;
const LINES_ALL: i32 = 4 * LINE;
export const LINES_BYTES: usize = LINES_ALL;
const SLOTS: i32 = 4;
/** So many samples are added up in sixteen bits a lane. */
const PART: i32 = 320;
const SAMPLES: f32 = 320 * 8;
/** Steps up to this are noise. */
const TREMOR: i8 = 2;
/** Below so many levels in all, a tenth of a level a sample, the frames before are not compared. */
const COMPARED_FROM: i32 = 256;
/** Half a level a sample: so much is added to what is divided by. */
const FLOOR: f32 = 1280;

const LINES: usize = memory.data(4 * 8 * 4 * 320, 16);
/**
 * Of the newest two frames: 0 where a place is not combed, UP where line b is above its neighbours, else
 * DOWN.
 */
const COMBED: usize = memory.data(2 * 8 * 320, 16);
const COMBED_BYTES: i32 = LINE;
const UP: i8 = 0x0f;
const DOWN: i8 = -16;
/** 255 where a place is combed in another way than in the frame before: what stands there is no comb. */
const NEWLY: usize = memory.data(8 * 320, 16);

let frames: i32 = 0;

/** The next frame has no frames before it. */
export function resetCombing(): void {
  frames = 0;
  memory.fill(COMBED, 0, 2 * COMBED_BYTES);
}

/**
 * Measures 35 to 37 of the next frame, by its lines: 32 times 320 samples at any alignment, or 0 where it has
 * none.
 */
export function measureCombing(lines: usize): void {
  put(35, 0);
  put(36, 0);
  put(37, 0);
  if (lines == 0) return resetCombing();
  const own = linesBefore(0);
  memory.copy(own, lines, LINES_ALL);
  const combed = alternation(own);
  put(35, <f32> combed / SAMPLES);
  if (combed >= COMPARED_FROM) {
    markNew();
    compareFields(own);
  }
  frames++;
}

/** The lines of the frame that came `lag` frames before the newest, or of the first one. */
function linesBefore(lag: i32): usize {
  return LINES + ((frames - min(frames, lag)) & (SLOTS - 1)) * LINES_ALL;
}

/**
 * Fills COMBED of the newest frame; returns by how many levels beyond TREMOR the lines go up and down in
 * turn.
 */
function alternation(lines: usize): i32 {
  const tremor = i8x16.splat(TREMOR);
  const none = i8x16.splat(0);
  const ups = i8x16.splat(UP), downs = i8x16.splat(DOWN);
  const marks = combedBefore(0);
  let total = 0;
  for (let part = 0; part < LINE; part += PART) {
    let sums = i16x8.splat(0);
    for (let at = part; at < part + PART; at += 16) {
      const a = v128.load(lines + at), b = v128.load(lines + at, 1 * LINE);
      const c = v128.load(lines + at, 2 * LINE), d = v128.load(lines + at, 3 * LINE);
      const up = i8x16.min_u(
        i8x16.sub_sat_u(b, a),
        i8x16.min_u(i8x16.sub_sat_u(b, c), i8x16.sub_sat_u(d, c)),
      );
      const down = i8x16.min_u(
        i8x16.sub_sat_u(a, b),
        i8x16.min_u(i8x16.sub_sat_u(c, b), i8x16.sub_sat_u(c, d)),
      );
      const steps = i8x16.sub_sat_u(i8x16.max_u(up, down), tremor);
      const way = v128.bitselect(downs, ups, i8x16.eq(up, none));
      v128.store(marks + at, v128.and(way, i8x16.ne(steps, none)));
      sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(steps));
    }
    total += sum8(sums);
  }
  return total;
}

function combedBefore(lag: i32): usize {
  return COMBED + ((frames + lag) & 1) * COMBED_BYTES;
}

function markNew(): void {
  const own = combedBefore(0), before = combedBefore(1);
  const none = i8x16.splat(0);
  for (let at = 0; at < COMBED_BYTES; at += 16) {
    const way = v128.load(own + at);
    v128.store(NEWLY + at, v128.and(i8x16.ne(way, none), i8x16.ne(way, v128.load(before + at))));
  }
}

/** Measures 36 and 37. */
function compareFields(own: usize): void {
  const odd = fieldDifference(own, own, 1), even = fieldDifference(own, own, 2);
  let apartMost: f32 = 0;
  for (let lag = 1; lag < SLOTS; lag++) {
    const older = linesBefore(lag);
    const oddOlder = fieldDifference(own, older, 1);
    const evenOlder = fieldDifference(own, older, 2);
    const all = max(odd + even, oddOlder + evenOlder) + FLOOR;
    const between = (evenOlder - even - oddOlder + odd) / all;
    if (abs<f32>(between) > abs<f32>(apartMost)) apartMost = between;
    if (lag == 1) put(37, (odd + even - oddOlder - evenOlder) / all);
  }
  put(36, apartMost);
}

/**
 * How far line 1 or 2 of the groups is, at newly combed places, from the mean of the two lines beside it in
 * another frame.
 */
function fieldDifference(own: usize, other: usize, line: i32): f32 {
  const between = line * LINE;
  let total = 0;
  for (let part = 0; part < LINE; part += PART) {
    let sums = i16x8.splat(0);
    for (let at = part; at < part + PART; at += 16) {
      const beside = other + between + at;
      const mean = i8x16.avgr_u(v128.load(beside - LINE), v128.load(beside + LINE));
      const step = v128.and(apart(v128.load(own + between + at), mean), v128.load(NEWLY + at));
      sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_u(step));
    }
    total += sum8(sums);
  }
  return <f32> total;
}
