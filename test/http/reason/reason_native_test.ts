import assert from "node:assert/strict";
import { join } from "node:path";
import {
  observation,
  observed,
  openAudioDouble,
  refused,
  spoken,
} from "../../support/sidecars/audio_sidecar.ts";
import {
  type GeminiAnswer,
  type GeminiServer,
  startGeminiServer,
} from "../../support/models/gemini_server.ts";
import { held } from "../../support/models/model_server.ts";
import {
  assertNothingLeft,
  eventsOf,
  ffmpeg,
  FILM,
  kindsOf,
  LARGE_FILM,
  metric,
  payloads,
  reasonOn,
  seen,
} from "../../support/models/reason.ts";
import { probeMp4 } from "../../support/models/sent_media.ts";
import { KEY_B, newRun, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const GEMINI = "gemini-3.5-flash-lite";
const GEMINI_KEY = "the-key-of-the-cloud";
/** 30 seconds in four windows. */
const WINDOWS = {
  source_uri: FILM,
  model: GEMINI,
  sampling_policy: "fixed",
  fixed_fps: 2,
  chunk_size: undefined,
};

interface NativeTest extends AsyncDisposable {
  readonly test: TestService;
  readonly gemini: GeminiServer;
  reason(body: Record<string, unknown>): ReturnType<typeof reasonOn>;
}

async function startNative(
  answer: (prompt: string) => GeminiAnswer | Promise<GeminiAnswer>,
  env: Record<string, string> = {},
): Promise<NativeTest> {
  const gemini = startGeminiServer({ apiKey: GEMINI_KEY, answer: ({ prompt }) => answer(prompt) });
  const backendFile = `[[backends]]
name = "cloud"
type = "gemini"
api_key = "${GEMINI_KEY}"
base_url = "${gemini.url}"
model = "${GEMINI}"
`;
  const test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "100", ...env }, { backendFile });
  return {
    test,
    gemini,
    reason: (body) => reasonOn(test, { ...WINDOWS, ...body }),
    async [Symbol.asyncDispose]() {
      await test[Symbol.asyncDispose]();
      await gemini[Symbol.asyncDispose]();
    },
  };
}

function moment(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    start_offset_ms: 1000,
    end_offset_ms: 3000,
    modalities: ["video"],
    kind: "interaction",
    description: "A rabbit leaves its burrow",
    confidence: 0.8,
    ...changes,
  };
}

function moments(...list: Record<string, unknown>[]): string {
  return JSON.stringify({ moments: list });
}

