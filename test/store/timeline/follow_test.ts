import assert from "node:assert/strict";
import { yieldToEventLoop } from "../../../src/base/wait.ts";
import { RING_EVENTS } from "../../../src/store/timeline/notification_ring.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { Bench, event, randomFrom, range, RUN } from "../../support/timeline.ts";

/**
 * Follows a run as the comment of Subscription describes, until it has `untilSeq`; returns all sequence
 * numbers.
 */
async function follow(timeline: Timeline, untilSeq: number, pause: () => Promise<void>): Promise<number[]> {
  const got: number[] = [];
  let cursor = 0;
  const take = (seq: number) => {
    if (seq <= cursor) return;
    got.push(seq);
    cursor = seq;
  };
  const readLog = () => {
    for (const batch of timeline.read(RUN, { fromSeq: cursor + 1 })) for (const { seq } of batch) take(seq);
  };
  using subscription = timeline.subscribe(RUN);
  readLog();
  while (cursor < untilSeq && await subscription.changed()) {
    await pause();
    const { lagged, events } = subscription.drain();
    if (lagged) readLog();
    else for (const { seq } of events) take(seq);
  }
  return got;
}

Deno.test("readers that follow a busy run get every event once and in order, also after they have lagged", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  const total = RING_EVENTS * 5;
  const random = randomFrom(3);
  const quick = follow(timeline, total, () => Promise.resolve());
  const slow = follow(timeline, total, async () => {
    for (let turns = random(10); turns > 0; turns--) await yieldToEventLoop();
  });
  for (let seq = 1; seq <= total;) {
    const count = Math.min(total - seq + 1, 1 + random(700));
    timeline.commit(() => range(1, count).map(() => event("vlm")));
    seq += count;
    await yieldToEventLoop();
  }
  const late = follow(timeline, total, () => Promise.resolve());
  for (const got of await Promise.all([quick, slow, late])) assert.deepEqual(got, range(1, total));
});
