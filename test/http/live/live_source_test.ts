/** Live sources that the service pulls: opened on a run, asked again when they give no more, ended. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { type Log, quietLog } from "../../../src/base/log.ts";
import { reservationOf } from "../../../src/flow/live/capacity.ts";
import type { Extent } from "../../../src/model/frames/coordinates.ts";
import type { Outbound } from "../../../src/remote/guard/outbound.ts";
import { makeClip, TempFolder } from "../../support/media.ts";
import { type LiveTest, metric, prompt, publish, startLive, WHIP } from "../../support/live/live.ts";
import { jpegOf } from "../../support/live/fake_live_workers.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { KEY_B, newRun } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { QUARTER_ZONE } from "../../support/policy_fixtures.ts";

const REROUTED: Outbound = {
  resolve: (host) => host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  reroute: () => "127.0.0.1",
};
const RTSP = { SERVICE_ALLOW_UNENCRYPTED_RTSP: "true" };

function watch(test: LiveTest, runId: string, body: object, key?: string) {
  return test.call("POST", `/v1/runs/${runId}/live`, body, key);
}

function leave(test: LiveTest, runId: string, key?: string) {
  return test.call("DELETE", `/v1/runs/${runId}/live`, undefined, key);
}

/** A camera that never ends, of 160x120. */
function camera() {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  return serveRtsp(Deno.readFileSync(clip), { isEndless: true });
}

/** A run that watches the camera. */
async function watching(test: LiveTest, port: number, attach: object = {}) {
  const runId = await newRun(test);
  const source_uri = `rtsp://camera.test:${port}/dock`;
  const { status, json, text } = await watch(test, runId, { source_uri, ...attach });
  assert.equal(status, 200, text);
  return { runId, json, source_uri, worker: test.workers.last };
}

Deno.test("pictures that are missing in the files of a camera are told in the log", async () => {
  const warnings: [string, Record<string, unknown>?][] = [];
  const log: Log = { ...quietLog(), warn: (...line) => void warnings.push(line), child: () => log };
  await using dock = camera();
  await using test = await startLive(RTSP, { outbound: REROUTED, log });
  const { runId, json, worker } = await watching(test, dock.port);
  const reason = "a picture has 3000000 bytes, and at most 2097152 are kept";
  worker.report({ kind: "packets_lost", reason });
  const message = "clips, recording and live view of a live source are without some of its pictures or sound";
  assert.deepEqual(warnings.filter(([line]) => line === message), [
    [message, { run_id: runId, session_id: json.session_id, reason }],
  ]);
});

Deno.test("a run watches a camera until it is ended, and describes what it shows", async () => {
  await using dock = camera();
  await using test = await startLive(RTSP, { outbound: REROUTED });
  const { runId, json, source_uri, worker } = await watching(test, dock.port, {
    prompt: "Watch the dock.",
    crop: { x: 0, y: 0, width: 0.5, height: 1 },
  });
  const { request_id, session_id } = json;
  assert.deepEqual(json, {
    request_id,
    run_id: runId,
    session_id,
    generation: 1,
    source_uri,
    status: "processing",
  });
  assert.ok(worker.opening.kind === "pull");
  assert.match(worker.opening.input.url ?? "", /^rtsp:\/\/127\.0\.0\.1:/);
  assert.deepEqual(worker.settings.maxFrame, { width: 160, height: 120 });
  assert.deepEqual(worker.settings.crop, { x: 0, y: 0, width: 0.5, height: 1 });
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.source_uri, source_uri);
  worker.picture(0);
  await until("described", () => worker.acknowledged.pictures === 1);
  assert.equal((await prompt(test, { path: `${WHIP}/${session_id}` }, { prompt: "Watch." })).status, 200);

  const left = await leave(test, runId);
  assert.equal(left.status, 200, left.text);
  assert.deepEqual(left.json, {
    request_id: left.json.request_id,
    run_id: runId,
    session_id,
    status: "completed",
  });
  const events = await eventsOf(test, runId);
  assert.deepEqual(kindsOf(events), [
    "run_created",
    "live_source_opened",
    "vlm",
    "keyframe_stored",
    "run_completed",
  ]);
  assert.deepEqual(payloads(events, "live_source_opened"), [{
    request_id,
    session_id,
    source: "live",
    source_uri,
    pipeline_generation: 1,
    trigger_program: null,
  }]);
  assert.deepEqual(payloads(events, "run_completed"), [
    { source: "live", session_id, reason: "live_terminated" },
  ]);
  assert.equal((await leave(test, runId)).status, 200);
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
});

