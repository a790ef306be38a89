/** What a live session writes about its pictures: descriptions, transitions, zones, triggers, clips, novelty.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import {
  axis,
  embedded,
  openEmbeddingDouble,
  refusedEmbedding,
} from "../../support/sidecars/embedding_sidecar.ts";
import {
  deleteSession,
  type LiveTest,
  metric,
  NO_CAP,
  publish,
  show,
  startLive,
} from "../../support/live/live.ts";
import { frameFacts, jpegOf, NO_COUNTS } from "../../support/live/fake_live_workers.ts";
import type { RecordedClip } from "../../../src/live/messages/messages.ts";
import { held, type ModelServer, startModelServer } from "../../support/models/model_server.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { KEY_A, KEY_B } from "../../support/service.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { until } from "../../support/until.ts";
import { DOCK_ZONE, dockProgram } from "../../support/policy_fixtures.ts";

const ZONE = { ...DOCK_ZONE, policy_version: 4 };
/** What a detector has found. */
const BLACK = {
  type: "black",
  startFrame: 0,
  endFrame: 9,
  startPtsMs: 0,
  endPtsMs: 300,
  confidence: 1,
} as const;

/** A service whose model gives these answers in turn, and then the last one again and again. */
async function described(
  env: Record<string, string>,
  answers: readonly string[] | ((model: string, index: number) => string | { status: number }),
): Promise<LiveTest & { readonly model: ModelServer }> {
  const model = startModelServer({
    answer: ({ model, index }) =>
      typeof answers === "function" ? answers(model, index) : answers[Math.min(index, answers.length - 1)]!,
  });
  const test = await startLive({ SERVICE_VLLM_BASE_URL: model.url, ...env });
  const close = test[Symbol.asyncDispose].bind(test);
  test[Symbol.asyncDispose] = async () => {
    await close();
    await model[Symbol.asyncDispose]();
  };
  return Object.defineProperty(test, "model", { value: model }) as LiveTest & { readonly model: ModelServer };
}

Deno.test("a keyframe is described, and its picture can be fetched by the owner of the run", async () => {
  await using test = await described({}, ["A forklift waits at the dock."]);
  const session = await publish(test);
  session.worker.picture(0, {}, { gateReason: "scene_cut", confidence: 0.58, ptsMs: 123_456 });
  await until("described", () => session.worker.acknowledged.pictures === 1);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "vlm", "keyframe_stored"]);
  const shared = {
    session_id: session.sessionId,
    frame_index: 0,
    pts_ms: 123_456,
    coordinate_schema: "service.image.v1",
    coordinates: frameFacts(0).coordinates,
    confidence: 0.58,
    description: "A forklift waits at the dock.",
  };
  assert.deepEqual(payloads(events, "vlm"), [shared]);
  const [stored] = payloads(events, "keyframe_stored");
  const { image_ref, image_sha256, ...rest } = stored;
  const expected = {
    ...shared,
    event_type: "scene_cut",
    image_media_type: "image/jpeg",
    image_bytes: jpegOf(0).length,
  };
  assert.deepEqual(rest, expected);
  assert.equal(image_ref, `keyframes/blobs/${image_sha256.slice(0, 2)}/${image_sha256}.jpg`);
  const blob = await fetch(`${test.url}/v1/runs/${session.runId}/keyframes/${image_sha256}`, {
    headers: { "x-api-key": KEY_A },
  });
  assert.equal(blob.status, 200);
  assert.deepEqual(await blob.bytes(), jpegOf(0));
  const foreign = await test.call(
    "GET",
    `/v1/runs/${session.runId}/keyframes/${image_sha256}`,
    undefined,
    KEY_B,
  );
  assert.equal(foreign.status, 404);

  const [request] = test.model.requests;
  assert.equal(request!.model, "Qwen/Qwen3-VL-8B-Instruct");
  assert.equal(request!.maxTokens, 128);
  assert.equal(request!.images.length, 1);
  assert.deepEqual(request!.images[0]!.bytes, jpegOf(0));
  assert.match(request!.prompt, /\[gate: trigger=scene_cut, confidence=0\.580, .*pts_ms=123456\]/);
  assert.equal(
    await metric(test, "service_infer_admission_acquired_by_class_total", 'class="urgent_live"'),
    1,
  );
  assert.equal(await metric(test, "service_pipeline_keyframes_total"), 1);
  assert.equal(await metric(test, "service_pipeline_keyframe_blobs_written_total"), 1);
});

