/** Calls `wasm/gate.wasm`, which computes gate decisions and context confidences for columns of signals. */

import { LIMITS } from "../../contract/limits.ts";
import { ARTIFACT_SCORE_THRESHOLD, CUT_SCORE_THRESHOLD } from "../../model/frames/signals.ts";
import type { GateColumns, GateThresholds, SignalColumns } from "../../model/frames/signals.ts";
import { call, type ExportsOf, loadKernel } from "./load_kernel.ts";

/** What `assembly/gate.ts` exports. The globals are addresses in its memory, except the first. */
const EXPORTS = {
  BLOCK_ROWS: "global",
  FRAME_INDEX: "global",
  HASH: "global",
  LUMA_MEAN: "global",
  FLICKER: "global",
  GHOSTING: "global",
  NOISE: "global",
  CUT_SCORE: "global",
  ARTIFACT_SCORE: "global",
  REASON: "global",
  GATE_CONFIDENCE: "global",
  NOVELTY: "global",
  STABILITY: "global",
  MOTION: "global",
  CONFIDENCE: "global",
  reset: call<(windowSize: number) => void>(),
  /** Positional, because WebAssembly functions take numbers only. */
  configure: call<
    (
      keepaliveEveryFrames: number,
      sceneCutHammingThreshold: number,
      lumaShiftThreshold: number,
      flickerThreshold: number,
      ghostingThreshold: number,
      noiseVarianceThreshold: number,
      cutScoreThreshold: number,
      artifactScoreThreshold: number,
      keepsAtOnce: boolean,
    ) => void
  >(),
  keep: call<(frameIndex: number, hash: bigint, lumaMean: number) => void>(),
  forget: call<() => void>(),
  run: call<(rows: number) => void>(),
} as const;
type GateExports = ExportsOf<typeof EXPORTS>;

export interface GateRunOptions {
  /**
   * Whether to continue after the frames of the previous call, with its reference and its window. Default
   * false.
   */
  readonly resume?: boolean;
  /**
   * Whether a kept frame becomes the reference at once; default true. With false it becomes the reference
   * when `keep` is called for it. See docs/frames.md#gate.
   */
  readonly keepsAtOnce?: boolean;
}

/** One gate with the state of one stream of frames. */
export class GateKernel {
  readonly #module: GateExports;
  readonly #blockRows: number;

  private constructor(module: GateExports) {
    this.#module = module;
    this.#blockRows = module.BLOCK_ROWS.value;
  }

  /** Compiles the module and gives it memory of its own. */
  static async load(): Promise<GateKernel> {
    return new GateKernel(await loadKernel("gate", EXPORTS));
  }

  /**
   * Decides all rows in order. `frameIndex` is the caller's numbering, one entry a row; it may have gaps. The
   * periodic keepalive counts differences of it. A row without a cut score (no column, or NaN in it) is
   * decided by the Hamming distance of its hash; a row without an artifact score by the thresholds of its
   * other signals. Throws a RangeError when a column is too short or `windowSize` is outside 2 to 256.
   */
  run(
    signals: SignalColumns,
    frameIndex: Float64Array,
    thresholds: GateThresholds,
    windowSize: number,
    options: GateRunOptions = {},
  ): GateColumns {
    const blocks = this.blocks(signals, frameIndex, thresholds, windowSize, options);
    for (let step = blocks.next();; step = blocks.next()) if (step.done) return step.value;
  }

  /** Like `run`, with a stop after every block. Between two of them nothing else may use this gate. */
  *blocks(
    signals: SignalColumns,
    frameIndex: Float64Array,
    thresholds: GateThresholds,
    windowSize: number,
    options: GateRunOptions = {},
  ): Generator<void, GateColumns> {
    checkShapes(signals, frameIndex, windowSize);
    if (!options.resume) this.#module.reset(windowSize);
    this.#module.configure(
      thresholds.keepaliveEveryFrames,
      thresholds.sceneCutHammingThreshold,
      thresholds.lumaShiftThreshold,
      thresholds.flickerThreshold,
      thresholds.ghostingThreshold,
      thresholds.noiseVarianceThreshold,
      CUT_SCORE_THRESHOLD,
      ARTIFACT_SCORE_THRESHOLD,
      options.keepsAtOnce ?? true,
    );
    const result = newGateColumns(signals.count);
    for (let start = 0; start < signals.count; start += this.#blockRows) {
      const end = Math.min(start + this.#blockRows, signals.count);
      this.#write(signals, frameIndex, start, end);
      this.#module.run(end - start);
      this.#read(result, start, end);
      yield;
    }
    return result;
  }

