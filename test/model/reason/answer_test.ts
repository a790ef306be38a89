import assert from "node:assert/strict";
import {
  needsSecondPass,
  parseCustomAnswer,
  parseFrameAnswer,
  TIER_LABEL,
  tierConfidence,
} from "../../../src/model/reason/answer.ts";
import { compileOutputSchema } from "../../../src/model/reason/output_schema.ts";

const ANSWER = {
  event_type: "keyframe_keep",
  object_label: "forklift",
  summary: "A forklift waits",
  description: "A forklift waits beside a dock.",
  confidence: 0.83,
};

function overlayOf(change: Record<string, unknown>) {
  const answered = parseFrameAnswer(JSON.stringify({ ...ANSWER, ...change }));
  assert.ok(answered.ok, JSON.stringify(change));
  return answered.overlay;
}

Deno.test("an answer gives the labels of its chunk, whatever text is around it", () => {
  const text = `Here you are:\n\`\`\`json\n${JSON.stringify(ANSWER, null, 2)}\n\`\`\``;
  assert.deepEqual(parseFrameAnswer(text), {
    ok: true,
    rawOutput: ANSWER,
    overlay: {
      eventType: "keyframe_keep",
      objectLabel: "forklift",
      summary: "A forklift waits",
      description: "A forklift waits beside a dock.",
      confidence: 0.83,
    },
  });
});

Deno.test("labels are made canonical and blank texts are replaced", () => {
  assert.equal(overlayOf({ event_type: " Scene_CUT " }).eventType, "scene_cut");
  assert.equal(overlayOf({ event_type: "explosion" }).eventType, "context_observation");
  assert.equal(overlayOf({ event_type: "" }).eventType, "context_observation");
  assert.equal(overlayOf({ object_label: " Red Fork Lift " }).objectLabel, "red_fork_lift");
  assert.equal(overlayOf({ object_label: "  " }).objectLabel, "frame_context");
  assert.match(overlayOf({ summary: " " }).summary, /\w/);
  assert.match(overlayOf({ description: "" }).description, /\w/);
  assert.equal(overlayOf({ summary: "x".repeat(9000) }).summary.length, 5000);
  assert.ok(overlayOf({ summary: "😀".repeat(4000) + "x" }).summary.isWellFormed());
  assert.ok(overlayOf({ summary: `x${"😀".repeat(4000)}` }).summary.isWellFormed());
  for (const confidence of [0, 1]) assert.equal(overlayOf({ confidence }).confidence, confidence);
});

Deno.test("a text that is no answer has a category, and its readable part is kept", () => {
  const rows: [string, string, unknown][] = [
    ["", "empty_response", null],
    [" \n", "empty_response", null],
    ["I see a dock.", "json_object_not_found", null],
    ['{"event_type": "scene_cut", "sum', "json_object_not_found", null],
    ["[1, 2]", "json_object_not_found", null],
    [`${JSON.stringify(ANSWER)} No: ${JSON.stringify(ANSWER).slice(0, -9)}`, "json_object_not_found", null],
    ["{event_type: scene_cut}", "invalid_json", null],
    ['{"a":'.repeat(65) + "1" + "}".repeat(65), "invalid_json", null],
    [`${JSON.stringify(ANSWER)}${" ".repeat(65_536)}`, "invalid_json", null],
    [JSON.stringify({ ...ANSWER, extra: "x".repeat(65_536) }), "invalid_json", null],
    ["{}", "schema_mismatch", {}],
    [JSON.stringify({ one: ANSWER, other: ANSWER }), "schema_mismatch", { one: ANSWER, other: ANSWER }],
    ...[
      { event_type: "scene_cut" },
      { ...ANSWER, confidence: 1.01 },
      { ...ANSWER, confidence: -0.1 },
      { ...ANSWER, confidence: "high" },
      { ...ANSWER, confidence: 7 },
      { ...ANSWER, confidence: 101 },
      { ...ANSWER, confidence: null },
      { ...ANSWER, event_type: 3 },
      { ...ANSWER, object_label: 3 },
      { ...ANSWER, description: ["a"] },
    ].map((value): [string, string, unknown] => [JSON.stringify(value), "schema_mismatch", value]),
  ];
  for (const [text, fault, rawOutput] of rows) {
    assert.deepEqual(parseFrameAnswer(text), { ok: false, fault, rawOutput }, text.slice(0, 100));
  }
});

