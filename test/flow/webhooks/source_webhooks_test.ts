/** The webhooks of the file of sources: one run's hands over to the next one's, and ends. */

import assert from "node:assert/strict";
import { Metrics } from "../../../src/contract/metrics.ts";
import { NamedSources } from "../../../src/flow/sources/named_sources.ts";
import { HookRegistry } from "../../../src/flow/webhooks/hook_registry.ts";
import type { NamedSource } from "../../../src/model/sources/source_file.ts";
import { registrations, type SourceWebhook } from "../../../src/model/webhooks/source_webhook.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { Receiver, signatureFaults } from "../../support/http/receiver.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { Bench, created, event } from "../../support/timeline.ts";
import { until } from "../../support/until.ts";

const [R1, R2, R3] = ["1", "2", "3"].map((digit) => `run-${digit.repeat(32)}`) as [string, string, string];
const COOLDOWN = { interval_ms: 60_000, per: ["kind"] } as const;

function dock(webhooks: readonly SourceWebhook[]): NamedSource {
  const watch = { attach: {}, rolloverMs: 60_000, webhooks, armed: null, recording: null };
  return {
    name: "dock",
    kind: "rtsp",
    uri: "",
    credentials: null,
    principals: null,
    retentionHours: null,
    watch,
  };
}

async function open(bench: Bench, named: NamedSources) {
  const clock = new ManualClock();
  const opening = new AsyncDisposableStack();
  const world = {
    ...bench.world,
    sleep: (ms: number, signal?: AbortSignal) => ms === 0 ? Promise.resolve() : clock.sleep(ms, signal),
    monotonicMs: () => clock.monotonicMs(),
    randomBytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)),
  };
  const timeline = opening.use(await bench.open());
  const agent = opening.use(new PinnedAgent({ roots: () => [] }));
  const hooks = opening.use(HookRegistry.open({
    ...{ timeline, dataDir: bench.dataDir, named, world, metrics: new Metrics(), isShared: true },
    ...{
      retryDelaysMs: [1, 1, 1],
      allowPrivate: true,
      sending: { secret: "s".repeat(32), agent, timeoutMs: 10_000 },
    },
  }));
  const begin = (runId: string, ended?: string) => {
    const { randomBytes } = world;
    const { webhooks } = named.all[0]!.watch!;
    timeline.commit(() => [
      ...(ended ? [event("run_completed", { reason: "rolled_over" }, ended)] : []),
      created(runId),
      ...registrations({ runId, sourceName: "dock", webhooks, randomBytes }),
      event("live_source_opened", {}, runId),
    ]);
  };
  return { clock, timeline, hooks, begin, [Symbol.asyncDispose]: () => opening.disposeAsync() };
}

