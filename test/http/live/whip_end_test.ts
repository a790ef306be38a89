/** How live sessions end: who ends them, which events record it, and what is left of them. See
 * docs/live.md#session-end.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { refuse } from "../../../src/contract/refusal.ts";
import { reservationOf } from "../../../src/flow/live/capacity.ts";
import {
  deleteSession,
  type LiveTest,
  metric,
  offer,
  prompt,
  publish,
  type Published,
  runsOf,
  startLive,
} from "../../support/live/live.ts";
import { type FakeWorkerSession, frameFacts, offerText } from "../../support/live/fake_live_workers.ts";
import { startModelServer } from "../../support/models/model_server.ts";
import { observed, openAudioDouble } from "../../support/sidecars/audio_sidecar.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { KEY_A } from "../../support/service.ts";
import { settled } from "../../support/manual_clock.ts";
import { until } from "../../support/until.ts";
import { QUARTER_ZONE } from "../../support/policy_fixtures.ts";

const PLAIN = {
  prompt: null,
  tokensPerSecond: 0,
  clip: null,
  crop: null,
  zone: null,
  trigger: null,
  localAudio: null,
  record: null,
  enrich: null,
};

/** Checks that no memory and no place is reserved for any session. */
async function assertIdle(test: LiveTest): Promise<void> {
  await until("over", async () => await metric(test, "service_media_capacity_memory_reserved_bytes") === 0);
  assert.equal(await metric(test, "service_pipeline_generations_active"), 0);
  assert.equal(await metric(test, "service_media_capacity_worker_threads_reserved"), 0);
}

type End = readonly [
  what: string,
  end: (test: LiveTest, session: Published) => unknown,
  kind: string,
  reason: string | null,
];

const ENDS: readonly End[] = [
  ["a hang-up", (test, session) => deleteSession(test, session), "run_completed", "whip_terminated"],
  [
    "a stop of the run",
    (test, { runId }) => test.call("POST", `/v1/runs/${runId}/stop`),
    "stop_requested",
    null,
  ],
  ...(["peer_disconnected", "peer_failed", "peer_closed", "media_idle"] as const).map((cause) =>
    [
      cause,
      (_: LiveTest, { worker }: Published) => worker.report({ kind: "ended", cause, message: "" }),
      "run_failed",
      cause,
    ] as const
  ),
  [
    "a fault of the Worker",
    (_, { worker }) => worker.report({ kind: "ended", cause: "worker_fault", message: "it died" }),
    "run_failed",
    "peer_closed",
  ],
  [
    "a Worker that just lets go",
    (_, { worker }) => worker.report({ kind: "closed" }),
    "run_failed",
    "peer_state_channel_closed",
  ],
];

Deno.test("every end leaves one terminal event with its reason, and gives everything back", async () => {
  for (const [what, end, kind, reason] of ENDS) {
    await using test = await startLive();
    const session = await publish(test);
    assert.ok(await metric(test, "service_media_capacity_memory_reserved_bytes") > 0);
    await end(test, session);
    await assertIdle(test);
    const events = await eventsOf(test, session.runId);
    assert.deepEqual(kindsOf(events), ["run_created", kind], what);
    const record = { source: "whip", session_id: session.sessionId, reason };
    if (reason !== null) assert.deepEqual(payloads(events, kind), [record], what);
    assert.equal(session.worker.isAskedToClose, true, what);
    assert.equal((await deleteSession(test, session)).status, 200, what);
    assert.equal((await eventsOf(test, session.runId)).length, 2, what);
    const outcome = what.includes("fault") ? "faulted" : "clean";
    assert.equal(
      await metric(test, "service_pipeline_generation_shutdown_total", `outcome="${outcome}"`),
      1,
      what,
    );
    assert.equal(await metric(test, "service_pipeline_sessions_removed_total"), 1, what);
    await publish(test);
  }
});

