/** Finds repeats: a stretch that plays again at once, one time or more, as a broken player or a loop does. */

import { BLOCK_STRIDE, COUNTS, RepeatKernel } from "../../kernels/repeat_kernel.ts";
import { CELL_SAMPLES, LUMA_COLUMNS, LUMA_ROWS } from "./frame_history.ts";
import { type BoundsOf, confidenceOf, type RangeSink } from "./range_sink.ts";

/*
 *   first playing            second playing
 *   a b c d e f g h i j      a b c d e f g h i j
 *   |------ lag -------------|
 *
 * Each frame of the second playing resembles the frame `lag` before it, and far more than those between. A
 * few lags are followed at a time; every `seekFrames` frames the lags that fit best are taken up. A lag is a
 * repeat when nearly as many frames as it has have fitted in a row.
 *
 * Frames are compared by 60 blocks of 2x2 luma cells.
 */
const BLOCK_COLUMNS = LUMA_COLUMNS / 2;
const BLOCKS = BLOCK_COLUMNS * LUMA_ROWS / 2;
/**
 * One luma level in differences of frames, which are whole numbers: sums over the blocks. Whole numbers need
 * no memory of their own.
 */
const LEVEL = BLOCKS * CELL_SAMPLES;
/** What makes frames that play again a repeat. */
export const REPEAT_BOUNDS = {
  leastLag: 8,
  leastLagMs: 150,
  longestLagMs: 12_000,
  seekFrames: 4,
  /** Frames to look back for where a new lag begins to fit. */
  tracedFrames: 32,
  /**
   * A new lag takes the place of a followed one within NEAR_LAGS of it where its difference is at most this
   * share of the other's.
   */
  nearShare: 0.7,
  /** Largest mean difference of the blocks, in levels, with which a frame fits. */
  fitMax: 1.5,
  /**
   * A frame also fits with a difference of up to this share of its least difference to the frames between:
   * the more the picture moves, the more noise a codec leaves.
   */
  fitShare: 0.06,
  /** Share of the frames of a lag that must fit before it is a repeat. */
  leastFitting: 0.85,
  /**
   * Largest mean difference to the frame `lag` before, as a share of the differences to the frames between.
   */
  ratioMax: 0.35,
  /** Least levels by which the frames between must differ; a still picture does not repeat. */
  variationMin: 0.12,
  /**
   * Share of the fitting frames that must resemble the frame `lag` before far more than the frames between:
   * after one flash over a still picture few do.
   */
  tellingMin: 0.7,
  /**
   * Largest part of the difference to the frames between that a change of light may explain: light that goes
   * up and down over a still picture repeats nothing.
   */
  lightMax: 0.97,
  /**
   * After a while, a lag is given up where the share that `tellingMin` asks for is below this. It is less, as
   * what plays again may begin with a moment of rest.
   */
  tellingHope: 0.4,
  doubtfulFrames: 8,
  missesMax: 2,
  /**
   * A frame no longer fits if it differs by more than this times the mean of those before, plus `misfitFloor`
   * levels.
   */
  misfit: 3,
  misfitFloor: 0.1,
} as const;

export type RepeatBounds = BoundsOf<typeof REPEAT_BOUNDS>;

const LONGEST_LAG = 300;
const FOLLOWED = 12;
const NEAR_LAGS = 2;

/** Sums for each lag. */
const SUMS = 3;

/** A lag that is followed, and the frames that fit it so far. */
interface Follow {
  /** Frames from a picture to the one that repeats it; 0 where this place is not in use. */
  lag: number;
  /** First frame that fits, and the last. */
  first: number;
  last: number;
  /** Time of the first frame of the first playing: a long repeat outlasts the ring. */
  startMs: number;
  fitting: number;
  misses: number;
  /**
   * Where `#sums` has three sums over the frames that fit: of the difference at the lag, and of the middle
   * one and the least one of the differences at the places between.
   */
  readonly at: number;
  /** How many of the frames that fit resemble the one at the lag far more than those between. */
  telling: number;
}

/**
 * Finds repeats frame by frame. Gets all frames, also those that show a picture again, as what plays again
 * has them in the same places.
 */
