/** Open sessions as their owner reads them, and the health of the service that is judged by them. */

import assert from "node:assert/strict";
import { LIMITS } from "../../../src/contract/limits.ts";
import { NO_COUNTS } from "../../support/live/fake_live_workers.ts";
import { deleteSession, offer, prompt, publish, show, startLive } from "../../support/live/live.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { QUARTER_ZONE } from "../../support/policy_fixtures.ts";
import { KEY_A, KEY_B } from "../../support/service.ts";
import type { TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

async function health(test: TestService): Promise<{ result: string; codes: string[] }> {
  const { status, json } = await test.call("GET", "/v1/system/health");
  assert.equal(status, 200);
  return { result: json.result, codes: json.reasons.map(({ code }: { code: string }) => code) };
}

Deno.test("an open session tells its state, its frames, its signals, its last picture and what is asked", async () => {
  const before = Date.now();
  await using test = await startLive();
  const published = await publish(test, {
    attach: { prompt: "Look.", restricted_zone: QUARTER_ZONE, max_output_tokens_per_second: 0 },
  });
  const { runId, sessionId, worker } = published;
  const look = async (query = "", key?: string) =>
    await test.call("GET", `/v1/runs/${runId}/live${query}`, undefined, key);
  const { json: opened } = await look();
  assert.deepEqual(opened, {
    request_id: opened.request_id,
    run_id: runId,
    session_id: sessionId,
    generation: 1,
    source: "whip",
    source_uri: "",
    state: "connecting",
    opened_at_ms: opened.opened_at_ms,
    connected_at_ms: null,
    last_frame_at_ms: null,
    gap: null,
    picture_size: null,
    frames: { received: 0, decoded: 0, dropped: 0, kept: 0 },
    prompt: "Look.",
    restricted_zone: QUARTER_ZONE,
    last_seq: 1,
    picture: null,
    signals: { pts_ms: [], motion: [], novelty: [] },
  });
  assert.ok(opened.opened_at_ms >= before && opened.opened_at_ms <= Date.now());

  worker.report({ kind: "connected", tookMs: 3 });
  const counts = { ...NO_COUNTS, rtpFramesReceived: 9, framesDecoded: 7, framesDropped: 2 };
  worker.report({ kind: "counts", counts: { ...counts, gateKeyframesSelected: 1 } });
  worker.report({ kind: "counts", counts });
  const [frame, source] = [{ width: 160, height: 90 }, { width: 320, height: 180 }];
  worker.report({ kind: "picture_size", frame, source });
  const samples = [100, 200].map((ptsMs) => ({ ptsMs, motion: ptsMs / 1000, novelty: 0.5 }));
  worker.report({ kind: "samples", samples });
  worker.report({ kind: "samples", samples: [{ ptsMs: 300, motion: 0.75, novelty: 0.25 }] });
  await show(published, 0, 1);
  assert.equal((await prompt(test, published, { prompt: "Look again." })).status, 200);
  const { json: live } = await look();
  assert.equal(live.state, "live");
  assert.deepEqual(live.frames, { received: 18, decoded: 14, dropped: 4, kept: 1 });
  assert.ok(live.connected_at_ms >= opened.opened_at_ms && live.last_frame_at_ms >= live.connected_at_ms);
  assert.deepEqual(live.picture_size, { ...frame, scaled_from: source });
  assert.equal(live.prompt, "Look again.");
  assert.deepEqual(live.signals, {
    pts_ms: [100, 200, 300],
    motion: [0.1, 0.2, 0.75],
    novelty: [0.5, 0.5, 0.25],
  });
  assert.deepEqual((await look("?after_ms=200")).json.signals.pts_ms, [300]);
  assert.equal((await look("?after_ms=x")).status, 400);
  const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
  const last = events.at(-1);
  assert.equal(last.kind, "keyframe_stored");
  assert.equal(live.last_seq, last.seq);
  assert.deepEqual(live.picture, { seq: last.seq, sha256: last.payload.image_sha256 });

  const { signals: _, request_id: __, ...listed } = live;
  assert.deepEqual((await test.call("GET", "/v1/live")).json.sessions, [listed]);
  assert.deepEqual((await test.call("GET", "/v1/live", undefined, KEY_B)).json.sessions, []);
  assert.equal((await look("", KEY_B)).status, 404);

  await deleteSession(test, published);
  assert.equal((await look()).status, 404);
  assert.deepEqual((await test.call("GET", "/v1/live")).json.sessions, []);
});

Deno.test("a picture of what a session sees is made once a second, however many want it, and never an old one", async () => {
  const clock = new ManualClock();
  const startMs = Date.now();
  await using test = await startLive({}, { clock });
  const published = await publish(test);
  const { runId, worker } = published;
  worker.seesFrames = false;
  const path = `/v1/runs/${runId}/snapshot.jpg`;
  const bytesOf = async (key = KEY_A) => {
    const response = await fetch(`${test.url}${path}`, { headers: { "x-api-key": key } });
    const body = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, type: response.headers.get("content-type"), body: [...body] };
  };
  const orders = () => worker.orders.filter(({ kind }) => kind === "snapshot").length;
  const seen = (first: number) => {
    const arrivedMs = startMs + clock.monotonicMs();
    worker.report({ kind: "snapshot", snapshot: { ptsMs: 0, arrivedMs, jpeg: new Uint8Array([first, 2]) } });
  };

  assert.equal((await bytesOf(KEY_B)).status, 404);
  assert.equal(orders(), 0);
  const both = Promise.all([bytesOf(), bytesOf()]);
  await until("it is ordered", () => orders() === 1);
  seen(1);
  const answer = { status: 200, type: "image/jpeg", body: [1, 2] };
  assert.deepEqual(await both, [answer, answer]);
  assert.deepEqual(await bytesOf(), answer);
  assert.equal(orders(), 1, "it is not yet a second old");

  await clock.advance(1_000);
  const next = bytesOf();
  await until("it is ordered again", () => orders() === 2);
  seen(3);
  assert.deepEqual((await next).body, [3, 2]);

  await clock.advance(1_000);
  const none = bytesOf();
  await until("it is ordered once more", () => orders() === 3);
  await clock.advance(LIMITS.live.snapshotWaitMs);
  assert.equal((await none).status, 404, "no frame comes");
  await deleteSession(test, published);
  assert.equal((await bytesOf()).status, 404);
});