Deno.test("a run that is deleted takes its session with it", async () => {
  await using test = await startLive();
  const session = await publish(test);
  assert.equal((await test.call("DELETE", `/v1/runs/${session.runId}`)).status, 200);
  await assertIdle(test);
  assert.deepEqual(await runsOf(test), []);
  assert.equal((await deleteSession(test, session)).status, 200);
});

Deno.test("where two causes of an end meet, the one with priority is written, and only that", async () => {
  const held = { workers: { closesAtOnce: false } };
  const fault = ({ worker }: Published) =>
    worker.report({ kind: "ended", cause: "peer_closed", message: "" });
  const check = async (
    expected: string,
    race: (test: LiveTest, session: Published) => Promise<unknown>[],
  ) => {
    await using test = await startLive({}, held);
    const session = await publish(test);
    const under = race(test, session);
    await until("closing", () => session.worker.isAskedToClose);
    session.worker.report({ kind: "closed" });
    await Promise.all(under);
    await assertIdle(test);
    const kinds = kindsOf(await eventsOf(test, session.runId));
    assert.deepEqual(kinds, ["run_created", expected]);
  };
  // Not over a socket, so that the service has the request when this returns.
  const ask = async (test: LiveTest, method: string, path: string) =>
    await test.service.respond(
      new Request(`${test.url}${path}`, { method, headers: { "x-api-key": KEY_A } }),
    );
  const stop = (test: LiveTest, { runId }: Published) => ask(test, "POST", `/v1/runs/${runId}/stop`);
  const deleteSession = (test: LiveTest, { path }: Published) => ask(test, "DELETE", path);
  await check("run_completed", (test, session) => {
    fault(session);
    return [deleteSession(test, session)];
  });
  await check("stop_requested", (test, session) => {
    fault(session);
    return [stop(test, session)];
  });
  await check("stop_requested", (test, session) => [deleteSession(test, session), stop(test, session)]);
  await check(
    "run_completed",
    (test, session) => [deleteSession(test, session), deleteSession(test, session)],
  );
});

Deno.test("a publisher that closes its connection and then sends DELETE has completed its run", async () => {
  await using test = await startLive();
  const session = await publish(test);
  session.worker.report({ kind: "ended", cause: "peer_closed", message: "" });
  await until("let go", () => session.worker.isClosed);
  await settled();
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created"]);
  assert.equal((await deleteSession(test, session)).status, 200);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "run_completed"]);
  assert.equal(payloads(events, "run_completed")[0].reason, "whip_terminated");
  await assertIdle(test);
});

Deno.test("the service does not wait for a DELETE when it closes", async () => {
  const patient = await startLive({}, { timerSpeed: 1e-3 });
  const session = await publish(patient);
  session.worker.report({ kind: "ended", cause: "peer_closed", message: "" });
  await until("let go", () => session.worker.isClosed);
  await patient.restart();
  const events = await eventsOf(patient, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "run_failed"]);
  assert.equal(payloads(events, "run_failed")[0].reason, "peer_closed");
  await patient[Symbol.asyncDispose]();
});

Deno.test("what is being described at the end is finished, what only waits is kept, and no prompt is taken", async () => {
  const released = Promise.withResolvers<void>();
  await using model = startModelServer({
    answer: async () => {
      await released.promise;
      return "A door.";
    },
  });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: { token_cap: 0 } });
  session.worker.picture(0);
  session.worker.picture(1);
  await until("asked", () => model.requests.length === 1);
  const ending = deleteSession(test, session);
  await until("ending", () => session.worker.isAskedToClose);
  assert.equal((await prompt(test, session, { prompt: "x" })).status, 409);
  released.resolve();
  assert.equal((await ending).status, 200);
  const kinds = (await eventsOf(test, session.runId)).map(({ kind }) => kind);
  assert.deepEqual([kinds[0], kinds.at(-1)], ["run_created", "run_completed"]);
  // The picture that waits is stored before or after the answer, as its file takes longer or less long.
  assert.deepEqual(kinds.slice(1, -1).toSorted(), ["keyframe_stored", "keyframe_stored", "vlm"]);
  assert.equal(model.requests.length, 1);
});

