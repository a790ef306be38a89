import assert from "node:assert/strict";
import { Metrics } from "../../src/base/metrics.ts";
import type { World } from "../../src/base/world.ts";
import { type Sender, WebhookWorker } from "../../src/flow/webhooks/delivery_worker.ts";
import { LIMITS } from "../../src/model/limits.ts";
import type { Webhook } from "../../src/model/webhooks/webhook.ts";
import type { SendFault } from "../../src/remote/webhook_sender.ts";
import { DeliveryLog } from "../../src/store/webhook_deliveries.ts";
import { Bench, created, event, RUN } from "../support/timeline.ts";
import { until } from "../support/until.ts";

const HOOK: Webhook = {
  webhookId: `wh_${"0".repeat(24)}`,
  runId: RUN,
  url: "",
  eventKinds: [],
  registeredSeq: 1,
};

/** A worker on a real timeline and a real delivery log. The test answers each delivery in place of the receiver. */
async function start(onSleep: (ms: number) => void = () => {}) {
  const bench = new Bench();
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
  timeline.commit(() => [created()]);
  const deliveries = DeliveryLog.open({ dataDir: bench.dataDir, world });
  const metrics = new Metrics();
  /** The deliveries in order; the test answers each of them. */
  const deliveriesSent: { seq: number; answer: (fault: SendFault) => void }[] = [];
  let wake = () => {};
  const sender: Sender = {
    post: (headers) => {
      const { promise, resolve } = Promise.withResolvers<SendFault>();
      deliveriesSent.push({ seq: Number(headers["webhook-id"]!.split(":")[1]), answer: resolve });
      wake();
      return promise;
    },
  };
  const worker = new WebhookWorker({
    hook: HOOK,
    key: new Uint8Array(32),
    sender,
    timeline,
    deliveries,
    world,
    metrics,
    retryDelaysMs: [1, 2, 3],
  });
  const stop = new AbortController();
  const running = worker.run(stop.signal).catch((error) => assert.equal(error, stop.signal.reason));
  return {
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
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await deliveries.close();
      await timeline.close();
      bench[Symbol.dispose]();
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
    (await test.posted(attempt)).answer(`fault ${"x".repeat(300)}`);
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

Deno.test("the age of the event that waits is known until it is delivered or given up", async () => {
  await using test = await start();
  assert.equal(test.worker.waitingSinceMs, null);
  test.timeline.commit(() => [event("vlm"), event("vlm")]);
  const [written] = [...test.timeline.readAll({ fromSeq: 2 })].flat();
  const first = await test.posted(1);
  assert.equal(test.worker.waitingSinceMs, written!.ptsMs);
  first.answer("503");
  (await test.posted(2)).answer("503");
  assert.equal(test.worker.waitingSinceMs, written!.ptsMs, "a retry is the same wait");
  (await test.posted(3)).answer(undefined);
  (await test.posted(4)).answer(undefined);
  await until("nothing waits", () => test.worker.waitingSinceMs === null);
});
