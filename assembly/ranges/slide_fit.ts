/** How well one picture slides into another: bands of luma of frames between them, compared with both
 * pictures side by side.
 */

import { placeBetween, profilesOf, putNumber } from "./layout";
import { sum4 } from "../lanes";

/*
 * A band profile is the mean luma along one axis: 40 columns in three bands, or 30 rows in four. A place `d`
 * of `length` on it:
 *
 *           d
 *   push    | B moves in behind A, which moves out     B[x + length - d] | A[x - d]
 *   cover   | B moves in over A                        B[x + length - d] | A[x]
 *   uncover | A moves out from over B                  B[x]              | A[x - d]
 *   wipe    | neither moves                            B[x]              | A[x]
 *
 * and the same in the other direction. For each of them and each frame that is looked at the best place
 * counts.
 *
 * A value here is the sum of two values of a profile, 15 a level. The bands of a place stand side by side,
 * four words of 16 bits, so that the part of a profile that two frames share is one row of words wherever it
 * lies; a fourth band of columns is 0.
 */
const SHAPES: i32 = 8;
/** Shapes are numbered: push, cover, uncover, wipe; then the same backwards. */
const WIPE: i32 = 3;
/** Frames between the two that are looked at. */
const SLIDE_FRAMES: i32 = 3;
/** Added to the difference of the pictures, 7.5 a level, so that like ones do not divide by nothing. */
const NOISE: f64 = 8;
/** A picture that only moves is recognised while this share of it is seen. */
const PAN_SEEN: f64 = 0.3;
const MOST: i32 = 40;
/** All bands of a place. */
const PLACE_BYTES: i32 = 8;

const A: usize = memory.data(40 * 8 + 16, 16);
const B: usize = memory.data(40 * 8 + 16, 16);
const FRAME: usize = memory.data(40 * 8 + 16, 16);
/** Differences of the frame to both pictures as they stand: sums over the first places. */
const STANDING_A: usize = memory.data(41 * 4, 16);
const STANDING_B: usize = memory.data(41 * 4, 16);
/** Costs of the best place of each shape, of all frames. */
const COSTS: usize = memory.data(8 * 4, 16);
/** These places, of each frame. */
const PLACES: usize = memory.data(8 * 3 * 4, 16);

let length: i32 = 0;
let bands: i32 = 0;
let slide: f64 = 0;
let moved: f64 = 0;
let middle: f64 = 0;
let wiped: f64 = 0;
let pan: f64 = 0;
let sharpness: f64 = 0;
/** Of the present axis. */
let panned: f64 = 0;

/**
 * Fits the frames between two pictures. Writes to NUMBERS: what is left of them after the best push, cover or
 * uncover, how far that one moved from the first to the last frame that was looked at, and how far it was in
 * the middle one, of the picture; what is left after the best straight wipe, and if only the first or only
 * the last picture moves, as far as it is still seen; and how sharp they are beside the two pictures, along
 * the axis on which they are least so. What is left is a share of the difference of the two pictures.
 */
export function fitSlide(one: i32, other: i32): void {
  slide =
    wiped =
    pan =
    sharpness =
      Infinity;
  measureAxis(one, other, 0, 80, 3, 40);
  measureAxis(one, other, 240, 64, 4, 30);
  putNumber(0, slide);
  putNumber(1, moved);
  putNumber(2, middle);
  putNumber(3, wiped);
  putNumber(4, pan);
  putNumber(5, sharpness);
}

/**
 * An axis: where it begins in the profiles of a frame, values of a band there, how many bands there are, and
 * their places.
 */
function measureAxis(one: i32, other: i32, from: i32, stride: i32, bandCount: i32, places: i32): void {
  bands = bandCount;
  length = places;
  read(one, from, stride, A);
  read(other, from, stride, B);
  const sharp = (sharpnessOf(A) + sharpnessOf(B)) / 2;
  let sharpBetween: f64 = 0;
  const apart = NOISE * <f64> (length * bands) + half(differences(A, B, length));
  memory.fill(COSTS, 0, SHAPES * 4);
  panned = 0;
  for (let n = 0; n < SLIDE_FRAMES; n++) {
    read(placeBetween(one, other, n + 1, SLIDE_FRAMES + 1), from, stride, FRAME);
    fitFrame(n);
    sharpBetween += sharpnessOf(FRAME) / SLIDE_FRAMES;
  }
  sharpness = min(sharpness, sharpBetween / sharp);
  pan = min(pan, panned / (SLIDE_FRAMES * apart));
  for (let shape = 0; shape < SHAPES; shape++) {
    const residual = half(load<i32>(COSTS + (shape << 2))) / (SLIDE_FRAMES * apart);
    if (shape % 4 == WIPE) wiped = min(wiped, residual);
    else if (residual < slide) {
      slide = residual;
      const at = PLACES + shape * SLIDE_FRAMES * 4;
      const first = load<i32>(at), last = load<i32>(at + (SLIDE_FRAMES - 1) * 4);
      moved = <f64> (last - first) / <f64> length;
      middle = <f64> load<i32>(at + 4) / <f64> length;
    }
  }
}

