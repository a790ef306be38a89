import assert from "node:assert/strict";
import {
  type CommittedEvent,
  NotificationRing,
  RING_EVENTS,
  type Subscription,
} from "../../../src/store/log/notification_ring.ts";
import { range } from "../../support/timeline.ts";

const [A, B] = ["run-a", "run-b"];

function ringing(): { ring: NotificationRing; rung: (runId: string, count?: number) => void } {
  const ring = new NotificationRing();
  let seq = 0;
  const next = (runId: string): CommittedEvent => ({ seq: ++seq, ptsMs: 0, kind: "vlm", runId });
  return { ring, rung: (runId, count = 1) => ring.publish(range(1, count).map(() => next(runId))) };
}

/** Drains and says what came: "1 2 3", "lagged", or "" for nothing. */
function drained(subscription: Subscription): string {
  const { lagged, events } = subscription.drain();
  assert.ok(!lagged || events.length === 0);
  return lagged ? "lagged" : events.map((event) => event.seq).join(" ");
}

Deno.test("a subscriber is told of what comes after it, of its own run or of all, and of each event once", () => {
  const { ring, rung } = ringing();
  rung(A);
  const ofA = ring.subscribe(A);
  const ofAll = ring.subscribe();
  assert.equal(drained(ofA) + drained(ofAll), "");
  rung(A);
  rung(B);
  rung(A, 2);
  assert.equal(drained(ofA), "2 4 5");
  assert.equal(drained(ofA), "");
  rung(B);
  assert.equal(drained(ofA), "");
  assert.equal(drained(ofAll), "2 3 4 5 6");
});

Deno.test("a subscriber that is a full ring behind is told so, and is in step again after it", () => {
  const { ring, rung } = ringing();
  const subscription = ring.subscribe(A);
  rung(A, RING_EVENTS);
  assert.equal(drained(subscription), range(1, RING_EVENTS).join(" "));
  rung(A, RING_EVENTS + 1);
  assert.equal(drained(subscription), "lagged");
  assert.equal(drained(subscription), "");
  rung(A);
  assert.equal(drained(subscription), String(2 * RING_EVENTS + 2));
});

Deno.test("events of other runs lap nobody who has nothing to drain", () => {
  const { ring, rung } = ringing();
  const idle = ring.subscribe(A);
  const waiting = ring.subscribe(B);
  rung(B, RING_EVENTS * 2);
  rung(A);
  assert.equal(drained(idle), String(RING_EVENTS * 2 + 1));
  assert.equal(drained(waiting), "lagged");
});

Deno.test("waiting ends with an event, at once when there is one already, and with the subscription", async () => {
  const { ring, rung } = ringing();
  const subscription = ring.subscribe(A);
  const waits = [subscription.changed(), subscription.changed()];
  rung(B);
  rung(A);
  assert.deepEqual(await Promise.all(waits), [true, true]);
  assert.equal(await subscription.changed(), true);
  subscription.drain();
  const last = subscription.changed();
  subscription[Symbol.dispose]();
  assert.equal(await last, false);
  assert.equal(await subscription.changed(), false);
  rung(A);
  assert.equal(ring.subscriptionCount, 0);
});

Deno.test("waiting ends when the signal aborts, and the subscription lives on", async () => {
  const { ring, rung } = ringing();
  const subscription = ring.subscribe(A);
  const abort = new AbortController();
  const wait = subscription.changed(abort.signal);
  abort.abort(new Error("gone"));
  await assert.rejects(wait, /gone/);
  await assert.rejects(subscription.changed(abort.signal), /gone/);
  rung(A);
  assert.equal(await subscription.changed(new AbortController().signal), true);
  assert.equal(drained(subscription), "1");
});

Deno.test("closing the ring lets every waiting reader go", async () => {
  const { ring } = ringing();
  const waits = [ring.subscribe(A).changed(), ring.subscribe(B).changed(), ring.subscribe().changed()];
  ring[Symbol.dispose]();
  assert.deepEqual(await Promise.all(waits), [false, false, false]);
  assert.equal(ring.subscriptionCount, 0);
});
