/** Waiting ends with the work, with the time or with the signal, and leaves neither a timer nor a listener
 * behind.
 */

import assert from "node:assert/strict";
import {
  Deadline,
  Deadlines,
  hasEndedWithin,
  NEVER_ABORTED,
  OutOfTime,
  pause,
  timer,
  unlessAborted,
  within,
  yieldToEventLoop,
} from "../../src/base/wait.ts";
import { ManualClock, settled } from "../support/manual_clock.ts";

const GONE = new Error("the caller has disconnected");
const NEVER = new Promise<never>(() => {});

/** A signal that knows how many listeners it has. */
function countedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Set<unknown>();
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = function (
    type: string,
    listener: EventListener,
    options?: AddEventListenerOptions,
  ) {
    listeners.add(listener);
    options?.signal?.addEventListener("abort", () => listeners.delete(listener), { once: true });
    const called: EventListener = options?.once
      ? (event) => (listeners.delete(listener), listener(event))
      : listener;
    wrapped.set(listener, called);
    addEventListener.call(signal, type, called, options);
  } as typeof signal.addEventListener;
  signal.removeEventListener = function (type: string, listener: EventListener) {
    listeners.delete(listener);
    removeEventListener.call(signal, type, wrapped.get(listener) ?? listener);
  } as typeof signal.removeEventListener;
  const wrapped = new Map<EventListener, EventListener>();
  return {
    signal,
    abort: () => controller.abort(GONE),
    get listeners() {
      return listeners.size;
    },
  };
}

Deno.test("a deadline aborts after its time, with a reason of its own", async () => {
  const clock = new ManualClock();
  using deadline = new Deadline(clock, 100);
  await clock.advance(99);
  assert.equal(deadline.signal.aborted, false);
  await clock.advance(1);
  assert.ok(deadline.signal.reason instanceof OutOfTime);
  assert.equal(deadline.signal.reason.message, "not done after 100 ms");
  assert.equal(clock.sleeping, 0);
});

Deno.test("a deadline aborts with its parent and its parent's reason, before the start as well", async () => {
  const clock = new ManualClock();
  const parent = countedSignal();
  {
    using deadline = new Deadline(clock, 100, parent.signal);
    parent.abort();
    assert.equal(deadline.signal.reason, GONE);
    await clock.advance(100);
    assert.equal(deadline.signal.reason, GONE, "the first reason stays");
  }
  {
    using deadline = new Deadline(clock, 100, parent.signal);
    assert.equal(deadline.signal.reason, GONE);
  }
  await settled();
  assert.deepEqual([clock.sleeping, parent.listeners], [0, 0]);
});

Deno.test("a disposed deadline has no timer, and no longer follows its parent", async () => {
  const clock = new ManualClock();
  const parent = countedSignal();
  const deadline = new Deadline(clock, 100, parent.signal);
  assert.deepEqual([clock.sleeping, parent.listeners], [1, 1]);
  deadline[Symbol.dispose]();
  deadline[Symbol.dispose]();
  assert.deepEqual([clock.sleeping, parent.listeners], [0, 0]);
  parent.abort();
  await clock.advance(100);
  assert.equal(deadline.signal.aborted, false);
});

Deno.test("a timer calls once, and not at all after it was disposed", async () => {
  const clock = new ManualClock();
  let calls = 0;
  using _called = timer(clock, 10, () => calls++);
  const stopped = timer(clock, 10, () => calls++);
  assert.equal(clock.sleeping, 2);
  stopped[Symbol.dispose]();
  assert.equal(clock.sleeping, 1);
  await clock.advance(100);
  assert.deepEqual([calls, clock.sleeping], [1, 0]);
});

Deno.test("a timer that is disposed between the end of its sleep and its call does not call", async () => {
  const sleep = Promise.withResolvers<void>();
  let calls = 0;
  const late = timer({ sleep: () => sleep.promise }, 10, () => calls++);
  sleep.resolve();
  late[Symbol.dispose]();
  await settled();
  assert.equal(calls, 0);
});

Deno.test("a pause says whether its time has passed, and never rejects", async () => {
  const clock = new ManualClock();
  const signal = countedSignal();
  const whole = pause(clock, 10);
  const stopped = pause(clock, 10, signal.signal);
  signal.abort();
  assert.equal(await stopped, false);
  await clock.advance(10);
  assert.equal(await whole, true);
  assert.equal(await pause(clock, 10, signal.signal), false, "aborted before");
  assert.equal(clock.sleeping, 0);
});

