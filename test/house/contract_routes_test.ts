/** The routes of the application equal the expected ones, which are kept by hand. */

import assert from "node:assert/strict";
import { ROUTES } from "../../src/http/routes/route_table.ts";
import { CONTRACT } from "./contract.ts";

Deno.test("the routes are the expected ones", () => {
  const ours = ROUTES.map(({ method, path }) => `${method} ${path}`);
  const expected = CONTRACT.routes.map(({ method, path }) => `${method} ${path}`);
  assert.equal(new Set(ours).size, ours.length, "a route stands twice");
  assert.deepEqual(ours.toSorted(), expected.toSorted());
});
