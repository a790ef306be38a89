/** The routes of the application equal the expected ones, which are kept by hand. */

import assert from "node:assert/strict";
import { ROUTES } from "../../src/http/app.ts";
import { CONTRACT, NOT_BUILT } from "./contract.ts";

Deno.test("the routes are the expected ones without those that are not built yet", () => {
  const ours = ROUTES.map(({ method, path }) => `${method} ${path}`);
  const expected = CONTRACT.routes.map(({ method, path }) => `${method} ${path}`);
  assert.equal(new Set(ours).size, ours.length, "a route stands twice");
  assert.deepEqual(ours.filter((route) => !expected.includes(route)), [], "not in routes.json");
  assert.deepEqual(
    ours.filter((route) => NOT_BUILT.routes.includes(route)),
    [],
    "built, so not_built.json is stale",
  );
  const missing = expected.filter((route) => !ours.includes(route) && !NOT_BUILT.routes.includes(route));
  assert.deepEqual(missing, [], "neither built nor listed in not_built.json");
});
