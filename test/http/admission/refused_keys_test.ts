/** Guessing keys: how many wrong ones an address may try, and who goes on meanwhile. */

import assert from "node:assert/strict";
import { RateLimited } from "../../../src/sharing/rate_limit.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { Guard } from "../../../src/http/admission/guard.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { PrincipalNames } from "../../../src/model/principal_names.ts";

const KEYS = { requireApiKey: true, requireTenantId: false, metricsRequireApiKey: true };
const { wrongPerSecond } = LIMITS.keys;

/** A guard with the keys `one` and `two`, and a clock that is set. */
function guardAt() {
  const clock = { ms: 0 };
  const guard = new Guard({ ...KEYS, apiKeys: ["one", "two"] }, new PrincipalNames(null), () => clock.ms);
  /** The status with which a request with this key is answered. */
  const status = (key: string, address: string | undefined) => {
    try {
      guard.admit({
        path: "/v1/runs",
        headers: new Headers(key === "" ? {} : { "x-api-key": key }),
        address,
      });
      return 200;
    } catch (error) {
      if (error instanceof RateLimited) assert.ok(error.retryAfterSeconds >= 1);
      return (error as Refusal).status;
    }
  };
  return { clock, status };
}

Deno.test("beyond the limit of wrong keys no further key of an address is looked at, but those that were right there before", () => {
  const { clock, status } = guardAt();
  assert.equal(status("one", "192.0.2.1"), 200);
  for (let tried = 0; tried < wrongPerSecond; tried++) {
    assert.equal(status(`wrong ${tried}`, "192.0.2.1"), 401);
  }
  assert.equal(status("wrong", "192.0.2.1"), 429);
  assert.equal(status("two", "192.0.2.1"), 429, "a right guess reads like a wrong one");
  assert.equal(status("one", "192.0.2.1"), 200);
  assert.equal(status("two", "192.0.2.2"), 200, "another address");
  assert.equal(status("", "192.0.2.1"), 401, "no key is no guess");
  clock.ms += 1000;
  assert.equal(status("two", "192.0.2.1"), 200);
  assert.equal(status("wrong", "192.0.2.1"), 401);
});

Deno.test("the addresses of one network of IPv6 count together, and those of IPv4 in IPv6 like themselves", () => {
  const { status } = guardAt();
  for (let tried = 0; tried < wrongPerSecond; tried++) status("wrong", `2001:db8:0:1::${tried.toString(16)}`);
  assert.equal(status("one", "2001:db8:0:1:ffff::1"), 429);
  assert.equal(status("one", "2001:db8:0:2::1"), 200);
  for (let tried = 0; tried < wrongPerSecond; tried++) status("wrong", "::ffff:192.0.2.1");
  assert.equal(status("one", "::ffff:192.0.2.1"), 429);
  assert.equal(status("one", "::ffff:192.0.2.2"), 200);
});

Deno.test("as many addresses are remembered as fit, and one without a place is refused", () => {
  const { clock, status } = guardAt();
  const address = (number: number) => `198.18.${number >> 8}.${number & 255}`;
  for (let number = 0; number < LIMITS.keys.addresses; number++) status("wrong", address(number));
  assert.equal(status("wrong", "192.0.2.1"), 429);
  assert.equal(status("one", "192.0.2.1"), 200, "it has tried nothing wrong");
  clock.ms += 1000;
  assert.equal(status("wrong", "192.0.2.1"), 401);
});