Deno.test("the webhook of a run that rolled over is sent its last events, the next one goes on after them with its cooldown, and the first ends", async () => {
  await using receiver = await Receiver.start();
  using bench = new Bench();
  const all: SourceWebhook = {
    ...{ name: "all", url: receiver.url, shownUrl: "http://127.0.0.1/...", secret: "ab".repeat(32) },
    ...{ eventKinds: [], filter: null, cooldown: null },
  };
  const calm: SourceWebhook = {
    ...{ ...all, name: "calm", url: receiver.url.replace("hook", "calm"), secret: "cd".repeat(32) },
    ...{ eventKinds: ["vlm"], cooldown: COOLDOWN },
  };
  const named = new NamedSources([dock([all, calm])]);
  const sent = (path: string) =>
    receiver.received.filter((each) => each.path.startsWith(path)).map(({ event: { type, source } }) =>
      `${source.at(-1)} ${type.split(".").at(-1)}`
    );
  const held = Promise.withResolvers<void>();
  receiver.answer = async ({ event: { type } }) => {
    if (type.endsWith("run_completed")) await held.promise;
    return 204;
  };
  {
    await using test = await open(bench, named);
    test.begin(R1);
    test.timeline.commit(() => [event("vlm", {}, R1), event("vlm", {}, R1)]);
    test.begin(R2, R1);
    test.timeline.commit(() => [event("vlm", {}, R2)]);
    await until("the first run is sent", () => sent("/hook").length === 4 && sent("/calm").length === 1);
    assert.deepEqual(sent("/hook"), ["1 live_source_opened", "1 vlm", "1 vlm", "1 run_completed"]);
    held.resolve();
    await receiver.waitFor(() => sent("/hook").length === 6);
    // An explanation may follow in the run that is over.
    test.timeline.commit(() => [event("event_enriched", {}, R1)]);
    await receiver.waitFor(() => sent("/hook").length === 7);
    assert.deepEqual(sent("/hook").slice(4), ["2 live_source_opened", "2 vlm", "1 event_enriched"]);
    assert.deepEqual(sent("/calm"), ["1 vlm"]);
    const [of1, of2] = [test.hooks.ofRun(R1), test.hooks.ofRun(R2)];
    assert.deepEqual(of2.map(({ worker }) => [worker!.withheld, worker!.withheldPending]), [[0, 0], [1, 2]]);
    assert.equal(of1.length, 2);
    await until("the first ones wait for their end", () => test.clock.sleeping === 2);
    await test.clock.advance(150_000);
    assert.deepEqual([test.hooks.ofRun(R1).length, test.hooks.ofRun(R2).length], [0, 2]);
    assert.equal(
      [...test.timeline.read(R1)].flat().filter(({ kind }) => kind === "webhook_deleted").length,
      2,
    );
    for (const one of receiver.received) {
      assert.deepEqual(signatureFaults(one, (one.path.startsWith("/calm") ? calm : all).secret), []);
    }
    // Webhooks of callers have places of their own.
    for (let count = 0; count < 3; count++) assert.ok(test.hooks.requireRoom("api-key:a"));
  }
  // After a restart the file has another secret for one, and the other one is gone.
  const moved = { ...all, secret: "ef".repeat(32) };
  named.replace([dock([moved])]);
  await using test = await open(bench, named);
  assert.equal(test.hooks.ofRun(R2).length, 1);
  assert.deepEqual(bench.lines, ["warn dropped a webhook that is no longer in the file of sources"]);
  test.begin(R3, R2);
  await receiver.waitFor(() => sent("/hook").length === 9);
  assert.deepEqual(sent("/hook").slice(7), ["2 run_completed", "3 live_source_opened"]);
  assert.deepEqual(signatureFaults(receiver.received.at(-1)!, moved.secret), []);
  named.replace([]);
  test.hooks.endRemoved();
  test.timeline.commit(() => [event("run_completed", { reason: "source_removed" }, R3)]);
  await receiver.waitFor(() => sent("/hook").length === 10);
  await until("all wait for their end", () => test.clock.sleeping === 2);
  await test.clock.advance(150_000);
  assert.deepEqual([R1, R2, R3].flatMap((runId) => test.hooks.ofRun(runId)), []);
});

Deno.test("a receiver that is gone is gone for the next run's webhook too, until the file has another address", async () => {
  await using receiver = await Receiver.start();
  using bench = new Bench();
  const alarm: SourceWebhook = {
    ...{ name: "alarm", url: receiver.url, shownUrl: "http://127.0.0.1/...", secret: "ab".repeat(32) },
    ...{ eventKinds: ["vlm"], filter: null, cooldown: null },
  };
  const named = new NamedSources([dock([alarm])]);
  receiver.answer = ({ path }) => path.startsWith("/hook") ? 410 : 204;
  const isPassed = (test: Awaited<ReturnType<typeof open>>, runId: string) =>
    test.hooks.ofRun(runId)[0]?.worker?.cursorSeq === test.timeline.view.run(runId)!.lastSeq;
  {
    await using test = await open(bench, named);
    test.begin(R1);
    test.timeline.commit(() => [event("vlm", {}, R1), event("vlm", {}, R1)]);
    await until("it is gone", () => test.hooks.ofRun(R1)[0]?.worker?.gone != null);
    test.begin(R2, R1);
    test.timeline.commit(() => [event("vlm", {}, R2)]);
    await until("the next run is passed", () => isPassed(test, R2));
    assert.notEqual(test.hooks.ofRun(R2)[0]!.worker!.gone, null);
  }
  await using test = await open(bench, named);
  test.timeline.commit(() => [event("vlm", {}, R2)]);
  await until("it is passed after a restart", () => isPassed(test, R2));
  assert.equal(receiver.received.length, 1);
  named.replace([dock([{ ...alarm, url: receiver.url.replace("hook", "moved") }])]);
  test.begin(R3, R2);
  test.timeline.commit(() => [event("vlm", {}, R3)]);
  await receiver.waitFor(() => receiver.received.length === 2);
  assert.deepEqual([receiver.received[1]!.path.slice(0, 6), receiver.received[1]!.event.source.at(-1)], [
    "/moved",
    "3",
  ]);
  assert.equal(test.hooks.ofRun(R3)[0]!.worker!.gone, null);
});
