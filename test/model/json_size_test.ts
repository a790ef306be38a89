/** What a JSON text may have, counted before it is parsed. */

import assert from "node:assert/strict";
import { LIMITS } from "../../src/contract/limits.ts";
import { jsonSizeFault } from "../../src/model/json_size.ts";

const { jsonShapesMax } = LIMITS.body;
const SHAPES = `must have at most ${jsonShapesMax} different sequences of field names`;

Deno.test("objects with the same field names may be many, those with different ones only so many", () => {
  const objects = (count: number, of: (number: number) => string) =>
    `[${Array.from({ length: count }, (_, number) => of(number)).join(",")}]`;
  assert.equal(jsonSizeFault(objects(20_000, () => '{"label":"a","score":0.5,"box":{"x":1,"y":2}}')), null);
  assert.equal(jsonSizeFault(objects(jsonShapesMax, (number) => `{"field ${number}":0}`)), null);
  assert.equal(jsonSizeFault(objects(jsonShapesMax + 1, (number) => `{"field ${number}":0}`)), SHAPES);
  // Few names make many sequences, too.
  const permuted = (number: number) => {
    const digits = (number * 2654435761 % 2 ** 32).toString(4).padStart(16, "0");
    return `{${[...digits].map((digit, at) => `"name ${at} ${digit}":0`).join(",")}}`;
  };
  assert.equal(jsonSizeFault(objects(6000, permuted)), SHAPES);
  // Texts are no names, wherever they stand, and quotes in them end nothing.
  const texts = (number: number) => `{"a":"text \\"${number}\\": {","b":["word ${number}"]}`;
  assert.equal(jsonSizeFault(objects(20_000, texts)), null);
});