Deno.test("what small models write nearly right is read", () => {
  const { summary: _, ...incomplete } = ANSWER;
  assert.equal(overlayOf({ object_label: null }).objectLabel, "frame_context");
  assert.equal(overlayOf({ description: null }).description, "The model gave no description.");
  const unlabelled = parseFrameAnswer(JSON.stringify(incomplete));
  assert.ok(unlabelled.ok);
  assert.equal(unlabelled.overlay.summary, "The model gave no summary.");
  for (
    const [confidence, expected] of [
      ["0.9", 0.9],
      [90, 0.9],
      ["90%", 0.9],
      [100, 1],
      ["5 %", 0.05],
      ["0,9", 0.9],
      ["9/10", 0.9],
      ["90 percent", 0.9],
      [
        "０．９",
        0.9,
      ],
    ]
  ) {
    assert.equal(overlayOf({ confidence }).confidence, expected);
  }
  const draft = JSON.stringify({ ...ANSWER, object_label: "draft" });
  for (
    const text of [
      JSON.stringify({ observation: ANSWER }),
      JSON.stringify([ANSWER]),
      JSON.stringify({ result: [ANSWER], note: "x" }),
      JSON.stringify(JSON.stringify(ANSWER)),
      `Perhaps ${draft}? No: ${JSON.stringify(ANSWER)}`,
      `${JSON.stringify(ANSWER)}\n{"note": "ok"}`,
      `[${draft}, ${JSON.stringify(ANSWER)}]`,
      JSON.stringify({ name: "chunk_observation", arguments: JSON.stringify(ANSWER) }),
      JSON.stringify({ meta: { model: "x" }, observation: ANSWER }),
      JSON.stringify(ANSWER).replaceAll("_", "-").replace("event-type", "EventType"),
      `${JSON.stringify(ANSWER)} as {"event_type": "...", "confidence": 0}`,
    ]
  ) {
    const answered = parseFrameAnswer(text);
    assert.ok(answered.ok, text);
    assert.equal(answered.overlay.objectLabel, "forklift", text);
  }
});

Deno.test("under a caller's schema the last object that fits is the answer", () => {
  const schema = compileOutputSchema({
    type: "object",
    properties: { n: { type: "integer" } },
    required: ["n"],
  });
  const check = (text: string, expected: unknown) =>
    assert.deepEqual(parseCustomAnswer(text, schema), expected, text.slice(0, 100));
  check(' {"n": 1}\n', { ok: true, rawOutput: { n: 1 } });
  check('{"n": "1"}', { ok: true, rawOutput: { n: 1 } });
  check('Sure: {"n": 1}', { ok: true, rawOutput: { n: 1 } });
  check('{"n": 1} no, {"n": 2}. {"x": 3}', { ok: true, rawOutput: { n: 2 } });
  check("{'n': 1,}", { ok: true, rawOutput: { n: 1 } });
  check('{"n": "one"}', { ok: false, fault: "schema_mismatch", rawOutput: { n: "one" } });
  const cut = '{"items": [{"n": 1}, {"n": 2';
  check(cut, { ok: false, fault: "invalid_json", rawOutput: { raw: cut } });
  check("[]", { ok: false, fault: "schema_mismatch", rawOutput: [] });
  check("", { ok: false, fault: "empty_response", rawOutput: { raw: "" } });
  check("Sure: n is 1", { ok: false, fault: "invalid_json", rawOutput: { raw: "Sure: n is 1" } });
  const long = `{"n": 1${" ".repeat(65_536)}}`;
  check(long, { ok: false, fault: "invalid_json", rawOutput: { raw: long.slice(0, 65_536) } });
  const face = "😀".repeat(32_768);
  check(`x${face}`, { ok: false, fault: "invalid_json", rawOutput: { raw: `x${face.slice(0, -2)}` } });
  const deep = "[".repeat(30_000) + "]".repeat(30_000);
  check(deep, { ok: false, fault: "invalid_json", rawOutput: { raw: deep } });
});

