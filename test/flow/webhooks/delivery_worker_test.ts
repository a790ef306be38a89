import assert from "node:assert/strict";
import { Metrics } from "../../../src/contract/metrics.ts";
import type { World } from "../../../src/base/world.ts";
import { WebhookWorker } from "../../../src/flow/webhooks/delivery_worker.ts";
import { EventMatcher } from "../../../src/flow/webhooks/event_matcher.ts";
import { receiverOf, type Sender } from "../../../src/flow/webhooks/receivers.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Webhook } from "../../../src/model/webhooks/webhook.ts";
import type { SendFault } from "../../../src/remote/webhook_sender.ts";
import { DeliveryLog } from "../../../src/store/webhook_deliveries.ts";
import { Bench, created, event, RUN } from "../../support/timeline.ts";
import { until } from "../../support/until.ts";

const HOOK: Webhook = {
  webhookId: `wh_${"0".repeat(24)}`,
  runId: RUN,
  url: "",
  eventKinds: [],
  filter: null,
  cooldown: null,
  source: null,
  registeredSeq: 1,
};

/**
 * A worker on a real timeline and a real delivery log. The test answers each delivery in place of the
 * receiver.
 */
async function start(onSleep: (ms: number) => void = () => {}, hook = HOOK, dataDir?: string) {
  const bench = new Bench(dataDir);
  const world: World = {
    ...bench.world,
    sleep: (ms, signal) => {
      onSleep(ms);
      return signal?.aborted
        ? Promise.reject(signal.reason)
        : new Promise((resolve) => setTimeout(resolve, 0));
    },
  };
  const timeline = await bench.open();
  if (dataDir === undefined) timeline.commit(() => [created()]);
  const deliveries = DeliveryLog.open({ dataDir: bench.dataDir, world });
  const metrics = new Metrics();
  /** The deliveries in order; the test answers each of them. */
  const deliveriesSent: { seq: number; body: string; answer: (fault: SendFault) => void }[] = [];
  let wake = () => {};
  const sender: Sender = {
    post: (headers, body) => {
      const { promise, resolve } = Promise.withResolvers<SendFault>();
      const seq = Number(headers["webhook-id"]!.split(":")[1]);
      deliveriesSent.push({ seq, body: new TextDecoder().decode(body), answer: resolve });
      wake();
      return promise;
    },
  };
  const worker = new WebhookWorker({
    hook,
    receiver: receiverOf(sender, new Uint8Array(32)),
    timeline,
    deliveries,
    world,
    metrics,
    retryDelaysMs: [1, 2, 3],
  });
  const stop = new AbortController();
  const running = worker.run(stop.signal).catch((error) => assert.equal(error, stop.signal.reason));
  return {
    bench,
    timeline,
    deliveries,
    worker,
    /** The number of the `count`th event that is posted. */
    async posted(count: number) {
      while (deliveriesSent.length < count) await new Promise<void>((resolve) => wake = resolve);
      return deliveriesSent[count - 1]!;
    },
    deliveriesSent,
    async metric(name: string) {
      return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(await metrics.text())![1]);
    },
    /** Ends it without a last record, as a crash would. */
    async crash() {
      stop.abort();
      await running;
      await deliveries.close();
      await timeline.close();
    },
    async [Symbol.asyncDispose]() {
      await this.crash();
      if (dataDir === undefined) bench[Symbol.dispose]();
    },
  };
}

Deno.test("coalesced wake-ups are counted, and a subscription that the ring overwrote loses no event", async () => {
  await using test = await start();
  const commit = (count: number) =>
    test.timeline.commit(() => Array.from({ length: count }, () => event("vlm", {})));
  commit(1);
  (await test.posted(1)).answer(undefined);
  commit(1);
  const second = await test.posted(2);
  const before = await test.metric("service_webhook_wake_coalesced_total");
  commit(5);
  second.answer(undefined);
  for (let count = 3; count <= 7; count++) (await test.posted(count)).answer(undefined);
  commit(1);
  const eighth = await test.posted(8);
  assert.equal(await test.metric("service_webhook_wake_coalesced_total"), before + 4);
  assert.equal(await test.metric("service_webhook_notification_lag_total"), 0);
  commit(LIMITS.sse.ringEvents + 1);
  eighth.answer(undefined);
  const last = 8 + LIMITS.sse.ringEvents + 1;
  for (let count = 9; count <= last; count++) (await test.posted(count)).answer(undefined);
  assert.deepEqual(
    test.deliveriesSent.map(({ seq }) => seq),
    Array.from({ length: last }, (_, at) => at + 2),
  );
  assert.equal(await test.metric("service_webhook_notification_lag_total"), 1);
});

