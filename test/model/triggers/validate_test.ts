import assert from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import { isSameSignal, type TriggerProgram, triggerProgram } from "../../../src/model/triggers/program.ts";
import { stateSlots, validProgram } from "../../../src/model/triggers/validate.ts";

type Code = TriggerProgram["instructions"];

const LOAD = { op: "load", signal: { kind: "motion_score" } } as const;
const EMIT = { op: "emit", event_type: "e" } as const;
const NOTIFY = { op: "notify", channel: "webhook" } as const;
const KEYFRAME = { op: "capture", kind: "keyframe", before_ms: 0, after_ms: 0 } as const;
const HALT = { op: "halt" } as const;
const NOT = { op: "not" } as const;
const AND = { op: "and" } as const;

function jump(target: number) {
  return { op: "jump_if_false", target } as const;
}

/** The faults of a program, which must have the right shape. */
function faultsOf(change: Partial<TriggerProgram>): string[] {
  const program = triggerProgram.parse({
    isa_version: 1,
    program_id: "p",
    version: 1,
    instructions: [],
    ...change,
  });
  try {
    validProgram(program);
  } catch (error) {
    assert.ok(error instanceof Refusal && error.status === 422, String(error));
    assert.ok(error.details.every(({ field }) => field === "program"));
    return error.details.map(({ message }) => message);
  }
  return [];
}

function check(instructions: Code, ...faults: string[]) {
  assert.deepEqual(faultsOf({ instructions }), faults, JSON.stringify(instructions));
}

Deno.test("the head of a program: its version of the machine, its name and its own version", () => {
  const head = (change: Partial<TriggerProgram>, ...faults: string[]) =>
    assert.deepEqual(faultsOf({ instructions: [EMIT, HALT], ...change }), faults);
  head({});
  head({ version: 2 ** 53 - 1, program_id: "A-z_0.9:b" });
  head({ isa_version: 2 }, "isa_version must be 1: got 2");
  head({ isa_version: 0 }, "isa_version must be 1: got 0");
  head({ version: 0 }, "version must be at least 1: got 0");
  const rule = 'program_id must be 1 to 128 letters, digits or any of "-_.:": got';
  head({ program_id: "" }, `${rule} ""`);
  head({ program_id: "dock entry" }, `${rule} "dock entry"`);
  head({ program_id: "dock\n" }, `${rule} "dock\\n"`);
  head({ program_id: "tür" }, `${rule} "tür"`);
  head({ program_id: "x".repeat(128) });
  head({ program_id: "x".repeat(129) }, `${rule} "${"x".repeat(80)}…"`);
  head(
    { isa_version: 7, version: 0, instructions: [HALT] },
    "isa_version must be 1: got 7",
    "version must be at least 1: got 0",
    "a program has exactly one emit: got none",
  );
});

Deno.test("a program has 1 to 64 instructions and ends with its only halt", () => {
  const filled = (count: number): Code => [...Array(count / 2 - 1).fill([LOAD, jump(0)]).flat(), EMIT, HALT];
  const forward = (code: Code) => code.map((one, at) => one.op === "jump_if_false" ? jump(at + 1) : one);
  check([], "a program has 1 to 64 instructions: got 0");
  check(forward(filled(64)));
  check(forward(filled(66)), "instruction 64 (emit): a program has 1 to 64 instructions: got 66");
  check(
    Array(100_000).fill(NOT),
    "instruction 64 (not): a program has 1 to 64 instructions: got 128 or more",
  );
  check([EMIT], "instruction 0 (emit): the last instruction must be halt", strayAt(0, "emit"));
  check([EMIT, HALT, HALT], "instruction 1 (halt): nothing may follow halt", strayAt(0, "emit"));
});

/** The fault of an action outside of the block of actions. */
function strayAt(at: number, op: string): string {
  return `instruction ${at} (${op}): all actions must stand in one block directly before the final halt`;
}