  /** Makes a frame the reference of the gate, for callers with `keepsAtOnce: false`. */
  keep(frameIndex: number, perceptualHash: bigint, lumaMean: number): void {
    this.#module.keep(frameIndex, perceptualHash, lumaMean);
  }

  /** Removes the reference. The next frame is then decided like the first one. */
  forget(): void {
    this.#module.forget();
  }

  #write(signals: SignalColumns, frameIndex: Float64Array, start: number, end: number): void {
    const { buffer } = this.#module.memory;
    const module = this.#module;
    const rows = end - start;
    new Float64Array(buffer, module.FRAME_INDEX.value, rows).set(frameIndex.subarray(start, end));
    new BigUint64Array(buffer, module.HASH.value, rows).set(signals.perceptualHash.subarray(start, end));
    const write = (address: WebAssembly.Global, column: Float32Array) =>
      new Float32Array(buffer, address.value, rows).set(column.subarray(start, end));
    write(module.LUMA_MEAN, signals.lumaMean);
    write(module.FLICKER, signals.flickerScore);
    write(module.GHOSTING, signals.ghostingScore);
    write(module.NOISE, signals.noiseVarianceScore);
    const writeOptional = (address: WebAssembly.Global, column?: Float32Array) =>
      column ? write(address, column) : new Float32Array(buffer, address.value, rows).fill(NaN);
    writeOptional(module.CUT_SCORE, signals.cutScore);
    writeOptional(module.ARTIFACT_SCORE, signals.artifactScore);
  }

  #read(result: GateColumns, start: number, end: number): void {
    const { buffer } = this.#module.memory;
    const module = this.#module;
    const rows = end - start;
    result.reason.set(new Uint8Array(buffer, module.REASON.value, rows), start);
    const read = (address: WebAssembly.Global, column: Float64Array) =>
      column.set(new Float64Array(buffer, address.value, rows), start);
    read(module.GATE_CONFIDENCE, result.gateConfidence);
    read(module.NOVELTY, result.novelty);
    read(module.STABILITY, result.temporalStability);
    read(module.MOTION, result.motion);
    read(module.CONFIDENCE, result.confidence);
  }
}

function newGateColumns(count: number): GateColumns {
  return {
    count,
    reason: new Uint8Array(count),
    gateConfidence: new Float64Array(count),
    novelty: new Float64Array(count),
    temporalStability: new Float64Array(count),
    motion: new Float64Array(count),
    confidence: new Float64Array(count),
  };
}

function checkShapes(signals: SignalColumns, frameIndex: Float64Array, windowSize: number): void {
  const { minimum, maximum } = LIMITS.analyze.windowSize;
  if (!Number.isInteger(windowSize) || windowSize < minimum || windowSize > maximum) {
    throw new RangeError(
      `Cannot gate with a window of ${windowSize} frames as it must be ${minimum} to ${maximum}`,
    );
  }
  const columns = [
    frameIndex,
    signals.perceptualHash,
    signals.lumaMean,
    signals.flickerScore,
    signals.ghostingScore,
    signals.noiseVarianceScore,
    ...(signals.cutScore ? [signals.cutScore] : []),
    ...(signals.artifactScore ? [signals.artifactScore] : []),
  ];
  const shortest = Math.min(...columns.map((column) => column.length));
  if (shortest < signals.count) {
    throw new RangeError(`Cannot gate ${signals.count} frames as one column has only ${shortest} rows`);
  }
}
