/** Sound of a live session: windows of Opus go to the audio sidecar, its analysis to the timeline. See
 * docs/live/events.md#live-audio.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { observation, observed, openAudioDouble, refused } from "../../support/sidecars/audio_sidecar.ts";
import { readOpus } from "../../support/live/encoded_media.ts";
import {
  deleteSession,
  type LiveTest,
  metric,
  publish,
  type Published,
  startLive,
} from "../../support/live/live.ts";
import { offerText } from "../../support/live/fake_live_workers.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { until } from "../../support/until.ts";

/** Packets of a tone, 20 ms each. */
async function opusTone(seconds: number): Promise<Uint8Array<ArrayBuffer>[]> {
  const folder = Deno.makeTempDirSync({ prefix: "service-opus-" });
  try {
    const path = join(folder, "tone.ogg");
    const source = ["-f", "lavfi", "-i", `sine=frequency=440:duration=${seconds}`, "-ac", "2"];
    const args = ["-v", "error", ...source, "-c:a", "libopus", path];
    const { success } = await new Deno.Command("ffmpeg", { args, stdin: "null" }).output();
    assert.ok(success, "ffmpeg made no tone");
    return (await readOpus(path)).map((unit) => Uint8Array.from(unit));
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

const UNITS = await opusTone(4);

function sendWindow({ worker }: Published, chunkIndex: number, units = UNITS): void {
  const startPtsMs = chunkIndex * 4_000;
  const endPtsMs = startPtsMs + units.length * 20;
  worker.report({
    kind: "audio_window",
    window: { format: "opus", trackId: 0, chunkIndex, units, startPtsMs, endPtsMs },
  });
}

async function heardBy(test: LiveTest, { worker }: Published, windows: number): Promise<void> {
  await until("the window was analyzed", () => worker.acknowledged.audioWindows === windows);
  assert.equal(await metric(test, "service_pipeline_generations_active"), 1);
}

Deno.test("a window is decoded, analyzed and written with its moments, in words and times of the track", async () => {
  await using sidecar = openAudioDouble(observed([
    observation(0, 4_000, { kind: "voice_activity", label: "voice" }),
    observation(500, 1_500, { kind: "speech", label: "speech", transcript: "mind the gap", confidence: 0.9 }),
    observation(2_000, 3_000, { kind: "audio_event", label: "engine", confidence: 0.8 }),
  ]));
  await using test = await startLive({ SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
  const session = await publish(test, {
    offer: offerText({ video: [] }),
    attach: {
      local_audio: {
        profile: "physical_world",
        speech_engine: "whisper",
        min_confidence: 0.5,
        max_events: 8,
      },
    },
  });
  assert.equal(session.worker.settings.wantsAudio, true);
  sendWindow(session, 1);
  await heardBy(test, session, 1);
  const [request] = sidecar.requests;
  assert.ok(request!.operation === "analyze");
  assert.deepEqual(
    [request!.profile, request!.engine, request!.maxEvents, request!.sourceStartMs],
    ["physical_world", "whisper", 8, 4_000],
  );
  assert.ok(typeof request!.wav === "object");
  assert.ok(Math.abs(request!.wav.durationMs - 4_000) < 50);

  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "semantic_chunk_inferred", "multimodal_moment*2"]);
  const [chunk] = payloads(events, "semantic_chunk_inferred");
  const { decode_ms, round_trip_ms, local_audio, ...rest } = chunk;
  assert.ok(decode_ms > 0 && round_trip_ms > 0);
  assert.equal(local_audio.observations.length, 3);
  const common = {
    request_id: `live-audio:${session.sessionId}`,
    stream_id: "default",
    session_id: session.sessionId,
    chunk_index: 1,
    track_id: 0,
    provider: "local_audio",
    timestamp_resolution_ms: 1,
  };
  assert.deepEqual(rest, {
    ...common,
    media_mode: "live_audio",
    pts_start_ms: 4_000,
    pts_end_ms: 4_000 + UNITS.length * 20,
    rtp_access_units: UNITS.length,
  });
  const [said, engine] = payloads(events, "multimodal_moment");
  assert.deepEqual(said, {
    ...common,
    moment_id: `live-audio:${session.sessionId}:1:0`,
    start_offset_ms: 500,
    end_offset_ms: 1_500,
    start_pts_ms: 4_500,
    end_pts_ms: 5_500,
    modalities: ["audio"],
    kind: "speech",
    description: "Speaker: mind the gap",
    intent: null,
    audio_visual_relation: null,
    confidence: 0.9,
    evidence: null,
  });
  assert.deepEqual([engine.kind, engine.description, engine.moment_id.slice(-4)], [
    "mechanical",
    "engine",
    ":1:1",
  ]);
  assert.equal(await metric(test, "service_pipeline_multimodal_moments_total"), 2);
  const wavBytes = 44 + 2 * Math.round(request!.wav.durationMs * 16);
  assert.equal(await metric(test, "service_pipeline_local_audio_wav_bytes_total"), wavBytes);
  assert.equal(await metric(test, "service_pipeline_local_audio_wav_extraction_latency_ms_count"), 1);
  assert.deepEqual(sidecar.faults, []);
});

Deno.test("a window that fails is counted and leaves no event, and the next one is analyzed", async () => {
  await using sidecar = openAudioDouble(refused("decode"));
  await using test = await startLive({ SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
  const session = await publish(test, { attach: { local_audio: {} } });
  sendWindow(session, 0);
  await heardBy(test, session, 1);
  sendWindow(session, 1, [Uint8Array.of(), Uint8Array.of()]);
  await heardBy(test, session, 2);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created"]);
  assert.equal(await metric(test, "service_pipeline_local_audio_failures_total", 'reason="decode"'), 2);
  sidecar.answer(observed([]));
  sendWindow(session, 2);
  await heardBy(test, session, 3);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "semantic_chunk_inferred"]);
});

Deno.test("windows beyond the two that may wait are dropped and counted, and the last one is analyzed before the end", async () => {
  const released = Promise.withResolvers<void>();
  await using sidecar = openAudioDouble(async (request, index) => {
    await released.promise;
    return await observed([])(request, index);
  });
  await using test = await startLive({ SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
  const session = await publish(test, { attach: { local_audio: {} } });
  sendWindow(session, 0);
  await until("asked", () => sidecar.requests.length === 1);
  for (const index of [1, 2, 3]) sendWindow(session, index);
  await heardBy(test, session, 1);
  assert.equal(await metric(test, "service_pipeline_webrtc_audio_queue_dropped_total"), UNITS.length);
  const ending = deleteSession(test, session);
  await until("closing", () => session.worker.isAskedToClose);
  released.resolve();
  assert.equal((await ending).status, 200);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "semantic_chunk_inferred*3", "run_completed"]);
});
