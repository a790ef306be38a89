import assert from "node:assert/strict";
import { firstJsonObject, jsonDepth } from "../../../src/model/reason/json_object.ts";
import { referenceFirstJsonObject } from "../../support/models/json_object_reference.ts";
import { seededRandom } from "../../support/seeded_random.ts";

function check(text: string, expected: string | null): void {
  const found = firstJsonObject(text);
  assert.equal(found && text.slice(found.start, found.end), expected, text);
}

Deno.test("the object is found whatever is around it", () => {
  check('{"a":1}', '{"a":1}');
  check('Sure! ```json\n{"a": {"b": "}"}}\n``` Done.', '{"a": {"b": "}"}}');
  check('it\'s "quoted { {"a":"\\"}"} tail }', '{"a":"\\"}"}');
  check('{oops} {"a":1}', '{"a":1}');
  check('{"a": {"b": 1}, c}', '{"b": 1}');
  check('{"a": {"b": 1}', '{"b": 1}');
  check('{"text {"a":1} more', '{"a":1}');
  check("{}", "{}");
  check(
    '{"x": [1, -2.5e+3, true, false, null, "\\u00e9", [], {}]} ',
    '{"x": [1, -2.5e+3, true, false, null, "\\u00e9", [], {}]}',
  );
});

Deno.test("text that is no JSON is not found", () => {
  for (
    const text of [
      "",
      "no braces",
      "{",
      "}",
      "}{",
      "[1, 2]",
      '"{',
      "{a: 1}",
      "{'a': 1}",
      '{"a": 1,}',
      '{"a": 01}',
      '{"a": .5}',
      '{"a": 1.}',
      '{"a": +1}',
      '{"a": NaN}',
      '{"a" 1}',
      '{"a": [1,]}',
      '{"a": "\n"}',
      '{"a": "\\x"}',
      '{"a": "\\u12g4"}',
      '{,"a": 1}',
      '{"a": 1 "b": 2}',
      '{"a": [1}',
    ]
  ) check(text, null);
});

Deno.test("the object is the one that trying every brace finds, on random text", () => {
  const random = seededRandom(20_311);
  const pieces = [
    "{",
    "}",
    '"',
    ":",
    ",",
    "[",
    "]",
    "\\",
    " ",
    "a",
    '"a"',
    '"a":',
    '{"a":',
    "1",
    "-0.5e3",
    "null",
  ];
  const whole = ['{"a":1}', '{"b":{"c":[{},"}"]}}', '"{"', '{"k":"{\\"', "{}", "\n", "\u0001", '\\"'];
  for (let round = 0; round < 60_000; round++) {
    const from = round % 3 === 0 ? pieces : [...pieces, ...whole];
    let text = "";
    for (let length = 1 + Math.floor(random() * 24); length > 0; length--) {
      text += from[Math.floor(random() * from.length)];
    }
    const found = firstJsonObject(text);
    const expected = referenceFirstJsonObject(text);
    assert.deepEqual(found && { start: found.start, end: found.end }, expected, JSON.stringify(text));
    if (found) {
      assert.equal(
        found.depth,
        jsonDepth(JSON.parse(text.slice(found.start, found.end))),
        JSON.stringify(text),
      );
    }
  }
});

Deno.test("a megabyte of any brace pattern is searched to its end", () => {
  const hopeless = [
    "{",
    '{"',
    '{"a":',
    '{"a":[',
    '{"{":',
    "{ ",
    '{"a":"{',
    '{"\\',
    "[{",
    '{"{"',
    '{"a":1e',
    "}{x",
  ];
  for (const piece of hopeless) {
    assert.ok(firstJsonObject(piece.repeat(Math.ceil(2 ** 20 / piece.length))) === null, piece);
  }
  const found = firstJsonObject('{"a":{},'.repeat(2 ** 17));
  assert.deepEqual(found, { start: 5, end: 7, depth: 1 });
});