Deno.test("without a model every keyframe says so once, and is stored all the same", async () => {
  await using test = await startLive();
  const session = await publish(test);
  await show(session, 0, 3);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "vlm", "keyframe_stored*3"]);
  assert.match(payloads(events, "vlm")[0].description, /no inference provider/);
});

Deno.test("what was just said is not said again, and too few words in common are another state", async () => {
  const empty = "An empty dock at night under one lamp.";
  const full = "Two trucks unload crates while workers wait.";
  await using test = await described({}, [empty, empty, full, "two trucks"]);
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 4);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), [
    "run_created",
    ...["vlm", "keyframe_stored*2"],
    ...["vlm", "state_transition", "keyframe_stored"],
    ...["vlm", "state_transition", "keyframe_stored"],
  ]);
  const [first] = payloads(events, "state_transition");
  assert.equal(first.frame_index, 2);
  assert.deepEqual(JSON.parse(first.description), {
    from_state: empty,
    to_state: full,
    trigger: "periodic_keepalive",
    confidence: 0.58,
  });
  assert.match(test.model.requests[1]!.prompt, /\[previous_state \(90000ms\): An empty dock/);
});

Deno.test("the second model is asked where the first is not sure, and only then", async () => {
  const models = { SERVICE_WEBRTC_FIRST_PASS_MODEL: "Qwen/Qwen3-VL-4B-Instruct" };
  const second = { SERVICE_WEBRTC_SECOND_PASS_MODEL: "Qwen/Qwen3-VL-8B-Instruct" };
  const says = (confidence: number) => JSON.stringify({ confidence, seen: "a door" });
  const check = async (
    env: Record<string, string>,
    answers: (model: string) => string | { status: number },
    expected: [string, number],
  ) => {
    await using test = await described({ ...models, ...env }, answers);
    const session = await publish(test, { attach: NO_CAP });
    await show(session, 0, 1);
    const events = await eventsOf(test, session.runId);
    assert.deepEqual([kindsOf(events)[1], test.model.requests.length], expected, JSON.stringify(env));
    return test.model.requests;
  };
  const bySize = (small: string, large: string | { status: number }) => (model: string) =>
    model.includes("4B") ? small : large;
  await check({}, bySize(says(0.1), "no"), ["vlm", 1]);
  await check(second, bySize(says(0.7), "no"), ["vlm", 1]);
  const asked = await check(second, bySize(says(0.69), "a red door"), ["vlm_tiered", 2]);
  assert.deepEqual([asked[0]!.maxTokens, asked[1]!.maxTokens], [128, 256]);
  await check(second, bySize("plain words", "a red door"), ["vlm_tiered", 2]);
  await check(second, bySize(says(0.1), { status: 400 }), ["vlm", 2]);
  await check({ ...second, SERVICE_WEBRTC_SECOND_PASS_THRESHOLD: "0" }, bySize(says(0), "no"), ["vlm", 1]);
  const same = { SERVICE_WEBRTC_SECOND_PASS_MODEL: models.SERVICE_WEBRTC_FIRST_PASS_MODEL };
  await check(same, bySize(says(0.1), "no"), ["vlm", 1]);
});

Deno.test("a model that fails, or answers with an empty text, leaves its picture alone, and the next one is tried again", async () => {
  await using test = await described(
    {},
    (_, index) => index === 0 ? { status: 400 } : index === 1 ? " \n" : "A door.",
  );
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 3);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "keyframe_stored*2", "vlm", "keyframe_stored"]);
  assert.equal(payloads(events, "vlm")[0].frame_index, 2);
});

