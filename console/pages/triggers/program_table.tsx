/** A compiled trigger program: each instruction with what it does, what it takes and leaves, and the state
 * that it keeps.
 */

import type { TriggerProgram } from "../../../client/mod.ts";
import { counted } from "../../text/numbers.ts";
import { durationText } from "../../text/time.ts";
import type { GoodProgram } from "./checked_program.ts";

type Instruction = TriggerProgram["instructions"][number];
type Signal = Extract<Instruction, { op: "load" }>["signal"];

export function ProgramTable(
  { of: { program, stateSlots } }: { of: GoodProgram },
) {
  const { program_id, version, isa_version, instructions } = program;
  const depths = depthsOf(instructions);
  return (
    <>
      <p>
        <strong>{program_id}</strong>, version <span class="number">{version}</span>:{" "}
        {counted(instructions.length, "instruction")} of 64, {counted(stateSlots, "state slot")}{" "}
        of 16, at most {counted(Math.max(...depths), "value")} of 16 on the stack, instruction set{" "}
        {isa_version}.
      </p>
      <div
        class="table-box program"
        tabIndex={0}
        role="group"
        aria-label="Instructions"
      >
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">No.</th>
              <th scope="col">Instruction</th>
              <th scope="col">What it does</th>
              <th scope="col" class="number">Stack</th>
              <th scope="col" class="number">Slot</th>
            </tr>
          </thead>
          <tbody>
            {instructions.map((instruction, index) => (
              <tr key={index}>
                <td class="number dim">{index}</td>
                <td>
                  <code>{instruction.op}</code>
                </td>
                <td>{told(instruction)}</td>
                <td class="number">{depths[index]}</td>
                <td class="number">
                  {"slot" in instruction ? instruction.slot : ""}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">
        <em>Stack</em>{" "}
        is how many values lie there after the instruction. Conditions are stepped once for each frame; a jump
        goes past the actions.
      </p>
    </>
  );
}

/** Values on the stack after each instruction; it is the same on every way to one. */
function depthsOf(instructions: readonly Instruction[]): number[] {
  let depth = 0;
  return instructions.map(({ op }) => depth += CHANGE[op]);
}

const CHANGE: Readonly<Record<Instruction["op"], number>> = {
  load: 1,
  constant: 1,
  greater_than: -1,
  greater_or_equal: -1,
  less_than: -1,
  less_or_equal: -1,
  equal: -1,
  and: -1,
  or: -1,
  not: 0,
  sustain_frames: 0,
  rising_edge: 0,
  cooldown_ms: 0,
  jump_if_false: -1,
  emit: 0,
  capture: 0,
  notify: 0,
  halt: 0,
};

const SIGNS = {
  greater_than: ">",
  greater_or_equal: "≥",
  less_than: "<",
  less_or_equal: "≤",
  equal: "=",
} as const;

function told(instruction: Instruction): string {
  switch (instruction.op) {
    case "load":
      return `the frame's ${signalText(instruction.signal)}`;
    case "constant":
      return `the number ${instruction.value}`;
    case "and":
      return "true where both are";
    case "or":
      return "true where one is";
    case "not":
      return "true where it is false";
    case "sustain_frames":
      return `true after ${counted(instruction.frames, "frame")} in a row`;
    case "rising_edge":
      return "true where it was false before";
    case "cooldown_ms":
      return `lets one pass, then none for ${durationText(instruction.duration_ms)}`;
    case "jump_if_false":
      return `false: goes on at ${instruction.target}`;
    case "emit":
      return `writes an event ${instruction.event_type}`;
    case "capture":
      return instruction.kind === "keyframe"
        ? "keeps the picture"
        : `keeps a clip, ${durationText(instruction.before_ms)} before to ${
          durationText(instruction.after_ms)
        } after`;
    case "notify":
      return instruction.channel === "webhook" ? "tells the webhooks" : "tells the program on this machine";
    case "halt":
      return "ends the frame";
    default:
      return `true where first ${SIGNS[instruction.op]} second`;
  }
}

/** As a source names it. */
export function signalText(signal: Signal): string {
  const { kind, label, zone, left, right } = signal as
    & { kind: string }
    & Partial<Record<"label" | "zone" | "left" | "right", string | null>>;
  const name = kind === "audio_event_confidence" ? "audio_event" : kind;
  if (left != null) return `${name}:${left},${right}`;
  return label == null ? name : `${name}:${label}${zone == null ? "" : `@${zone}`}`;
}

/** What each signal of a program is compared with. */
export function thresholdsOf(
  { instructions }: TriggerProgram,
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const [index, instruction] of instructions.entries()) {
    if (instruction.op !== "load") continue;
    const name = signalText(instruction.signal);
    const next = instructions[index + 1];
    const values = found.get(name) ?? [];
    if (next?.op === "constant" && !values.includes(next.value)) {
      values.push(next.value);
    }
    found.set(name, values);
  }
  return found;
}
