/** Calls `wasm/trigger.wasm`, which runs one trigger program and keeps its state between samples. */

import type { Signal } from "../../model/triggers/program.ts";
import type { TriggerTable } from "../../model/triggers/program_table.ts";
import { call, type ExportsOf, loadKernel } from "./load_kernel.ts";

/** What `assembly/trigger.ts` exports. The globals are numbers and addresses in its memory. */
const EXPORTS = {
  INSTRUCTIONS: "global",
  COLUMNS: "global",
  BLOCK_ROWS: "global",
  PROGRAM: "global",
  PTS_MS: "global",
  VALUES: "global",
  FLAGS: "global",
  begin: call<(columns: number) => void>(),
  step: call<(ptsMs: number) => number>(),
  run: call<(rows: number) => void>(),
} as const;
type TriggerExports = ExportsOf<typeof EXPORTS>;

/**
 * One interpreter with the state of one sequence of samples. Samples come as a block, whose columns the
 * caller fills in place, or one at a time. See docs/triggers-policies.md#trigger-semantics.
 *
 * ```
 * begin(table) --> fill ptsMs[i], values[i * signals + s] --> run(count) --> flags
 *              \-> step(ptsMs, motion, novelty, confidence) ... --> flags of that sample
 * ```
 */
export class TriggerKernel {
  /** How many samples one `run` takes. */
  readonly samplesMax: number;
  /** Media time of each sample, milliseconds. A view of the module's memory, valid for the kernel's life. */
  readonly ptsMs: Float64Array<ArrayBuffer>;
  /**
   * Row after row, with one column for each signal of the table in its order; NaN where a signal is missing.
   */
  readonly values: Float32Array<ArrayBuffer>;

  readonly #module: TriggerExports;
  readonly #program: Int32Array;
  readonly #flags: Uint8Array;
  /** Where `step` writes each score. A score that the program does not load goes into the last column. */
  #motionColumn = 0;
  #noveltyColumn = 0;
  #confidenceColumn = 0;

  private constructor(module: TriggerExports) {
    const buffer = module.memory.buffer as ArrayBuffer;
    const rows = module.BLOCK_ROWS.value as number;
    const columns = module.COLUMNS.value as number;
    this.#module = module;
    this.samplesMax = rows;
    this.ptsMs = new Float64Array(buffer, module.PTS_MS.value, rows);
    this.values = new Float32Array(buffer, module.VALUES.value, rows * columns);
    this.#program = new Int32Array(buffer, module.PROGRAM.value, module.INSTRUCTIONS.value * 4);
    this.#flags = new Uint8Array(buffer, module.FLAGS.value, rows);
  }

  /** Compiles the module and gives it memory of its own. */
  static async load(): Promise<TriggerKernel> {
    return new TriggerKernel(await loadKernel("trigger", EXPORTS));
  }

  /** Loads a program and clears all state. */
  begin({ words, signals }: TriggerTable): void {
    this.#program.set(words);
    this.#motionColumn = this.#columnOf("motion_score", signals);
    this.#noveltyColumn = this.#columnOf("novelty_score", signals);
    this.#confidenceColumn = this.#columnOf("confidence", signals);
    this.#module.begin(signals.length);
  }

  /**
   * The flags of the next sample: `FIRED`, `MISSING_SIGNAL` (`model/triggers/program_table.ts`), both or 0.
   * NaN is a missing score; signals of other kinds are always missing. Allocates nothing.
   */
  step(ptsMs: number, motionScore: number, noveltyScore: number, confidence: number): number {
    this.values[this.#motionColumn] = motionScore;
    this.values[this.#noveltyColumn] = noveltyScore;
    this.values[this.#confidenceColumn] = confidence;
    return this.#module.step(ptsMs);
  }

  /**
   * Runs the first `count` samples of the block; returns a copy of their flags. Throws a RangeError for more
   * than fit.
   */
  run(count: number): Uint8Array<ArrayBuffer> {
    if (!(count >= 0 && count <= this.samplesMax)) {
      throw new RangeError(`Cannot step ${count} samples as a block holds ${this.samplesMax}`);
    }
    this.#module.run(count);
    return this.#flags.slice(0, count) as Uint8Array<ArrayBuffer>;
  }

  #columnOf(kind: Signal["kind"], signals: readonly Signal[]): number {
    const column = signals.findIndex((signal) => signal.kind === kind);
    return column >= 0 ? column : this.values.length - 1;
  }
}
