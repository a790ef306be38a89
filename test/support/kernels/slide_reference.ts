/** The slow twin of assembly/ranges/slide_fit.ts, one place after the other. */

import { type HistoryKernel, PROFILE_VALUES } from "../../../src/media/kernels/history_kernel.ts";

const SHAPES = 8;
/** Shapes are numbered: push, cover, uncover, wipe; then the same backwards. */
const WIPE = 3;
/** Frames between the two that are looked at. */
const SLIDE_FRAMES = 3;
/** Added to the difference of the pictures, 7.5 a level, so that like ones do not divide by nothing. */
const NOISE = 8;
/** A picture that only moves is recognised while this share of it is seen. */
const PAN_SEEN = 0.3;

interface Axis {
  /**
   * Where the axis begins in the profiles of a frame; below are the values of a band there, and the number of
   * bands.
   */
  readonly from: number;
  readonly stride: number;
  readonly bands: number;
  /** Places; each is the mean of two values. */
  readonly length: number;
}

const ACROSS: Axis = { from: 0, stride: 80, bands: 3, length: 40 };
const DOWN: Axis = { from: 240, stride: 64, bands: 4, length: 30 };
const MOST = 40;

/**
 * The fit of one stretch; overwritten by the next one. Residuals are shares of the difference of the two
 * pictures.
 */
export class SlideReference {
  /** What is left of the frames between after the best push, cover or uncover. */
  slide = 1;
  /**
   * How far the best fit moved from the first to the last frame that was looked at, as a share of the
   * picture.
   */
  moved = 0;
  /** How far the best fit had moved in the middle frame, as a share of the picture. */
  middle = 0;
  /** What is left after the best straight wipe. */
  wipe = 1;
  /** What is left if only the first or only the last picture moves, as far as it is still seen. */
  pan = 1;

  /**
   * How sharp the frames between are beside the two pictures, along the axis on which they are least so: a
   * fast pan blurs.
   */
  sharpness = 1;

  readonly #a = new Float64Array(4 * MOST);
  readonly #b = new Float64Array(4 * MOST);
  readonly #frame = new Float64Array(4 * MOST);
  /** Differences of the frame to both pictures as they stand: sums over the first places. */
  readonly #standingA = new Float64Array(MOST + 1);
  readonly #standingB = new Float64Array(MOST + 1);
  readonly #costs = new Float64Array(SHAPES);
  readonly #places = new Float64Array(SHAPES * SLIDE_FRAMES);
  #pan = 0;

  /** Fits the frames between `one` and `other`. */
  measure(history: HistoryKernel, one: number, other: number): void {
    this.slide =
      this.wipe =
      this.pan =
      this.sharpness =
        Infinity;
    this.#measureAxis(history, one, other, ACROSS);
    this.#measureAxis(history, one, other, DOWN);
  }