Deno.test("the cap of output tokens drops keyframes until a second has gone by", async () => {
  await using test = await described({}, ["x".repeat(64)]);
  const session = await publish(test, { attach: { token_cap: 16 } });
  await show(session, 0, 3);
  assert.equal(test.model.requests.length, 1);
  assert.equal(await metric(test, "service_pipeline_keyframes_dropped_total"), 2);
  const stored = payloads(await eventsOf(test, session.runId), "keyframe_stored");
  assert.deepEqual(stored.map(({ frame_index }) => frame_index), [0, 1, 2]);
});

Deno.test("while a model is busy the newest picture waits, and every older one is kept without a description", async () => {
  const first = held("A door.");
  await using model = startModelServer({ answer: first.answer });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: NO_CAP });
  for (let index = 0; index < 32; index++) session.worker.picture(index);
  await until("kept", () => session.worker.acknowledged.pictures === 30);
  assert.equal(await metric(test, "service_pipeline_keyframes_dropped_total"), 30);
  first.release();
  await until("all dealt with", () => session.worker.acknowledged.pictures === 32);
  assert.deepEqual(model.requests.map(({ images }) => images[0]!.bytes), [jpegOf(0), jpegOf(31)]);
  const stored = payloads(await eventsOf(test, session.runId), "keyframe_stored");
  assert.deepEqual(
    stored.map(({ frame_index }) => frame_index).sort((a, b) => a - b),
    Array.from({ length: 32 }, (_, index) => index),
  );
  const passedOver = stored.filter(({ description }) => /newer picture took the place/.test(description));
  assert.equal(passedOver.length, 30);
  const { json: look } = await test.call("GET", `/v1/runs/${session.runId}/live`);
  assert.equal(look.picture.sha256, stored.find(({ frame_index }) => frame_index === 31).image_sha256);
});

Deno.test("activity in a zone is asserted with its evidence, then described", async () => {
  await using test = await described({}, ["Somebody walks."]);
  const session = await publish(test, { attach: { restricted_zone: ZONE, ...NO_CAP } });
  const zone = { score: 0.65625, threshold: 0.6, consecutiveFrames: 2 };
  session.worker.picture(7, { isKeyframe: false, zone }, { gateReason: "no_trigger" });
  await until("described", async () => (await eventsOf(test, session.runId)).length === 4);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), [
    "run_created",
    "restricted_zone_activity_entered",
    "vlm",
    "keyframe_stored",
  ]);
  const [entered] = payloads(events, "restricted_zone_activity_entered");
  const [stored] = payloads(events, "keyframe_stored");
  assert.deepEqual(entered, {
    session_id: session.sessionId,
    frame_index: 7,
    pts_ms: frameFacts(7).ptsMs,
    coordinate_schema: "service.image.v1",
    coordinates: frameFacts(7).coordinates,
    confidence: 0.65625,
    assertion: {
      policy_id: "dock",
      policy_version: 4,
      status: "active",
      coordinate_space: "normalized_image",
      zone: ZONE.region,
      trigger: { kind: "perceptual_hash_motion", score: 0.65625, threshold: 0.6, consecutive_frames: 2 },
      subject: null,
    },
    provenance: { device_id: "cam-1", model_id: "service.motion-phash.v1", pipeline_generation: 1 },
    evidence: {
      image_ref: stored.image_ref,
      image_media_type: "image/jpeg",
      image_bytes: jpegOf(7).length,
      image_sha256: stored.image_sha256,
    },
  });
  assert.equal(stored.event_type, "restricted_zone_activity");
  assert.match(test.model.requests[0]!.prompt, /trigger=restricted_zone_activity/);
  assert.deepEqual(session.worker.acknowledged, { pictures: 0, evidence: 1, audioWindows: 0 });
  const { status } = await test.call("GET", `/v1/runs/${session.runId}/keyframes/${stored.image_sha256}`);
  assert.equal(status, 200);
  assert.equal(await metric(test, "service_pipeline_restricted_zone_assertions_total"), 1);
});

