/** Calls `wasm/damage.wasm`, which puts the codes of a frame beside those of the frames around it, and asks
 * fitted trees.
 */

import { call, type ExportsOf, loadKernelNow } from "./load_kernel.ts";

const EXPORTS = {
  KEPT: "global",
  CODES: "global",
  FEATURES: "global",
  TREES: "global",
  TREES_BYTES: "global",
  measureFeatures: call<(frame: number, first: number, count: number) => void>(),
  sumLeaves: call<(trees: number, pairs: number) => number>(),
} as const;
type DamageExports = ExportsOf<typeof EXPORTS>;

/** Bytes for the codes of a frame: room for the most measures that there are. */
export const CODE_STRIDE = 32;
/** How many numbers each measure becomes. */
export const PER_MEASURE = 8;

/**
 * Room for the codes of the newest frames, which the caller fills, and for trees. Allocates nothing per
 * frame.
 */
export class DamageKernel {
  /** Frames that are kept, frame i in slot i % `kept`. */
  readonly kept: number;
  /** CODE_STRIDE bytes for each slot. */
  readonly codes: Uint8Array<ArrayBuffer>;
  /** PER_MEASURE numbers for each measure, in turn. */
  readonly features: Uint8Array<ArrayBuffer>;
  readonly #module: DamageExports;
  readonly #trees: Uint8Array<ArrayBuffer>;
  /** Bytes of `#trees` that are taken. */
  #taken = 0;

  constructor() {
    const module = loadKernelNow("damage", EXPORTS);
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    this.kept = module.KEPT.value as number;
    this.codes = new Uint8Array(buffer, module.CODES.value as number, this.kept * CODE_STRIDE);
    this.features = new Uint8Array(buffer, module.FEATURES.value as number, CODE_STRIDE * PER_MEASURE);
    this.#trees = new Uint8Array(buffer, module.TREES.value as number, module.TREES_BYTES.value as number);
  }

  /** Fills `features` for a frame of the shot that began with `first`, where `count` frames have come. */
  measureFeatures(frame: number, first: number, count: number): void {
    this.#module.measureFeatures(frame, first, count);
  }

  /**
   * Keeps pairs of trees, laid out as assembly/damage.ts says. Returns what `sumLeaves` asks for. Throws a
   * RangeError where there is no room.
   */
  keepTrees(pairs: Uint8Array): number {
    if (this.#taken + pairs.length > this.#trees.length) {
      throw new RangeError(`Cannot keep more than ${this.#trees.length} bytes of trees`);
    }
    this.#trees.set(pairs, this.#taken);
    const at = this.#trees.byteOffset + this.#taken;
    this.#taken += pairs.length;
    return at;
  }

  /** The sum of the leaves that `features` comes to, over `pairs` pairs of trees from `trees` on. */
  sumLeaves(trees: number, pairs: number): number {
    return this.#module.sumLeaves(trees, pairs);
  }
}
