import assert from "node:assert/strict";
import { plainSchema, SchemaFault } from "../../../src/model/reason/caller_schema.ts";
import { compileOutputSchema } from "../../../src/model/reason/output_schema.ts";

/** The fault of a schema, or of a value under it; null when both are valid. */
function faultOf(schema: unknown, value?: unknown): string | null {
  try {
    const check = compileOutputSchema(plainSchema(schema));
    return value === undefined ? null : check.fault(value);
  } catch (error) {
    if (error instanceof SchemaFault) return error.message;
    throw error;
  }
}

const PERSON = {
  type: "object",
  properties: { name: { type: "string", pattern: "^[A-Z]\\w+$" }, age: { type: "integer", minimum: 0 } },
  required: ["name"],
  additionalProperties: false,
};

Deno.test("a value fits its schema or the fault says where and why", () => {
  const rows: [unknown, unknown, string | null][] = [
    [PERSON, { name: "Ada", age: 3 }, null],
    [PERSON, { age: 3 }, "must have required property 'name'"],
    [PERSON, { name: "ada" }, '/name must match pattern "^[A-Z]\\w+$"'],
    [PERSON, { name: "Ada", age: -1 }, "/age must be >= 0"],
    [PERSON, { name: "Ada", more: 1 }, "must NOT have additional properties"],
    [PERSON, [], "must be object"],
    [{}, "anything", null],
    [{ type: "string", format: "email" }, "no address", null],
    [{ "x-hint": 1, type: "number" }, 1, null],
    [{ required: ["__proto__"] }, {}, "must have required property '__proto__'"],
    [{ required: ["toString"] }, {}, "must have required property 'toString'"],
    [{ maximum: 18446744073709551615n }, 1, null],
  ];
  for (const [schema, value, expected] of rows) {
    const text = JSON.stringify(value);
    assert.equal(faultOf(schema, value), expected, text);
  }
});

Deno.test("draft 2020-12 and draft-07 are taken, with or without $schema", () => {
  const tuple07 = { items: [{ type: "string" }], additionalItems: false };
  const tuple2020 = { prefixItems: [{ type: "string" }], items: false };
  const draft07 = "http://json-schema.org/draft-07/schema#";
  const draft2020 = "https://json-schema.org/draft/2020-12/schema";
  for (
    const schema of [tuple07, tuple2020, { $schema: draft07, ...tuple07 }, {
      $schema: draft2020,
      ...tuple2020,
    }]
  ) {
    assert.equal(faultOf(schema, ["a"]), null);
    assert.notEqual(faultOf(schema, [1]), null);
    assert.notEqual(faultOf(schema, ["a", "b"]), null);
  }
  assert.match(faultOf({ $schema: "http://json-schema.org/draft-04/schema#" })!, /^\$schema must be /);
  assert.match(faultOf({ $schema: 7 })!, /^\$schema must be /);
  assert.match(faultOf({ $schema: draft2020, ...tuple07 })!, /^must be a JSON Schema: /);
});