Deno.test("while the delivery log takes no record nothing is sent; the event whose record was lost is sent once more", async () => {
  const sleeps: number[] = [];
  let isFull = false;
  await using test = await start((ms) => {
    sleeps.push(ms);
    if (sleeps.filter((each) => each === LIMITS.webhook.workerRestartMs).length === 3) isFull = false;
  });
  const append = test.deliveries.append.bind(test.deliveries);
  test.deliveries.append = (runId, record) => {
    if (isFull) throw new Error("No space left on device");
    append(runId, record);
  };
  test.timeline.commit(() => [event("vlm"), event("vlm")]);
  const first = await test.posted(1);
  isFull = true;
  first.answer(undefined);
  (await test.posted(2)).answer(undefined);
  (await test.posted(3)).answer(undefined);
  assert.deepEqual(test.deliveriesSent.map(({ seq }) => seq), [2, 2, 3]);
  const restarts = sleeps.filter((ms) => ms === LIMITS.webhook.workerRestartMs);
  assert.equal(
    restarts.length,
    3,
    "twice the checkpoint before the first event failed, and nothing was sent",
  );
});

Deno.test("retries wait for the configured delays, in their order", async () => {
  const sleeps: number[] = [];
  await using test = await start((ms) => void sleeps.push(ms));
  test.timeline.commit(() => [event("vlm"), event("vlm")]);
  for (let attempt = 1; attempt <= 4; attempt++) {
    (await test.posted(attempt)).answer({ error: `fault ${"x".repeat(300)}` });
  }
  (await test.posted(5)).answer(undefined);
  assert.deepEqual(test.deliveriesSent.map(({ seq }) => seq), [2, 2, 2, 2, 3]);
  assert.deepEqual(sleeps.filter((ms) => ms > 0), [1, 2, 3]);
  const [letter] = test.deliveries.stateOf(RUN, HOOK.webhookId).recentDeadLetters;
  assert.equal(letter!.error.length, LIMITS.webhook.errorCharactersMax);
  await until(() => test.deliveries.stateOf(RUN, HOOK.webhookId).delivered === 1);
  const { recentDeliveries, failingSinceMs } = test.deliveries.stateOf(RUN, HOOK.webhookId);
  assert.deepEqual(
    recentDeliveries.map(({ seq, kind, error, attempts }) => [seq, kind, error === null, attempts.length]),
    [[2, "vlm", false, 4], [3, "vlm", true, 1]],
  );
  assert.equal(failingSinceMs, null);
});

Deno.test("a busy receiver is waited for as long as it asks, at most ten minutes and at least the configured delay", async () => {
  const sleeps: number[] = [];
  await using test = await start((ms) => void sleeps.push(ms));
  test.timeline.commit(() => [event("vlm"), event("vlm")]);
  const asked = [8000, 86_400_000, 0];
  for (const [at, retryAfterMs] of asked.entries()) {
    (await test.posted(at + 1)).answer({ error: "429", retryAfterMs });
  }
  (await test.posted(4)).answer(undefined);
  (await test.posted(5)).answer({ error: "500" });
  (await test.posted(6)).answer(undefined);
  assert.deepEqual(test.deliveriesSent.map(({ seq }) => seq), [2, 2, 2, 2, 3, 3]);
  assert.deepEqual(sleeps.filter((ms) => ms > 0), [8000, 600_000, 3, 1]);
});

