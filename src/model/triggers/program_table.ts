/** A valid program as the flat table that `assembly/trigger.ts` executes. */

import { type Instruction, isAction, isSameSignal, type Signal } from "./program.ts";
import type { ValidProgram } from "./validate.ts";

/** The words of one instruction, of 32 bits each: code, operand, amount, and one unused. */
export const WORDS_PER_INSTRUCTION = 4;

/** Flag of a sample: the first action was reached. */
export const FIRED = 1;
/** Flag of a sample: an executed load had no value. */
export const MISSING_SIGNAL = 2;

export interface TriggerTable {
  /**
   * The instructions up to the first action, four words each: code, operand, amount, 0. A constant's amount
   * is its float's bits.
   */
  readonly words: Int32Array<ArrayBuffer>;
  /** The signals that the program loads, each once: the columns of a sample, in this order. */
  readonly signals: readonly Signal[];
}

/** The codes of `assembly/trigger.ts`. */
const CODES = {
  halt: 0,
  load: 1,
  constant: 2,
  greater_than: 3,
  greater_or_equal: 4,
  less_than: 5,
  less_or_equal: 6,
  equal: 7,
  and: 8,
  or: 9,
  not: 10,
  sustain_frames: 11,
  rising_edge: 12,
  cooldown_ms: 13,
  jump_if_false: 14,
} as const;

/** The code of every action: either all of them are executed or none is, so the first one ends the step. */
const FIRE = 15;

export function tableOf({ instructions }: ValidProgram): TriggerTable {
  const words = new Int32Array(instructions.length * WORDS_PER_INSTRUCTION);
  const signals: Signal[] = [];
  for (const [at, instruction] of instructions.entries()) {
    words.set(rowOf(instruction, signals), at * WORDS_PER_INSTRUCTION);
  }
  return { words, signals };
}

/** The code, operand and amount of an instruction, which may have fewer of them. */
function rowOf(instruction: Instruction, signals: Signal[]): number[] {
  if (isAction(instruction)) return [FIRE];
  const code = CODES[instruction.op];
  switch (instruction.op) {
    case "load":
      return [code, columnOf(instruction.signal, signals)];
    case "constant":
      return [code, 0, floatBits(instruction.value)];
    case "sustain_frames":
      return [code, instruction.slot, instruction.frames];
    case "rising_edge":
      return [code, instruction.slot];
    case "cooldown_ms":
      return [code, instruction.slot, instruction.duration_ms];
    case "jump_if_false":
      return [code, instruction.target];
    default:
      return [code];
  }
}

/** The column of a signal; a new one when no earlier instruction loads it. */
function columnOf(signal: Signal, signals: Signal[]): number {
  const known = signals.findIndex((other) => isSameSignal(other, signal));
  return known >= 0 ? known : signals.push(signal) - 1;
}

function floatBits(value: number): number {
  return new Int32Array(Float32Array.of(value).buffer)[0]!;
}
