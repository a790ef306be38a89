/** Trigger programs: compiles, validates and evaluates them. Stores nothing. See
 * docs/triggers-policies.md#trigger-program.
 */

import { refuse } from "../../contract/refusal.ts";
import type { TriggerKernel } from "../../media/kernels/trigger_kernel.ts";
import type { CompileBody, EvaluateBody } from "../../model/api/triggers.ts";
import { compileTrigger } from "../../model/triggers/compile.ts";
import { type Action, isAction, type TriggerProgram } from "../../model/triggers/program.ts";
import { fillColumns, firstOutOfOrder } from "../../model/triggers/samples.ts";
import { tableOf } from "../../model/triggers/program_table.ts";
import { stateSlots, type ValidProgram, validProgram } from "../../model/triggers/validate.ts";

/** A valid program, and its size. */
export interface CheckedProgram {
  readonly program: ValidProgram;
  readonly instructionCount: number;
  readonly stateSlots: number;
}

/** The results of a program for a sequence of samples, in their order. */
export interface TriggerEvaluation {
  readonly program: ValidProgram;
  /** Media time of each sample, milliseconds. */
  readonly ptsMs: Float64Array;
  /** `FIRED` and `MISSING_SIGNAL` of each sample. */
  readonly flags: Uint8Array;
  /** The actions of every firing, in the order of the program. */
  readonly actions: readonly Action[];
}

export class Triggers {
  readonly #kernel: TriggerKernel;

  constructor(kernel: TriggerKernel) {
    this.#kernel = kernel;
  }

  /** Errors: 422 on `source`. */
  compile({ source }: CompileBody): CheckedProgram {
    return checked(compileTrigger(source));
  }

  /** Errors: 422 on `program`. */
  validate(program: TriggerProgram): CheckedProgram {
    return checked(validProgram(program));
  }

  /**
   * Steps through the samples from the initial state, synchronously. Errors: 422 on `program`, 422 on
   * `samples`.
   */
  evaluate({ program, samples }: EvaluateBody): TriggerEvaluation {
    const valid = validProgram(program);
    const late = firstOutOfOrder(samples);
    if (late >= 0) {
      const times = `${samples[late]!.pts_ms} after ${samples[late - 1]!.pts_ms}`;
      throw refuse.invalid(
        "samples",
        `[${late}].pts_ms must not be less than the one before it: got ${times}`,
      );
    }
    const kernel = this.#kernel;
    const table = tableOf(valid);
    kernel.begin(table);
    fillColumns(samples, table.signals, kernel);
    return {
      program: valid,
      ptsMs: kernel.ptsMs.slice(0, samples.length),
      flags: kernel.run(samples.length),
      actions: valid.instructions.filter(isAction),
    };
  }
}

function checked(program: ValidProgram): CheckedProgram {
  return { program, instructionCount: program.instructions.length, stateSlots: stateSlots(program) };
}
