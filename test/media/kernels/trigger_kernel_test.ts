import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { TriggerKernel } from "../../../src/media/kernels/trigger_kernel.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import { type TriggerProgram, triggerProgram } from "../../../src/model/triggers/program.ts";
import { fillColumns, type TriggerSample } from "../../../src/model/triggers/samples.ts";
import { FIRED, MISSING_SIGNAL, tableOf } from "../../../src/model/triggers/program_table.ts";
import { programFaults, type ValidProgram, validProgram } from "../../../src/model/triggers/validate.ts";
import { RandomTriggers } from "../../support/kernels/random_triggers.ts";
import { ReferenceTrigger } from "../../support/kernels/trigger_reference.ts";

const kernel = await TriggerKernel.load();

/** The flags of each sample, from the initial state. */
function flagsOf(program: ValidProgram, samples: readonly TriggerSample[]): number[] {
  const table = tableOf(program);
  kernel.begin(table);
  fillColumns(samples, table.signals, kernel);
  return [...kernel.run(samples.length)];
}

function referenceFlags(program: TriggerProgram, samples: readonly TriggerSample[]): number[] {
  const reference = new ReferenceTrigger(program);
  return samples.map((sample) => {
    const { fired, missing_signal, actions } = reference.step(sample);
    // All actions run or none does.
    assert.equal(actions.length, fired ? program.instructions.filter(isAct).length : 0);
    return (fired ? FIRED : 0) | (missing_signal ? MISSING_SIGNAL : 0);
  });
}

function isAct({ op }: { op: string }): boolean {
  return op === "emit" || op === "capture" || op === "notify";
}

/** A program of these lines of instructions. */
function program(...instructions: TriggerProgram["instructions"]): ValidProgram {
  return validProgram({ isa_version: 1, program_id: "p", version: 1, instructions });
}

Deno.test("the interpreter and its reference implementation agree on 10,000 random programs and sample sequences, every sample", () => {
  const triggers = new RandomTriggers(4_711);
  const seen = new Map<number, number>();
  const ops = new Set<string>();
  for (let round = 0; round < 10_000; round++) {
    const valid = validProgram(triggers.program());
    const samples = triggers.samples(1 + triggers.below(24));
    const expected = referenceFlags(valid, samples);
    assert.deepEqual(flagsOf(valid, samples), expected, `program ${round}: ${JSON.stringify(valid)}`);
    expected.forEach((flags) => seen.set(flags, (seen.get(flags) ?? 0) + 1));
    valid.instructions.forEach(({ op }) => ops.add(op));
  }
  // The comparison is meaningful: every outcome is frequent and every instruction was used.
  for (const flags of [0, FIRED, MISSING_SIGNAL, FIRED | MISSING_SIGNAL]) {
    assert.ok(seen.get(flags)! > 1_000, `flags ${flags}: ${seen.get(flags)}`);
  }
  assert.equal(ops.size, 18);
});

Deno.test("what the validator accepts of 15,000 damaged programs runs within its bounds, as in the reference implementation", () => {
  const triggers = new RandomTriggers(815);
  let accepted = 0;
  for (let round = 0; round < 15_000; round++) {
    const { success, data } = triggerProgram.safeParse(triggers.mutated(triggers.program()));
    if (!success || programFaults(data).length > 0) continue;
    accepted++;
    const samples = triggers.samples(4);
    assert.deepEqual(
      flagsOf(data as ValidProgram, samples),
      referenceFlags(data, samples),
      JSON.stringify(data),
    );
  }
  assert.ok(accepted > 1_000 && accepted < 14_000, `${accepted} accepted`);
});