Deno.test("a receiver that is gone is sent nothing more, after a crash neither, until its webhook is started again", async () => {
  const stateOf = (test: Awaited<ReturnType<typeof start>>) => test.deliveries.stateOf(RUN, HOOK.webhookId);
  await using first = await start();
  first.timeline.commit(() => [event("vlm"), event("vlm"), event("vlm")]);
  (await first.posted(1)).answer({ error: "500" });
  (await first.posted(2)).answer({ error: "410", isGone: true });
  await until("the others are passed", () => first.worker.cursorSeq === 4);
  const { gone } = first.worker;
  assert.deepEqual(gone, { since_ms: Math.floor(first.bench.nowMs), receiver: null });
  first.timeline.commit(() => Array.from({ length: 2000 }, () => event("vlm")));
  await until("many are passed", () => first.worker.cursorSeq === 2004);
  assert.equal(stateOf(first).cursorSeq, 2004, "they are noted");
  first.timeline.commit(() => [event("vlm")]);
  await until("one more is passed", () => first.worker.cursorSeq === 2005);
  assert.deepEqual([stateOf(first).delivered, stateOf(first).deadLetters], [0, 0]);
  assert.deepEqual(
    stateOf(first).recentDeliveries.map(({ seq, outcome, attempts }) => [seq, outcome, attempts.length]),
    [[2, "gone", 2]],
  );
  await first.crash();

  await using second = await start(() => {}, HOOK, first.bench.dataDir);
  second.timeline.commit(() => [event("vlm")]);
  await until("all are passed", () => second.worker.cursorSeq === 2006);
  assert.deepEqual(second.worker.gone, gone);
  assert.deepEqual([first.deliveriesSent.length, second.deliveriesSent.length], [2, 0]);
  second.worker.resume();
  assert.equal(second.worker.gone, null);
  assert.equal(stateOf(second).cursorSeq, 2006, "what was passed can be sent again");
  second.timeline.commit(() => [event("vlm")]);
  const sent = await second.posted(1);
  assert.equal(sent.seq, 2007);
  sent.answer(undefined);
  await until("it is delivered", () => stateOf(second).delivered === 1);
});

Deno.test("a receiver that is gone ends a redelivery, and what waited behind it is not sent", async () => {
  await using test = await start();
  test.timeline.commit(() => [event("vlm"), event("vlm"), event("vlm")]);
  for (let count = 1; count <= 3; count++) (await test.posted(count)).answer(undefined);
  const state = test.deliveries.stateOf(RUN, HOOK.webhookId);
  await until("all are delivered", () => state.delivered === 3);
  const range = { webhook_id: HOOK.webhookId, seq: 2, error: null, to_seq: 4 };
  test.deliveries.append(RUN, { ...range, state: "redeliver" });
  test.worker.redeliver();
  const again = await test.posted(4);
  test.timeline.commit(() => [event("vlm")]);
  again.answer({ error: "410", isGone: true });
  await until("the new one is passed", () => test.worker.cursorSeq === 5);
  assert.equal(state.redelivery, undefined);
  assert.deepEqual(test.deliveriesSent.map(({ seq }) => seq), [2, 3, 4, 2]);
});

Deno.test("the age of the event that waits is known until it is delivered or given up", async () => {
  await using test = await start();
  assert.equal(test.worker.waitingSinceMs, null);
  test.timeline.commit(() => [event("vlm"), event("vlm")]);
  const [written] = [...test.timeline.readAll({ fromSeq: 2 })].flat();
  const first = await test.posted(1);
  assert.equal(test.worker.waitingSinceMs, written!.ptsMs);
  first.answer({ error: "503" });
  (await test.posted(2)).answer({ error: "503" });
  assert.equal(test.worker.waitingSinceMs, written!.ptsMs, "a retry is the same wait");
  (await test.posted(3)).answer(undefined);
  (await test.posted(4)).answer(undefined);
  await until("nothing waits", () => test.worker.waitingSinceMs === null);
});