Deno.test("a stopped run takes no more of what is under way", async () => {
  const released = Promise.withResolvers<void>();
  await using model = startModelServer({
    answer: async () => {
      await released.promise;
      return "A door.";
    },
  });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test);
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  await test.call("POST", `/v1/runs/${session.runId}/stop`);
  await assertIdle(test);
  released.resolve();
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "stop_requested"]);
});

Deno.test("a Worker that does not let go keeps what was reserved for it, and the end can be asked for again", async () => {
  await using test = await startLive({}, { workers: { closesAtOnce: false }, timerSpeed: 100 });
  const session = await publish(test);
  assert.equal((await deleteSession(test, session)).status, 500);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "run_completed"]);
  assert.ok(await metric(test, "service_media_capacity_memory_reserved_bytes") > 0);
  assert.equal(await metric(test, "service_pipeline_detached_workers_total"), 1);
  assert.equal(await metric(test, "service_pipeline_generation_shutdown_total", 'outcome="forced"'), 1);
  const fault = 'stage="decode",reason="join_deadline"';
  assert.equal(await metric(test, "service_pipeline_worker_faults_total", fault), 1);
  assert.equal((await deleteSession(test, session)).status, 500);
  session.worker.report({ kind: "closed" });
  await assertIdle(test);
  assert.equal((await deleteSession(test, session)).status, 200);
  assert.equal((await eventsOf(test, session.runId)).length, 2);
});

Deno.test("sessions end with the service, and their runs say so", async () => {
  await using test = await startLive();
  const session = await publish(test);
  session.worker.picture(0);
  const { workers } = test;
  await test.restart();
  assert.equal(session.worker.isAskedToClose, true);
  assert.equal(workers.isDisposed, true);
  const events = await eventsOf(test, session.runId);
  assert.equal(events.at(-1)!.kind, "run_failed");
  assert.equal(payloads(events, "run_failed").length, 1);
  assert.equal(payloads(events, "run_failed")[0].reason, "service_stopped");
  assert.equal((await deleteSession(test, session)).status, 404);
});

Deno.test("live runs that a crash left open fail at the next start, once, and no other run does", async () => {
  await using test = await startLive();
  const ended = await publish(test);
  await deleteSession(test, ended);
  const plain = (await test.call("POST", "/v1/runs", {})).json.run_id;
  const left = `run-${"7".repeat(32)}`;
  const { principal_key } = payloads(await eventsOf(test, ended.runId), "run_created")[0];
  const created = {
    principal_key,
    session_id: "sess-0000000000000007",
    source: "whip",
    trigger_program: null,
  };
  test.service.timeline.commit(() => [{ kind: "run_created", runId: left, payload: created }]);
  await test.restart();
  await test.restart();
  const events = await eventsOf(test, left);
  assert.deepEqual(kindsOf(events), ["run_created", "run_failed"]);
  assert.deepEqual(payloads(events, "run_failed"), [
    { source: "whip", session_id: "sess-0000000000000007", reason: "service_restarted" },
  ]);
  assert.deepEqual(kindsOf(await eventsOf(test, ended.runId)), ["run_created", "run_completed"]);
  assert.deepEqual(kindsOf(await eventsOf(test, plain)), ["run_created"]);
});

Deno.test("a generation that finds no capacity never starts: no run, no Worker, a count", async () => {
  const { memoryBytes, threads } = reservationOf({ width: 1920, height: 1080 }, PLAIN);
  const budgets: readonly Record<string, string>[] = [
    { SERVICE_MEDIA_MEMORY_BUDGET_BYTES: String(Math.max(2 ** 28, 2 * memoryBytes - 1)) },
    { SERVICE_MEDIA_WORKER_THREAD_BUDGET: String(2 * threads - 1) },
  ];
  for (const budget of budgets) {
    await using test = await startLive(budget);
    const first = await publish(test);
    const { status, text } = await offer(test);
    assert.equal(status, 503, text);
    assert.equal((await runsOf(test)).length, 1);
    assert.equal(test.workers.sessions.length, 1);
    assert.equal(await metric(test, "service_media_capacity_rejections_total"), 1);
    assert.ok(await metric(test, "service_media_capacity_last_rejection_timestamp_seconds") > 1_600_000_000);
    assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), memoryBytes);
    assert.equal(await metric(test, "service_media_capacity_worker_threads_reserved"), threads);
    // The size that a publisher announces decides how much memory is reserved.
    await deleteSession(test, first);
    await publish(test);
  }
});

