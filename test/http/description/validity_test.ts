/** The API description is held to the schema of OpenAPI 3.1 itself, in which JSON Schema 2020-12 is the
 * dialect.
 */

import { Validator } from "@seriousme/openapi-schema-validator";
import assert from "node:assert/strict";
import { DESCRIPTION } from "../../support/http/described_answers.ts";

/** What the schema of OpenAPI says against a description; null where it says nothing. */
async function faultsOf(description: Readonly<Record<string, unknown>>): Promise<unknown> {
  const { valid, errors } = await new Validator().validate(structuredClone(description));
  return valid ? null : errors ?? "not valid";
}

Deno.test("the description is valid OpenAPI 3.1", async () => {
  assert.equal(await faultsOf({ ...DESCRIPTION }), null);
});

Deno.test("a description with a parameter of no place and without an answer is not valid", async () => {
  const paths = (operation: object) => ({ ...DESCRIPTION, paths: { "/v1/runs": { get: operation } } });
  const responses = { 200: { description: "The runs" } };
  assert.equal(await faultsOf(paths({ responses })), null);
  assert.notEqual(await faultsOf(paths({ responses, parameters: [{ name: "id", schema: {} }] })), null);
  assert.notEqual(await faultsOf(paths({ responses: { 200: {} } })), null);
});
