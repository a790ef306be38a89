/** Calls `wasm/repeat.wasm`, which compares the newest frame with earlier ones. */

import { call, type ExportsOf, loadKernelNow } from "./load_kernel.ts";

/** Values of a frame in `blocks`; the last four of its 64 stay 0. */
export const BLOCK_STRIDE = 64;

const EXPORTS = {
  RING: "global",
  BLOCKS: "global",
  FITS: "global",
  MINIMA: "global",
  COUNTS: "global",
  differenceOf: call<(frame: number, other: number) => number>(),
  least: call<(frame: number, lag: number) => number>(),
  step: call<(frame: number, lag: number, most: number, variation: number, share: number) => number>(),
  trace: call<
    (frame: number, lag: number, most: number, earliest: number, variation: number, share: number) => number
  >(),
  seek: call<(frame: number, first: number, last: number, most: number) => number>(),
} as const;
type RepeatExports = ExportsOf<typeof EXPORTS>;

/** What `fits` has for a difference above the most that was asked for; more than any difference. */
export const FAR = 0x3fffffff;
const LAGS = 304;

/**
 * Places in `counts`. `difference` is the sum, over the frames, of their differences to the frame a lag
 * before; `middle` and `least` are the sums of the middle one and the least one of their differences to the
 * three frames between. `telling` is how many of the frames tell the lag.
 */
export const COUNTS = { difference: 0, middle: 1, least: 2, telling: 3 } as const;

/** Room for the blocks of the newest `ring` frames, and comparisons of them. Allocates nothing per frame. */
export class RepeatKernel {
  /** Frame i has 60 values from (i % `ring`) * BLOCK_STRIDE on. */
  readonly blocks: Uint16Array<ArrayBuffer>;
  /** How many frames are kept, a power of two. */
  readonly ring: number;
  /** Results of `seek`: for each lag, the difference to the frame that lies as far before. */
  readonly fits: Int32Array<ArrayBuffer>;
  /** The lags of `fits` that are no worse than those beside them. */
  readonly minima: Uint16Array<ArrayBuffer>;
  /** Results of `step` and `trace`: see COUNTS. */
  readonly counts: Int32Array<ArrayBuffer>;
  readonly #module: RepeatExports;

  constructor() {
    const module = loadKernelNow("repeat", EXPORTS);
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    this.ring = module.RING.value as number;
    this.blocks = new Uint16Array(buffer, module.BLOCKS.value as number, this.ring * BLOCK_STRIDE);
    this.fits = new Int32Array(buffer, module.FITS.value as number, LAGS);
    this.minima = new Uint16Array(buffer, module.MINIMA.value as number, LAGS);
    this.counts = new Int32Array(buffer, module.COUNTS.value as number, 4);
  }

  /** The sum of the differences of all blocks of two frames, both of the newest `ring`. */
  differenceOf(frame: number, other: number): number {
    return this.#module.differenceOf(frame, other);
  }

  /** The least difference of a frame to those a quarter, half and three quarters of a lag before. */
  least(frame: number, lag: number): number {
    return this.#module.least(frame, lag);
  }

  /**
   * Sum of the differences of all blocks of a frame to those of the frame `lag` before, both of the newest
   * `ring`. Where it is at most `most`, fills `counts` for this frame. The frame tells the lag where the
   * middle one of its differences to the frames between is at least `variation`, and its difference to the
   * frame `lag` before is at most `share` of that.
   */
  step(frame: number, lag: number, most: number, variation: number, share: number): number {
    return this.#module.step(frame, lag, most, variation, share);
  }

  /**
   * The first of the frames right before `frame`, none before `earliest`, that differ by `most` at most from
   * those `lag` before them. Fills `counts` for the frames from there to `frame`.
   */
  trace(
    frame: number,
    lag: number,
    most: number,
    earliest: number,
    variation: number,
    share: number,
  ): number {
    return this.#module.trace(frame, lag, most, earliest, variation, share);
  }

  /**
   * Fills `fits` for the lags from `first` to `last`, 302 at most; differences above `most` become FAR.
   * Returns how many `minima` there are.
   */
  seek(frame: number, first: number, last: number, most: number): number {
    return this.#module.seek(frame, first, last, most);
  }
}