Deno.test("less is reserved for smaller pictures, more for clips, zones and sound, nothing for what is not sent", () => {
  const bytes = (width: number, height: number, more = {}) =>
    reservationOf({ width, height }, { ...PLAIN, ...more }).memoryBytes;
  const zone = {} as never;
  assert.ok(bytes(640, 480) < bytes(1280, 720) && bytes(1280, 720) < bytes(1920, 1080));
  assert.ok(bytes(640, 480) < 128 * 2 ** 20);
  assert.ok(bytes(1920, 1080) < bytes(1920, 1080, { zone }));
  const clip = { targetFps: 30, clipSeconds: 2, delaySeconds: 0 };
  assert.ok(bytes(1920, 1080) < bytes(1920, 1080, { clip }));
  const record = { preRollMs: 5_000, postRollMs: 5_000, on: ["keyframe"] };
  // 4 times 20 s of half a byte a pixel, and three pictures.
  const recording = bytes(1920, 1080, { record }) - bytes(1920, 1080);
  assert.equal(recording, 4 * 20 * 1920 * 1080 / 2 + 3 * 2 ** 21);
  assert.ok(bytes(0, 0, { localAudio: {} as never }) < bytes(640, 480, { localAudio: {} as never }));
  const threads = (more = {}) => reservationOf({ width: 640, height: 480 }, { ...PLAIN, ...more }).threads;
  assert.deepEqual([threads(), threads({ zone }), threads({ clip })], [4, 5, 5]);
});

Deno.test("a publisher whose offer bounds the size of its pictures takes less of the budget", async () => {
  await using test = await startLive();
  const small = offerText().replace("a=mid:0", "a=mid:0\r\na=imageattr:* send [x=640,y=480]");
  const { worker } = await publish(test, { offer: small });
  assert.deepEqual(worker.settings.maxFrame, { width: 640, height: 480 });
  const { memoryBytes } = reservationOf({ width: 640, height: 480 }, PLAIN);
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), memoryBytes);
});

Deno.test("a report that nobody expects ends its own session and no other", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const other = await publish(test);
  // deno-lint-ignore no-explicit-any -- what a faulty Worker might say
  session.worker.report({ kind: "loop_detected", frame: null } as any);
  await until(
    "over",
    async () => (await test.call("GET", `/v1/runs/${session.runId}/state`)).json.state === "failed",
  );
  assert.equal(payloads(await eventsOf(test, session.runId), "run_failed")[0].reason, "peer_closed");
  const panic = 'stage="event_writer",reason="panic"';
  assert.equal(await metric(test, "service_pipeline_worker_faults_total", panic), 1);
  assert.equal(await metric(test, "service_pipeline_generations_active"), 1);
  other.worker.picture(0);
  await until("described", () => other.worker.acknowledged.pictures === 1);
});

