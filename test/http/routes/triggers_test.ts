import assert from "node:assert/strict";
import type { TriggerProgram } from "../../../src/model/triggers/program.ts";
import { startService, type TestService } from "../../support/service.ts";
import { DOCK_SOURCE } from "../../support/policy_fixtures.ts";

const PROGRAM = {
  isa_version: 1,
  program_id: "dock-entry",
  version: 3,
  instructions: [
    { op: "load", signal: { kind: "motion_score" } },
    { op: "constant", value: 0.5 },
    { op: "greater_or_equal" },
    { op: "sustain_frames", slot: 0, frames: 2 },
    { op: "rising_edge", slot: 1 },
    { op: "cooldown_ms", slot: 2, duration_ms: 4000 },
    { op: "jump_if_false", target: 10 },
    { op: "emit", event_type: "dock_entry" },
    { op: "capture", kind: "keyframe", before_ms: 0, after_ms: 0 },
    { op: "notify", channel: "webhook" },
    { op: "halt" },
  ],
} as const;

const ACTIONS = PROGRAM.instructions.slice(7, 10);

function post(test: TestService, path: string, body: unknown) {
  return test.call("POST", `/v1/triggers/${path}`, body);
}

/** The fields and messages of a refusal. */
async function refused(
  test: TestService,
  path: string,
  body: unknown,
): Promise<[field: string, message: string][]> {
  const { status, json } = await post(test, path, body);
  assert.equal(status, 422, JSON.stringify(json));
  assert.equal(json.error.code, "validation_error");
  assert.match(json.error.request_id, /^req-/);
  return json.error.details.map(({ field, message }: Record<string, string>) => [field, message]);
}

Deno.test("the worked source compiles, its program is valid, and its samples fire as written", async () => {
  await using test = await startService();
  const compiled = await post(test, "compile", { source: DOCK_SOURCE });
  assert.equal(compiled.status, 200);
  const { request_id, ...rest } = compiled.json;
  assert.match(request_id, /^req-[0-9a-f]{16}$/);
  assert.deepEqual(rest, { program: PROGRAM, instruction_count: 11, state_slots: 3 });

  const validated = await post(test, "validate", compiled.json.program);
  assert.equal(validated.status, 200);
  assert.deepEqual(Object.keys(validated.json), [
    ...[
      "request_id",
      "valid",
      "isa_version",
      "program_id",
      "program_version",
      "instruction_count",
      "state_slots",
    ],
  ]);
  assert.deepEqual({ ...validated.json, request_id: null }, {
    request_id: null,
    valid: true,
    isa_version: 1,
    program_id: "dock-entry",
    program_version: 3,
    instruction_count: 11,
    state_slots: 3,
  });

  const motion = [[0, 0.2], [100, 0.6], [200, 0.7], [300, 0.1], [400, 0.9], [500, 0.9]];
  const samples = motion.map(([pts_ms, motion_score]) => ({ pts_ms, motion_score }));
  const evaluated = await post(test, "evaluate", { program: compiled.json.program, samples });
  assert.equal(evaluated.status, 200);
  assert.equal(evaluated.headers.get("content-type"), "application/json");
  assert.deepEqual({ ...evaluated.json, request_id: null }, {
    request_id: null,
    program_id: "dock-entry",
    program_version: 3,
    results: samples.map(({ pts_ms }) => ({
      pts_ms,
      fired: pts_ms === 200,
      missing_signal: false,
      actions: pts_ms === 200 ? ACTIONS : [],
    })),
  });
});

Deno.test("each evaluation starts afresh, whatever was evaluated before", async () => {
  await using test = await startService();
  const samples = [{ pts_ms: 0, motion_score: 1 }, { pts_ms: 0, motion_score: 1 }, { pts_ms: 40 }];
  const fired = async () => {
    const { json } = await post(test, "evaluate", { program: PROGRAM, samples });
    return json.results.map((result: Record<string, unknown>) => [result.fired, result.missing_signal]);
  };
  const first = await fired();
  assert.deepEqual(first, [[false, false], [true, false], [false, true]]);
  const others = await Promise.all(Array.from({ length: 8 }, fired));
  for (const other of others) assert.deepEqual(other, first);
});

