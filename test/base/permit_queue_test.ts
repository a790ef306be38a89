/** A permit queue admits a bounded number, lets the rest wait in order, and refuses what it cannot hold. */

import assert from "node:assert/strict";
import { type Permit, PermitQueue } from "../../src/base/permit_queue.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { ManualClock } from "../support/manual_clock.ts";

Deno.test("as many as the limit pass at once, the next one waits for a release", async () => {
  const queue = queueOf(2);
  const first = await queue.acquire();
  await queue.acquire();
  const third = queue.acquire();
  assert.deepEqual([queue.active, queue.waiting], [2, 1]);
  first.release();
  await third;
  assert.deepEqual([queue.active, queue.waiting], [2, 0]);
});

Deno.test("waiters are admitted in the order in which they came", async () => {
  const queue = queueOf(1);
  const order: number[] = [];
  const held = await queue.acquire();
  const waiters = [1, 2, 3].map(async (name) => {
    using _permit = await queue.acquire();
    order.push(name);
  });
  held.release();
  await Promise.all(waiters);
  assert.deepEqual(order, [1, 2, 3]);
  assert.deepEqual([queue.active, queue.waiting], [0, 0]);
});

Deno.test("a new caller does not overtake one that was just given the permit", async () => {
  const queue = queueOf(1);
  const held = await queue.acquire();
  const waiter = queue.acquire();
  held.release();
  const newcomer = queue.acquire();
  assert.deepEqual([queue.active, queue.waiting], [1, 1]);
  (await waiter).release();
  (await newcomer).release();
  assert.equal(queue.active, 0);
});

Deno.test("a permit that is released twice frees one place only", async () => {
  const queue = queueOf(2);
  const permit = await queue.acquire();
  await queue.acquire();
  permit.release();
  permit[Symbol.dispose]();
  assert.equal(queue.active, 1);
});

Deno.test("a full queue refuses at once", async () => {
  const queue = queueOf(1, 1);
  await queue.acquire();
  const waiting = queue.acquire();
  await assert.rejects(queue.acquire(), isRefusal);
  assert.equal(queue.waiting, 1);
  queue.close();
  await assert.rejects(waiting, isRefusal);
});

Deno.test("a queue without room for waiters refuses instead of letting wait", async () => {
  const queue = queueOf(1, 0);
  const permit = await queue.acquire();
  await assert.rejects(queue.acquire(), isRefusal);
  permit.release();
  (await queue.acquire()).release();
});

Deno.test("a waiter whose signal aborts leaves the queue at once, and its place goes to the next", async () => {
  const queue = queueOf(1);
  const held = await queue.acquire();
  const controller = new AbortController();
  const reason = new Error("the client went away");
  const leaving = queue.acquire({ signal: controller.signal });
  const staying = queue.acquire();
  controller.abort(reason);
  assert.equal(queue.waiting, 1);
  await assert.rejects(leaving, reason);
  held.release();
  (await staying).release();
  assert.equal(queue.active, 0);
});

Deno.test("an abort after admission takes nothing away", async () => {
  const queue = queueOf(1);
  const controller = new AbortController();
  const held = await queue.acquire();
  const next = queue.acquire({ signal: controller.signal });
  held.release();
  controller.abort();
  const permit: Permit = await next;
  assert.equal(queue.active, 1);
  permit.release();
  assert.equal(queue.active, 0);
});

Deno.test("a signal that has aborted already is not even queued", async () => {
  const queue = queueOf(1);
  await assert.rejects(queue.acquire({ signal: AbortSignal.abort(new Error("too late")) }), /too late/);
  assert.deepEqual([queue.active, queue.waiting], [0, 0]);
});

Deno.test("a wait that runs out is refused and leaves the queue, by the world's clock alone", async () => {
  const world = new ManualClock();
  const queue = queueOf(1);
  const held = await queue.acquire();
  let outcome = "waiting";
  queue.acquire({ within: { world, timeoutMs: 60_000 } }).catch((error) => outcome = error.message);
  await world.advance(59_999);
  assert.deepEqual([outcome, queue.waiting, world.sleeping], ["waiting", 1, 1]);
  await world.advance(1);
  assert.equal(outcome, "Cannot admit more than 1 decodes at once within 60000 ms");
  assert.deepEqual([queue.active, queue.waiting, world.sleeping], [1, 0, 0]);
  held.release();
  assert.equal(queue.active, 0);
});

Deno.test("a wait that ends before its time stops its timer", async () => {
  const world = new ManualClock();
  const queue = queueOf(1);
  const held = await queue.acquire({ within: { world, timeoutMs: 10 } });
  assert.equal(world.sleeping, 0, "no wait, no timer");
  const controller = new AbortController();
  const aborted = queue.acquire({ signal: controller.signal, within: { world, timeoutMs: 10 } });
  const admitted = queue.acquire({ within: { world, timeoutMs: 10 } });
  assert.equal(world.sleeping, 2);
  controller.abort(new Error("the client went away"));
  await assert.rejects(aborted, /went away/);
  held.release();
  const permit = await admitted;
  assert.equal(world.sleeping, 0);
  const closed = queue.acquire({ within: { world, timeoutMs: 10 } });
  queue.close();
  await assert.rejects(closed, isRefusal);
  assert.equal(world.sleeping, 0);
  permit.release();
});

Deno.test("closing refuses waiting and later callers; permits that are out stay valid", async () => {
  const queue = queueOf(1);
  const held = await queue.acquire();
  const waiters = [
    queue.acquire(),
    queue.acquire({ within: { world: new ManualClock(), timeoutMs: 60_000 } }),
  ];
  queue.close();
  for (const waiter of waiters) await assert.rejects(waiter, isRefusal);
  await assert.rejects(queue.acquire(), isRefusal);
  assert.deepEqual([queue.active, queue.waiting], [1, 0]);
  held.release();
  assert.equal(queue.active, 0);
});

Deno.test("a queue needs a limit of at least one", () => {
  for (const limit of [0, -1, 1.5, NaN, Infinity]) assert.throws(() => queueOf(limit), RangeError);
});

function queueOf(limit: number, waiterLimit = 8): PermitQueue {
  return new PermitQueue({ limit, waiterLimit, what: "decodes", refusal: "provider_saturated" });
}

function isRefusal(error: unknown): boolean {
  return error instanceof Refusal && error.kind === "provider_saturated" && error.status === 503;
}