Deno.test("windows of sound and picture become moments with evidence that their owner can fetch", async () => {
  await using at = await startNative(() =>
    moments(moment(), moment({ start_offset_ms: 0, end_offset_ms: 900_000 }))
  );
  const { runId, answer, events } = await at.reason({
    media: { mode: "audio_video", window_ms: 10_000, resolution: "low" },
    index_name: "burrow",
  });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(answer.json.metadata, []);
  assert.equal(answer.json.generated, 60);
  const received = payloads(events, "ingest_received")[0];
  assert.deepEqual(
    [
      received.media_mode,
      received.media_window_ms,
      received.video_streams,
      received.audio_streams,
      received.audio_channels,
    ],
    ["audio_video", 10_000, 1, 1, 6],
  );
  const chunks = payloads(events, "semantic_chunk_inferred").toSorted((a, b) =>
    a.chunk_index - b.chunk_index
  );
  assert.deepEqual(chunks.map(({ pts_start_ms, pts_end_ms }) => [pts_start_ms, pts_end_ms]), [
    [0, 10_000],
    [10_000, 20_000],
    [20_000, 30_000],
  ]);
  const [chunk] = chunks;
  assert.deepEqual(
    [
      chunk.provider,
      chunk.media_mode,
      chunk.media_resolution,
      chunk.timestamp_resolution_ms,
      chunk.semantic_error,
    ],
    ["gemini", "audio_video", "low", 1000, null],
  );
  assert.deepEqual([chunk.audio_streams, chunk.audio_channels, chunk.audio_mixed], [1, 6, true]);
  assert.deepEqual([chunk.event_type, chunk.object_label], ["context_observation", "interaction"]);
  assert.ok(Number.isInteger(chunk.extraction_ms) && chunk.extraction_ms > 0);
  assert.equal(chunk.clip_bytes, chunk.evidence.media_bytes);

  assert.equal(at.gemini.stored, 0, "uploads were deleted");
  assert.equal(at.gemini.requests.length, 3);
  const asked = at.gemini.requests[0]!;
  assert.deepEqual([asked.config.maxOutputTokens >= 1024, asked.config.mediaResolution], [
    true,
    "MEDIA_RESOLUTION_LOW",
  ]);
  const clip = await probeMp4(asked.videos[0]!);
  assert.ok(Math.abs(clip.durationMs - 10_000) < 250, String(clip.durationMs));
  assert.deepEqual(
    clip.streams.map(({ type, codec, channels }) => [type, codec, channels]),
    [["video", "h264", null], ["audio", "aac", 1]],
  );

  const found = payloads(events, "multimodal_moment").filter(({ chunk_index }) => chunk_index === 1);
  const { request_id } = found[0];
  assert.deepEqual({ ...found[1], evidence: null, request_id: "", moment_id: "" }, {
    moment_id: "",
    request_id: "",
    stream_id: "stream-0",
    chunk_index: 1,
    start_offset_ms: 1000,
    end_offset_ms: 3000,
    start_pts_ms: 11_000,
    end_pts_ms: 13_000,
    timestamp_resolution_ms: 1000,
    modalities: ["video"],
    kind: "interaction",
    description: "A rabbit leaves its burrow",
    intent: null,
    audio_visual_relation: null,
    confidence: 0.8,
    provider: "gemini",
    index_name: "burrow",
    evidence: null,
  });
  assert.deepEqual(found.map(({ moment_id }) => moment_id), [`${request_id}:1:0`, `${request_id}:1:1`]);
  assert.deepEqual([found[0].start_pts_ms, found[0].end_pts_ms], [10_000, 20_000], "cut to the window");
  const order = events.map(({ kind, payload }) => `${kind} ${payload.chunk_index}`);
  const first = order.indexOf("semantic_chunk_inferred 1");
  assert.deepEqual(order.slice(first + 1, first + 3), ["multimodal_moment 1", "multimodal_moment 1"]);

  const { media_sha256, media_bytes, created } = found[0].evidence;
  assert.deepEqual(found[0].evidence, chunks[1].evidence);
  assert.equal(created, true);
  const fetched = await fetch(`${at.test.url}/v1/runs/${runId}/media/${media_sha256}`, {
    headers: { "x-api-key": "key-of-a" },
  });
  const bytes = await fetched.bytes();
  assert.deepEqual([fetched.status, fetched.headers.get("content-type"), bytes.length], [
    200,
    "video/mp4",
    media_bytes,
  ]);
  assert.equal(
    (await at.test.call("GET", `/v1/runs/${runId}/media/${media_sha256}`, undefined, KEY_B)).status,
    404,
  );
  assert.equal(await metric(at.test, "service_pipeline_media_blobs_written_total"), 3);
  assert.equal(await metric(at.test, "service_pipeline_multimodal_moments_total"), 6);
  assert.equal(await metric(at.test, "service_pipeline_media_clips_extracted_total"), 3);
  assert.ok(!JSON.stringify(events).includes(GEMINI_KEY));
  assertNothingLeft(at.test);
});

Deno.test("silent windows are asked about like frames, their clips kept only if that is asked for", async () => {
  await using at = await startNative(() => seen({}));
  const check = async (media: Record<string, unknown>, isKept: boolean) => {
    const { answer, events } = await at.reason({ media: { mode: "video", ...media }, max_frames: 30 });
    assert.equal(answer.status, 200, answer.text);
    const chunks = payloads(events, "semantic_chunk_inferred");
    assert.equal(chunks.length, 2);
    for (const chunk of chunks) {
      assert.deepEqual(
        [chunk.object_label, chunk.audio_streams, chunk.moments, chunk.evidence !== undefined],
        ["white_rabbit", null, [], isKept],
      );
    }
    return answer;
  };
  const answer = await check({}, false);
  assert.equal(answer.json.frame_metadata_included, false);
  await check({ persist_evidence: true }, true);
  const clip = await probeMp4(at.gemini.requests[0]!.videos[0]!);
  assert.deepEqual(clip.streams.map(({ type }) => type), ["video"]);
  assert.ok(Math.abs(clip.durationMs - 8000) < 250);
});

