/** Background loops start, fail and end together. */

import assert from "node:assert/strict";
import { TaskGroup } from "../../src/base/tasks.ts";

Deno.test("closing a group ends its loops and waits for them", async () => {
  const ended: string[] = [];
  {
    await using tasks = new TaskGroup();
    tasks.start(async (signal) => {
      await aborted(signal);
      await Promise.resolve();
      ended.push("loop");
    });
    assert.deepEqual(ended, []);
  }
  assert.deepEqual(ended, ["loop"]);
});

Deno.test("a loop that fails ends the others, and its failure is thrown", async () => {
  const tasks = new TaskGroup();
  const ended: string[] = [];
  tasks.start(async (signal) => {
    await aborted(signal);
    ended.push("other");
  });
  tasks.start(() => {
    throw new Error("broken");
  });
  await assert.rejects(tasks.join(), /broken/);
  assert.deepEqual(ended, ["other"]);
  assert.equal(tasks.signal.aborted, true);
  await assert.rejects(tasks.close(), /broken/);
});

Deno.test("the abort itself is no failure, what goes wrong while ending is one", async () => {
  const check = async (loop: (signal: AbortSignal) => Promise<void>, expected: RegExp | undefined) => {
    const tasks = new TaskGroup();
    tasks.start(loop);
    if (expected) await assert.rejects(tasks.close(), expected);
    else await tasks.close();
  };

  await check(async (signal) => {
    await aborted(signal);
    signal.throwIfAborted();
  }, undefined);
  await check(async (signal) => {
    await aborted(signal);
    throw new DOMException("stream cancelled", "AbortError");
  }, undefined);
  await check(async (signal) => {
    await aborted(signal);
    throw new Error("cannot flush");
  }, /cannot flush/);
  await check((signal) => aborted(signal), undefined);
});

Deno.test("only the first failure is thrown", async () => {
  const tasks = new TaskGroup();
  tasks.start(() => Promise.reject(new Error("first")));
  tasks.start(async (signal) => {
    await aborted(signal);
    throw new Error("second");
  });
  await assert.rejects(tasks.join(), /first/);
});

Deno.test("a loop may fail with nothing at all and still fails the group", async () => {
  const tasks = new TaskGroup();
  tasks.start(() => Promise.reject(undefined));
  const failed = await tasks.join().then(() => false, () => true);
  assert.equal(failed, true);
});

Deno.test("a group ends with its parent's signal, and starts nothing after that", async () => {
  const parent = new AbortController();
  const tasks = new TaskGroup(parent.signal);
  let isEnded = false;
  tasks.start(async (signal) => {
    await aborted(signal);
    isEnded = true;
  });
  parent.abort(new Error("shutting down"));
  await tasks.join();
  assert.equal(isEnded, true);
  tasks.start(() => assert.fail("started in an ended group"));
  await tasks.join();
  await new TaskGroup(parent.signal).close();
});

Deno.test("a loop may start another one, and joining waits for both", async () => {
  const tasks = new TaskGroup();
  const order: string[] = [];
  tasks.start(async () => {
    await Promise.resolve();
    tasks.start(async () => {
      await Promise.resolve();
      order.push("inner");
    });
    order.push("outer");
  });
  await tasks.join();
  assert.deepEqual(order, ["outer", "inner"]);
  await tasks.close();
});

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