  #measureAxis(history: HistoryKernel, one: number, other: number, axis: Axis): void {
    const { length, bands } = axis;
    read(history, one, axis, this.#a);
    read(history, other, axis, this.#b);
    const sharp = (sharpnessOf(this.#a, axis) + sharpnessOf(this.#b, axis)) / 2;
    let sharpBetween = 0;
    let apart = NOISE * length * bands;
    for (let i = 0; i < length * bands; i++) apart += Math.abs(this.#a[i]! - this.#b[i]!);
    this.#costs.fill(0);
    this.#pan = 0;
    for (let n = 0; n < SLIDE_FRAMES; n++) {
      const frame = one + Math.round((other - one) * (n + 1) / (SLIDE_FRAMES + 1));
      read(history, frame, axis, this.#frame);
      this.#fitFrame(axis, n);
      sharpBetween += sharpnessOf(this.#frame, axis) / SLIDE_FRAMES;
    }
    this.sharpness = Math.min(this.sharpness, sharpBetween / sharp);
    this.pan = Math.min(this.pan, this.#pan / (SLIDE_FRAMES * apart));
    for (let shape = 0; shape < SHAPES; shape++) {
      const residual = this.#costs[shape]! / (SLIDE_FRAMES * apart);
      if (shape % 4 === WIPE) this.wipe = Math.min(this.wipe, residual);
      else if (residual < this.slide) {
        this.slide = residual;
        const at = shape * SLIDE_FRAMES;
        this.moved = (this.#places[at + SLIDE_FRAMES - 1]! - this.#places[at]!) / length;
        this.middle = this.#places[at + 1]! / length;
      }
    }
  }

  /** Adds the costs of the best places of each shape for `#frame`, the n-th one that is looked at. */
  #fitFrame({ length, bands }: Axis, n: number): void {
    const standingA = this.#standingA, standingB = this.#standingB;
    for (let x = 0; x < length; x++) {
      standingA[x + 1] = standingA[x]! + differenceAt(this.#frame, this.#a, x, bands, length);
      standingB[x + 1] = standingB[x]! + differenceAt(this.#frame, this.#b, x, bands, length);
    }
    let pan = Infinity;
    for (let back = 0; back < 2; back++) {
      for (let shape = 0; shape < 4; shape++) this.#places[(back * 4 + shape) * SLIDE_FRAMES + n] = 0;
      let push = Infinity, cover = Infinity, uncover = Infinity, wipe = Infinity;
      const first = back * 4 * SLIDE_FRAMES + n;
      for (let d = 0; d <= length; d++) {
        // Places before the seam show B, in the forward direction.
        const seam = back === 0 ? d : length - d;
        const aStands = back === 0 ? standingA[length]! - standingA[seam]! : standingA[seam]!;
        const bStands = back === 0 ? standingB[seam]! : standingB[length]! - standingB[seam]!;
        const aMoves = this.#movedCost(this.#a, bands, length, back === 0 ? d : -d);
        const bMoves = this.#movedCost(this.#b, bands, length, back === 0 ? d - length : length - d);
        if (aMoves + bMoves < push) {
          push = aMoves + bMoves;
          this.#places[first] = d;
        }
        if (aStands + bMoves < cover) {
          cover = aStands + bMoves;
          this.#places[first + SLIDE_FRAMES] = d;
        }
        if (aMoves + bStands < uncover) {
          uncover = aMoves + bStands;
          this.#places[first + 2 * SLIDE_FRAMES] = d;
        }
        wipe = Math.min(wipe, aStands + bStands);
        if (d <= (1 - PAN_SEEN) * length) pan = Math.min(pan, aMoves * length / (length - d));
        if (d >= PAN_SEEN * length) pan = Math.min(pan, bMoves * length / d);
      }
      this.#costs[back * 4]! += push;
      this.#costs[back * 4 + 1]! += cover;
      this.#costs[back * 4 + 2]! += uncover;
      this.#costs[back * 4 + WIPE]! += wipe;
    }
    this.#pan += pan;
  }

  /** The difference of `#frame` to a picture that is moved by `shift` places, where both are. */
  #movedCost(picture: Float64Array, bands: number, length: number, shift: number): number {
    let cost = 0;
    for (let band = 0; band < bands; band++) {
      const at = band * length;
      const until = at + Math.min(length, length + shift);
      for (let x = at + Math.max(0, shift); x < until; x++) {
        cost += Math.abs(this.#frame[x]! - picture[x - shift]!);
      }
    }
    return cost;
  }
}

/** The profile of a frame, band after band. */
function read(
  history: HistoryKernel,
  frame: number,
  { from, stride, bands, length }: Axis,
  into: Float64Array,
) {
  const { profiles } = history;
  const start = frame % history.frames * PROFILE_VALUES + from;
  for (let band = 0; band < bands; band++) {
    let at = start + band * stride;
    for (let x = 0; x < length; x++, at += 2) {
      into[band * length + x] = (profiles[at]! + profiles[at + 1]!) / 2;
    }
  }
}

/** Mean difference of neighbours. */
function sharpnessOf(profile: Float64Array, { bands, length }: Axis): number {
  let sum = 0;
  for (let band = 0; band < bands; band++) {
    const until = (band + 1) * length;
    for (let x = band * length + 1; x < until; x++) sum += Math.abs(profile[x]! - profile[x - 1]!);
  }
  return sum / (bands * length) + NOISE / 4;
}

function differenceAt(
  one: Float64Array,
  other: Float64Array,
  x: number,
  bands: number,
  length: number,
): number {
  let difference = 0;
  for (let band = 0; band < bands; band++) {
    difference += Math.abs(one[band * length + x]! - other[band * length + x]!);
  }
  return difference;
}
