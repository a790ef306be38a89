/** Calls `wasm/repeat.wasm`, which compares the newest frame with earlier ones. */

import { type ExportKinds, loadKernelNow } from "./load_kernel.ts";

/** Values of a frame in `blocks`; the last four of its 64 stay 0. */
export const BLOCK_STRIDE = 64;

interface RepeatExports {
  readonly memory: WebAssembly.Memory;
  readonly RING: WebAssembly.Global;
  readonly BLOCKS: WebAssembly.Global;
  readonly FITS: WebAssembly.Global;
  difference(one: number, other: number): number;
  seek(frame: number, first: number, last: number, most: number): void;
}

const EXPORTS: ExportKinds<RepeatExports> = {
  memory: "memory",
  RING: "global",
  BLOCKS: "global",
  FITS: "global",
  difference: "function",
  seek: "function",
};

/** Differences above what is asked for, in `fits`; more than any difference. */
export const FAR = 0x3fffffff;
const LAGS = 304;

/** Allocates nothing per frame. */
export class RepeatKernel {
  /** Frame i has 60 values from (i % `ring`) * BLOCK_STRIDE on. */
  readonly blocks: Uint16Array<ArrayBuffer>;
  /** A power of two: frames that are kept. */
  readonly ring: number;
  /** After `seek`: by lag, the difference to the frame so many before. */
  readonly fits: Int32Array<ArrayBuffer>;
  readonly #module: RepeatExports;

  constructor() {
    const module = loadKernelNow<RepeatExports>("repeat", EXPORTS);
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    this.ring = module.RING.value as number;
    this.blocks = new Uint16Array(buffer, module.BLOCKS.value as number, this.ring * BLOCK_STRIDE);
    this.fits = new Int32Array(buffer, module.FITS.value as number, LAGS);
  }

  /** The sum of the differences of all blocks of two frames of the newest `ring`. */
  difference(one: number, other: number): number {
    return this.#module.difference(one, other);
  }

  /** Fills `fits` for the lags from `first` to `last`, 302 at most; differences above `most` become FAR. */
  seek(frame: number, first: number, last: number, most: number): void {
    this.#module.seek(frame, first, last, most);
  }
}
