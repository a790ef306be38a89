import assert from "node:assert/strict";
import { jsonDepth, jsonValues } from "../../../src/model/reason/json_object.ts";
import { seededRandom } from "../../support/seeded_random.ts";

function check(text: string, ...expected: unknown[]): void {
  assert.deepEqual(jsonValues(text).values, expected, text);
}

Deno.test("the values are found whatever is around them", () => {
  check('{"a":1}', { a: 1 });
  check('Sure! ```json\n{"a": {"b": "}"}}\n``` Done.', { a: { b: "}" } });
  check('it\'s "quoted { {"a":"\\"}"} tail }', { a: '"}' });
  check('{oops} {"a":1}', { a: 1 });
  check('{"text {"a":1} more', { a: 1 });
  check('{} then [1] and {"a":1}', {}, [1], { a: 1 });
  check(
    'x {"x": [1, -2.5e+3, true, false, null, "\\u00e9", [], {}]}',
    { x: [1, -2500, true, false, null, "é", [], {}] },
  );
});

Deno.test("what is nearly JSON is read as it was meant", () => {
  check('x {"a": "one\ntwo\tthree"}', { a: "one\ntwo\tthree" });
  check('{"a": [1, 2,], }', { a: [1, 2] });
  check("{'a': 'it\\'s', 'b': True, 'c': False, 'd': None, 'e': \"it's\"}", {
    a: "it's",
    b: true,
    c: false,
    d: null,
    e: "it's",
  });
  check("{a: 1, b_2: .5, c: 1., d: +2, e: 90%}", { a: 1, b_2: 0.5, c: 1, d: 2, e: "90%" });
  check("{“a”: “b ‘c’”}", { a: "b ‘c’" });
  check('{"a": "the sign "STOP" is red", "b": 1}', { a: 'the sign "STOP" is red', b: 1 });
  check('{"a": 1, // one\n /* two */ "b": 2, # three\n"c": "http://x # y"}', {
    a: 1,
    b: 2,
    c: "http://x # y",
  });
  check('{"a": "c:\\dir \\_x"}', { a: "c:\\dir _x" });
  check('{"a": "x"\n"b": 1 "c": "said "yes", then "no"", "d": [1]}', {
    a: "x",
    b: 1,
    c: 'said "yes", then "no"',
    d: [1],
  });
  check('{"a": NaN, "b": -Infinity, "c": undefined}', { a: null, b: null, c: null });
  check("{`a`： ”b”，\u200b”c”: ’d’}", { a: "b", c: "d" });
  check('{\\n "a": 1,\\n "b": "x\\ny"\\n}', { a: 1, b: "x\ny" });
  check('So: {\\n \\"a\\": \\"it is \\\\\\"red\\\\\\"\\", \\"b\\": [1]}', { a: 'it is "red"', b: [1] });
  check('x {"__proto__": {"a": 1}}', JSON.parse('{"__proto__": {"a": 1}}'));
});

Deno.test("half of a surrogate pair becomes a replacement character, and a whole pair stays", () => {
  for (const before of ["", "Sure: "]) {
    check(`${before}{"a": "\\ud83d", "b": "\\ude00x", "c": "\\ud83d\\ude00", "d": "\\\\ud83d"}`, {
      a: "\ufffd",
      b: "\ufffdx",
      c: "😀",
      d: "\\ud83d",
    });
    check(`${before}{"a": "\ud83d"}`, { a: "\ufffd" });
  }
});

Deno.test("a broken object is skipped with all that was read in it", () => {
  for (
    const text of [
      "",
      "no braces",
      "{",
      "}{",
      '"{',
      '{"a": 01}',
      '{"a" 1}',
      '{,"a": 1}',
      '{"a": 1 b: 2}',
      "{a: b}",
      '{"a": [1}',
      '{"a": {"b": 1}, c}',
      '{"event_type": ...}',
    ]
  ) check(text);
});

Deno.test("a text that ends in the middle of a value has none", () => {
  const whole = '{"a": {"b": [1, true, "x y"]}, "c": -2.5}';
  for (let length = 5; length < whole.length; length++) {
    for (const before of ["", '{"a": 1} then ']) {
      const found = jsonValues(before + whole.slice(0, length));
      assert.deepEqual(found, { values: [], isCut: true }, whole.slice(0, length));
    }
  }
  check('{"a": 1} and a {', { a: 1 });
});

Deno.test("every JSON is read as JSON.parse reads it, also behind other text", () => {
  const random = seededRandom(20_311);
  const value = (depth: number): unknown => {
    const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
    if (kind === 0) return Math.floor(random() * 2000 - 1000) / 8;
    if (kind === 1) return [true, false, null][Math.floor(random() * 3)];
    if (kind < 4) {
      const units = ['"', "'", "\\", "{", "}", "[", ",", ":", " ", "\n", "a", "😀", "/", "#", "“"];
      return Array.from({ length: random() * 12 }, () => units[Math.floor(random() * units.length)]).join("");
    }
    const many = Array.from({ length: random() * 4 }, () => value(depth + 1));
    return kind === 4 ? many : Object.fromEntries(many.map((each, index) => [`k${index}"`, each]));
  };
  for (let round = 0; round < 5_000; round++) {
    const expected = { a: value(0) };
    check(`So: ${JSON.stringify(expected, null, round % 3)} .`, expected);
  }
});

Deno.test("the time for a text of 64 KiB grows with its length alone", () => {
  for (const piece of ["{", '{"a":', "[", "{“", "{/*", "{a:{a:1},", '{"a":"x" "']) {
    const text = piece.repeat(65_536 / piece.length);
    assert.deepEqual(jsonValues(text).values, [], piece);
  }
});

Deno.test("a text that is too broken to be read to its end has no values, as the last one is the answer", () => {
  for (let times = 1; times <= 100; times++) {
    const text = `{"draft":1} ${"[1, ".repeat(times)}} {"answer":2}`;
    const { values } = jsonValues(text);
    if (values.length > 0) assert.deepEqual(values.at(-1), { answer: 2 }, text);
  }
});

Deno.test("the depth of a value counts its arrays and objects", () => {
  for (const [json, depth] of [["1", 0], ["[]", 1], ['{"a":[{}]}', 3], ["[1,[2],[[3]]]", 3]] as const) {
    assert.equal(jsonDepth(JSON.parse(json)), depth, json);
  }
});
