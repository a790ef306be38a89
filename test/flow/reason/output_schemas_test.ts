import assert from "node:assert/strict";
import { OutputSchemas } from "../../../src/flow/reason/output_schemas.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { world } from "../../support/media.ts";

const signal = NEVER_ABORTED;
const ADA = { requestId: "req-000000000000002a", principalKey: "ada", signal };
const BOB = { ...ADA, principalKey: "bob" };

async function readerOf(schemas: OutputSchemas, schema: unknown, caller = ADA) {
  const checked = await schemas.check(caller, schema);
  assert.ok(checked.ok, checked.ok ? "" : checked.fault);
  return (value: unknown) =>
    checked.outputSchema.read(typeof value === "string" ? value : JSON.stringify(value), signal);
}

const many = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));

/** Schemas of some kilobytes with an answer of one model, each a check of seconds or without an end. */
const COSTLY: Record<string, [schema: unknown, answer: unknown]> = {
  "each number compared with each other, often": [
    { allOf: many(100, () => ({ uniqueItems: true })) },
    many(11_000, (at) => at),
  ],
  "each object compared with each other": [{ uniqueItems: true }, many(5_400, (at) => ({ a: at }))],
  "a large pattern behind references": [
    {
      $defs: { p: { not: { pattern: "(a?){900}[bc]" } } },
      allOf: many(100, () => ({ items: { $ref: "#/$defs/p" } })),
    },
    many(60, () => "a".repeat(1000)),
  ],
  "each item compared with each of an enum of objects": [
    { items: { not: { enum: many(450, (at) => ({ a: [at] })) } } },
    many(5_000, () => ({ a: [[]] })),
  ],
  "each name matched with each pattern": [
    { patternProperties: Object.fromEntries(many(260, (at) => [`^.*[a-z].*${at}$`, { type: "number" }])) },
    Object.fromEntries(many(4_000, (at) => [`a${at}`, 1])),
  ],
  "references that branch": [
    {
      items: { $ref: "#/$defs/d0" },
      $defs: {
        ...Object.fromEntries(many(60, (at) => {
          const next = { $ref: `#/$defs/d${at + 1}` };
          return [`d${at}`, { anyOf: [next, next] }];
        })),
        d60: false,
      },
    },
    [1],
  ],
};

Deno.test("an answer whose check costs too much has no valid value, and others are served", async () => {
  using schemas = new OutputSchemas({ world: world(), isShared: true });
  const other = await readerOf(schemas, { type: "object", required: ["n"] }, BOB);
  for (const [name, [schema, answer]] of Object.entries(COSTLY)) {
    const read = await readerOf(schemas, schema);
    const text = JSON.stringify(answer);
    assert.ok(text.length <= 65_536, name);
    assert.deepEqual(await read(text), {
      ok: false,
      fault: "schema_too_complex",
      rawOutput: { raw: text },
    }, name);
  }
  assert.deepEqual(await other({ n: 1 }), { ok: true, rawOutput: { n: 1 } });
});

Deno.test("Workers are used again, for other schemas and other callers too", async () => {
  using schemas = new OutputSchemas({ world: world(), isShared: true });
  const readers = await Promise.all(
    many(40, (at) => readerOf(schemas, { properties: { n: { const: at } } }, at % 2 ? ADA : BOB)),
  );
  for (const [at, read] of readers.entries()) {
    assert.deepEqual(await read({ n: at }), { ok: true, rawOutput: { n: at } });
    assert.deepEqual(await read({ n: -1 }), { ok: false, fault: "schema_mismatch", rawOutput: { n: -1 } });
  }
  const named = '{"__proto__": {"n": 1}, "constructor": 2}';
  assert.equal(JSON.stringify((await readers[0]!(named)).rawOutput), '{"__proto__":{"n":1},"constructor":2}');
  assert.deepEqual(await schemas.check(ADA, { type: "text" }).then(({ ok }) => ok), false);
  assert.deepEqual(await schemas.check(ADA, { $async: true }).then(({ ok }) => ok), false);
  const gone = { ...ADA, signal: AbortSignal.abort(new Error("gone")) };
  await assert.rejects(schemas.check(gone, {}), /gone/);
});