Deno.test("operands keep their bounds, both ends included", () => {
  const body = (one: Code[number], fault?: string) =>
    check([LOAD, one, jump(4), EMIT, HALT], ...(fault ? [`instruction 1 (${one.op}): ${fault}`] : []));
  const sustain = (slot: number, frames: number) => ({ op: "sustain_frames", slot, frames } as const);
  body(sustain(0, 1));
  body(sustain(15, 10_000));
  body(sustain(16, 1), "slot must be from 0 to 15: got 16");
  body(sustain(0, 0), "frames must be from 1 to 10000: got 0");
  body(sustain(0, 10_001), "frames must be from 1 to 10000: got 10001");
  body({ op: "rising_edge", slot: 15 });
  body({ op: "rising_edge", slot: 255 }, "slot must be from 0 to 15: got 255");
  body({ op: "cooldown_ms", slot: 1, duration_ms: 0 });
  body({ op: "cooldown_ms", slot: 1, duration_ms: 86_400_000 });
  body(
    { op: "cooldown_ms", slot: 1, duration_ms: 86_400_001 },
    "duration_ms must be from 0 to 86400000: got 86400001",
  );
  body({ op: "cooldown_ms", slot: 16, duration_ms: 0 }, "slot must be from 0 to 15: got 16");

  const constant = (value: number, ...faults: string[]) =>
    check([LOAD, { op: "constant", value }, AND, jump(5), EMIT, HALT], ...faults);
  constant(-3.4028235e38);
  constant(1e-50);
  constant(3.4028235677973362e38);
  constant(
    2 ** 128 - 2 ** 103,
    "instruction 1 (constant): value must be finite as a 32-bit float: got 3.4028235677973366e+38",
  );
  constant(-1e39, "instruction 1 (constant): value must be finite as a 32-bit float: got -1e+39");

  const clip = (before_ms: number, after_ms: number, fault?: string) =>
    check([EMIT, { op: "capture", kind: "clip", before_ms, after_ms }, HALT], ...(fault ? [fault] : []));
  clip(0, 0);
  clip(60_000, 0);
  clip(30_000, 30_000);
  clip(
    30_000,
    30_001,
    "instruction 1 (capture): before_ms and after_ms together must be from 0 to 60000: got 60001",
  );
  check(
    [{ op: "emit", event_type: "a b" }, HALT],
    'instruction 0 (emit): event_type must be 1 to 128 letters, digits or any of "-_.:": got "a b"',
  );
});

Deno.test("one emit, at most eight actions, all of them in a block before halt", () => {
  check([EMIT, HALT]);
  check([KEYFRAME, NOTIFY, EMIT, HALT]);
  check([EMIT, ...Array(7).fill(NOTIFY), HALT]);
  check(
    [EMIT, ...Array(8).fill(NOTIFY), HALT],
    "instruction 8 (notify): a program has at most 8 actions: got 9",
  );
  check([NOTIFY, HALT], "a program has exactly one emit: got none");
  check(
    [EMIT, NOTIFY, EMIT, HALT],
    "instruction 2 (emit): a program has exactly one emit, and 0 is one already",
  );
  check([EMIT, LOAD, jump(3), HALT], strayAt(0, "emit"));
  check([NOTIFY, LOAD, jump(3), EMIT, HALT], strayAt(0, "notify"));
  check([EMIT, LOAD, jump(3), NOTIFY, HALT], strayAt(0, "emit"));
});

Deno.test("jumps go forward, stay inside and do not enter the actions in their middle", () => {
  const target = (to: number, fault?: string) =>
    check(
      [LOAD, jump(to), LOAD, jump(4), EMIT, NOTIFY, HALT],
      ...(fault ? [`instruction 1 (jump_if_false): ${fault}`] : []),
    );
  target(2);
  target(4);
  target(6);
  target(0, "target must lie after the jump: got 0");
  target(1, "target must lie after the jump: got 1");
  target(5, "target must not lie inside the actions 4 to 5: got 5");
  target(7, "target must be at most 6, the last one: got 7");
  target(2 ** 32, "target must be at most 6, the last one: got 4294967296");
});