Deno.test("a clip that would cross the quota of its caller ends the call", async () => {
  await using at = await startNative(() => seen({}), { SERVICE_STORAGE_QUOTA_BYTES: String(2 * 2 ** 20) });
  const body = {
    source_uri: LARGE_FILM,
    media: { mode: "video", persist_evidence: true },
    vlm_concurrency: 1,
  };
  const { answer, events } = await at.reason(body);
  assert.deepEqual([answer.status, answer.json.error?.code], [507, "storage_quota"], answer.text);
  assert.ok(payloads(events, "semantic_chunk_inferred").every(({ evidence }) => evidence !== undefined));
  assert.ok(!kindsOf(events).includes("run_completed"));
  assertNothingLeft(at.test);
});

Deno.test("a crop is what the clip shows, and rows are there if they are asked for", async () => {
  await using at = await startNative(() => seen({}));
  const { answer } = await at.reason({
    source_uri: LARGE_FILM,
    media: { mode: "video", window_ms: 2000 },
    crop: { x: 0.5, y: 0.5, width: 0.5, height: 0.5 },
    max_frames: 6,
    include_frame_metadata: true,
  });
  assert.equal(answer.json.metadata.length, 6);
  assert.equal(answer.json.metadata[0].annotations.objects[0].label, "white_rabbit");
  const { streams } = await probeMp4(at.gemini.requests[0]!.videos[0]!);
  assert.deepEqual([streams[0]!.width, streams[0]!.height], [426, 240]);
});

Deno.test("a window without a moment keeps no clip, and one whose answer is nonsense keeps its rows", async () => {
  let asked = 0;
  await using at = await startNative(() =>
    [moments(), "no JSON", moments(moment({ kind: 7 }))][asked++ % 3]!
  );
  const { answer, events } = await at.reason({
    media: { mode: "audio_video", window_ms: 10_000 },
    vlm_concurrency: 1,
    include_frame_metadata: true,
  });
  const chunks = payloads(events, "semantic_chunk_inferred");
  assert.deepEqual(
    chunks.map((chunk) => [chunk.semantic_error, chunk.object_label, chunk.confidence, chunk.evidence]),
    [
      [null, "multimodal_activity", 0, undefined],
      ["semantic_parse_failed:json_object_not_found", null, null, undefined],
      ["semantic_parse_failed:schema_mismatch", null, null, undefined],
    ],
  );
  assert.match(answer.json.metadata[20].annotations.summary, /^novelty=/);
  assert.equal(await metric(at.test, "service_pipeline_media_blobs_written_total"), 0);
});

Deno.test("sources that cannot give sound and picture are refused, and nothing is on the timeline", async () => {
  await using at = await startNative(() => moments());
  const make = async (name: string, ...args: string[]) => {
    const path = join(at.test.mediaDir, name);
    await ffmpeg("-t", "2", "-i", FILM, ...args, path);
    return path;
  };
  const nine = Array.from({ length: 9 }, () => ["-map", "0:a:0"]).flat();
  for (
    const source_uri of [
      await make("silent.mp4", "-an", "-c:v", "copy"),
      await make("sound.mp4", "-vn", "-c:a", "copy"),
      await make("nine.mp4", "-map", "0:v", ...nine, "-c", "copy"),
    ]
  ) {
    const { answer, events } = await at.reason({ source_uri, media: { mode: "audio_video" } });
    assert.deepEqual([answer.status, answer.json.error.details[0].field], [422, "source_uri"]);
    assert.equal(events.length, 1);
  }
  assert.equal(at.gemini.steps.length, 0);
});

