import { deepEqual, equal } from "node:assert/strict";
import { LiveQueue } from "../../../../src/flow/live/stages/queue.ts";
import { NEVER_ABORTED } from "../../../../src/base/wait.ts";

async function all(queue: LiveQueue<number>, signal = NEVER_ABORTED): Promise<number[]> {
  return await Array.fromAsync(queue.items(signal));
}

Deno.test("a queue accepts items up to its bound, and hands them out in order", async () => {
  const queue = new LiveQueue<number>(2);
  deepEqual([1, 2, 3].map((item) => queue.offer(item)), [true, true, false]);
  queue.end();
  equal(queue.offer(4), false);
  deepEqual(await all(queue), [1, 2]);
});

Deno.test("a waiting consumer gets each item, then the end", async () => {
  const queue = new LiveQueue<number>(1);
  const taken = all(queue);
  for (const item of [1, 2, 3]) {
    while (!queue.offer(item)) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  queue.end();
  deepEqual(await taken, [1, 2, 3]);
});

Deno.test("an abort ends the wait, and queued items are not handed out", async () => {
  const aborting = new AbortController();
  const queue = new LiveQueue<number>(2);
  const taken = all(queue, aborting.signal);
  aborting.abort();
  deepEqual(await taken, []);
  queue.offer(1);
  deepEqual(await all(queue, aborting.signal), []);
  equal(queue.clear().length, 1);
});

Deno.test("the newest item takes the place of the one that has waited longest", async () => {
  const queue = new LiveQueue<number>(1);
  deepEqual([1, 2].map((item) => queue.offerNewest(item)), [null, 1]);
  const items = queue.items(NEVER_ABORTED)[Symbol.asyncIterator]();
  equal((await items.next()).value, 2);
  // A consumer that waits has the first one, however soon the next ones come.
  const next = items.next();
  await Promise.resolve();
  deepEqual([3, 4, 5].map((item) => queue.offerNewest(item)), [null, null, 4]);
  equal((await next).value, 3);
  queue.end();
  equal(queue.offerNewest(6), 6);
  equal((await items.next()).value, 5);
});