Deno.test("the stack never holds less than is taken nor more than fits, on every path", () => {
  const loads = (count: number): Code => Array(count).fill(LOAD);
  const ands = (count: number): Code => Array(count).fill(AND);
  check([...loads(16), ...ands(15), jump(33), EMIT, HALT]);
  check([...loads(16), EMIT, HALT]);
  check(
    [...loads(17), ...ands(16), jump(35), EMIT, HALT],
    "instruction 16 (load): the stack would hold 17 values, and at most 16 fit",
  );
  const unary: Code = [
    NOT,
    { op: "rising_edge", slot: 0 },
    { op: "sustain_frames", slot: 0, frames: 1 },
    { op: "cooldown_ms", slot: 0, duration_ms: 1 },
  ];
  for (const one of unary) {
    check([one, EMIT, HALT], `instruction 0 (${one.op}): takes 1 value from a stack of 0`);
  }
  check([jump(1), EMIT, HALT], "instruction 0 (jump_if_false): takes 1 value from a stack of 0");
  for (
    const op of [
      "greater_than",
      "greater_or_equal",
      "less_than",
      "less_or_equal",
      "equal",
      "and",
      "or",
    ] as const
  ) {
    check([LOAD, { op }, EMIT, HALT], `instruction 1 (${op}): takes 2 values from a stack of 1`);
  }
  // Values may be left on the stack, as long as every path leaves the same number.
  check([LOAD, LOAD, jump(4), EMIT, HALT]);
  check(
    [LOAD, jump(3), LOAD, EMIT, HALT],
    "instruction 3 (emit): the stack holds 1 value here, but 0 after the jump at 1",
  );
  check(
    [LOAD, jump(4), LOAD, EMIT, HALT],
    "instruction 4 (halt): the stack holds 1 value here, but 0 after the jump at 1",
  );
  check(
    [LOAD, LOAD, jump(5), jump(5), EMIT, HALT],
    "instruction 3 (jump_if_false): jumps to 5 with 0 values on the stack, but the jump at 2 with 1",
  );
  check([LOAD, jump(4), LOAD, jump(4), EMIT, HALT]);
});

Deno.test("a program needs as many slots as its highest one and those below it", () => {
  const slots = (...numbers: number[]) =>
    stateSlots({
      isa_version: 1,
      program_id: "p",
      version: 1,
      instructions: numbers.map((slot) => ({ op: "rising_edge", slot })),
    });
  assert.equal(slots(), 0);
  assert.equal(slots(0), 1);
  assert.equal(slots(7, 2), 8);
});

Deno.test("other shapes are refused, and broken rules are left to the validator", () => {
  const valid = compileTrigger(
    "trigger t version 1\nwhen object_count:a@b > 1\nemit e\ncapture clip 1 2\nend",
  );
  assert.deepEqual(triggerProgram.parse(valid), valid);
  const shape = (change: unknown, isTaken: boolean) =>
    assert.equal(triggerProgram.safeParse(change).success, isTaken, JSON.stringify(change));
  const one = (instruction: unknown) => ({ ...valid, instructions: [instruction] });
  shape(one({ op: "rising_edge", slot: 99 }), true);
  shape(one({ op: "rising_edge", slot: -1 }), false);
  shape(one({ op: "rising_edge", slot: 0.5 }), false);
  shape(one({ op: "rising_edge", slot: "0" }), false);
  shape(one({ op: "rising_edge" }), false);
  shape(one({ op: "rising_edge", slot: 0, frames: 1 }), false);
  shape(one({ op: "RISING_EDGE", slot: 0 }), false);
  shape(one({ op: "constant", value: null }), false);
  shape(one({ op: "constant", value: Infinity }), false);
  shape(one({ op: "notify", channel: "email" }), false);
  shape(one({ op: "capture", kind: "keyframe" }), false);
  shape(one({ op: "load", signal: { kind: "motion_score", label: "x" } }), false);
  shape(one({ op: "load", signal: { kind: "object_count", label: "x" } }), true);
  shape(one({ op: "load", signal: { kind: "dwell_ms", label: "x" } }), false);
  shape(one({ op: "load", signal: "motion_score" }), false);
  shape(one(null), false);
  shape({ ...valid, note: "x" }, false);
  shape([], false);
});

Deno.test("a zone that is absent is null, and everything else tells signals apart", () => {
  const person = { kind: "object_count", label: "person" } as const;
  assert.ok(isSameSignal(person, { ...person, zone: null }));
  assert.ok(isSameSignal(person, { ...person, zone: undefined }));
  assert.ok(!isSameSignal(person, { ...person, zone: "" }));
  assert.ok(!isSameSignal(person, { ...person, label: "Person" }));
  assert.ok(!isSameSignal(person, { kind: "audio_event_confidence", label: "person" }));
  const pair = { kind: "minimum_distance_mm", left: "a", right: "b" } as const;
  assert.ok(isSameSignal(pair, { ...pair }));
  assert.ok(!isSameSignal(pair, { ...pair, left: "b", right: "a" }));
  assert.ok(!isSameSignal(pair, { ...pair, kind: "time_to_collision_ms" }));
});
