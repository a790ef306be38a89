/** Calls `wasm/history.wasm`, which keeps the cells of the newest frames and sums over them. */

import { call, type ExportsOf, loadKernelNow } from "./load_kernel.ts";

const EXPORTS = {
  FRAMES: "global",
  CELLS: "global",
  MOVES: "global",
  PROFILES: "global",
  STATS: "global",
  NUMBERS: "global",
  CELL_SUMS: "global",
  measure: call<(frame: number, before: number) => void>(),
  apart: call<(one: number, other: number) => number>(),
  changed: call<(one: number, other: number, most: number) => number>(),
  measureWays: call<(one: number, other: number, most: number) => void>(),
  measureMixes: call<(one: number, other: number) => void>(),
  fitSlide: call<(one: number, other: number) => void>(),
  roughness: call<(frame: number) => number>(),
  likeness: call<(one: number, other: number, across: number, along: number) => number>(),
  clearMoves: call<(place: number) => void>(),
  addMoves: call<(place: number, frame: number) => void>(),
} as const;
type HistoryExports = ExportsOf<typeof EXPORTS>;

/** Values of one frame in each of the three views. */
export const CELLS = 360;
export const LUMA_CELLS = 240;
export const PROFILE_VALUES = 496;

/**
 * Places in `stats`: sums over the cells of the frame that was measured last, the largest change of a cell,
 * the least and the largest.
 */
export const STATS = { sum: 0, moved: 1, step: 2, change: 3, least: 4, most: 5 } as const;

/**
 * Places in `numbers` after `measureWays`: cells that differ and how many of them went straight; then sums:
 * see there.
 */
export const WAYS = { changed: 0, straight: 1, sudden: 2, color: 3, all: 4 } as const;
/** Places in `numbers` after `measureMixes`. */
export const MIXES = { fromMix: 0, fromParts: 1, fromTime: 2, bends: 3 } as const;
/** Places in `numbers` after `fitSlide`. */
export const SLIDE = { slide: 0, moved: 1, middle: 2, wipe: 3, pan: 4, sharpness: 5 } as const;
const NUMBERS = 8;
const SUM_PLACES = 4;

/** Room for 256 frames, frame i in slot i % 256, which the caller fills. Allocates nothing per frame. */
export class HistoryKernel {
  readonly frames: number;
  /** CELLS values for each slot: 240 of luma, then those of chroma. */
  readonly cells: Uint16Array<ArrayBuffer>;
  /** LUMA_CELLS values for each slot: how much each luma cell moved. */
  readonly moves: Uint16Array<ArrayBuffer>;
  /** PROFILE_VALUES values for each slot. */
  readonly profiles: Int16Array<ArrayBuffer>;
  /** Results of `measure`: see STATS. */
  readonly stats: Int32Array<ArrayBuffer>;
  /** Results of the other methods that measure: see WAYS, MIXES and SLIDE. */
  readonly numbers: Float64Array<ArrayBuffer>;
  /** Results of `addMoves`: for each place, the sum of the moves of each luma cell. */
  readonly cellSums: readonly Uint32Array<ArrayBuffer>[];
  readonly #module: HistoryExports;

  constructor() {
    const module = loadKernelNow("history", EXPORTS);
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    const frames = this.frames = module.FRAMES.value as number;
    this.cells = new Uint16Array(buffer, module.CELLS.value as number, frames * CELLS);
    this.moves = new Uint16Array(buffer, module.MOVES.value as number, frames * LUMA_CELLS);
    this.profiles = new Int16Array(buffer, module.PROFILES.value as number, frames * PROFILE_VALUES);
    this.stats = new Int32Array(buffer, module.STATS.value as number, 6);
    this.numbers = new Float64Array(buffer, module.NUMBERS.value as number, NUMBERS);
    this.cellSums = Array.from(
      { length: SUM_PLACES },
      (_, place) =>
        new Uint32Array(buffer, module.CELL_SUMS.value as number + place * LUMA_CELLS * 4, LUMA_CELLS),
    );
  }

  /** Fills `stats` for a frame, beside the one before. */
  measure(frame: number, before: number): void {
    this.#module.measure(frame, before);
  }

  /** The sum of the differences of all cells of two frames. */
  apart(one: number, other: number): number {
    return this.#module.apart(one, other);
  }

  /**
   * How many cells, luma and chroma, differ by more than `most` between two frames; `most` is below 65535.
   */
  changed(one: number, other: number, most: number): number {
    return this.#module.changed(one, other, most);
  }

  /**
   * Fills `numbers` about the cells that differ by more than `most` between two frames: how many there are,
   * how many of them went most of their way without turning back, and the sum of the longest step of each as
   * a share of its way. Then the sums of the differences of the chroma cells, and of all.
   */
  measureWays(one: number, other: number, most: number): void {
    this.#module.measureWays(one, other, most);
  }

  /**
   * Fills `numbers` about the frames a quarter, half and three quarters of the way between two frames: how
   * far the worst of them is from a straight way, as shares of the distance of the two. First from a mix of
   * both; then from a picture of which each cell is from the one or from the other; then how far the mix is
   * from the one that their time asks for. Last comes how much the way bends.
   */
  measureMixes(one: number, other: number): void {
    this.#module.measureMixes(one, other);
  }

  /**
   * Fills `numbers` about how the frames between two pictures slide. First what is left of them after the
   * best push, cover or uncover; how far that one moved from the first to the last frame that was looked at,
   * and how far in the middle one, as shares of the picture. Then what is left after the best straight wipe,
   * and what is left if only one of the two pictures moves, as far as it is still seen. Last how sharp the
   * frames are beside the two pictures. What is left is a share of the difference of the two.
   */
  fitSlide(one: number, other: number): void {
    this.#module.fitSlide(one, other);
  }

  /**
   * Root of the mean squared steps between neighbouring luma cells, in levels; 0 for a picture of one
   * brightness.
   */
  roughness(frame: number): number {
    return this.#module.roughness(frame);
  }

  /**
   * How much the structure of two frames is alike for the best of places up to `across` cells sideways and
   * `along` up or down, in [-1,1] or a little more; steps of a level count little.
   */
  likeness(one: number, other: number, across: number, along: number): number {
    return this.#module.likeness(one, other, across, along);
  }

  /** Begins the `cellSums` of a place anew. */
  clearMoves(place: number): void {
    this.#module.clearMoves(place);
  }

  /** Adds the moves of a frame to the `cellSums` of a place. */
  addMoves(place: number, frame: number): void {
    this.#module.addMoves(place, frame);
  }
}
