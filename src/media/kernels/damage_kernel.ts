/** Calls `wasm/damage.wasm`, which puts the codes of a frame beside those of the frames around it. */

import { type ExportKinds, loadKernelNow } from "./load_kernel.ts";

interface DamageExports {
  readonly memory: WebAssembly.Memory;
  readonly KEPT: WebAssembly.Global;
  readonly CODES: WebAssembly.Global;
  readonly FEATURES: WebAssembly.Global;
  measureFeatures(frame: number, first: number, count: number): void;
}

const EXPORTS: ExportKinds<DamageExports> = {
  memory: "memory",
  KEPT: "global",
  CODES: "global",
  FEATURES: "global",
  measureFeatures: "function",
};

/** Bytes of the codes of a frame: there are at most so many measures. */
export const CODE_STRIDE = 32;
/** Numbers of each measure. */
export const PER_MEASURE = 8;

/** Room for the codes of the newest frames, which the caller fills. Allocates nothing per frame. */
export class DamageKernel {
  /** Frames that are kept, frame i in slot i % `kept`. */
  readonly kept: number;
  /** CODE_STRIDE bytes for each slot. */
  readonly codes: Uint8Array<ArrayBuffer>;
  /** PER_MEASURE numbers for each measure, in turn. */
  readonly features: Uint8Array<ArrayBuffer>;
  readonly #module: DamageExports;

  constructor() {
    const module = loadKernelNow<DamageExports>("damage", EXPORTS);
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    this.kept = module.KEPT.value as number;
    this.codes = new Uint8Array(buffer, module.CODES.value as number, this.kept * CODE_STRIDE);
    this.features = new Uint8Array(buffer, module.FEATURES.value as number, CODE_STRIDE * PER_MEASURE);
  }

  /** Fills `features` for a frame of the shot that began with `first`, where `count` frames have come. */
  measureFeatures(frame: number, first: number, count: number): void {
    this.#module.measureFeatures(frame, first, count);
  }
}