Deno.test("a value is read as the caller's schema has it where it says the same", () => {
  const compiled = compileOutputSchema({
    $defs: { part: { type: "object", properties: { count: { type: "integer" } }, required: ["count"] } },
    type: "object",
    properties: {
      risk_level: { enum: ["low", "very_high"] },
      is_open: { type: "boolean" },
      score: { anyOf: [{ type: "number", minimum: 0, maximum: 1 }, { type: "null" }] },
      tags: { type: "array", items: { type: "string" } },
      part: { $ref: "#/$defs/part" },
      note: { type: "string" },
    },
    required: ["risk_level", "part"],
    additionalProperties: false,
  });
  const read = parseCustomAnswer(
    JSON.stringify({
      riskLevel: "Very High",
      "is-open": "True",
      Score: "90%",
      tags: "dock",
      part: { Count: "2" },
      note: null,
    }),
    compiled,
  );
  const rawOutput = {
    risk_level: "very_high",
    is_open: true,
    score: 0.9,
    tags: ["dock"],
    part: { count: 2 },
  };
  assert.deepEqual(read, { ok: true, rawOutput });
  const nothing = parseCustomAnswer(
    '{"risk_level": "low", "score": null, "part": {"count": 1}}',
    compiled,
  );
  assert.deepEqual(nothing, { ok: true, rawOutput: { risk_level: "low", score: null, part: { count: 1 } } });
});

Deno.test("the second pass under a caller's schema answers with a label", () => {
  const rows: [unknown, boolean][] = [
    [{ event_type: "x", confidence: 0.5 }, true],
    [{ event_type: "x", confidence: 0.5, description: "d", reasoning: "r" }, true],
    [{ event_type: "x" }, false],
    [{ confidence: 0.5 }, false],
    [{ event_type: "x", confidence: 2 }, false],
    [{ event_type: "x", confidence: 1, reasoning: 3 }, false],
    [null, false],
  ];
  for (const [value, fits] of rows) {
    assert.equal(TIER_LABEL.fault(value) === null, fits, JSON.stringify(value));
    assert.equal(parseCustomAnswer(JSON.stringify(value), TIER_LABEL).ok, fits);
  }
});

Deno.test("the second pass is used strictly below the threshold", () => {
  const rows: [string, number][] = [
    ['{"confidence": 0.4}', 0.4],
    [' {"confidence": 0.4} ', 0.4],
    ['{"confidence": 7}', 1],
    ['{"confidence": -1}', 0],
    ['{"confidence": 1e999}', 0.5],
    ['{"confidence": "0.9"}', 0.9],
    ['{"confidence": 90}', 0.9],
    ['{"nested": {"confidence": 0.9}}', 0.9],
    ['Sure: {"confidence": 0.9}', 0.9],
    ['{"confidence": "high"}', 0.5],
    ["null", 0.5],
    ["", 0.5],
  ];
  for (const [text, expected] of rows) assert.equal(tierConfidence(text), expected, text);
  assert.equal(needsSecondPass('{"confidence": 0.7}', 0.7), false);
  assert.equal(needsSecondPass('{"confidence": 0.69}', 0.7), true);
  assert.equal(needsSecondPass("no JSON", 0.5), false);
  assert.equal(needsSecondPass('{"confidence": 0}', 0), false);
});

Deno.test("a form that was not filled in is no answer", () => {
  const forms = [
    { event_type: "string", object_label: "string", summary: "string", description: "string", confidence: 0 },
    { event_type: "one of: cut, pan", summary: "...", description: "<what happens>", confidence: 0.5 },
  ];
  for (const form of forms) {
    const read = parseFrameAnswer(JSON.stringify(form));
    assert.deepEqual([read.ok, read.ok || read.fault], [false, "schema_mismatch"], form.event_type);
  }
  const filled = parseFrameAnswer(JSON.stringify({ ...forms[1], summary: "A string of pearls." }));
  assert.deepEqual(filled.ok, true);
});
