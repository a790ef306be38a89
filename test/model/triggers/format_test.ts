import assert from "node:assert/strict";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import { formatTrigger } from "../../../src/model/triggers/format.ts";
import type { TriggerProgram } from "../../../src/model/triggers/program.ts";
import { signalText } from "../../../src/model/triggers/signal_text.ts";
import { RandomTriggers } from "../../support/kernels/random_triggers.ts";

const DOCK_ENTRY = [
  "trigger dock-entry version 3",
  "when motion_score >= 0.5 for 2 frames",
  "and object_count:person@bay > 0",
  "edge rising",
  "cooldown 4000ms",
  "capture clip 500ms 1500ms",
  "emit dock_entry",
  "capture keyframe",
  "notify webhook",
  "end",
  "",
].join("\n");

Deno.test("a source in plain form comes back as it was", () => {
  assert.equal(formatTrigger(compileTrigger(DOCK_ENTRY)), DOCK_ENTRY);
});

Deno.test("whatever was compiled is formatted to a source that compiles to the same", () => {
  const triggers = new RandomTriggers(99);
  for (let round = 0; round < 1_000; round++) {
    const program = compileTrigger(randomSource(triggers));
    const formatted = formatTrigger(program);
    assert.deepEqual(compileTrigger(formatted), program, formatted);
    assert.equal(formatTrigger(compileTrigger(formatted)), formatted);
  }
});

Deno.test("a program that no source compiles to is refused", () => {
  const check = (
    change: (program: TriggerProgram) => void,
    why = /^Refusal: Invalid program: was not made from source/,
  ) => {
    const program = structuredClone(compileTrigger(DOCK_ENTRY)) as TriggerProgram;
    change(program);
    assert.throws(() => formatTrigger(program), why);
  };
  const replace = (at: number, instruction: TriggerProgram["instructions"][number]) =>
    check(({ instructions }) => instructions[at] = instruction);
  check((program) => program.program_id = "x version 1\ntrigger y", /program_id must be/);
  check((program) => program.isa_version = 2, /isa_version must be 1/);
  check((program) => program.instructions = Array(100_000).fill({ op: "not" }), /1 to 64 instructions/);
  check(({ instructions }) => instructions.pop(), /last instruction must be halt/);
  check(({ instructions }) => {
    instructions.splice(7, 0, { op: "not" });
    instructions.forEach((one) => one.op === "jump_if_false" && one.target++);
  });
  replace(3, { op: "sustain_frames", slot: 5, frames: 2 });
  replace(0, { op: "load", signal: { kind: "object_count", label: "red car", zone: null } });
  replace(0, { op: "load", signal: { kind: "object_count", label: "a@b", zone: null } });
  replace(0, { op: "load", signal: { kind: "audio_event_confidence", label: "x > 1\nand confidence" } });
  check(({ instructions }) => {
    const capture = instructions.find((one) => one.op === "capture" && one.kind === "keyframe");
    Object.assign(capture!, { before_ms: 1 });
  });
  // Valid, but with `or` in it.
  const triggers = new RandomTriggers(3);
  let refused = 0;
  for (let round = 0; round < 300; round++) {
    const program = triggers.program();
    try {
      assert.deepEqual(compileTrigger(formatTrigger(program)), program);
    } catch (error) {
      assert.match(String(error), /was not made from source/);
      refused++;
    }
  }
  assert.ok(refused > 250);
});

/** Every kind of statement, in random order. */
function randomSource(triggers: RandomTriggers): string {
  const pick = <T>(...values: T[]) => triggers.pick(values);
  const condition = () => {
    const frames = pick("", ` for ${1 + triggers.below(10_000)} frames`);
    const number = pick("0", "-1.5", "1e-7", "123456789", String(triggers.random()), "3e38", "-0", "+.5");
    return `${pick("when", "and")} ${signalText(triggers.signal())} ${
      pick(">", ">=", "<", "<=", "==")
    } ${number}${frames}`;
  };
  const lines = [
    ...Array.from({ length: 1 + triggers.below(9) }, condition),
    ...Array.from({ length: triggers.below(3) }, () => "edge rising"),
    ...Array.from(
      { length: triggers.below(3) },
      () => `cooldown ${triggers.below(86_400_001)}${pick("", "ms")}`,
    ),
    ...Array.from(
      { length: triggers.below(4) },
      () => `capture clip ${triggers.below(30_001)} ${triggers.below(30_001)}ms`,
    ),
    ...Array.from(
      { length: triggers.below(3) },
      () => pick("capture keyframe", "notify webhook", "notify local_output"),
    ),
    "emit some.event:1",
  ];
  const shuffled = lines.map((line) => ({ line, at: triggers.random() })).toSorted((a, b) => a.at - b.at);
  return ["trigger t-1 version 7", ...shuffled.map(({ line }) => line), "end"].join("\n");
}