Deno.test("work gives its result or its fault, unless the signal aborts first", async () => {
  const signal = countedSignal();
  assert.equal(await unlessAborted(Promise.resolve(7), signal.signal), 7);
  await assert.rejects(unlessAborted(Promise.reject(new Error("failed")), signal.signal), /failed/);
  await settled();
  assert.equal(signal.listeners, 0);
  const waiting = unlessAborted(NEVER, signal.signal);
  signal.abort();
  await assert.rejects(waiting, GONE);
  await assert.rejects(unlessAborted(NEVER, signal.signal), GONE, "aborted before");
  // A fault that comes too late is dropped, not left unhandled.
  await assert.rejects(unlessAborted(Promise.reject(new Error("late")), signal.signal), GONE);
  await settled();
  assert.equal(signal.listeners, 0);
});

Deno.test("work within a time gives its result or its fault, else the reason why nobody waits any longer", async () => {
  const clock = new ManualClock();
  const signal = countedSignal();
  const check = (work: Promise<unknown>) => within(clock, 50, work, signal.signal);
  assert.equal(await check(Promise.resolve(7)), 7);
  await assert.rejects(check(Promise.reject(new Error("failed"))), /failed/);
  const late = check(NEVER);
  const isLate = assert.rejects(late, OutOfTime);
  await clock.advance(50);
  await isLate;
  const stopped = check(NEVER);
  signal.abort();
  await assert.rejects(stopped, GONE);
  await assert.rejects(check(NEVER), GONE, "aborted before");
  await settled();
  assert.deepEqual([clock.sleeping, signal.listeners], [0, 0]);
});

Deno.test("whether work has ended in time is a question with two answers and no error", async () => {
  const clock = new ManualClock();
  const signal = countedSignal();
  const check = (work: Promise<unknown>) => hasEndedWithin(clock, 50, work, signal.signal);
  assert.equal(await check(Promise.resolve()), true);
  assert.equal(await check(Promise.reject(new Error("failed"))), true);
  const late = check(NEVER);
  await clock.advance(50);
  assert.equal(await late, false);
  const stopped = check(NEVER);
  signal.abort();
  assert.equal(await stopped, false);
  assert.equal(await check(NEVER), false, "aborted before");
  await settled();
  assert.deepEqual([clock.sleeping, signal.listeners], [0, 0]);
});

Deno.test("everything that is ready runs before the caller goes on", async () => {
  const order: string[] = [];
  setTimeout(() => order.push("ready before"), 0);
  Promise.resolve().then(() => order.push("microtask"));
  await yieldToEventLoop();
  assert.deepEqual(order, ["microtask", "ready before"]);
});

Deno.test("the signal that never aborts has not aborted", () => {
  assert.equal(NEVER_ABORTED.aborted, false);
});

Deno.test("deadlines of one length end when they are due and were not met, all with one timer", async () => {
  const clock = new ManualClock();
  using deadlines = new Deadlines(clock, 100);
  const ended: string[] = [];
  deadlines.start(() => ended.push("first"));
  await clock.advance(60);
  const met = deadlines.start(() => ended.push("met"));
  deadlines.start(() => ended.push("second"));
  assert.equal(clock.sleeping, 1);
  met[Symbol.dispose]();
  await clock.advance(40);
  assert.deepEqual(ended, ["first"]);
  await clock.advance(59);
  assert.deepEqual(ended, ["first"]);
  await clock.advance(1);
  assert.deepEqual(ended, ["first", "second"]);
  assert.equal(clock.sleeping, 0);
});

Deno.test("deadlines that begin and are met while another one ends have the same timer", async () => {
  const clock = new ManualClock();
  using deadlines = new Deadlines(clock, 100);
  const ended: string[] = [];
  const met = () => deadlines.start(() => ended.push("met"));
  const [first, last] = [met(), met()];
  deadlines.start(() => {
    ended.push("ends");
    deadlines.start(() => ended.push("begun"));
    behind[Symbol.dispose]();
    last[Symbol.dispose]();
  });
  const behind = met();
  last[Symbol.dispose]();
  first[Symbol.dispose]();
  await clock.advance(50);
  deadlines.start(() => ended.push("later"));
  await clock.advance(50);
  assert.deepEqual([ended, clock.sleeping], [["ends"], 1]);
  await clock.advance(50);
  assert.deepEqual(ended, ["ends", "later"]);
  await clock.advance(50);
  assert.deepEqual([ended, clock.sleeping], [["ends", "later", "begun"], 0]);
});