Deno.test("a stop ends calls and extractions, and deletes the uploads", async () => {
  const never = held();
  await using at = await startNative(async () => {
    await never.answer();
    return moments();
  });
  const runId = await newRun(at.test);
  const reasoning = at.test.call("POST", `/v1/runs/${runId}/reason`, {
    ...WINDOWS,
    media: { mode: "audio_video", window_ms: 3000 },
    vlm_concurrency: 2,
  });
  // Both uploads are complete. If one were aborted at its very end, the server might keep a file whose name
  // is not known.
  await until("two windows are with the model", () => at.gemini.inFlight === 2);
  await at.test.call("POST", `/v1/runs/${runId}/stop`);
  assert.equal((await reasoning).status, 409);
  never.release();
  await until("the uploads are gone", () => at.gemini.stored === 0);
  await until("nothing is left", () => {
    try {
      assertNothingLeft(at.test);
      return true;
    } catch {
      return false;
    }
  });
  assert.deepEqual(kindsOf(await eventsOf(at.test, runId)), [
    "run_created",
    "ingest_received",
    "stop_requested",
  ]);
});

Deno.test("the analysis of the sidecar is in the prompt, and sounds that the model reports are checked against it", async () => {
  await using sidecar = openAudioDouble(observed([
    observation(500, 1500, { kind: "speech", label: "speech", transcript: "good morning", confidence: 0.95 }),
    observation(4000, 5000, { kind: "audio_event", label: "engine", confidence: 0.6 }),
    observation(0, 9000, { kind: "voice_activity", label: "voice" }),
  ]));
  await using at = await startNative(
    () =>
      moments(
        moment(),
        moment({
          start_offset_ms: 6000,
          end_offset_ms: 8000,
          modalities: ["audio"],
          kind: "music",
          description: "A flute",
        }),
      ),
    { SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address },
  );
  const { answer, events } = await at.reason({
    media: { mode: "audio_video", window_ms: 10_000 },
    local_audio: { profile: "physical_world", speech_engine: "whisper", max_events: 5, min_confidence: 0.5 },
    max_frames: 10,
  });
  assert.equal(answer.status, 200, answer.text);
  const [chunk] = payloads(events, "semantic_chunk_inferred");
  assert.deepEqual(
    [chunk.provider, chunk.local_audio_error, chunk.local_audio.models, chunk.local_audio.profile],
    ["gemini", null, ["double"], "physical_world"],
  );
  assert.deepEqual(
    payloads(events, "multimodal_moment").map((
      { kind, description, modalities, start_pts_ms },
    ) => [kind, description, modalities, start_pts_ms]),
    [
      ["speech", "Speaker: good morning", ["audio"], 500],
      ["interaction", "A rabbit leaves its burrow", ["video"], 1000],
      ["mechanical", "engine", ["audio"], 4000],
    ],
    "the flute was not heard",
  );
  assert.deepEqual([chunk.object_label, chunk.confidence], ["speech", 0.95]);
  assert.match(at.gemini.requests[0]!.prompt, /good morning/);
  const [request] = sidecar.requests;
  assert.ok(request?.operation === "analyze" && typeof request.wav !== "string");
  assert.deepEqual(
    [request.profile, request.engine, request.maxEvents, request.wav.channels, request.wav.sampleRateHz],
    ["physical_world", "whisper", 5, 1, 16_000],
  );
  assert.deepEqual(sidecar.faults, []);
});

Deno.test("without a model the result is the analysis of the sidecar alone, spoken if asked for", async () => {
  await using sidecar = openAudioDouble(observed([observation(1000, 2000, { label: "music" })]));
  await using test = await startService({
    SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address,
    SERVICE_ACTIVE_STREAM_LIMIT: "10",
  });
  const local = {
    ...WINDOWS,
    semantic_inference: false,
    media: { mode: "audio_video" },
    local_audio: { voice_feedback: true },
  };
  const { runId, answer, events } = await reasonOn(test, local);
  assert.equal(answer.status, 200, answer.text);
  const chunks = payloads(events, "semantic_chunk_inferred");
  assert.equal(chunks.length, 2, "windows of twenty seconds");
  const [chunk] = chunks;
  assert.deepEqual(
    [
      chunk.provider,
      chunk.semantic_fallback_used,
      chunk.semantic_error,
      chunk.object_label,
      chunk.timestamp_resolution_ms,
    ],
    ["local_audio", false, null, "music", 1],
  );
  assert.equal(payloads(events, "semantic_fallback_activated").length, 0);
  const [found] = payloads(events, "multimodal_moment");
  assert.deepEqual([found.provider, found.kind, found.description], ["local_audio", "music", "music"]);
  assert.equal(found.evidence.media_type, "video/mp4");
  const { media_sha256, media_type, model, sample_rate_hz } = chunk.feedback_audio;
  assert.deepEqual([media_type, model, sample_rate_hz], ["audio/wav", "double-voice", 22_050]);
  assert.deepEqual(found.feedback_audio, chunk.feedback_audio);
  const wav = await test.call("GET", `/v1/runs/${runId}/media/${media_sha256}`);
  assert.deepEqual([wav.status, wav.headers.get("content-type")], [200, "audio/wav"]);
  assert.ok(sidecar.requests.some(({ operation, text }) => operation === "synthesize" && text === "music."));
  assert.equal(answer.json.tokens.total_tokens, 0);
});