Deno.test("a source that does not compile is 422 on source, with line and column", async () => {
  await using test = await startService();
  const check = async (source: unknown, ...messages: string[]) =>
    assert.deepEqual(
      await refused(test, "compile", { source }),
      messages.map((message) => ["source", message]),
    );
  await check(
    DOCK_SOURCE.replace("edge", "egde"),
    'line 3: column 1: unknown keyword "egde", did you mean "edge"?',
  );
  await check(
    DOCK_SOURCE.replace("edge", "egde").replace("0.5", "half"),
    'line 2: column 22: expected a number: got "half"',
    'line 3: column 1: unknown keyword "egde", did you mean "edge"?',
  );
  await check(
    DOCK_SOURCE.replace("for 2", "for 0"),
    "line 2: column 30: frames must be from 1 to 10000: got 0",
  );
  await check("", 'line 1: column 1: the last line must be "end"');
  await check("#".repeat(65_537), "must have at most 65536 bytes: got 65537");
  const fields = async (body: unknown) => (await refused(test, "compile", body)).map(([field]) => field);
  assert.deepEqual(await fields({}), ["source"]);
  assert.deepEqual(await fields({ source: 7 }), ["source"]);
  assert.deepEqual(await fields({ source: DOCK_SOURCE, name: "x" }), ["name"]);
  assert.deepEqual(await fields([]), ["body"]);
});

Deno.test("a program that breaks a rule is 422 on program; another shape names its place", async () => {
  await using test = await startService();
  const program = (change: (program: TriggerProgram) => void) => {
    const copy = structuredClone(PROGRAM) as unknown as TriggerProgram;
    change(copy);
    return copy;
  };
  const instruction = (at: number, changed: unknown) =>
    program(({ instructions }) => instructions[at] = changed as typeof instructions[number]);
  const check = async (body: TriggerProgram, ...faults: [string, string | RegExp][]) => {
    const samples = [{ pts_ms: 0 }];
    for (
      const details of [
        await refused(test, "validate", body),
        await refused(test, "evaluate", { program: body, samples }),
      ]
    ) {
      assert.equal(details.length, faults.length, JSON.stringify(details));
      for (const [index, [field, message]] of faults.entries()) {
        assert.equal(details[index]![0].replace(/^program\./, ""), field);
        if (typeof message === "string") assert.equal(details[index]![1], message);
      }
    }
  };
  await check(program((one) => one.isa_version = 2), ["program", "isa_version must be 1: got 2"]);
  await check(program((one) => one.version = 0), ["program", "version must be at least 1: got 0"]);
  await check(program((one) => one.instructions = []), [
    "program",
    "a program has 1 to 64 instructions: got 0",
  ]);
  await check(instruction(3, { op: "sustain_frames", slot: 16, frames: 0 }), ...[
    ["program", "instruction 3 (sustain_frames): slot must be from 0 to 15: got 16"],
    ["program", "instruction 3 (sustain_frames): frames must be from 1 to 10000: got 0"],
  ] as [string, string][]);
  await check(
    instruction(6, { op: "jump_if_false", target: 6 }),
    ["program", "instruction 6 (jump_if_false): target must lie after the jump: got 6"],
  );
  await check(instruction(1, { op: "constant", value: 1e39 }), [
    "program",
    "instruction 1 (constant): value must be finite as a 32-bit float: got 1e+39",
  ]);

  const shape = async (body: unknown, field: string, message: RegExp) => {
    const details = await refused(test, "validate", body);
    assert.deepEqual(details.map(([name]) => name), [field]);
    assert.match(details[0]![1], message);
  };
  await shape(instruction(3, { op: "sustain_frames", slot: 0 }), "instructions", /^\[3\]\.frames: /);
  await shape(
    instruction(3, { op: "sustain", slot: 0 }),
    "instructions",
    /^\[3\]\.op: must be an instruction/,
  );
  await shape(
    instruction(0, { op: "load", signal: { kind: "colour" } }),
    "instructions",
    /^\[0\]\.signal\.kind: must be a signal/,
  );
  await shape(instruction(10, { op: "halt", why: 1 }), "instructions", /^\[10\] has the unknown field why/);
  await shape({ ...PROGRAM, name: "x" }, "name", /is not a field/);
  await shape({ ...PROGRAM, version: "3" }, "version", /^must be a number, got a text$/);
  await shape(
    JSON.stringify(PROGRAM).replace('"version":3', '"version":18446744073709551615'),
    "version",
    /^must be /,
  );
});

