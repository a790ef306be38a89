import assert from "node:assert/strict";
import {
  type CommittedEvent,
  NotificationRing,
  RING_EVENTS,
  type Subscription,
} from "../../../src/store/timeline/notification_ring.ts";
import { range } from "../../support/timeline.ts";

const [A, B] = ["run-a", "run-b"];

function openRing(): { ring: NotificationRing; publish: (runId: string, count?: number) => void } {
  const ring = new NotificationRing();
  let seq = 0;
  const next = (runId: string): CommittedEvent => ({ seq: ++seq, ptsMs: 0, kind: "vlm", runId });
  return { ring, publish: (runId, count = 1) => ring.publish(range(1, count).map(() => next(runId))) };
}

/** The sequence numbers that `drain` returns, as "1 2 3"; "lagged", or "" for none. */
function drained(subscription: Subscription): string {
  const { lagged, events } = subscription.drain();
  assert.ok(!lagged || events.length === 0);
  return lagged ? "lagged" : events.map((event) => event.seq).join(" ");
}

Deno.test("a subscriber gets later events, of its run or of all runs, each once", () => {
  const { ring, publish } = openRing();
  publish(A);
  const ofA = ring.subscribe(A);
  const ofAll = ring.subscribe();
  assert.equal(drained(ofA) + drained(ofAll), "");
  publish(A);
  publish(B);
  publish(A, 2);
  assert.equal(drained(ofA), "2 4 5");
  assert.equal(drained(ofA), "");
  publish(B);
  assert.equal(drained(ofA), "");
  assert.equal(drained(ofAll), "2 3 4 5 6");
});

Deno.test("a subscriber that is a full ring behind has lagged, and gets later events again", () => {
  const { ring, publish } = openRing();
  const subscription = ring.subscribe(A);
  publish(A, RING_EVENTS);
  assert.equal(drained(subscription), range(1, RING_EVENTS).join(" "));
  publish(A, RING_EVENTS + 1);
  assert.equal(drained(subscription), "lagged");
  assert.equal(drained(subscription), "");
  publish(A);
  assert.equal(drained(subscription), String(2 * RING_EVENTS + 2));
});

Deno.test("with nothing to drain, events of other runs cause no lag", () => {
  const { ring, publish } = openRing();
  const idle = ring.subscribe(A);
  const waiting = ring.subscribe(B);
  publish(B, RING_EVENTS * 2);
  publish(A);
  assert.equal(drained(idle), String(RING_EVENTS * 2 + 1));
  assert.equal(drained(waiting), "lagged");
});

Deno.test("waiting ends with an event, at once if there is one, and when the subscription is closed", async () => {
  const { ring, publish } = openRing();
  const subscription = ring.subscribe(A);
  const waits = [subscription.changed(), subscription.changed()];
  publish(B);
  publish(A);
  assert.deepEqual(await Promise.all(waits), [true, true]);
  assert.equal(await subscription.changed(), true);
  subscription.drain();
  const last = subscription.changed();
  subscription[Symbol.dispose]();
  assert.equal(await last, false);
  assert.equal(await subscription.changed(), false);
  publish(A);
  assert.equal(ring.subscriptionCount, 0);
});

Deno.test("waiting ends when the signal aborts, and the subscription stays open", async () => {
  const { ring, publish } = openRing();
  const subscription = ring.subscribe(A);
  const abort = new AbortController();
  const wait = subscription.changed(abort.signal);
  abort.abort(new Error("gone"));
  await assert.rejects(wait, /gone/);
  await assert.rejects(subscription.changed(abort.signal), /gone/);
  publish(A);
  assert.equal(await subscription.changed(new AbortController().signal), true);
  assert.equal(drained(subscription), "1");
});

Deno.test("closing the ring ends the waiting of every reader", async () => {
  const { ring } = openRing();
  const waits = [ring.subscribe(A).changed(), ring.subscribe(B).changed(), ring.subscribe().changed()];
  ring[Symbol.dispose]();
  assert.deepEqual(await Promise.all(waits), [false, false, false]);
  assert.equal(ring.subscriptionCount, 0);
});