Deno.test("an evidence clip is stored with the picture of its cause, and names the event of that", async () => {
  await using test = await described({}, ["Somebody walks."]);
  const on = ["zone", "keyframe"];
  const session = await publish(test, { attach: { restricted_zone: ZONE, record: { on }, ...NO_CAP } });
  const { worker, runId, sessionId } = session;
  assert.deepEqual(worker.settings.record?.on, on);
  const zone = { score: 0.65625, threshold: 0.6, consecutiveFrames: 2 };
  const clip = (frameIndex: number, cause: "zone" | "keyframe"): RecordedClip => ({
    ...{ cause, frameIndex, causePtsMs: 1_000, startPtsMs: 0, endPtsMs: 6_000, sound: "none" },
    ...{ codec: "avc1.42e01f", mp4: new Uint8Array([frameIndex, 1, 2]), jpeg: jpegOf(frameIndex) },
  });
  worker.picture(7, { isKeyframe: false, zone }, { gateReason: "no_trigger" });
  worker.report({ kind: "recorded", clip: clip(7, "zone") });
  // Of a picture that has left no event; and one that is on disk before the model has said what its cause
  // shows.
  worker.report({ kind: "recorded", clip: clip(8, "keyframe") });
  worker.picture(9);
  await until("two clips were taken", () => worker.acknowledged.recordings === 2);
  worker.report({ kind: "recorded", clip: clip(9, "keyframe") });
  await until("stored", async () => payloads(await eventsOf(test, runId), "clip_stored").length === 3);
  const events = await eventsOf(test, runId);
  const seqOf = (kind: string, frame: number) =>
    events.find((each) => each.kind === kind && each.payload.frame_index === frame)!.seq;
  const stored = payloads(events, "clip_stored");
  const byCause = new Map(stored.map((payload) => [payload.cause_seq, payload]));
  const entered = byCause.get(seqOf("restricted_zone_activity_entered", 7))!;
  assert.deepEqual(entered, {
    session_id: sessionId,
    ...{ sha256: entered.sha256, bytes: 3, start_pts_ms: 0, end_pts_ms: 6_000 },
    ...{ cause: "zone", cause_seq: entered.cause_seq, cause_pts_ms: 1_000 },
    ...{ codec: "avc1.42e01f", sound: "none" },
    still: payloads(events, "restricted_zone_activity_entered")[0].evidence,
  });
  assert.ok(byCause.has(null) && byCause.has(seqOf("keyframe_stored", 9)));
  const fetched = await fetch(`${test.url}/v1/runs/${runId}/media/${entered.sha256}`, {
    headers: { "x-api-key": KEY_A },
  });
  assert.equal(fetched.headers.get("content-type"), "video/mp4");
  assert.deepEqual([...new Uint8Array(await fetched.arrayBuffer())], [7, 1, 2]);
  assert.equal(
    (await test.call("GET", `/v1/runs/${runId}/media/${entered.sha256}`, undefined, KEY_B)).status,
    404,
  );
  assert.equal(await metric(test, "service_pipeline_recordings_stored_total"), 3);
});

