/** The routes of the application equal the specification as it was transcribed by hand. */

import assert from "node:assert/strict";
import { ROUTES } from "../../src/http/app.ts";
import { CONTRACT, NOT_BUILT } from "./contract.ts";

Deno.test("the routes are those of the specification without the ones that are not built yet", () => {
  const ours = ROUTES.map(({ method, path }) => `${method} ${path}`);
  const specified = CONTRACT.routes.map(({ method, path }) => `${method} ${path}`);
  assert.equal(new Set(ours).size, ours.length, "a route stands twice");
  assert.deepEqual(ours.filter((route) => !specified.includes(route)), [], "not in the specification");
  assert.deepEqual(
    ours.filter((route) => NOT_BUILT.routes.includes(route)),
    [],
    "built, so not_built.json is stale",
  );
  const missing = specified.filter((route) => !ours.includes(route) && !NOT_BUILT.routes.includes(route));
  assert.deepEqual(missing, [], "neither built nor listed in not_built.json");
});
