/** Compiles a source to a program object, which is then validated like any other. See
 * docs/triggers-policies.md#trigger-program.
 */

import { utf8Length } from "../../base/bytes.ts";
import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type ParsedTrigger, parseTrigger, sourceField, type SourcePosition } from "./parse.ts";
import { type Instruction, ISA_VERSION, type TriggerProgram } from "./program.ts";
import { judgedProgram, type ValidProgram } from "./validate.ts";

/** Compiles a source. Errors: 422 on `source`; a fault of a line begins with `line N: column C: `. */
export function compileTrigger(source: string): ValidProgram {
  const bytesMax = LIMITS.trigger.sourceBytesMax;
  const bytes = utf8Length(source);
  if (bytes > bytesMax) {
    throw refuse.invalid("source", `must have at most ${bytesMax} bytes: got ${bytes}`);
  }
  const parsed = parseTrigger(source);
  const { program, positions } = compiled(parsed);
  const verdict = judgedProgram(program);
  if (verdict.valid === null) {
    throw refuse.invalidFields(verdict.faults.map(({ at, message }) => {
      const position = at === undefined ? undefined : positions[at];
      return sourceField(position ?? parsed.version.position, message);
    }));
  }
  return verdict.valid;
}

/** A program and, for each instruction, its position in the source. */
interface Compiled {
  readonly program: TriggerProgram;
  readonly positions: readonly SourcePosition[];
}

/**
 * The program of a parsed source. State slots are numbered in the order of the code: sustained conditions,
 * then the edge, then the cooldown.
 */
function compiled({ programId, version, conditions, edge, cooldownMs, actions }: ParsedTrigger): Compiled {
  const instructions: Instruction[] = [];
  const positions: SourcePosition[] = [];
  let slot = 0;
  const write = (position: SourcePosition, instruction: Instruction) => {
    instructions.push(instruction);
    positions.push(position);
  };

  for (const [index, { signal, comparison, threshold, frames }] of conditions.entries()) {
    write(signal.position, { op: "load", signal: signal.value });
    write(threshold.position, { op: "constant", value: threshold.value });
    write(comparison.position, { op: comparison.value });
    if (frames) write(frames.position, { op: "sustain_frames", slot: slot++, frames: frames.value });
    if (index > 0) write(signal.position, { op: "and" });
  }
  if (edge) write(edge, { op: "rising_edge", slot: slot++ });
  if (cooldownMs) {
    write(cooldownMs.position, { op: "cooldown_ms", slot: slot++, duration_ms: cooldownMs.value });
  }
  const end = actions.at(-1)!.position;
  write(end, { op: "jump_if_false", target: instructions.length + 1 + actions.length });
  for (const { value, position } of actions) write(position, value);
  write(end, { op: "halt" });
  return {
    program: {
      isa_version: ISA_VERSION,
      program_id: programId.value,
      version: version.value,
      instructions,
    },
    positions,
  };
}
