/** Every method of the client does what it says against a real service. */

import assert from "node:assert/strict";
import * as library from "../../client/mod.ts";
import { callEveryMethod } from "./every_method.ts";
import { prepare } from "./place.ts";

/** What a caller can use: the methods of the class, without its constructor and getters. */
const METHODS = Object.entries(Object.getOwnPropertyDescriptors(library.Client.prototype))
  .filter(([name, { value }]) => typeof value === "function" && name !== "constructor").map(([name]) => name);

/** Routes that the service does not have yet. */
const NOT_YET = ["openapi"];

Deno.test("every method does what it says, and none is forgotten", async () => {
  await using prepared = await prepare();
  const called = await callEveryMethod(library, prepared.place);
  assert.deepEqual(METHODS.filter((name) => !called.includes(name)), NOT_YET);
});
