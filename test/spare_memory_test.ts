/** Memory is given back once, in the first quiet time. */

import assert from "node:assert/strict";
import { onceQuiet } from "../src/spare_memory.ts";
import { ManualClock } from "./support/manual_clock.ts";

function waiting() {
  const clock = new ManualClock();
  const state = { requests: 0, calls: 0 };
  const wait = onceQuiet(clock, { windowMs: 3000, count: () => state.requests, then: () => state.calls++ });
  return { clock, state, wait };
}

Deno.test("the first time without a request ends the wait, and it happens once", async () => {
  const { clock, state } = waiting();
  await clock.advance(2999);
  assert.equal(state.calls, 0);
  await clock.advance(1);
  assert.equal(state.calls, 1);
  await clock.advance(60_000);
  assert.equal(state.calls, 1);
  assert.equal(clock.sleeping, 0);
});

Deno.test("while requests come it waits", async () => {
  const { clock, state } = waiting();
  for (let window = 0; window < 5; window++) {
    state.requests++;
    await clock.advance(3000);
  }
  assert.equal(state.calls, 0);
  await clock.advance(3000);
  assert.equal(state.calls, 1);
});

Deno.test("a wait that was disposed does nothing, at first and after a window with requests", async () => {
  const first = waiting();
  first.wait[Symbol.dispose]();
  const later = waiting();
  later.state.requests++;
  await later.clock.advance(3000);
  later.wait[Symbol.dispose]();
  for (const { clock, state } of [first, later]) {
    await clock.advance(60_000);
    assert.deepEqual([state.calls, clock.sleeping], [0, 0]);
  }
});
