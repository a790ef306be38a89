import assert from "node:assert/strict";
import { PrincipalBuckets, RateLimited, TokenBucket } from "../../src/sharing/rate_limit.ts";

/**
 * "5x +200 1x" takes five tokens that must pass, waits 200 ms, takes one; "!2" must be refused, Retry-After
 * 2.
 */
function check(ratePerSecond: number, script: string): void {
  let nowMs = 1000;
  const bucket = new TokenBucket(ratePerSecond, () => nowMs);
  for (const step of script.split(" ")) {
    if (step.startsWith("+")) nowMs += Number(step.slice(1));
    else if (step.startsWith("!")) {
      assert.throws(() => bucket.take(), (error) => {
        assert.ok(error instanceof RateLimited && error.status === 429, script);
        assert.equal(error.retryAfterSeconds, Number(step.slice(1)), `${script} at ${step}`);
        return true;
      });
    } else for (let taken = 0; taken < parseInt(step); taken++) bucket.take();
  }
}

Deno.test("a bucket lets a burst of its rate pass and refills steadily", () => {
  check(1, "1x !1 +999 !1 +1 1x !1");
  check(5, "5x !1 +200 1x !1 +400 2x !1");
  check(5, "5x +10000 5x !1");
  check(1000, "1000x !1 +1 1x !1");
  check(2, "2x !1 !1 +500 1x !1");
});

Deno.test("principals do not share a bucket, and no slot is 429 until one of them has been idle", () => {
  let nowMs = 0;
  const buckets = new PrincipalBuckets({ ratePerSecond: 1, slots: 2, nowMs: () => nowMs });
  buckets.take("a");
  buckets.take("b");
  assert.throws(() => buckets.take("a"), RateLimited);
  assert.throws(() => buckets.take("c"), RateLimited);
  nowMs += 1000;
  buckets.take("c");
  buckets.take("a");
  assert.throws(() => buckets.take("b"), RateLimited);
});