Deno.test("a trigger leaves its picture, its event and its datagram, before anybody describes it", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "service-live-" });
  try {
    const path = join(folder, "out.sock");
    const listener = Deno.listenDatagram({ transport: "unixpacket", path });
    const answer = held("A truck.");
    await using model = startModelServer({ answer: answer.answer });
    await using test = await startLive({
      SERVICE_VLLM_BASE_URL: model.url,
      SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET: path,
    });
    const session = await publish(test, {
      attach: { trigger_program: dockProgram("local_output", "webhook"), ...NO_CAP },
    });
    const inputs = { motion_score: 0.75, novelty_score: null, confidence: 0.5 };
    session.worker.picture(3, { isKeyframe: false, trigger: { inputs } });
    const [datagram] = await listener.receive();
    const [, fired] = await eventsOf(test, session.runId);
    const [, envelope] = (await test.call("GET", `/v1/runs/${session.runId}/events`)).json.events;
    assert.deepEqual(JSON.parse(new TextDecoder().decode(datagram)), {
      event_id: `${session.runId}:${fired!.seq}`,
      run_id: session.runId,
      stream_id: "stream-0",
      seq: fired!.seq,
      pts_ms: envelope.pts_ms,
      kind: "trigger.dock_entry",
      pipeline_generation: 1,
    });
    assert.equal(fired!.kind, "trigger.dock_entry");
    const { evidence, ...rest } = fired!.payload as Record<string, Record<string, unknown>>;
    assert.deepEqual(rest, {
      session_id: session.sessionId,
      frame_index: 3,
      pts_ms: frameFacts(3).ptsMs,
      coordinate_schema: "service.image.v1",
      coordinates: frameFacts(3).coordinates,
      confidence: 0.5,
      event_type: "dock_entry",
      trigger: {
        program_id: "dock-entry",
        program_version: 3,
        isa_version: 1,
        inputs,
        actions: { event: true, webhook: true, local_output: true, capture: "keyframe" },
      },
      provenance: { pipeline_generation: 1 },
    });
    const blob = await test.call("GET", `/v1/runs/${session.runId}/keyframes/${evidence!.image_sha256}`);
    assert.equal(blob.status, 200);
    answer.release();
    await until("described", async () => (await eventsOf(test, session.runId)).length === 4);
    const events = await eventsOf(test, session.runId);
    assert.deepEqual(kindsOf(events), ["run_created", "trigger.dock_entry", "vlm", "keyframe_stored"]);
    assert.equal(payloads(events, "keyframe_stored")[0].event_type, "trigger.dock_entry");
    assert.match(model.requests[0]!.prompt, /trigger=dock_entry/);
    assert.equal(await metric(test, "service_pipeline_trigger_local_outputs_total"), 1);

    listener.close();
    Deno.removeSync(path);
    session.worker.picture(4, { isKeyframe: false, trigger: { inputs } });
    await until(
      "counted",
      async () => await metric(test, "service_pipeline_trigger_local_output_failures_total") === 1,
    );
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("evidence beyond its queue is dropped and counted, by its kind", async () => {
  await using test = await startLive();
  const session = await publish(test, { attach: { restricted_zone: ZONE } });
  const zone = { score: 0.7, threshold: 0.6, consecutiveFrames: 2 };
  for (let index = 0; index < 12; index++) session.worker.picture(index, { isKeyframe: false, zone });
  await until("dealt with", () => session.worker.acknowledged.evidence === 12);
  const dropped = await metric(test, "service_pipeline_restricted_zone_queue_dropped_total");
  const written = await metric(test, "service_pipeline_restricted_zone_assertions_total");
  assert.ok(dropped >= 3 && dropped <= 4, `${dropped} dropped`);
  assert.equal(dropped + written, 12);
});

Deno.test("a loop is reported once, by the gate or by the novelty sidecar", async () => {
  await using test = await startLive();
  const session = await publish(test);
  session.worker.report({ kind: "loop_detected", frame: frameFacts(9) });
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "loop_detected"]);
  assert.equal(payloads(events, "loop_detected")[0].confidence, 0.9);
  assert.equal(payloads(events, "loop_detected")[0].frame_index, 9);
  assert.equal(await metric(test, "service_pipeline_loop_detected_total"), 1);
});

Deno.test("a range of a live session is a marker of its run, in the session's own frames and times", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const place = { startFrame: 12, endFrame: 61, startPtsMs: 90480.4, endPtsMs: 92480.6 };
  session.worker.report({ kind: "range", range: { ...place, type: "freeze", confidence: 0.91234567 } });
  session.worker.report({ kind: "range", range: BLACK });
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "marker_emitted*2"]);
  const [freeze, black] = payloads(events, "marker_emitted");
  assert.deepEqual(freeze, {
    marker_id: "mk-00000000",
    run_id: session.runId,
    stream_id: "stream-0",
    event_type: "freeze",
    status: "exact",
    start_frame: 12,
    end_frame: 61,
    start_pts_ms: 90480,
    end_pts_ms: 92481,
    confidence: 0.9123457,
    supersedes_marker_id: null,
    session_id: session.sessionId,
  });
  assert.deepEqual([black.marker_id, black.event_type], ["mk-00000001", "black"]);
  const { json } = await test.call("GET", `/v1/runs/${session.runId}/markers?event_type=black`);
  assert.deepEqual(json.markers, [black]);
});

