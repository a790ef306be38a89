/** Which programs may run. A valid program never traps, loops or exceeds its bounds. See
 * docs/triggers-policies.md#trigger-validation.
 */

import { refuse } from "../../contract/refusal.ts";
import { LIMITS, type Range } from "../../contract/limits.ts";
import { IDENTIFIER, identifierFault } from "../trigger_identifier.ts";
import {
  type Instruction,
  INSTRUCTIONS_READ_MAX,
  ISA_VERSION,
  isAction,
  isFiniteF32,
  type TriggerProgram,
} from "./program.ts";

declare const VALID: unique symbol;

/** A program that keeps every rule; only `judgedProgram` and `validProgram` make one. */
export type ValidProgram = TriggerProgram & { readonly [VALID]: true };

/** A rule that a program breaks. */
export interface ProgramFault {
  /** The index of the instruction that breaks the rule; undefined when it is the program as a whole. */
  readonly at?: number;
  readonly message: string;
}

/** The program if it is valid, else every broken rule. */
export type ProgramVerdict =
  | { readonly valid: ValidProgram }
  | { readonly valid: null; readonly faults: readonly ProgramFault[] };

export function judgedProgram(program: TriggerProgram): ProgramVerdict {
  const faults = programFaults(program);
  return faults.length === 0 ? { valid: program as ValidProgram } : { valid: null, faults };
}

/** The program as one that may run. Errors: 422 on `program` that names every instruction at fault. */
export function validProgram(program: TriggerProgram): ValidProgram {
  const verdict = judgedProgram(program);
  if (verdict.valid === null) {
    throw refuse.invalidFields(verdict.faults.map(({ at, message }) => ({
      field: "program",
      message: at === undefined ? message : `instruction ${at} (${program.instructions[at]!.op}): ${message}`,
    })));
  }
  return verdict.valid;
}

/** Every broken rule. The stack is checked only when the instructions are in a valid order. */
export function programFaults(program: TriggerProgram): ProgramFault[] {
  const { instructions } = program;
  const faults = headFaults(program);
  const { minimum, maximum } = LIMITS.trigger.instructions;
  if (instructions.length < minimum || instructions.length > maximum) {
    const cut = instructions.length === INSTRUCTIONS_READ_MAX ? " or more" : "";
    const message = `a program has ${minimum} to ${maximum} instructions: got ${instructions.length}${cut}`;
    // One fault instead of one for each of thousands of instructions.
    return [...faults, { ...(instructions.length > maximum && { at: maximum }), message }];
  }
  const own = instructions.flatMap((instruction, at) =>
    operandFaults(instruction).map((message) => ({ at, message }))
  );
  const order = [...haltFaults(instructions), ...actionFaults(instructions), ...jumpFaults(instructions)];
  return [...faults, ...own, ...order, ...(order.length === 0 ? stackFaults(instructions) : [])];
}

/** The number of state slots that the program needs: the highest used one and those below it. */
export function stateSlots({ instructions }: TriggerProgram): number {
  return Math.max(0, ...instructions.map((instruction) => "slot" in instruction ? instruction.slot + 1 : 0));
}

function headFaults({ isa_version, program_id, version }: TriggerProgram): ProgramFault[] {
  const faults: ProgramFault[] = [];
  if (isa_version !== ISA_VERSION) {
    faults.push({ message: `isa_version must be ${ISA_VERSION}: got ${isa_version}` });
  }
  if (!IDENTIFIER.test(program_id)) faults.push({ message: `program_id ${identifierFault(program_id)}` });
  if (version < 1) faults.push({ message: `version must be at least 1: got ${version}` });
  return faults;
}

/** The faults of an instruction on its own. */
function operandFaults(instruction: Instruction): string[] {
  const faults: string[] = [];
  if ("slot" in instruction) {
    const slots = { minimum: 0, maximum: LIMITS.trigger.stateSlotsMax - 1 };
    faults.push(...outside("slot", instruction.slot, slots));
  }
  switch (instruction.op) {
    case "constant":
      if (!isFiniteF32(instruction.value)) {
        faults.push(`value must be finite as a 32-bit float: got ${instruction.value}`);
      }
      break;
    case "sustain_frames":
      faults.push(...outside("frames", instruction.frames, LIMITS.trigger.sustainFrames));
      break;
    case "cooldown_ms": {
      const durations = { minimum: 0, maximum: LIMITS.trigger.cooldownMsMax };
      faults.push(...outside("duration_ms", instruction.duration_ms, durations));
      break;
    }
    case "emit":
      if (!IDENTIFIER.test(instruction.event_type)) {
        faults.push(`event_type ${identifierFault(instruction.event_type)}`);
      }
      break;
    case "capture": {
      const lengthMs = instruction.before_ms + instruction.after_ms;
      const lengths = { minimum: 0, maximum: LIMITS.trigger.captureMsMax };
      faults.push(...outside("before_ms and after_ms together", lengthMs, lengths));
    }
  }
  return faults;
}