/** Adds the costs of the best places of each shape for the frame, the n-th one that is looked at. */
function fitFrame(n: i32): void {
  standing(A, STANDING_A);
  standing(B, STANDING_B);
  const allA = load<i32>(STANDING_A + (length << 2)), allB = load<i32>(STANDING_B + (length << 2));
  const size = <f64> length;
  let least: f64 = Infinity;
  for (let back = 0; back < 2; back++) {
    let push: i32 = i32.MAX_VALUE, cover = push, uncover = push, wipe = push;
    let pushed = 0, covered = 0, uncovered = 0;
    for (let d = 0; d <= length; d++) {
      // Places before the seam show B, in the forward direction.
      const seam = (back == 0 ? d : length - d) << 2;
      const beforeA = load<i32>(STANDING_A + seam), beforeB = load<i32>(STANDING_B + seam);
      const aStands = back == 0 ? allA - beforeA : beforeA;
      const bStands = back == 0 ? beforeB : allB - beforeB;
      const aMoves = movedCost(A, back == 0 ? d : -d);
      const bMoves = movedCost(B, back == 0 ? d - length : length - d);
      if (aMoves + bMoves < push) {
        push = aMoves + bMoves;
        pushed = d;
      }
      if (aStands + bMoves < cover) {
        cover = aStands + bMoves;
        covered = d;
      }
      if (aMoves + bStands < uncover) {
        uncover = aMoves + bStands;
        uncovered = d;
      }
      wipe = min(wipe, aStands + bStands);
      if (<f64> d <= (1 - PAN_SEEN) * size) least = min(least, half(aMoves) * size / <f64> (length - d));
      if (<f64> d >= PAN_SEEN * size) least = min(least, half(bMoves) * size / <f64> d);
    }
    add(back * 4, n, push, pushed);
    add(back * 4 + 1, n, cover, covered);
    add(back * 4 + 2, n, uncover, uncovered);
    add(back * 4 + WIPE, n, wipe, 0);
  }
  panned += least;
}

function add(shape: i32, n: i32, cost: i32, place: i32): void {
  const at = COSTS + (shape << 2);
  store<i32>(at, load<i32>(at) + cost);
  store<i32>(PLACES + ((shape * SLIDE_FRAMES + n) << 2), place);
}

/** The difference of the frame to a picture that is moved by `shift` places, where both are. */
function movedCost(picture: usize, shift: i32): i32 {
  const own = FRAME + max(0, shift) * PLACE_BYTES, other = picture + max(0, -shift) * PLACE_BYTES;
  return differences(own, other, length - abs(shift));
}

/** The sum of the differences of so many places. */
function differences(a: usize, b: usize, places: i32): i32 {
  let sums = i32x4.splat(0);
  const ones = i16x8.splat(1), end = a + (places >> 1) * 2 * PLACE_BYTES;
  for (; a < end; a += 16, b += 16) sums = i32x4.add(sums, apart(v128.load(a), v128.load(b), ones));
  if (places & 1) {
    sums = i32x4.add(sums, apart(v128.load64_zero(a), v128.load64_zero(b), ones));
  }
  return sum4(sums);
}

/** Sums of two neighbouring differences of words of at most 3840. */
function apart(a: v128, b: v128, ones: v128): v128 {
  return i32x4.dot_i16x8_s(i16x8.abs(i16x8.sub(a, b)), ones);
}

function standing(picture: usize, sums: usize): void {
  let sum = 0;
  store<i32>(sums, 0);
  for (let x = 0; x < length; x++) {
    sum += differences(FRAME + x * PLACE_BYTES, picture + x * PLACE_BYTES, 1);
    store<i32>(sums + ((x + 1) << 2), sum);
  }
}

/** The profile of a frame, its bands side by side. */
function read(frame: i32, from: i32, stride: i32, into: usize): void {
  const start = profilesOf(frame) + (from << 1);
  for (let band = 0; band < 4; band++) {
    let at = start + ((band * stride) << 1);
    let to = into + (band << 1);
    for (let x = 0; x < length; x++) {
      store<i16>(to, band < bands ? load<i16>(at) + load<i16>(at, 2) : 0);
      at += 4;
      to += PLACE_BYTES;
    }
  }
}

/** Mean difference of neighbours. */
function sharpnessOf(profile: usize): f64 {
  return half(differences(profile + PLACE_BYTES, profile, length - 1)) / <f64> (bands * length) + NOISE / 4;
}

/** A sum of values as one of means of two. */
function half(sum: i32): f64 {
  return <f64> sum / 2;
}