Deno.test("memory for larger pictures is reserved or refused, and given back when they have been smaller for a minute", async () => {
  await using dock = camera();
  let isFast = false;
  await using test = await startLive({ ...RTSP, SERVICE_MEDIA_MEMORY_BUDGET_BYTES: String(2 ** 28) }, {
    outbound: REROUTED,
    timerMs: (ms) => isFast ? ms / 600 : ms,
  });
  const { worker, runId } = await watching(test, dock.port);
  const [small, large, largest] = [[160, 120], [1280, 720], [3840, 2160]].map(([width, height]) => ({
    ...{ width: width!, height: height! },
  }));
  const plain = {
    ...{ prompt: null, tokensPerSecond: 0, crop: null, clip: null, zone: null, trigger: null },
    ...{ localAudio: null, record: null, enrich: null },
  };
  const check = async (reserved: Extent, isGranted: boolean) => {
    assert.deepEqual(worker.orders.at(-1), { kind: "room", picture: reserved, isGranted });
    const bytes = await metric(test, "service_media_capacity_memory_reserved_bytes");
    assert.equal(bytes, reservationOf(reserved, plain).memoryBytes);
  };
  const become = (size: Extent) => worker.report({ kind: "picture_size", frame: size, source: size });
  become(large!);
  await check(large!, true);
  become(largest!);
  await check(large!, false);
  isFast = true;
  become(small!);
  await until("it is given back", () => worker.orders.filter(({ kind }) => kind === "room").length === 3);
  await check(small!, true);

  // What was refused in the stream is tried again with the next connection.
  become(largest!);
  await check(small!, false);
  worker.report({ kind: "gap", reason: "no memory", lastPtsMs: 0, silentMs: 0 });
  await until("it is asked again", () => worker.orders.at(-1)!.kind === "pull");
  assert.deepEqual(worker.orders.at(-2), { kind: "room", picture: small, isGranted: false });
  assert.equal((await leave(test, runId)).status, 200);
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
});

Deno.test("a source that gives no more is asked again, and the gap is on the timeline", async () => {
  await using dock = camera();
  let speed = 10;
  await using test = await startLive(RTSP, { outbound: REROUTED, timerMs: (ms) => ms / speed });
  const { runId, worker } = await watching(test, dock.port);
  const pulls = () => worker.orders.filter(({ kind }) => kind === "pull").length;
  worker.report({ kind: "gap", reason: "the connection was closed", lastPtsMs: 1_234, silentMs: 0 });
  await until("asked again", () => pulls() === 1);
  const sources = (state: string) => metric(test, "service_pipeline_pulled_sources", `state="${state}"`);
  assert.deepEqual([await sources("receiving"), await sources("lost")], [0, 1]);
  assert.ok(await metric(test, "service_pipeline_pulled_source_lost_seconds") > 0);
  worker.report({ kind: "gap", reason: "no frame came", lastPtsMs: 1_234, silentMs: 0 });
  await until("asked once more", () => pulls() === 2);
  worker.report({ kind: "resumed" });
  assert.deepEqual([await sources("receiving"), await sources("lost")], [1, 0]);
  assert.equal(await metric(test, "service_pipeline_pulled_source_lost_seconds"), 0);
  const order = worker.orders.find(({ kind }) => kind === "pull");
  assert.ok(order?.kind === "pull" && order.info.video?.width === 160);
  const look = async () => (await test.call("GET", `/v1/runs/${runId}/live`)).json;
  assert.deepEqual([(await look()).state, (await look()).gap], ["live", null]);
  speed = 0.01; // no attempt is made while it is looked at
  worker.report({ kind: "gap", reason: "again", lastPtsMs: null, silentMs: 0 });
  const { state, gap } = await look();
  assert.deepEqual([state, gap.attempts], ["interrupted", 0]);
  assert.ok(gap.next_attempt_at_ms === null || gap.next_attempt_at_ms > gap.since_ms);
  const events = await eventsOf(test, runId);
  assert.deepEqual(kindsOf(events), [
    "run_created",
    "live_source_opened",
    "source_gap",
    "source_resumed",
    "source_gap",
  ]);
  const [first, second] = payloads(events, "source_gap");
  assert.deepEqual([first.reason, first.pts_ms], ["the connection was closed", 1_234]);
  assert.deepEqual([second.reason, second.pts_ms], ["again", null]);
  const [resumed] = payloads(events, "source_resumed");
  assert.equal(resumed.attempts, 2);
  assert.ok(resumed.gap_ms > 0);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/stop`)).status, 200);
  await until("over", async () => await metric(test, "service_media_capacity_memory_reserved_bytes") === 0);
  assert.equal((await eventsOf(test, runId)).at(-1)!.kind, "stop_requested");
});

Deno.test("a source that has come to its end completes the run", async () => {
  await using dock = camera();
  await using test = await startLive(RTSP, { outbound: REROUTED });
  const { runId, worker } = await watching(test, dock.port);
  worker.report({ kind: "ended", cause: "source_ended", message: "" });
  await until(
    "over",
    async () => (await test.call("GET", `/v1/runs/${runId}/state`)).json.state === "completed",
  );
  assert.equal(payloads(await eventsOf(test, runId), "run_completed")[0].reason, "source_ended");
});

Deno.test("what cannot be watched is refused by its field, and the run stays as it was", async () => {
  await using dock = camera();
  await using test = await startLive(RTSP, { outbound: REROUTED });
  const runId = await newRun(test);
  const source_uri = `rtsp://camera.test:${dock.port}/dock`;
  const check = async (body: object, field: string) => {
    const { status, json, text } = await watch(test, runId, { source_uri, ...body });
    assert.deepEqual([status, json?.error.details[0].field], [422, field], text);
  };
  await check({ source_uri: undefined }, "source_uri");
  await check({ source_uri: "" }, "source_uri");
  await check({ source_uri: "/etc/passwd" }, "source_uri");
  await check({ source_uri: "https://camera.test/film.mp4" }, "source_uri");
  await check({ source_uri: "hls://camera.test/dock.m3u8" }, "source_uri");
  await check({ source_uri: "rtsp://127.0.0.1/dock" }, "source_uri");
  await check({ source_uri: "rtsp://camera.test:1/dock" }, "source_uri");
  await check({ crop: { x: 0.9, y: 0, width: 0.5, height: 1 } }, "crop");
  await check({ clip_mode: { target_fps: 0 } }, "clip_mode.target_fps");
  const deaf = await watch(test, runId, { source_uri, local_audio: {} });
  assert.deepEqual([deaf.status, deaf.json.error.code], [503, "audio_sidecar_unavailable"]);
  // the rules of the fields come before what the service has
  await check({ local_audio: {}, clip_mode: { target_fps: 0 } }, "clip_mode.target_fps");
  await check({ prompts: "x" }, "prompts");
  assert.deepEqual(kindsOf(await eventsOf(test, runId)), ["run_created"]);
  assert.equal(test.workers.sessions.length, 0);
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
});