Deno.test("a program writes to its stack, its slots and the flags of its samples, and nowhere else", async () => {
  const bytes = await Deno.readFile(new URL("../../../wasm/trigger.wasm", import.meta.url));
  const { instance } = await WebAssembly.instantiate(bytes);
  const { memory, PROGRAM, VALUES, PTS_MS, FLAGS, begin, run } = instance.exports as Record<string, never> & {
    memory: WebAssembly.Memory;
    PROGRAM: WebAssembly.Global;
    VALUES: WebAssembly.Global;
    PTS_MS: WebAssembly.Global;
    FLAGS: WebAssembly.Global;
    begin: (columns: number) => void;
    run: (rows: number) => void;
  };
  const all = new Uint8Array(memory.buffer);
  const flagsStart = FLAGS.value as number;
  // Flags are 10,000 bytes; after them come the slots and the stack, 16 times 16 and 16 times 4 bytes.
  const end = flagsStart + 10_000 + 16 * 16 + 16 * 4;
  const triggers = new RandomTriggers(7);
  for (let round = 0; round < 300; round++) {
    const table = tableOf(validProgram(triggers.program()));
    const samples = triggers.samples(3);
    all.fill(0xa5);
    new Int32Array(memory.buffer, PROGRAM.value, table.words.length).set(table.words);
    fillColumns(samples, table.signals, {
      ptsMs: new Float64Array(memory.buffer, PTS_MS.value, 3),
      values: new Float32Array(memory.buffer, VALUES.value, 3 * 64),
    });
    begin(table.signals.length);
    const before = all.slice();
    run(3);
    const assertSame = (from: number, to: number, what: string) =>
      assert.equal(Buffer.compare(all.subarray(from, to), before.subarray(from, to)), 0, `${round}: ${what}`);
    assertSame(0, flagsStart, "below the flags");
    assertSame(flagsStart + 3, flagsStart + 10_000, "the flags of no sample");
    assertSame(end, all.length, "above the stack");
  }
});

Deno.test("the worked example fires once, and an edge during the cooldown has no later effect", () => {
  const valid = compileTrigger(
    "trigger dock-entry version 3\nwhen motion_score >= 0.5 for 2 frames\nedge rising\ncooldown 4000ms\n" +
      "emit dock_entry\ncapture keyframe\nnotify webhook\nend",
  );
  const check = (samples: [ptsMs: number, motion: number][], firedAt: number[]) => {
    const flags = flagsOf(valid, samples.map(([pts_ms, motion_score]) => ({ pts_ms, motion_score })));
    assert.deepEqual(samples.filter((_, index) => flags[index]! & FIRED).map(([pts]) => pts), firedAt);
    kernel.begin(tableOf(valid));
    const stepped = samples.map(([ptsMs, motion]) => kernel.step(ptsMs, motion, NaN, NaN));
    assert.deepEqual(stepped, flags, "one at a time");
  };
  const example: [number, number][] = [[0, 0.2], [100, 0.6], [200, 0.7], [300, 0.1], [400, 0.9], [500, 0.9]];
  check(example, [200]);
  // Still high when the cooldown ends: no new edge. Low once more: a new one.
  check([...example, [4199, 0.9], [4200, 0.9], [9000, 0.9]], [200]);
  check([...example, [4100, 0], [4150, 0.9], [4200, 0.9]], [200, 4200]);
  check([...example, [4100, 0], [4150, 0.9], [4199, 0.9]], [200]);
});

Deno.test("a value is true when it is finite and not zero; comparisons with a missing one are false", () => {
  const check = (flags: number, value: number | undefined, ...body: TriggerProgram["instructions"]) => {
    const valid = program(
      { op: "load", signal: { kind: "confidence" } },
      ...body,
      { op: "jump_if_false", target: body.length + 3 },
      { op: "emit", event_type: "e" },
      { op: "halt" },
    );
    const samples = [{ pts_ms: 0, confidence: value }];
    assert.deepEqual(flagsOf(valid, samples), [flags], JSON.stringify([value, body]));
    assert.deepEqual(referenceFlags(valid, samples), [flags]);
  };
  const zero = { op: "constant", value: 0 } as const;
  check(1, 0.5);
  check(1, -1);
  check(1, 1e-45);
  check(0, 1e-46);
  check(0, 0);
  check(0, -0);
  check(0, 1e39);
  check(2, undefined);
  check(1, 0, { op: "not" });
  check(1, 1e39, { op: "not" });
  check(3, undefined, { op: "not" });
  for (const op of ["greater_than", "greater_or_equal", "less_than", "less_or_equal", "equal"] as const) {
    check(2, undefined, zero, { op });
    check(2, undefined, { op: "load", signal: { kind: "confidence" } }, { op });
  }
  check(1, 0.1, { op: "constant", value: Math.fround(0.1) }, { op: "equal" });
  check(1, -0, zero, { op: "equal" });
  check(1, 1e39, { op: "constant", value: 3e38 }, { op: "greater_than" });
});