Deno.test("the signals of a session are bounded: the oldest are forgotten", async () => {
  await using test = await startLive();
  const { runId, worker } = await publish(test);
  for (let second = 0; second < 65; second++) {
    const samples = Array.from(
      { length: 10 },
      (_, at) => ({ ptsMs: second * 1000 + at * 100, motion: 0, novelty: 0 }),
    );
    worker.report({ kind: "samples", samples });
  }
  const { json } = await test.call("GET", `/v1/runs/${runId}/live`);
  assert.equal(json.signals.pts_ms.length, 600);
  assert.equal(json.signals.pts_ms[0], 5_000);
});

Deno.test("health is idle without a session, healthy with one, faulted for a minute after a fault", async () => {
  await using test = await startLive();
  assert.deepEqual(await health(test), { result: "idle", codes: ["no_session"] });
  const { worker } = await publish(test);
  assert.deepEqual(await health(test), { result: "healthy", codes: ["sessions_running"] });
  worker.report({
    kind: "ended",
    cause: "worker_fault",
    message: "a test",
    fault: { stage: "decode", reason: "unexpected_exit" },
  });
  assert.deepEqual(await health(test), { result: "faulted", codes: ["worker_fault"] });
});

Deno.test("health is saturated where there is no room for another session, and after one was refused", async () => {
  await using test = await startLive({ SERVICE_MEDIA_WORKER_THREAD_BUDGET: "6" });
  assert.equal((await health(test)).result, "idle");
  await publish(test);
  assert.deepEqual(await health(test), { result: "saturated", codes: ["capacity_full"] });
  assert.equal((await offer(test)).status, 503);
  assert.deepEqual(await health(test), {
    result: "saturated",
    codes: ["capacity_full", "admission_rejected"],
  });
});