Deno.test("a fault is counted by the stage that failed and by its reason", async () => {
  // deno-lint-ignore no-explicit-any -- what a faulty Worker might send
  const nothing = null as any;
  const zone = { score: 0.7, threshold: 0.6, consecutiveFrames: 2 };
  const window = {
    format: "opus" as const,
    trackId: 0,
    chunkIndex: 0,
    units: nothing,
    startPtsMs: 0,
    endPtsMs: 4_000,
  };
  const check = async (stage: string, reason: string, fail: (worker: FakeWorkerSession) => void) => {
    await using sidecar = openAudioDouble(observed([]));
    await using test = await startLive({ SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
    const attach = { restricted_zone: QUARTER_ZONE, local_audio: {} };
    const session = await publish(test, { attach });
    fail(session.worker);
    await until(
      "over",
      async () => (await test.call("GET", `/v1/runs/${session.runId}/state`)).json.state === "failed",
    );
    const { text } = await test.call("GET", "/v1/metrics");
    const counted = text.matchAll(/^service_pipeline_worker_faults_total\{(.+)\} ([1-9].*)$/gm);
    assert.deepEqual(Array.from(counted, ([, labels, count]) => [labels, count]), [
      [`stage="${stage}",reason="${reason}"`, "1"],
    ]);
  };
  await check("vlm", "panic", (worker) => worker.picture(0, { jpeg: nothing }));
  await check("event_writer", "panic", (worker) => worker.picture(0, { jpeg: nothing, zone }));
  await check("audio", "panic", (worker) => worker.report({ kind: "audio_window", window }));
  const ended = { kind: "ended", cause: "worker_fault", message: "it died" } as const;
  for (const [stage, reason] of [["decode", "spawn_failure"], ["clip_accumulator", "panic"]] as const) {
    await check(stage, reason, (worker) => worker.report({ ...ended, fault: { stage, reason } }));
  }
});

Deno.test("a picture that the disk refuses leaves its description, and an assertion without evidence is none", async () => {
  await using test = await startLive();
  const session = await publish(test, { attach: { restricted_zone: QUARTER_ZONE } });
  const blobs = join(test.dataDir, "keyframes", "blobs");
  Deno.removeSync(blobs, { recursive: true });
  Deno.symlinkSync("/proc", blobs); // no file can be made there
  session.worker.picture(0);
  await until("described", () => session.worker.acknowledged.pictures === 1);
  const facts = { score: 0.7, threshold: 0.6, consecutiveFrames: 2 };
  session.worker.picture(1, { isKeyframe: false, zone: facts });
  await until("dealt with", () => session.worker.acknowledged.evidence === 1);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "vlm"]);
  assert.equal(await metric(test, "service_pipeline_restricted_zone_evidence_failures_total"), 1);
  assert.ok(await metric(test, "service_pipeline_keyframe_blob_failures_total") >= 2);
  assert.equal((await deleteSession(test, session)).status, 200);
});

/** A full disk: until it is disposed of, no event can be written. */
function fullDisk({ service: { timeline } }: LiveTest): Disposable {
  const commit = timeline.commit;
  timeline.commit = () => {
    throw refuse.because("storage_unavailable", "the disk is full");
  };
  return { [Symbol.dispose]: () => void (timeline.commit = commit) };
}

Deno.test("an offer whose run cannot be written is 500, and nothing is left of it", async () => {
  await using test = await startLive();
  {
    using _full = fullDisk(test);
    const { status, headers } = await offer(test);
    assert.equal(status, 500);
    assert.match(headers.get("content-type")!, /^text\/plain/);
  }
  assert.equal(test.workers.last.isAskedToClose, true);
  await assertIdle(test);
  assert.deepEqual(await runsOf(test), []);
});

Deno.test("a terminal record that the disk refuses is written as soon as it takes it", async () => {
  await using test = await startLive();
  const session = await publish(test);
  {
    using _full = fullDisk(test);
    session.worker.report({ kind: "loop_detected", frame: frameFacts(1) });
    session.worker.report({ kind: "ended", cause: "peer_failed", message: "" });
    await until("closing", () => session.worker.isClosed);
  }
  await assertIdle(test);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "run_failed"]);
});

Deno.test("a caller who disconnects during the offer leaves nothing", async () => {
  await using test = await startLive({}, { workers: { onOpen: () => {} }, timerSpeed: 20 });
  const leaving = new AbortController();
  const offered = fetch(`${test.url}/v1/stream/whip`, {
    method: "POST",
    headers: { "x-api-key": KEY_A },
    body: offerText(),
    signal: leaving.signal,
  });
  await until("opened", () => test.workers.sessions.length === 1);
  leaving.abort();
  await assert.rejects(offered);
  await assertIdle(test);
  assert.deepEqual(await runsOf(test), []);
});