Deno.test("a run watches one source, once, and only for its owner", async () => {
  await using dock = camera();
  await using test = await startLive(RTSP, { outbound: REROUTED });
  const { runId, source_uri } = await watching(test, dock.port);
  const status = async (answer: Promise<{ status: number }>) => (await answer).status;
  assert.equal(await status(watch(test, runId, { source_uri })), 409);
  assert.equal(await status(watch(test, runId, { source_uri }, KEY_B)), 404);
  assert.equal(await status(leave(test, runId, KEY_B)), 404);
  assert.equal(await status(leave(test, "run-x")), 422);
  assert.equal(await status(leave(test, await newRun(test))), 404);
  const published = await publish(test);
  assert.equal(await status(leave(test, published.runId)), 404);
  assert.equal(await status(watch(test, published.runId, { source_uri })), 409);
  await leave(test, runId);
  assert.equal(await status(watch(test, runId, { source_uri })), 409);
  const twice = await newRun(test);
  const both = [watch(test, twice, { source_uri }), watch(test, twice, { source_uri })];
  assert.deepEqual((await Promise.all(both)).map(({ status }) => status).sort(), [200, 409]);
});

Deno.test("without capacity nothing is watched", async () => {
  await using dock = camera();
  await using test = await startLive({ ...RTSP, SERVICE_MEDIA_WORKER_THREAD_BUDGET: "1" }, {
    outbound: REROUTED,
  });
  const runId = await newRun(test);
  const { status, json } = await watch(test, runId, { source_uri: `rtsp://camera.test:${dock.port}/dock` });
  assert.deepEqual([status, json.error.code], [503, "provider_saturated"]);
  assert.deepEqual(kindsOf(await eventsOf(test, runId)), ["run_created"]);
});

Deno.test("evidence of a watched source names its run, and a crash leaves no run open", async () => {
  await using dock = camera();
  await using test = await startLive(RTSP, { outbound: REROUTED });
  const { runId, worker } = await watching(test, dock.port, { restricted_zone: QUARTER_ZONE });
  const facts = { score: 0.7, threshold: 0.6, consecutiveFrames: 2 };
  worker.picture(5, { isKeyframe: false, zone: facts, jpeg: jpegOf(5) });
  await until("written", () => worker.acknowledged.evidence === 1);
  const left = `run-${"8".repeat(32)}`;
  const created = (await eventsOf(test, runId))[0]!.payload;
  const opened = payloads(await eventsOf(test, runId), "live_source_opened")[0];
  test.service.timeline.commit(() => [
    { kind: "run_created", runId: left, payload: created },
    { kind: "live_source_opened", runId: left, payload: { ...opened, session_id: "sess-0000000000000008" } },
  ]);
  await test.restart();
  assert.equal((await eventsOf(test, runId)).at(-1)!.kind, "run_failed");
  assert.deepEqual(payloads(await eventsOf(test, left), "run_failed"), [
    { source: "live", session_id: "sess-0000000000000008", reason: "service_restarted" },
  ]);
});