Deno.test("a cooldown withholds events by key and tells how many with the next delivery, after a crash and a dead letter too", async () => {
  const hook: Webhook = {
    ...HOOK,
    filter: { zones: ["dock", "gate"], min_confidence: 0.5 },
    cooldown: { interval_ms: 60_000, per: ["zone"] },
  };
  const seen = (zone: string, confidence = 0.9) =>
    event("restricted_zone_activity_entered", { confidence, assertion: { policy_id: zone } });
  const withheldIn = ({ body }: { body: string }) => JSON.parse(body).withheld;
  await using first = await start(() => {}, hook);
  const write = (...zones: string[]) => first.timeline.commit(() => zones.map((zone) => seen(zone)));
  write("dock", "dock", "gate", "dock", "yard");
  first.timeline.commit(() => [seen("dock", 0.4), event("vlm")]);
  const dock = await first.posted(1);
  assert.deepEqual([dock.seq, withheldIn(dock)], [2, undefined]);
  dock.answer(undefined);
  const gate = await first.posted(2);
  assert.deepEqual([gate.seq, withheldIn(gate)], [4, undefined]);
  gate.answer(undefined);
  await until("all are judged", () => first.worker.cursorSeq === first.timeline.view.lastSeq);
  assert.deepEqual([first.worker.withheld, first.worker.withheldPending], [2, 2]);
  assert.equal(await first.metric("service_webhook_withheld_total"), 2);
  assert.equal(await first.metric("service_webhook_filtered_total"), 3);
  await first.crash();

  await using second = await start(() => {}, hook, first.bench.dataDir);
  await until("all are judged again", () => second.worker.cursorSeq === second.timeline.view.lastSeq);
  assert.deepEqual([second.worker.withheld, second.worker.withheldPending], [2, 2], "once each");
  second.bench.nowMs += 60_000;
  second.timeline.commit(() => [seen("dock"), seen("dock")]);
  for (let attempt = 1; attempt <= 4; attempt++) {
    const told = await second.posted(attempt);
    assert.deepEqual([told.seq, withheldIn(told)], [9, 2]);
    told.answer({ error: "503" });
  }
  const after = await second.posted(5);
  assert.deepEqual([after.seq, withheldIn(after)], [10, 2], "what was given up has told nothing");
  after.answer(undefined);
  const state = second.deliveries.stateOf(RUN, hook.webhookId);
  await until("it is recorded", () => state.delivered === 3);
  assert.deepEqual([state.withheld, state.cooldowns.pending], [2, 0]);
  assert.deepEqual(state.recentDeliveries.map(({ seq, withheld }) => [seq, withheld]), [[2, 0], [4, 0], [
    9,
    2,
  ], [10, 2]]);

  second.deliveries.append(RUN, {
    webhook_id: hook.webhookId,
    seq: 2,
    state: "redeliver",
    error: null,
    to_seq: 8,
  });
  second.worker.redeliver();
  const again: number[] = [];
  for (let count = 6; count <= 9; count++) {
    const sent = await second.posted(count);
    again.push(sent.seq);
    assert.equal(withheldIn(sent), undefined);
    sent.answer(undefined);
  }
  assert.deepEqual(again, [2, 3, 4, 5], "withheld ones too, and none that the filter leaves out");
});

Deno.test("with a cooldown an explanation is delivered where its event was, and withheld where it was withheld", async () => {
  const hook: Webhook = { ...HOOK, cooldown: { interval_ms: 60_000, per: ["kind", "zone"] } };
  await using test = await start(() => {}, hook);
  const { bench, timeline } = test;
  const startMs = bench.nowMs;
  const write = (seconds: number, kind: string, payload: object) => {
    bench.nowMs = startMs + seconds * 1000;
    return timeline.commit(() => [event(kind, payload)])[0]!.seq;
  };
  const alert = (seconds: number) =>
    write(seconds, "restricted_zone_activity_entered", { assertion: { policy_id: "dock" } });
  const explain = (seconds: number, causeSeq: number) =>
    write(seconds, "event_enriched", { cause_seq: causeSeq, zone: "dock" });
  const first = alert(0);
  const firstExplained = explain(9, first);
  explain(35, alert(30));
  const third = alert(61);
  const thirdExplained = explain(62, third);
  const sent: number[] = [];
  for (let count = 1; count <= 4; count++) {
    const { seq, answer } = await test.posted(count);
    sent.push(seq);
    answer(undefined);
  }
  assert.deepEqual(sent, [first, firstExplained, third, thirdExplained]);
  assert.equal(test.worker.withheld, 2);
});

Deno.test("an event is of the source that its session, its request or its stream reads", async () => {
  await using test = await start();
  const { timeline } = test;
  const matcher = new EventMatcher({ ...HOOK, filter: { sources: ["dock"] } }, timeline);
  const verdicts = (...payloads: object[]) =>
    timeline.commit(() => payloads.map((payload) => event("vlm", payload))).map(({ seq }) =>
      matcher.judge([...timeline.readAll({ fromSeq: seq, toSeq: seq })].flat()[0]!).verdict
    );
  assert.deepEqual(verdicts({ session_id: "s1" }), ["filtered"]);
  timeline.commit(() => [
    event("live_source_opened", { session_id: "s1", source_uri: "source:dock" }),
    event("ingest_received", { request_id: "r1", source_uri: "source:gate", ingest: { stream_id: "cam" } }),
  ]);
  assert.deepEqual(
    verdicts(
      { session_id: "s1" },
      { session_id: "s2" },
      { stream_id: "cam" },
      { source_uri: "source:dock" },
      {},
    ),
    ["wanted", "filtered", "filtered", "wanted", "filtered"],
  );
  timeline.commit(() => [
    event("ingest_received", { request_id: "r2", source_uri: "source:dock", ingest: { stream_id: null } }),
  ]);
  assert.deepEqual(verdicts({ stream_id: "stream-0" }, { request_id: "r2" }, { stream_id: "cam" }), [
    "wanted",
    "wanted",
    "filtered",
  ]);
});