Deno.test("markers of a session beyond 120 a minute are dropped and counted", async () => {
  await using test = await startLive();
  const session = await publish(test);
  for (let index = 0; index < 130; index++) session.worker.report({ kind: "range", range: BLACK });
  const written = payloads(await eventsOf(test, session.runId), "marker_emitted");
  assert.deepEqual([written.length, written.at(-1).marker_id], [120, "mk-00000077"]);
  assert.equal(await metric(test, "service_pipeline_live_markers_dropped_total"), 10);
});

Deno.test("what lasts until a live session ends is a marker before the run's end", async () => {
  await using test = await startLive({}, { workers: { closesAtOnce: false } });
  const session = await publish(test);
  const deleted = deleteSession(test, session);
  await until("asked to close", () => session.worker.isAskedToClose);
  session.worker.report({ kind: "range", range: BLACK });
  session.worker.report({ kind: "closed" });
  assert.equal((await deleted).status, 200);
  const kinds = kindsOf(await eventsOf(test, session.runId));
  assert.deepEqual(kinds.slice(-2), ["marker_emitted", "run_completed"]);
});

Deno.test("a clip is one question with all its pictures, and its failure is an event", async () => {
  await using test = await described({}, (_, index) => index === 1 ? { status: 400 } : "A truck leaves.");
  const session = await publish(test, { attach: { clip_mode: {}, ...NO_CAP, prompt: "What leaves?" } });
  const clip = async (last: number) => {
    const before = session.worker.acknowledged.pictures;
    const jpegs = [last - 2, last - 1, last].map(jpegOf);
    const startPtsMs = frameFacts(last - 2).ptsMs;
    session.worker.report({ kind: "clip", frame: frameFacts(last), startPtsMs, jpegs });
    await until(`clip ${last}`, () => session.worker.acknowledged.pictures > before);
  };
  await clip(12);
  await clip(22);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), [
    "run_created",
    ...["clip_vlm", "keyframe_stored"],
    ...["clip_vlm", "keyframe_stored"],
  ]);
  const [first, failed] = payloads(events, "clip_vlm");
  assert.deepEqual([first.frame_index, first.pts_ms, first.confidence], [12, frameFacts(12).ptsMs, 0.9]);
  assert.equal(first.description, "A truck leaves.");
  assert.match(failed.description, /^clip_vlm_error/);
  assert.equal(payloads(events, "keyframe_stored")[0].event_type, "clip_vlm");
  const [request] = test.model.requests;
  assert.deepEqual(request!.images.map(({ bytes }) => bytes), [10, 11, 12].map(jpegOf));
  assert.equal(request!.maxTokens, 256);
  assert.equal(request!.prompt, "What leaves?");
  assert.equal(await metric(test, "service_infer_admission_acquired_by_class_total", 'class="live"'), 2);
});

Deno.test("a picture that looks like the last one keeps its description, until it is old", async () => {
  await using embeddings = openEmbeddingDouble();
  await using test = await described(
    { SERVICE_NOVELTY_EMBEDDING_ADDR: embeddings.address, SERVICE_NOVELTY_SHADOW_SAMPLE_RATE: "0" },
    ["A door."],
  );
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 3);
  assert.equal(test.model.requests.length, 1);
  session.worker.picture(3, {}, { ptsMs: 90_000 + 2_000 });
  await until("refreshed", () => test.model.requests.length === 2);
  await until("acknowledged", () => session.worker.acknowledged.pictures === 4);
  embeddings.answer(embedded(axis(1)));
  await show(session, 70, 1);
  assert.equal(test.model.requests.length, 3);
  embeddings.answer(refusedEmbedding("inference_error"));
  await show(session, 71, 1);
  assert.equal(test.model.requests.length, 4);
  assert.equal(await metric(test, "service_pipeline_novelty_evaluated_total"), 5);
  assert.equal(await metric(test, "service_pipeline_novelty_reused_total"), 2);
  assert.equal(await metric(test, "service_pipeline_novelty_forced_refresh_total"), 1);
  assert.equal(await metric(test, "service_pipeline_novelty_embedding_unavailable_total"), 1);
  assert.equal(await metric(test, "service_pipeline_novelty_reuse_ratio"), 0.4);
});