Deno.test("a failure of the sidecar is in the chunk, which then lacks only the sound", async () => {
  await using sidecar = openAudioDouble(refused("model_load"));
  await using at = await startNative(
    () =>
      moments(
        moment(),
        moment({ modalities: ["audio", "video"], kind: "speech", description: "Somebody speaks" }),
      ),
    { SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address },
  );
  const media = { mode: "audio_video", window_ms: 10_000 };
  const { answer, events } = await at.reason({
    media,
    local_audio: { voice_feedback: true },
    max_frames: 10,
  });
  assert.equal(answer.status, 200, answer.text);
  const [chunk] = payloads(events, "semantic_chunk_inferred");
  assert.deepEqual(
    [chunk.local_audio, chunk.local_audio_error, chunk.semantic_error, chunk.feedback_audio],
    [null, "model_load", null, undefined],
  );
  assert.deepEqual(payloads(events, "multimodal_moment").map(({ kind }) => kind), ["interaction"]);

  const alone = await at.reason({ media, local_audio: {}, max_frames: 10, semantic_inference: false });
  const [deaf] = payloads(alone.events, "semantic_chunk_inferred");
  assert.deepEqual(
    [deaf.provider, deaf.local_audio_error, deaf.semantic_fallback_used, deaf.event_type, deaf.moments],
    [null, "model_load", true, null, []],
  );
  assert.equal(alone.answer.status, 200);
  assert.equal(await metric(at.test, "service_pipeline_local_audio_tts_failures_total"), 1);
});

Deno.test("speech that cannot be made is missing, and nothing else", async () => {
  await using sidecar = openAudioDouble((request, index) =>
    request.operation === "analyze"
      ? observed([observation(0, 1000)])(request, index)
      : refused("inference")(request, index)
  );
  await using at = await startNative(() => moments(), { SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
  const body = { media: { mode: "audio_video" }, local_audio: { voice_feedback: true }, max_frames: 5 };
  const failed = await at.reason(body);
  const [chunk] = payloads(failed.events, "semantic_chunk_inferred");
  assert.deepEqual([chunk.feedback_audio, chunk.moments.length, chunk.semantic_error], [undefined, 1, null]);
  sidecar.answer((request, index) =>
    request.operation === "analyze"
      ? observed([observation(0, 1000)])(request, index)
      : spoken()(request, index)
  );
  const made = await at.reason(body);
  assert.equal(payloads(made.events, "semantic_chunk_inferred")[0].feedback_audio.created, true);
  const again = await at.reason(body);
  assert.equal(payloads(again.events, "semantic_chunk_inferred")[0].feedback_audio.created, false);
  assert.ok(await metric(at.test, "service_pipeline_media_blobs_reused_total") >= 1);
});

Deno.test("a disk that takes no clip costs the evidence and not the moments", async () => {
  await using at = await startNative(() => moments(moment()));
  const blobs = join(at.test.dataDir, "media", "blobs");
  Deno.removeSync(blobs, { recursive: true });
  Deno.symlinkSync(join(at.test.dataDir, "a disk", "that is gone"), blobs);
  const { answer, events } = await at.reason({ media: { mode: "audio_video" }, max_frames: 5 });
  assert.equal(answer.status, 200, answer.text);
  const [found] = payloads(events, "multimodal_moment");
  assert.deepEqual([found.evidence, found.description], [null, "A rabbit leaves its burrow"]);
  assert.equal(payloads(events, "semantic_chunk_inferred")[0].evidence, undefined);
  assert.equal(await metric(at.test, "service_pipeline_media_blob_failures_total"), 1);
});