export class RepeatDetector {
  readonly #sink: RangeSink;
  readonly #bounds: RepeatBounds;
  readonly #kernel = new RepeatKernel();
  /** Frame i in slot i & `#last`, more of them than the longest lag. */
  readonly #last = this.#kernel.ring - 1;
  readonly #ptsMs = new Float64Array(this.#kernel.ring);
  /** Sums over the blocks of each frame. */
  readonly #light = new Float64Array(this.#kernel.ring);
  readonly #sums = new Float64Array(SUMS * FOLLOWED);
  readonly #followed: Follow[] = Array.from({ length: FOLLOWED }, (_, n) => ({
    lag: 0,
    first: 0,
    last: 0,
    startMs: 0,
    fitting: 0,
    misses: 0,
    at: SUMS * n,
    telling: 0,
  }));
  /** Place in `#followed` of the first lag that is the given one or nearly so; -1 where there is none. */
  readonly #near = new Int8Array(LONGEST_LAG + NEAR_LAGS + 1);
  /** The followed lag that is a repeat already; null for none. */
  #sure: Follow | null = null;
  /** Frames before it belong to a repeat that was told. */
  #floor = 0;
  /** Frames since the start. */
  #count = 0;

  constructor(sink: RangeSink, bounds: RepeatBounds = REPEAT_BOUNDS) {
    this.#sink = sink;
    this.#bounds = bounds;
  }

  reset(): void {
    for (const follow of this.#followed) follow.lag = 0;
    this.#sure = null;
    this.#floor = this.#count = 0;
  }

  /** Takes the next frame; `cellSums` are those of `RangeMeasures`. */
  push(cellSums: Uint16Array, ptsMs: number): void {
    const bounds = this.#bounds;
    const frame = this.#count++;
    this.#keep(cellSums, frame);
    this.#ptsMs[frame & this.#last] = ptsMs;
    for (let n = 0; n < FOLLOWED; n++) if (this.#followed[n]!.lag > 0) this.#step(this.#followed[n]!, frame);
    if (!this.#sure && frame % bounds.seekFrames === 0 && frame > bounds.leastLag) this.#seek(frame);
  }

  finish(): void {
    if (this.#sure) this.#tell(this.#sure);
    this.reset();
  }

  #keep(sums: Uint16Array, frame: number): void {
    const { blocks } = this.#kernel;
    const to = (frame & this.#last) * BLOCK_STRIDE;
    let light = 0;
    for (let row = 0, block = to; row < LUMA_ROWS; row += 2) {
      for (let column = 0; column < LUMA_COLUMNS; column += 2, block++) {
        const cell = row * LUMA_COLUMNS + column;
        const sum = sums[cell]! + sums[cell + 1]! + sums[cell + LUMA_COLUMNS]! +
          sums[cell + LUMA_COLUMNS + 1]!;
        blocks[block] = sum >> 2;
        light += sum >> 2;
      }
    }
    this.#light[frame & this.#last] = light;
  }

  /**
   * The largest difference with which a frame fits, where `between` is its least difference to the frames
   * between.
   */
  #fitMax(between: number): number {
    const bounds = this.#bounds;
    return Math.floor(Math.max(bounds.fitMax * LEVEL, bounds.fitShare * between));
  }

  /**
   * The largest difference with which a frame goes on to fit, where `mean` is the mean of those before it.
   */
  #limit(mean: number, between: number): number {
    const bounds = this.#bounds;
    return Math.floor(Math.min(this.#fitMax(between), bounds.misfitFloor * LEVEL + bounds.misfit * mean));
  }

  #step(follow: Follow, frame: number): void {
    const bounds = this.#bounds;
    const { lag } = follow;
    const { at, fitting } = follow;
    const limit = this.#limit(this.#sums[at]! / fitting, this.#sums[at + 2]! / fitting);
    const difference = this.#kernel.step(frame, lag, limit, bounds.variationMin * LEVEL, bounds.ratioMax);
    if (difference <= limit) {
      this.#add(follow, frame, frame);
      if (follow.fitting < bounds.doubtfulFrames) return;
      const { fitting, telling } = follow;
      const isHopeless = telling < bounds.tellingHope * fitting && fitting >= bounds.doubtfulFrames + lag / 4;
      if (isHopeless && follow !== this.#sure) follow.lag = 0;
      if (this.#sure || telling < bounds.tellingMin * fitting || fitting < bounds.leastFitting * lag) return;
      if (this.#isLight(follow)) follow.lag = 0;
      else this.#sure = follow;
      return;
    }
    if (++follow.misses <= bounds.missesMax) return;
    if (follow === this.#sure) this.#tell(follow);
    follow.lag = 0;
  }

  /**
   * Whether nothing but light distinguishes the frames of a lag from those a quarter, half and three quarters
   * of it before.
   */
  #isLight({ lag, last, fitting }: Follow): boolean {
    let light = 0, difference = 0;
    for (let frame = last; frame > last - Math.min(fitting, lag); frame--) {
      for (let quarters = 1; quarters <= 3; quarters++) {
        const other = frame - ((quarters * lag + 2) >> 2);
        light += Math.abs(this.#light[frame & this.#last]! - this.#light[other & this.#last]!);
        difference += this.#kernel.differenceOf(frame, other);
      }
    }
    return light > this.#bounds.lightMax * difference;
  }

  /** Adds the frames from `first` to `last`, which fit and were counted. */
  #add(follow: Follow, first: number, last: number): void {
    const { counts } = this.#kernel;
    follow.fitting += last - first + 1;
    follow.misses = 0;
    follow.last = last;
    this.#sums[follow.at]! += counts[COUNTS.difference]!;
    this.#sums[follow.at + 1]! += counts[COUNTS.middle]!;
    this.#sums[follow.at + 2]! += counts[COUNTS.least]!;
    follow.telling += counts[COUNTS.telling]!;
  }

  /** Takes up the lags whose frames resemble this one most, each better than the lags beside it. */
  #seek(frame: number): void {
    const bounds = this.#bounds;
    const { fits, minima } = this.#kernel;
    const nowMs = this.#ptsMs[frame & this.#last]!;
    let longest = Math.min(LONGEST_LAG, frame - 1);
    while (
      longest > bounds.leastLag &&
      nowMs - this.#ptsMs[(frame - longest + 1) & this.#last]! > bounds.longestLagMs
    ) {
      longest--;
    }
    const most = this.#fitMax(this.#kernel.least(frame, bounds.leastLag));
    const count = this.#kernel.seek(frame, bounds.leastLag, longest, most);
    let nearest = 0;
    while (
      nearest < count && nowMs - this.#ptsMs[(frame - minima[nearest]!) & this.#last]! < bounds.leastLagMs
    ) nearest++;
    for (let places = 0; places < FOLLOWED; places++) {
      this.#markNear();
      let best = -1, least = Infinity;
      for (let n = nearest; n < count; n++) {
        const lag = minima[n]!, fit = fits[lag]!;
        if (fit >= least) continue;
        const at = this.#near[lag]!;
        if (at >= 0 && !this.#isBetter(this.#followed[at]!, lag, fit)) continue;
        best = lag;
        least = fit;
      }
      if (best < 0) return;
      const at = this.#near[best]!;
      const place = at >= 0 ? this.#followed[at]! : this.#free();
      if (!place) return;
      this.#follow(place, best, frame, least);
    }
  }

  /** Whether a lag that fits so well takes the place of one near it. */
  #isBetter(near: Follow, lag: number, fit: number): boolean {
    return near.lag !== lag && fit <= this.#bounds.nearShare * this.#sums[near.at]! / near.fitting;
  }

  /** Fills `#near`: in slow motion the lags beside the right one fit too. */
  #markNear(): void {
    const near = this.#near;
    near.fill(-1);
    for (let at = FOLLOWED - 1; at >= 0; at--) {
      const { lag } = this.#followed[at]!;
      if (lag > 0) { for (let n = lag - NEAR_LAGS; n <= lag + NEAR_LAGS; n++) near[n] = at; }
    }
  }

  #free(): Follow | null {
    for (const follow of this.#followed) if (follow.lag === 0) return follow;
    return null;
  }

  /** Begins with the first of the frames right before this one that fit as well. */
  #follow(follow: Follow, lag: number, frame: number, difference: number): void {
    const bounds = this.#bounds;
    follow.lag = lag;
    follow.first = frame;
    follow.fitting = follow.misses = follow.telling = 0;
    this.#sums.fill(0, follow.at, follow.at + SUMS);
    const limit = this.#limit(difference, this.#kernel.least(frame, lag));
    const earliest = Math.max(lag, this.#floor, frame - bounds.tracedFrames + 1);
    follow.first = this.#kernel.trace(
      frame,
      lag,
      limit,
      earliest,
      bounds.variationMin * LEVEL,
      bounds.ratioMax,
    );
    follow.startMs = this.#ptsMs[this.#startOf(follow) & this.#last]!;
    this.#add(follow, follow.first, frame);
  }

  /** The first frame of the first playing. */
  #startOf({ lag, first }: Follow): number {
    return Math.max(this.#floor, first - lag);
  }

  #tell(follow: Follow): void {
    const bounds = this.#bounds;
    const { last, startMs, at } = follow;
    const difference = this.#sums[at]!, variation = this.#sums[at + 1]!;
    const start = this.#startOf(follow);
    const ratio = difference / variation;
    const margin = Math.min(
      1 - ratio / bounds.ratioMax,
      variation / follow.fitting / (bounds.variationMin * LEVEL) - 1,
    );
    this.#sink.add("repeat", start, last, startMs, this.#ptsMs[last & this.#last]!, confidenceOf(margin));
    this.#floor = last + 1;
    for (const other of this.#followed) other.lag = 0;
    this.#sure = null;
  }
}