Deno.test("1 to 10,000 samples in the order of time are evaluated, others are 422 on samples", async () => {
  await using test = await startService();
  const evaluate = (samples: unknown) => post(test, "evaluate", { program: PROGRAM, samples });
  const sample = (pts_ms: number) => ({ pts_ms, motion_score: 0.5 });
  const times = (count: number) => Array.from({ length: count }, (_, index) => sample(index * 33));

  const all = await evaluate(times(10_000));
  assert.equal(all.status, 200);
  assert.equal(all.json.results.length, 10_000);
  assert.deepEqual(all.json.results.at(-1), {
    pts_ms: 329_967,
    fired: false,
    missing_signal: false,
    actions: [],
  });
  assert.deepEqual(all.json.results.filter((one: { fired: boolean }) => one.fired).length, 1);
  assert.equal((await evaluate([sample(5), sample(5), sample(9_007_199_254_740_991)])).status, 200);

  const check = async (samples: unknown, message: RegExp) => {
    const details = await refused(test, "evaluate", { program: PROGRAM, samples });
    assert.deepEqual(details.map(([field]) => field), ["samples"]);
    assert.match(details[0]![1], message);
  };
  await check([], /1/);
  await check(times(10_001), /10000/);
  await check(Array(100_000).fill(null), /10000/);
  await check(
    [sample(3), sample(4), sample(3)],
    /^\[2\]\.pts_ms must not be less than the one before it: got 3 after 4$/,
  );
  await check([sample(0), { pts_ms: -1 }], /^\[1\]\.pts_ms: /);
  await check([{ pts_ms: 0.5 }], /^\[0\]\.pts_ms: /);
  await check([{ motion_score: 1 }], /^\[0\]\.pts_ms: /);
  await check([{ pts_ms: 0, motion_score: "1" }], /^\[0\]\.motion_score: /);
  await check([{ pts_ms: 0, speech_confidence: 1 }], /^\[0\] has the unknown field speech_confidence/);
  await check(
    [{ pts_ms: 0, observations: [{ signal: { kind: "motion_score" } }] }],
    /^\[0\]\.observations\[0\]\.value: /,
  );
  await check(
    [{ pts_ms: 0, observations: [{ signal: { kind: "colour" }, value: 1 }] }],
    /^\[0\]\.observations\[0\]/,
  );
  await check({}, /^must be a list, got an object$/);
  const fields = async (body: unknown) => (await refused(test, "evaluate", body)).map(([field]) => field);
  assert.deepEqual(await fields({}), ["program", "samples"]);
  assert.equal((await fields({ program: PROGRAM, samples: Array(10_000).fill({ a: 1, b: 2 }) })).length, 64);
  assert.deepEqual(await fields({ program: PROGRAM, samples: [sample(0)], fast: true }), ["fast"]);
});

Deno.test("a threshold beyond the integers of a double compiles, is valid and is compared", async () => {
  await using test = await startService();
  const source = DOCK_SOURCE.replace("motion_score >= 0.5 for 2 frames", "minimum_distance_mm:a,b < 1e20");
  const { program } = (await post(test, "compile", { source })).json;
  assert.deepEqual(program.instructions[1], { op: "constant", value: 1e20 });
  assert.equal((await post(test, "validate", program)).status, 200);
  const signal = { kind: "minimum_distance_mm", left: "a", right: "b" };
  const samples = [1e21, 1e19].map((value, pts_ms) => ({ pts_ms, observations: [{ signal, value }] }));
  const { json, text } = await post(test, "evaluate", { program, samples });
  assert.deepEqual(json.results?.map(({ fired }: { fired: boolean }) => fired), [false, true], text);
});

Deno.test("scores with all the digits of a double are the scores that were sent", async () => {
  await using test = await startService();
  const scores = [0.12345678901234568, 0.9007199254740993, 1.2345678901234567e-9];
  const samples = scores.map((motion_score, pts_ms) => ({ pts_ms, motion_score }));
  const check = async (value: number, expected: boolean[]) => {
    const source = `trigger t version 1\nwhen motion_score == ${value}\nemit e\nend`;
    const { json } = await post(test, "evaluate", {
      program: (await post(test, "compile", { source })).json.program,
      samples,
    });
    assert.deepEqual(json.results.map((result: { fired: boolean }) => result.fired), expected);
  };
  await check(scores[0]!, [true, false, false]);
  await check(scores[1]!, [false, true, false]);
  await check(scores[2]!, [false, false, true]);
});

Deno.test("the routes ask for a key, for JSON and for POST", async () => {
  await using test = await startService();
  for (const path of ["compile", "validate", "evaluate"]) {
    const url = `/v1/triggers/${path}`;
    assert.equal((await test.call("POST", url, {}, null)).status, 401);
    assert.equal((await test.call("GET", url)).status, 405);
    assert.equal((await test.call("POST", url, "{")).status, 400);
    assert.equal(
      (await test.send(url, { method: "POST", headers: { "x-api-key": "key-of-a" }, body: "{}" })).status,
      415,
    );
  }
});