Deno.test("a shadowed reuse asks the model, counts whether it would have said something else, and writes nothing", async () => {
  await using embeddings = openEmbeddingDouble();
  await using test = await described(
    { SERVICE_NOVELTY_EMBEDDING_ADDR: embeddings.address, SERVICE_NOVELTY_SHADOW_SAMPLE_RATE: "1" },
    ["A quiet door.", "A quiet door.", "Ten people run."],
  );
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 3);
  assert.equal(test.model.requests.length, 3);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "vlm", "keyframe_stored"]);
  assert.equal(await metric(test, "service_pipeline_novelty_shadow_sampled_total"), 2);
  assert.equal(await metric(test, "service_pipeline_novelty_shadow_completed_total"), 2);
  assert.equal(await metric(test, "service_pipeline_novelty_shadow_changed_total"), 1);
  assert.equal(await metric(test, "service_pipeline_novelty_shadow_change_ratio"), 0.5);
});

Deno.test("what a Worker counts and measures is in the metrics", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const counts = {
    ...NO_COUNTS,
    rtpFramesReceived: 30,
    framesDecoded: 29,
    framesDropped: 1,
    audioBytes: 512,
  };
  session.worker.report({ kind: "counts", counts: { ...counts, decodeLatenciesUs: [1500, 1700] } });
  session.worker.report({ kind: "counts", counts });
  assert.equal(await metric(test, "service_pipeline_rtp_frames_received_total"), 60);
  assert.equal(await metric(test, "service_pipeline_frames_decoded_total"), 58);
  assert.equal(await metric(test, "service_pipeline_frames_dropped_total"), 2);
  assert.equal(await metric(test, "service_pipeline_webrtc_audio_bytes_total"), 1024);
  assert.equal(await metric(test, "service_pipeline_decode_latency_us_count"), 2);
  await deleteSession(test, session);
});

Deno.test("a decoder that was replaced is reported; three within a minute are a fault, and a DELETE is clean all the same", async () => {
  const clock = new ManualClock();
  await using test = await startLive({}, { clock });
  const session = await publish(test);
  const restart = (restarts: number) =>
    session.worker.report({ kind: "decoder_restarted", reason: "stalled", ptsMs: 4_000, restarts });
  const faults = () =>
    metric(test, "service_pipeline_worker_faults_total", 'stage="decode",reason="unexpected_exit"');
  restart(1);
  assert.deepEqual(payloads(await eventsOf(test, session.runId), "decoder_restarted"), [{
    session_id: session.sessionId,
    reason: "stalled",
    pts_ms: 4_000,
    restarts: 1,
    pipeline_generation: 1,
  }]);
  restart(2);
  await clock.advance(60_000);
  restart(3);
  restart(4);
  assert.equal(await faults(), 0, "never three within a minute");
  await clock.advance(59_999);
  restart(5);
  assert.equal(await faults(), 1);
  assert.ok(await metric(test, "service_pipeline_last_fault_timestamp_seconds") > 1_600_000_000);
  restart(6);
  assert.equal(await faults(), 1, "the next fault takes three more");
  assert.equal(await metric(test, "service_pipeline_decoder_restarts_total"), 6);
  await deleteSession(test, session);
  const ends = (outcome: string) =>
    metric(test, "service_pipeline_generation_shutdown_total", `outcome="${outcome}"`);
  assert.deepEqual([await ends("clean"), await ends("faulted")], [1, 0]);
});

Deno.test("a session that fails after a fault has not ended cleanly", async () => {
  await using test = await startLive();
  const session = await publish(test);
  for (const restarts of [1, 2, 3]) {
    session.worker.report({ kind: "decoder_restarted", reason: "exited", ptsMs: 0, restarts });
  }
  session.worker.report({ kind: "ended", cause: "peer_disconnected", message: "" });
  await until(async () => await metric(test, "service_pipeline_sessions_removed_total") === 1);
  assert.equal(await metric(test, "service_pipeline_generation_shutdown_total", 'outcome="faulted"'), 1);
});
