/** Memory is given back once, in the first quiet time; pages of the C library again and again. */

import assert from "node:assert/strict";
import { keepTrimmed, onceQuiet } from "../../src/process/spare_memory.ts";
import { ManualClock } from "../support/manual_clock.ts";

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

Deno.test("pages are given back twice a minute until it is disposed", async () => {
  const clock = new ManualClock();
  let trims = 0;
  const trimmed = keepTrimmed(clock, () => trims++);
  await clock.advance(29_999);
  assert.equal(trims, 0);
  for (let minute = 0; minute < 5; minute++) {
    await clock.advance(30_000);
    await clock.advance(30_000);
  }
  assert.equal(trims, 10);
  trimmed[Symbol.dispose]();
  await clock.advance(120_000);
  assert.equal(trims, 10);
  assert.equal(clock.sleeping, 0);
});
