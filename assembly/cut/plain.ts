/** Cuts between two plain pictures, such as a gray and another gray: there is nothing in them that the trees
 * could compare.
 */

import { CHROMA, CHROMA_BYTES, MEANS, MEANS_BYTES, numberAt, SLOTS, TEXTURE } from "./layout";
import { newest } from "./pairs";

/** Units of a level in MEANS and in CHROMA. */
const LUMA_LEVEL: i32 = 12;
const CHROMA_LEVEL: i32 = 9;
const BLOCKS: i32 = 100;
const CHROMA_CELLS: i32 = 200;
/** Levels between the least and the largest block or cell of a plain picture. */
const RANGE_MAX: i32 = 3;
/** By how many levels the cells of it differ from their blocks in the mean, in units of TEXTURE. */
const TEXTURE_MAX: f32 = 2 * 4800 * 12;
/** The pictures on either side differ by so many levels in luma or in a plane of chroma. */
const DIFFERENCE_MIN: i32 = 6;
/** Those on one side differ by less than this: in a fade no picture stands. */
const DRIFT_MAX: i32 = 2;
/** So long, and for so many frames, the first picture stands before the cut: what flickers stands shorter. */
const BEFORE_MS: f64 = 200;
const BEFORE_FRAMES: i32 = 6;
const BEFORE_FRAMES_MAX: i32 = 24;
/** A video may begin with fewer. */
const FIRST_FRAMES: i32 = 3;
/** Chroma of the green that a decoder shows which has lost its picture. */
const GREEN: i32 = 28;

/** Times of the frames, by slot. */
const TIMES: usize = memory.data(32 * 8, 16);

/** Mean levels of a plain picture. */
let luma: i32 = 0;
let u: i32 = 0;
let v: i32 = 0;

/** A frame was added. */
export function plainPush(frame: i32, ptsMs: f64): void {
  store<f64>(TIMES + ((frame & (SLOTS - 1)) << 3), ptsMs);
}

/**
 * Whether the frame shows another plain picture than those before it, and those after it show the same, as
 * far as they are known.
 */
export function isPlainCut(frame: i32): bool {
  if (frame < FIRST_FRAMES || !isPlain(frame)) return false;
  const lumaAfter = luma, uAfter = u, vAfter = v;
  if (!isPlain(frame - 1)) return false;
  const lumaBefore = luma, uBefore = u, vBefore = v;
  if (max(uAfter, vAfter) < GREEN) return false;
  if (!differs(lumaAfter, uAfter, vAfter, DIFFERENCE_MIN)) return false;
  for (let after = frame + 1; after <= newest; after++) {
    if (!isPlain(after) || differs(lumaAfter, uAfter, vAfter, DRIFT_MAX)) return false;
  }
  const cutMs = timeOf(frame);
  for (let n = 2; n <= BEFORE_FRAMES_MAX && n <= frame; n++) {
    if (n > BEFORE_FRAMES && cutMs - timeOf(frame - n + 1) >= BEFORE_MS) return true;
    if (!isPlain(frame - n) || differs(lumaBefore, uBefore, vBefore, DRIFT_MAX)) return false;
  }
  return true;
}

function timeOf(frame: i32): f64 {
  return load<f64>(TIMES + ((frame & (SLOTS - 1)) << 3));
}

/** Whether a mean of the picture that was looked at last differs by so many levels. */
function differs(otherLuma: i32, otherU: i32, otherV: i32, levels: i32): bool {
  return max(abs(luma - otherLuma), max(abs(u - otherU), abs(v - otherV))) >= levels;
}

/** Whether a frame shows one brightness and one colour; its means are known then. */
function isPlain(frame: i32): bool {
  const slot = frame & (SLOTS - 1);
  if (numberAt(slot, TEXTURE) > TEXTURE_MAX) return false;
  luma = levelOf(MEANS + slot * MEANS_BYTES, BLOCKS, LUMA_LEVEL);
  if (luma < 0) return false;
  const chroma = CHROMA + slot * CHROMA_BYTES;
  u = levelOf(chroma, CHROMA_CELLS, CHROMA_LEVEL);
  if (u < 0) return false;
  v = levelOf(chroma + CHROMA_CELLS * 2, CHROMA_CELLS, CHROMA_LEVEL);
  return v >= 0;
}

/** The mean of `count` values in levels; -1 where they are not alike. */
function levelOf(at: usize, count: i32, unit: i32): i32 {
  let least: i32 = load<i16>(at), most = least, sum = 0;
  for (let i = 0; i < count; i++) {
    const value: i32 = load<i16>(at + (i << 1));
    least = min(least, value);
    most = max(most, value);
    sum += value;
  }
  if (most - least > RANGE_MAX * unit) return -1;
  return (sum + count * unit / 2) / (count * unit);
}
