/** Calls `wasm/history.wasm`, which keeps the cells of the newest frames and sums over them. */

import { type ExportKinds, loadKernelNow } from "./load_kernel.ts";

interface HistoryExports {
  readonly memory: WebAssembly.Memory;
  readonly FRAMES: WebAssembly.Global;
  readonly CELLS: WebAssembly.Global;
  readonly MOVES: WebAssembly.Global;
  readonly PROFILES: WebAssembly.Global;
  readonly STATS: WebAssembly.Global;
  measure(slot: number, before: number): void;
  apart(one: number, other: number): number;
}

const EXPORTS: ExportKinds<HistoryExports> = {
  memory: "memory",
  FRAMES: "global",
  CELLS: "global",
  MOVES: "global",
  PROFILES: "global",
  STATS: "global",
  measure: "function",
  apart: "function",
};

/** Values of one frame in each of the three views. */
export const CELLS = 360;
export const LUMA_CELLS = 240;
export const PROFILE_VALUES = 496;

/** Places in `stats`: sums over the cells of the frame that was measured last, the largest change of a cell, the least and the largest. */
export const STATS = { sum: 0, moved: 1, step: 2, change: 3, least: 4, most: 5 } as const;

/** Room for 256 frames by slot, which the caller fills. Allocates nothing per frame. */
export class HistoryKernel {
  readonly frames: number;
  /** CELLS values for each slot: 240 of luma, then those of chroma. */
  readonly cells: Uint16Array<ArrayBuffer>;
  /** LUMA_CELLS values. */
  readonly moves: Uint16Array<ArrayBuffer>;
  /** PROFILE_VALUES values. */
  readonly profiles: Int16Array<ArrayBuffer>;
  /** See STATS. */
  readonly stats: Int32Array<ArrayBuffer>;
  readonly #module: HistoryExports;

  constructor() {
    const module = loadKernelNow<HistoryExports>("history", EXPORTS);
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    const frames = this.frames = module.FRAMES.value as number;
    this.cells = new Uint16Array(buffer, module.CELLS.value as number, frames * CELLS);
    this.moves = new Uint16Array(buffer, module.MOVES.value as number, frames * LUMA_CELLS);
    this.profiles = new Int16Array(buffer, module.PROFILES.value as number, frames * PROFILE_VALUES);
    this.stats = new Int32Array(buffer, module.STATS.value as number, 6);
  }

  /** Fills `stats` for the frame in a slot, beside the one in `before`. */
  measure(slot: number, before: number): void {
    this.#module.measure(slot, before);
  }

  /** The sum of the differences of all cells of the frames in two slots. */
  apart(one: number, other: number): number {
    return this.#module.apart(one, other);
  }
}
