/** A camera for real: an RTSP server, the tunnel to it, a real Worker with its decoder, a real model server.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { frameTimesMs, make, makeClip, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads, startReason, type StoredEvent } from "../../support/models/reason.ts";
import { observation, observed, openAudioDouble } from "../../support/sidecars/audio_sidecar.ts";
import { metric } from "../../support/live/live.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { KEY_A, newRun } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const SAID = "A test picture.";

Deno.test("a camera that disconnects is requested again, and what it shows is described before and after", async () => {
  using folder = new TempFolder();
  const clip = make(
    join(folder.path, "camera.ts"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-frames:v", "50", "-c:v", "libx264", "-bf", "2"],
    ...["-g", "10", "-pix_fmt", "yuv420p"],
  );
  await using camera = serveRtsp(Deno.readFileSync(clip));
  await using live = await startReason({ answer: () => SAID }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_WEBRTC_STUN_SERVERS: "",
  }, {
    outbound: {
      resolve: (host) =>
        host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
      reroute: () => "127.0.0.1",
    },
  });
  const { test } = live;
  const runId = await newRun(test);
  const opened = await test.call("POST", `/v1/runs/${runId}/live`, {
    source_uri: `rtsp://camera.test:${camera.port}/dock`,
    prompt: "Watch the dock.",
    record: { pre_roll_ms: 0, post_roll_ms: 400, on: ["keyframe"] },
  });
  assert.equal(opened.status, 200, opened.text);

  let events: StoredEvent[] = [];
  await until("a keyframe of the second connection is stored", async () => {
    events = await eventsOf(test, runId);
    const kinds = kindsOf(events);
    return kinds.lastIndexOf("keyframe_stored") > kinds.indexOf("source_resumed") &&
      kinds.includes("source_resumed");
  });
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}/live`)).status, 200);
  events = await eventsOf(test, runId);
  assert.equal(kindsOf(events).at(-1), "run_completed");
  assert.equal(payloads(events, "vlm")[0].description, SAID);
  const stored = payloads(events, "keyframe_stored");
  assert.deepEqual(stored[0].coordinates.source_extent, { width: 160, height: 120 });
  const times = stored.map(({ pts_ms }: { pts_ms: number }) => pts_ms);
  assert.deepEqual(times, times.toSorted((one: number, other: number) => one - other));
  const [recorded] = payloads(events, "clip_stored");
  const first = events.find(({ kind }) => kind === "keyframe_stored")!;
  assert.deepEqual(
    [recorded.cause, recorded.cause_seq, recorded.sound, recorded.start_pts_ms, recorded.end_pts_ms],
    ["keyframe", first.seq, "none", times[0]!, times[0]! + 400],
  );
  assert.equal(recorded.still.image_sha256, first.payload.image_sha256);
  const media = await fetch(`${test.url}/v1/runs/${runId}/media/${recorded.sha256}`, {
    headers: { "x-api-key": KEY_A },
  });
  const mp4 = join(folder.path, "clip.mp4");
  Deno.writeFileSync(mp4, new Uint8Array(await media.arrayBuffer()));
  assert.deepEqual(frameTimesMs(mp4, 0), [0, 40, 80, 120, 160, 200, 240, 280, 320, 360]);
  const [picture] = live.model.requests.at(0)!.images;
  assert.deepEqual([picture!.width, picture!.height], [160, 120]);
  const jpeg = await fetch(`${test.url}/v1/runs/${runId}/keyframes/${stored[0].image_sha256}`, {
    headers: { "x-api-key": KEY_A },
  });
  assert.equal((await jpeg.arrayBuffer()).byteLength, stored[0].image_bytes);
});

Deno.test("a camera that sends over UDP alone is decoded, and told to stop at the end", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  await using camera = serveRtsp(Deno.readFileSync(clip), { udp: {} });
  await using live = await startReason({ answer: () => SAID }, { SERVICE_ALLOW_UNENCRYPTED_RTSP: "true" }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
  });
  const { test } = live;
  const runId = await newRun(test);
  const source_uri = `rtsp://camera.test:${camera.port}/dock`;
  const opened = await test.call("POST", `/v1/runs/${runId}/live`, { source_uri });
  assert.equal(opened.status, 200, opened.text);
  await until("described", async () => kindsOf(await eventsOf(test, runId)).includes("vlm"));
  const passed = await metric(test, "service_rtsp_datagrams_total", 'outcome="passed"');
  assert.ok(passed > 20, `${passed}`);
  assert.equal(await metric(test, "service_rtsp_datagrams_total", 'outcome="foreign"'), 0);
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}/live`)).status, 200);
  await until("it sends no more", () => camera.udp!.isEnded);
  // Once each for the probe and for the decoder.
  assert.equal(camera.requests.filter((line) => line.startsWith("TEARDOWN")).length, 2);
});

Deno.test("the sound of a camera is analyzed window by window, and its pictures are described all the same", async () => {
  using folder = new TempFolder();
  const clip = join(folder.path, "camera.ts");
  make(clip, ...[
    ...[
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=160x120:r=25:d=9",
      "-f",
      "lavfi",
      "-i",
      "sine=frequency=440:duration=9",
    ],
    ...["-c:v", "mpeg4", "-c:a", "mp2", "-ac", "2"],
  ]);
  const mute = makeClip(join(folder.path, "mute.ts"), { size: "160x120", frames: 50 });
  await using camera = serveRtsp(Deno.readFileSync(clip));
  await using silent = serveRtsp(Deno.readFileSync(mute), { isEndless: true });
  await using sidecar = openAudioDouble(observed([
    observation(1_000, 2_000, { kind: "audio_event", label: "beep", confidence: 0.9 }),
  ]));
  await using live = await startReason({ answer: () => SAID }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address,
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
  });
  const { test } = live;
  const runId = await newRun(test);
  const watch = (port: number, more = {}) =>
    test.call("POST", `/v1/runs/${runId}/live`, {
      source_uri: `rtsp://camera.test:${port}/dock`,
      local_audio: { profile: "physical_world", max_events: 4 },
      ...more,
    });
  const refused = await watch(silent.port);
  assert.deepEqual([refused.status, refused.json.error.details[0].field], [422, "local_audio"]);
  const other = await watch(camera.port, { record: {} });
  assert.deepEqual([other.status, other.json.error.details[0].field], [422, "record"]);
  assert.match(other.json.error.details[0].message, /H\.264 or H\.265, .* this is mpeg4/);
  assert.deepEqual(kindsOf(await eventsOf(test, runId)), ["run_created"]);

  assert.equal((await watch(camera.port)).status, 200);
  let events: StoredEvent[] = [];
  await until("the windows of the first connection are heard, and a picture is described", async () => {
    events = await eventsOf(test, runId);
    return payloads(events, "semantic_chunk_inferred").length >= 3 && kindsOf(events).includes("vlm");
  });
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}/live`)).status, 200);
  const chunks = payloads(events, "semantic_chunk_inferred").slice(0, 3);
  assert.deepEqual(chunks.map((chunk: Record<string, unknown>) => [chunk.pts_start_ms, chunk.track_id]), [
    [0, 0],
    [4_000, 0],
    [8_000, 0],
  ]);
  assert.deepEqual([chunks[0].pts_end_ms, chunks[0].rtp_access_units, chunks[0].media_mode], [
    4_000,
    200,
    "live_audio",
  ]);
  assert.ok(chunks[2].pts_end_ms >= 8_800 && chunks[2].pts_end_ms <= 9_300, `${chunks[2].pts_end_ms}`);
  const [moment] = payloads(events, "multimodal_moment");
  assert.deepEqual([moment.start_pts_ms, moment.end_pts_ms], [1_000, 2_000]);
  const [request] = sidecar.requests;
  assert.ok(request?.operation === "analyze" && typeof request.wav === "object");
  assert.deepEqual([request.profile, request.maxEvents, request.sourceStartMs], ["physical_world", 4, 0]);
  assert.equal(request.wav.durationMs, 4_000);
  assert.deepEqual(sidecar.faults, []);
  const left = Array.from(Deno.readDirSync(join(test.dataDir, "..", "tmp")), ({ name }) => name);
  assert.deepEqual(left.filter((name) => name.endsWith(".fifo")), []);
});