function outside(name: string, value: number, { minimum, maximum }: Range): string[] {
  return value >= minimum && value <= maximum
    ? []
    : [`${name} must be from ${minimum} to ${maximum}: got ${value}`];
}

/** Faults of the last instruction, which halts as no other one does. */
function haltFaults(instructions: readonly Instruction[]): ProgramFault[] {
  const last = instructions.length - 1;
  const early = instructions.findIndex(({ op }) => op === "halt");
  if (early >= 0 && early < last) return [{ at: early, message: "nothing may follow halt" }];
  return early === last ? [] : [{ at: last, message: "the last instruction must be halt" }];
}

/** Faults of the actions: one emit, few actions, and all of them in one block before the last instruction. */
function actionFaults(instructions: readonly Instruction[]): ProgramFault[] {
  const faults: ProgramFault[] = [];
  const actions = placesOf(instructions, isAction);
  const emits = placesOf(instructions, ({ op }) => op === "emit");
  if (emits.length === 0) faults.push({ message: "a program has exactly one emit: got none" });
  if (emits.length > 1) {
    faults.push({ at: emits[1]!, message: `a program has exactly one emit, and ${emits[0]} is one already` });
  }
  const actionsMax = LIMITS.trigger.actionsMax;
  if (actions.length > actionsMax) {
    const message = `a program has at most ${actionsMax} actions: got ${actions.length}`;
    faults.push({ at: actions[actionsMax]!, message });
  }
  // In one block before the last instruction, the actions are at exactly these places.
  const first = instructions.length - 1 - actions.length;
  const stray = actions.find((at, index) => at !== first + index);
  if (stray !== undefined) {
    faults.push({ at: stray, message: "all actions must stand in one block directly before the final halt" });
  }
  return faults;
}

/** Faults of jumps, which lead forward only, inside the program, and never between the actions. */
function jumpFaults(instructions: readonly Instruction[]): ProgramFault[] {
  const last = instructions.length - 1;
  const blockStart = instructions.findLastIndex((one, at) => at < last && !isAction(one)) + 1;
  return instructions.flatMap((instruction, at) => {
    if (instruction.op !== "jump_if_false") return [];
    const { target } = instruction;
    if (target <= at) return [{ at, message: `target must lie after the jump: got ${target}` }];
    if (target > last) {
      return [{ at, message: `target must be at most ${last}, the last one: got ${target}` }];
    }
    return target > blockStart && target < last
      ? [{
        at,
        message: `target must not lie inside the actions ${blockStart} to ${last - 1}: got ${target}`,
      }]
      : [];
  });
}

/** How many values an instruction takes from the stack and how many it pushes. */
function stackUse({ op }: Instruction): { readonly takes: number; readonly puts: number } {
  switch (op) {
    case "load":
    case "constant":
      return { takes: 0, puts: 1 };
    case "not":
    case "sustain_frames":
    case "rising_edge":
    case "cooldown_ms":
      return { takes: 1, puts: 1 };
    case "jump_if_false":
      return { takes: 1, puts: 0 };
    case "emit":
    case "capture":
    case "notify":
    case "halt":
      return { takes: 0, puts: 0 };
    default:
      return { takes: 2, puts: 1 };
  }
}

/**
 * Faults of the stack. One pass is enough: jumps only go forward and only the last instruction halts, so
 * every instruction is reached from the one before it, and all jumps to it come earlier. Stops at the first
 * fault, as the depths after it are unknown.
 */
function stackFaults(instructions: readonly Instruction[]): ProgramFault[] {
  const stackValuesMax = LIMITS.trigger.stackValuesMax;
  /** The depth of the stack at the target of a jump, and the jump, by target. */
  const arrivals = new Map<number, { readonly depth: number; readonly from: number }>();
  let depth = 0;
  for (const [at, instruction] of instructions.entries()) {
    const arrival = arrivals.get(at);
    if (arrival && arrival.depth !== depth) {
      const message = `the stack holds ${values(depth)} here, but ${arrival.depth} after the jump at ` +
        `${arrival.from}`;
      return [{ at, message }];
    }
    const { takes, puts } = stackUse(instruction);
    if (depth < takes) return [{ at, message: `takes ${values(takes)} from a stack of ${depth}` }];
    depth += puts - takes;
    if (depth > stackValuesMax) {
      return [{ at, message: `the stack would hold ${values(depth)}, and at most ${stackValuesMax} fit` }];
    }
    if (instruction.op !== "jump_if_false") continue;
    const { target } = instruction;
    const other = arrivals.get(target);
    if (other && other.depth !== depth) {
      const message =
        `jumps to ${target} with ${values(depth)} on the stack, but the jump at ${other.from} ` +
        `with ${other.depth}`;
      return [{ at, message }];
    }
    arrivals.set(target, { depth, from: at });
  }
  return [];
}

function values(count: number): string {
  return count === 1 ? "1 value" : `${count} values`;
}

function placesOf(
  instructions: readonly Instruction[],
  matches: (instruction: Instruction) => boolean,
): number[] {
  return instructions.flatMap((instruction, at) => matches(instruction) ? [at] : []);
}
