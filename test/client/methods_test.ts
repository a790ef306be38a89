/** Every method of the client does what it says against a real service. */

import assert from "node:assert/strict";
import * as library from "../../client/mod.ts";
import { callEveryMethod } from "./every_method.ts";
import { IN_BROWSERS, METHODS } from "./methods.ts";
import { prepare } from "./place.ts";

Deno.test("every method does what it says, and none is forgotten", async () => {
  await using prepared = await prepare();
  const called = await callEveryMethod(library, prepared.place);
  assert.deepEqual(METHODS.filter((name) => !called.includes(name)), IN_BROWSERS);
});
