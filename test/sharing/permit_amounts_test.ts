/** A permit queue whose permits take different amounts: what does not fit waits, and what is small does not
 * wait behind it for ever.
 */

import assert from "node:assert/strict";
import { type Permit, PermitQueue } from "../../src/sharing/permit_queue.ts";
import { RefusalForNow } from "../../src/contract/refusal.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { seededRandom } from "../support/seeded_random.ts";

function queueOf(limit: number, isShared = false): PermitQueue {
  return new PermitQueue({
    ...{ limit, isShared, waiterLimit: 100, what: "bytes", refusal: "provider_saturated" },
    retryAfterSeconds: 30,
  });
}

Deno.test("amounts add up to the limit, and what does not fit waits for enough of them", async () => {
  const queue = queueOf(100);
  const first = await queue.acquire({ amount: 60 });
  const second = await queue.acquire({ amount: 40 });
  let third: Permit | undefined;
  queue.acquire({ amount: 90 }).then((permit) => third = permit);
  second.release();
  await Promise.resolve();
  assert.deepEqual([queue.active, queue.waiting, third], [60, 1, undefined]);
  first.release();
  first.release();
  await Promise.resolve();
  assert.deepEqual([queue.active, queue.waiting], [90, 0]);
  third!.release();
  assert.equal(queue.active, 0);
});

Deno.test("of one principal nothing small overtakes what is large, and it goes on when that has left", async () => {
  const queue = queueOf(100);
  await queue.acquire({ principalKey: "a", amount: 60 });
  const left = new AbortController();
  const large = queue.acquire({ principalKey: "a", amount: 80, signal: left.signal });
  const small = queue.acquire({ principalKey: "a", amount: 10 });
  assert.equal(queue.waiting, 2);
  // Another principal does not wait for the memory of a.
  await queue.acquire({ principalKey: "b", amount: 20 });
  left.abort(new Error("it went away"));
  await assert.rejects(large, /went away/);
  await small;
  assert.deepEqual([queue.active, queue.waiting], [90, 0]);
});

Deno.test("in a shared queue a principal that holds something leaves enough for others", async () => {
  const queue = queueOf(100, true);
  await queue.acquire({ principalKey: "a", amount: 50 });
  let second = "waits";
  queue.acquire({ principalKey: "a", amount: 30 }).then(() => second = "is admitted");
  const other = await queue.acquire({ principalKey: "b", amount: 50 });
  await Promise.resolve();
  assert.equal(second, "waits");
  other.release();
  const alone = queueOf(100, true);
  assert.ok(await alone.acquire({ principalKey: "a", amount: 100 }), "who holds nothing may take all");
});

Deno.test("a wait that runs out says when to come back, and an amount that never fits is a fault", async () => {
  const world = new ManualClock();
  const queue = queueOf(100);
  await queue.acquire({ amount: 100 });
  const late = assert.rejects(
    queue.acquire({ amount: 1, within: { world, timeoutMs: 1000 } }),
    (error) => error instanceof RefusalForNow && error.status === 503 && error.retryAfterSeconds === 30,
  );
  await world.advance(1000);
  await late;
  for (const amount of [0, -1, 1.5, 101, NaN]) await assert.rejects(queue.acquire({ amount }), RangeError);
});

Deno.test("whatever comes and goes, the limit holds, and nobody waits who could go on", async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = seededRandom(seed);
    const queue = queueOf(100);
    const permits: { permit: Permit; amount: number }[] = [];
    const waiting = new Map<string, number[]>();
    for (let step = 0; step < 100; step++) {
      if (random() < 0.6) {
        const principalKey = random() < 0.7 ? "a" : "b";
        const amount = 1 + Math.floor(random() * 60);
        const line = waiting.get(principalKey) ?? [];
        waiting.set(principalKey, [...line, amount]);
        queue.acquire({ principalKey, amount }).then((permit) => {
          permits.push({ permit, amount });
          const [first, ...rest] = waiting.get(principalKey)!;
          assert.equal(first, amount, "first come, first served");
          waiting.set(principalKey, rest);
        });
      } else permits.splice(Math.floor(random() * permits.length), 1)[0]?.permit.release();
      await Promise.resolve();
      await Promise.resolve();
      const held = permits.reduce((sum, { amount }) => sum + amount, 0);
      assert.equal(queue.active, held);
      assert.ok(held <= 100);
      for (const [first] of waiting.values()) assert.ok(first === undefined || held + first > 100);
    }
  }
});
