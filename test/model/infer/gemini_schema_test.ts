import assert from "node:assert/strict";
import { geminiSchema } from "../../../src/model/infer/gemini_schema.ts";

type Schema = Record<string, unknown>;

const text = { type: "STRING" };

Deno.test("a schema is converted to the form of Gemini, and rules that Gemini does not know are left out", () => {
  const check = (schema: Schema, expected: Schema) =>
    assert.deepEqual(geminiSchema(schema), expected, JSON.stringify(schema));

  check(
    {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "x",
      type: "object",
      additionalProperties: false,
      title: "Answer",
      description: "What is seen",
      required: ["kind", "absent"],
      properties: {
        kind: { type: "string", enum: ["a", "b"], default: "a" },
        confidence: { type: "number", minimum: 0, maximum: 1, exclusiveMinimum: 0, multipleOf: 0.1 },
        note: { type: ["string", "null"], maxLength: 9, format: "email" },
        at: { type: "string", format: "date-time" },
        seen: { type: "boolean" },
        items: { type: "array", minItems: 1, uniqueItems: true, items: { type: "integer", enum: [1, 2] } },
      },
    },
    {
      type: "OBJECT",
      title: "Answer",
      description: "What is seen",
      properties: {
        kind: { type: "STRING", format: "enum", enum: ["a", "b"] },
        confidence: { type: "NUMBER", minimum: 0, maximum: 1 },
        note: { type: "STRING", nullable: true, maxLength: 9 },
        at: { type: "STRING", format: "date-time" },
        seen: { type: "BOOLEAN" },
        items: { type: "ARRAY", items: { type: "INTEGER" }, minItems: 1 },
      },
      propertyOrdering: ["kind", "confidence", "note", "at", "seen", "items"],
      required: ["kind"],
    },
  );
  check({ const: "yes" }, { ...text, format: "enum", enum: ["yes"] });
  check({ type: "string", nullable: true }, { ...text, nullable: true });
  check({ anyOf: [{ type: "string" }, { type: "null" }] }, { ...text, nullable: true });
  check({ oneOf: [{ type: "string" }, { type: "integer" }] }, { anyOf: [text, { type: "INTEGER" }] });
  check({ type: "string", anyOf: [{ minLength: 1 }] }, text);
  check({ $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "string" } } }, text);
  const twice = { type: "array", items: { $ref: "#/$defs/a" } };
  check({ ...twice, $defs: { a: { type: "string" } } }, { type: "ARRAY", items: text });
});

Deno.test("a schema whose shape Gemini cannot express is not sent", () => {
  const wide = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [`f${index}`, { $ref: "#/$defs/next" }]),
  );
  const levels: Schema = { l9: { type: "string" } };
  for (let level = 8; level >= 0; level--) {
    const fields = Object.keys(wide).map((name) => [name, { $ref: `#/$defs/l${level + 1}` }]);
    levels[`l${level}`] = { type: "object", properties: Object.fromEntries(fields) };
  }
  const unsayable: readonly Schema[] = [
    {},
    { type: "object" },
    { type: "object", additionalProperties: { type: "string" } },
    { type: "array" },
    { type: "array", items: true },
    { type: "null" },
    { type: "tuple" },
    { type: ["string", "number"] },
    { type: "object", properties: { a: {} } },
    { $ref: "#" },
    { $ref: "#/$defs/none" },
    { $ref: "https://example.com/schema" },
    { $ref: "#/$defs/a", $defs: { a: { type: "array", items: { $ref: "#/$defs/a" } } } },
    { $ref: "#/$defs/l0", $defs: levels },
    { $ref: "#/__proto__" },
    repeating({ enum: Array.from({ length: 1000 }, (_, index) => `word ${index}`) }),
    repeating({ type: "string", description: "x".repeat(10_000) }),
  ];
  for (const schema of unsayable) {
    assert.equal(geminiSchema(schema), null, JSON.stringify(schema).slice(0, 200));
  }
});

/** An object of a hundred fields that are all the same. */
function repeating(field: Schema): Schema {
  const fields = Array.from({ length: 100 }, (_, index) => [`f${index}`, { $ref: "#/$defs/field" }]);
  return { type: "object", properties: Object.fromEntries(fields), $defs: { field } };
}