Deno.test("a load that a jump skips does not count as a missing signal", () => {
  const valid = program(
    { op: "load", signal: { kind: "motion_score" } },
    { op: "jump_if_false", target: 5 },
    { op: "load", signal: { kind: "confidence" } },
    { op: "jump_if_false", target: 5 },
    { op: "emit", event_type: "e" },
    { op: "halt" },
  );
  assert.deepEqual(
    flagsOf(valid, [{ pts_ms: 0, motion_score: 0 }, { pts_ms: 0, motion_score: 1 }, { pts_ms: 0 }]),
    [0, MISSING_SIGNAL, MISSING_SIGNAL],
  );
});

Deno.test("a score under its own key has priority over an observation, and the first of equal observations counts", () => {
  const check = (line: string, sample: Omit<TriggerSample, "pts_ms">, flags: number) => {
    const valid = compileTrigger(`trigger t version 1\nwhen ${line}\nemit e\nend`);
    assert.deepEqual(flagsOf(valid, [{ pts_ms: 0, ...sample }]), [flags], line);
    assert.deepEqual(referenceFlags(valid, [{ pts_ms: 0, ...sample }]), [flags], line);
  };
  const motion = (value: number) => ({ signal: { kind: "motion_score" }, value } as const);
  check("motion_score == 1", { motion_score: 1, observations: [motion(2)] }, FIRED);
  check("motion_score == 2", { observations: [motion(2), motion(3)] }, FIRED);
  check("motion_score == 2", { motion_score: null, observations: [motion(2)] }, FIRED);
  check("motion_score == 2", { observations: null }, MISSING_SIGNAL);
  check(
    "speech_confidence > 0",
    { observations: [{ signal: { kind: "speech_confidence" }, value: 1 }] },
    FIRED,
  );
  const count = (label: string, zone: string | null | undefined, value: number) => ({
    signal: { kind: "object_count", label, ...(zone !== undefined && { zone }) } as const,
    value,
  });
  const counts = [count("person", "bay", 1), count("person", null, 2), count("car", undefined, 3)];
  check("object_count:person@bay == 1", { observations: counts }, FIRED);
  check("object_count:person == 2", { observations: counts }, FIRED);
  check("object_count:car == 3", { observations: counts }, FIRED);
  check("object_count:car@bay == 3", { observations: counts }, MISSING_SIGNAL);
  const distance = { signal: { kind: "minimum_distance_mm", left: "a", right: "b" } as const, value: 5 };
  check("minimum_distance_mm:a,b == 5", { observations: [distance] }, FIRED);
  check("minimum_distance_mm:b,a == 5", { observations: [distance] }, MISSING_SIGNAL);
  check("time_to_collision_ms:a,b == 5", { observations: [distance] }, MISSING_SIGNAL);
});

Deno.test("10,000 samples of a program of 64 instructions are one call; more are refused", () => {
  const conditions = Array.from({ length: 15 }, (_, index) => `and object_count:l${index} >= 0`).join("\n");
  const valid = compileTrigger(
    `trigger t version 1\n${conditions}\nedge rising\nemit e\nnotify webhook\nend`,
  );
  assert.equal(valid.instructions.length, 64);
  const observations = Array.from({ length: 15 }, (_, index) => ({
    signal: { kind: "object_count", label: `l${index}` } as const,
    value: 1,
  }));
  const samples = Array.from({ length: 10_000 }, (_, index) => ({
    pts_ms: index,
    observations: index % 2 === 0 ? observations : observations.slice(1),
  }));
  const flags = flagsOf(valid, samples);
  assert.equal(flags.length, 10_000);
  assert.ok(flags.every((flag, index) => flag === (index % 2 === 0 ? FIRED : MISSING_SIGNAL)));
  assert.throws(() => kernel.run(10_001), /Cannot step 10001 samples/);
  assert.deepEqual(kernel.run(0), new Uint8Array(0));
});

Deno.test("the live step accepts the three scores in any order of loads, and other signals are missing", () => {
  const check = (conditions: string, scores: [number, number, number], flags: number) => {
    kernel.begin(tableOf(compileTrigger(`trigger t version 1\n${conditions}\nemit e\nend`)));
    assert.equal(kernel.step(0, ...scores), flags, conditions);
  };
  check("when confidence == 3\nand motion_score == 1", [1, 2, 3], FIRED);
  check("when novelty_score == 2", [1, 2, 3], FIRED);
  check("when novelty_score == 2", [1, NaN, 3], MISSING_SIGNAL);
  check("when motion_score == 1", [1, NaN, NaN], FIRED);
});