Deno.test("what is no schema is refused with the reason", () => {
  const deep = (levels: number): unknown => {
    let schema: unknown = {};
    for (let level = 0; level < levels; level++) schema = { not: schema };
    return schema;
  };
  /** References in a row are compiled one inside the other. */
  const chained = (length: number): unknown => ({
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(
      Array.from({ length }, (_, index) => [`d${index}`, { $ref: `#/$defs/d${index + 1}` }]),
    ),
  });
  const rows: [unknown, RegExp][] = [
    [true, /must be a JSON Schema object/],
    ["{}", /must be a JSON Schema object/],
    [[], /must be a JSON Schema object/],
    [{ type: "text" }, /must be a JSON Schema: .*type/],
    [{ required: "name" }, /must be a JSON Schema: .*required/],
    [{ pattern: "(" }, /must be a JSON Schema: /],
    [{ pattern: "(?=look)" }, /must be a JSON Schema: /],
    [{ pattern: "(a)\\1" }, /must be a JSON Schema: /],
    [{ pattern: "(?<n>a)\\k<n>" }, /must be a JSON Schema: /],
    [{ pattern: "(a{100}){100}" }, /must be a JSON Schema: /],
    [
      { anyOf: Array.from({ length: 20 }, (_, index) => ({ pattern: `^.{${900 + index}}$` })) },
      /patterns are too large/,
    ],
    [{ $ref: "https://example.com/schema.json" }, /must be a JSON Schema: /],
    [{ $ref: "file:///etc/passwd" }, /must be a JSON Schema: /],
    [{ $ref: "#/$defs/none" }, /must be a JSON Schema: /],
    [{ $async: true }, /must not have the key \$async/],
    [{ properties: { a: { $async: true } } }, /must not have the key \$async/],
    [deep(64), /must nest at most 64 levels/],
    [deep(100_000), /must nest at most 64 levels/],
    [
      { properties: Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`p${index}`, {}])) },
      /at most 1000 /,
    ],
    [chained(450), /must be a JSON Schema/],
    [{ description: "x".repeat(65_536) }, /must be at most 65536 bytes: got 655\d\d/],
    [{ description: "é".repeat(32_768) }, /must be at most 65536 bytes/],
  ];
  for (const [schema, expected] of rows) assert.match(faultOf(schema) ?? "taken", expected);
  assert.equal(faultOf(deep(60)), null);
});

Deno.test("no text of a schema becomes code", () => {
  const planted = globalThis as { planted?: boolean };
  const hostile = [
    '"];globalThis.planted=true;//',
    "`${globalThis.planted=true}`",
    "\u2028globalThis.planted=true//",
    "\\u0022);globalThis.planted=true;(",
    "*/globalThis.planted=true/*",
    "constructor",
    "__proto__",
    "",
  ];
  for (const text of hostile) {
    const schemas = [
      { properties: { [text]: { type: "string" } }, required: [text], additionalProperties: false },
      { patternProperties: { [`^${text.replace(/[^a-z]/g, ".")}`]: { const: text } } },
      { enum: [text, { [text]: text }] },
      {
        $defs: { [text]: { const: text } },
        dependentRequired: { [text]: [text] },
        title: text,
        $comment: text,
      },
      { $id: `https://example.com/${encodeURIComponent(text)}`, const: { [text]: [text] } },
      { [text]: text },
    ];
    for (const schema of schemas) {
      faultOf(schema, { [text]: text });
      faultOf(schema, text);
    }
  }
  assert.equal(planted.planted, undefined);
});

Deno.test("references that never end are a fault, and repeated ones are none", () => {
  for (
    const schema of [{ allOf: [{ $ref: "#" }] }, { $dynamicAnchor: "me", anyOf: [{ $dynamicRef: "#me" }] }]
  ) {
    assert.match(
      faultOf(schema, 1)!,
      /less complex: (Maximum call stack size exceeded|a check with it costs too much)$/,
    );
  }
  const tree = {
    type: "object",
    properties: { next: { $ref: "#" }, value: { type: "integer" } },
    required: ["value"],
  };
  const chain = (length: number, last: unknown): unknown =>
    length === 0 ? { value: last } : { value: 1, next: chain(length - 1, last) };
  assert.equal(faultOf(tree, chain(50, 1)), null);
  assert.match(faultOf(tree, chain(10, "x"))!, /^(\/next){10}\/value must be integer$/);
});

Deno.test("a pattern that would backtrack without end answers, and a fault never grows with the schema", () => {
  assert.match(faultOf({ pattern: "^(a+)+$" }, "a".repeat(20_000) + "b")!, /must match pattern/);
  assert.match(faultOf({ patternProperties: { "^(a|a)*$": false } }, { ["a".repeat(5_000)]: 1 })!, /./);
  assert.ok(faultOf({ const: 1, required: ["x".repeat(5_000)] }, {})!.length < 260);
  assert.ok(faultOf({ required: ["x".repeat(5_000)] }, {})!.length < 260);
});

Deno.test("the schema that backends are asked for is the caller's own", () => {
  const schema = plainSchema(PERSON);
  assert.deepEqual(schema, PERSON);
  assert.notEqual(schema, PERSON);
});
