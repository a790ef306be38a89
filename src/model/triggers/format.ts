/** Turns a compiled program back into its source. */

import { Refusal, refuse } from "../../base/refusal.ts";
import { compileTrigger } from "./compile.ts";
import { type Comparison, COMPARISONS, type Instruction, type TriggerProgram } from "./program.ts";
import { signalText } from "./signal_text.ts";
import { validProgram } from "./validate.ts";

/**
 * A source that compiles to exactly this program, one statement on each line. Errors: 422 on `program` when it breaks a
 * rule, or when no source compiles to it: `or`, `not`, other jumps and names with blanks exist in program objects only.
 */
export function formatTrigger(program: TriggerProgram): string {
  const lines = validProgram(program).instructions.reduce(statement, [
    `trigger ${program.program_id} version ${program.version}`,
  ]);
  const source = [...lines, "end", ""].join("\n");
  if (canonical(recompiled(source)) !== canonical(program)) {
    throw refuse.invalid("program", "was not made from source, so no source says the same");
  }
  return source;
}

/**
 * Adds one instruction to the lines before it, assuming that the instructions have the order of the compiler. If they
 * have not, the source compiles to another program, which `formatTrigger` detects.
 */
function statement(lines: string[], instruction: Instruction): string[] {
  const extend = (text: string) => [...lines.slice(0, -1), `${lines.at(-1)} ${text}`];
  switch (instruction.op) {
    case "load":
      return [...lines, `${lines.length === 1 ? "when" : "and"} ${signalText(instruction.signal)}`];
    case "constant":
      return extend(String(instruction.value));
    case "sustain_frames":
      return extend(`for ${instruction.frames} frames`);
    case "rising_edge":
      return [...lines, "edge rising"];
    case "cooldown_ms":
      return [...lines, `cooldown ${instruction.duration_ms}ms`];
    case "emit":
      return [...lines, `emit ${instruction.event_type}`];
    case "capture":
      return [
        ...lines,
        instruction.kind === "keyframe"
          ? "capture keyframe"
          : `capture clip ${instruction.before_ms}ms ${instruction.after_ms}ms`,
      ];
    case "notify":
      return [...lines, `notify ${instruction.channel}`];
    case "greater_than":
    case "greater_or_equal":
    case "less_than":
    case "less_or_equal":
    case "equal": {
      // The constant comes before its comparison in the code and after it in the source.
      const [, before, constant] = /^(.*) (\S+)$/.exec(lines.at(-1)!) ?? [];
      return [...lines.slice(0, -1), `${before} ${sign(instruction.op)} ${constant}`];
    }
    default:
      return lines;
  }
}

function sign(comparison: Comparison): string {
  return Object.entries(COMPARISONS).find(([, op]) => op === comparison)![0];
}

function recompiled(source: string): TriggerProgram | undefined {
  try {
    return compileTrigger(source);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** The same text for the same program, whatever the order of the keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => a < b ? -1 : 1));
  }) ?? "";
}
