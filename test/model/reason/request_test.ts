import assert from "node:assert/strict";
import { canonicalModel } from "../../../src/model/infer/catalog.ts";
import { DETECTORS } from "../../../src/model/frames/detected_range.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { REASON_BODY } from "../../../src/model/api/reason.ts";
import {
  isNative,
  isTiered,
  readReason,
  type ReasonFacts,
  type ReasonPlan,
} from "../../../src/model/reason/request.ts";
import { type CheckedSchema, plainSchema } from "../../../src/model/reason/caller_schema.ts";
import { compileOutputSchema } from "../../../src/model/reason/output_schema.ts";
import { firstPass, secondPass } from "../../../src/model/reason/schemas.ts";

const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const CLOUD = "gemini-3.5-flash-lite";

const FACTS: ReasonFacts = {
  requestId: "req-000000000000002a",
  hasProvider: true,
  hasBinaryMedia: (model) => model === CLOUD,
  identify: canonicalModel,
  checkedSchema: null,
};

function plan(fields: Record<string, unknown> = {}, facts: Partial<ReasonFacts> = {}): ReasonPlan {
  const body = REASON_BODY.parse({ source_uri: "/srv/a.mp4", model: MODEL, ...fields });
  const schema = body.output_schema;
  return readReason(body, { ...FACTS, checkedSchema: schema == null ? null : checked(schema), ...facts });
}

function checked(given: unknown): CheckedSchema {
  try {
    const { schema } = compileOutputSchema(plainSchema(given));
    return { ok: true, outputSchema: { schema, read: () => assert.fail("nothing is read") } };
  } catch (error) {
    return { ok: false, fault: (error as Error).message };
  }
}

/** The fields that are refused, in order; empty when the request is taken. */
function faults(fields: Record<string, unknown>, facts: Partial<ReasonFacts> = {}): string[] {
  try {
    plan(fields, facts);
    return [];
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    assert.equal(error.status, 422);
    return error.details.map(({ field }) => field);
  }
}

Deno.test("a request with nothing but a source and a model has every default of frames mode", () => {
  const { outputSchema, ...rest } = plan();
  assert.equal(outputSchema, null);
  assert.deepEqual(rest, {
    sourceUri: "/srv/a.mp4",
    mode: "balanced",
    model: MODEL,
    streamId: "stream-0",
    traceId: "trace-000000000000002a",
    indexName: null,
    sampling: { policy: null, fixedFps: null },
    maxFrames: 120_000,
    chunking: { by: "count", size: 25 },
    windowSize: 16,
    segmentMs: 250,
    markerWindow: 3,
    crop: null,
    detectors: new Set(DETECTORS),
    includeFrameMetadata: true,
    semanticInference: true,
    timeoutMs: 60_000,
    prompt: null,
    firstPassModel: MODEL,
    secondPassModel: MODEL,
    threshold: 0.7,
    temporalChain: false,
    videoStream: null,
    visualDiff: false,
    concurrency: 4,
    imagesPerChunk: 2,
    maxEdge: null,
    clip: null,
    media: { mode: "frames", resolution: null, persistEvidence: false, windowMs: 500 },
    localAudio: null,
  });
  assert.deepEqual(plan({ media: { mode: "frames" } }), plan());
  const nulls = Object.keys(REASON_BODY.shape).filter((key) => key !== "source_uri" && key !== "model");
  assert.deepEqual(
    plan(Object.fromEntries(nulls.map((key) => [key, null]))),
    plan(),
    "null is the same as absent",
  );
});

Deno.test("a native mode has windows, no rows, and keeps its evidence only with sound", () => {
  const video = plan({ model: CLOUD, media: { mode: "video" } });
  assert.deepEqual(video.chunking, { by: "window", windowMs: 8000 });
  assert.deepEqual(video.media, { mode: "video", resolution: null, persistEvidence: false, windowMs: 8000 });
  assert.deepEqual([video.timeoutMs, video.includeFrameMetadata, video.concurrency], [60_000, false, 4]);

  const sound = plan({ model: CLOUD, media: { mode: "audio_video", resolution: "low" }, local_audio: {} });
  assert.deepEqual(sound.chunking, { by: "window", windowMs: 20_000 });
  assert.deepEqual(sound.media, {
    mode: "audio_video",
    resolution: "low",
    persistEvidence: true,
    windowMs: 20_000,
  });
  assert.equal(sound.concurrency, 2);
  assert.deepEqual(sound.localAudio, {
    profile: "general",
    engine: "auto",
    minConfidence: 0.35,
    maxEvents: 32,
    voiceFeedback: false,
  });

  const asked = plan({
    model: CLOUD,
    media: { mode: "audio_video", window_ms: 100, persist_evidence: false },
    include_frame_metadata: true,
  });
  assert.deepEqual(asked.chunking, { by: "window", windowMs: 100 });
  assert.deepEqual([asked.media.persistEvidence, asked.includeFrameMetadata], [false, true]);
  assert.deepEqual([plan(), video, sound].map(isNative), [false, true, true]);
});

Deno.test("values are clamped, spellings made canonical, and chunks of a chain run one at a time", () => {
  for (const [given, expected] of [[0, 1], [-7, 1], [65, 64], [3, 3], [2n ** 70n, 64]] as const) {
    assert.equal(plan({ vlm_concurrency: given }).concurrency, expected);
  }
  for (const [given, expected] of [[-1, 0], [2, 1], [0.25, 0.25]] as const) {
    assert.equal(plan({ second_pass_threshold: given }).threshold, expected);
  }
  assert.equal(plan({ model: "qwen/qwen3-vl-4b-INSTRUCT", mode: "Detailed" }).model, MODEL);
  assert.equal(plan({ mode: "Detailed" }).mode, "detailed");
  assert.equal(plan({ semantic_prompt: "  What moves?\n" }).prompt, "What moves?");
  assert.deepEqual(plan({ video_clip_mode: true, video_clip_duration_s: 1.5 }).clip, { durationMs: 1500 });
  assert.equal(plan({ video_clip_mode: true }).timeoutMs, 60_000);
  assert.deepEqual(plan({ video_clip_mode: true }).chunking, { by: "count", size: 25 });
  assert.equal(plan({ temporal_chain: true, vlm_concurrency: 8 }).concurrency, 1);
  const visual = plan({ visual_diff: true, vlm_concurrency: 8 });
  assert.deepEqual([visual.temporalChain, visual.visualDiff, visual.concurrency], [true, true, 1]);
  for (const [given, expected] of [[0, 0], [2n ** 64n - 1n, 2 ** 64]] as const) {
    assert.equal(plan({ marker_correction_window_frames: given }).markerWindow, expected);
  }
});

Deno.test("a second pass is asked for by another model, with its own size and schema", () => {
  const alone = plan();
  assert.equal(isTiered(alone), false);
  assert.equal(secondPass(alone), null);
  assert.deepEqual([firstPass(alone).maxTokens, firstPass(alone).outputSchema.name], [
    320,
    "chunk_observation",
  ]);

  const tiered = plan({ first_pass_model: "MAGE-VL", second_pass_model: "of my own" });
  assert.deepEqual([tiered.firstPassModel, tiered.secondPassModel], ["microsoft/Mage-VL", "of my own"]);
  assert.equal(firstPass(tiered).model, "microsoft/Mage-VL");
  assert.deepEqual(secondPass(tiered), { ...firstPass(tiered), model: "of my own", maxTokens: 256 });
  assert.equal(isTiered(plan({ second_pass_model: MODEL.toUpperCase() })), false);

  const custom = plan({ output_schema: { type: "object" }, second_pass_model: CLOUD });
  assert.deepEqual(firstPass(custom), {
    model: MODEL,
    maxTokens: 1024,
    outputSchema: { name: "caller_schema", schema: { type: "object" } },
  });
  assert.equal(secondPass(custom)!.outputSchema.name, "tier_label");
  const sound = plan({ model: CLOUD, media: { mode: "audio_video" } });
  assert.deepEqual([firstPass(sound).maxTokens, firstPass(sound).outputSchema.name], [1024, "clip_moments"]);
});

Deno.test("every rule names its field, and both ends of a range belong to it", () => {
  const range = (field: string, minimum: number, maximum: number) => {
    assert.deepEqual([faults({ [field]: minimum }), faults({ [field]: maximum })], [[], []], field);
    assert.deepEqual([faults({ [field]: minimum - 1 }), faults({ [field]: maximum + 1 })], [[field], [
      field,
    ]]);
  };
  range("max_frames", 1, 500_000);
  range("chunk_size", 5, 500);
  range("window_size", 2, 256);
  range("semantic_frames_per_chunk", 1, 4);
  range("semantic_frame_max_edge", 64, 4096);
  range("semantic_timeout_ms", 100, 120_000);
  const native = (media: object, more: object = {}) => ({ model: CLOUD, media, ...more });
  const rows: [Record<string, unknown>, string[]][] = [
    [{ mode: "fast" }, ["mode"]],
    [{ model: "gpt" }, ["model"]],
    [{ segment_ms: 0 }, ["segment_ms"]],
    [{ segment_ms: 1 }, []],
    [{ sampling_policy: "random" }, ["sampling_policy"]],
    [{ sampling_policy: "fixed" }, []],
    [{ sampling_policy: "fixed", fixed_fps: 0.1 }, ["fixed_fps"]],
    [{ sampling_policy: "FIXED", fixed_fps: 121 }, ["fixed_fps"]],
    [{ sampling_policy: "adaptive", fixed_fps: 500 }, ["fixed_fps"]],
    [{ sampling_policy: "adaptive", fixed_fps: 5 }, []],
    [{ crop: { x: 0.5, y: 0, width: 0.5, height: 1 } }, []],
    [{ crop: { x: 0.5, y: 0, width: 0.6, height: 1 } }, ["crop"]],
    [{ crop: { x: 0, y: 0, width: 0, height: 1 } }, ["crop"]],
    [{ semantic_prompt: " \n" }, ["semantic_prompt"]],
    [{ semantic_prompt: "x".repeat(4096) }, []],
    [{ semantic_prompt: `  ${"x".repeat(4096)}  ` }, []],
    [{ semantic_prompt: "x".repeat(4097) }, ["semantic_prompt"]],
    [{ semantic_prompt: "é".repeat(2049) }, ["semantic_prompt"]],
    [{ output_schema: true }, ["output_schema"]],
    [{ output_schema: { type: "text" } }, ["output_schema"]],
    [{ output_schema: {} }, []],
    [{ stream_id: "" }, ["stream_id"]],
    [{ trace_id: " " }, ["trace_id"]],
    [{ index_name: "x".repeat(257) }, ["index_name"]],
    [{ first_pass_model: "" }, ["first_pass_model"]],
    [{ second_pass_model: "x".repeat(257) }, ["second_pass_model"]],
    [{ video_clip_duration_s: 0 }, ["video_clip_duration_s"]],
    [{ video_clip_duration_s: 60 }, []],
    [{ video_clip_duration_s: 60.5 }, ["video_clip_duration_s"]],
    [native({ mode: "video" }, { video_clip_mode: true }), ["media"]],
    [native({ mode: "video" }, { video_clip_duration_s: 1 }), ["media"]],
    [native({ mode: "video" }, { video_clip_mode: false }), []],
    [{ media: { mode: "frames" }, video_clip_mode: true }, ["media"]],
    [native({ mode: "video" }, { chunk_size: 25 }), ["chunk_size"]],
    [{ media: { mode: "frames" }, chunk_size: 25 }, []],
    [native({ mode: "video", window_ms: 99 }), ["media.window_ms"]],
    [native({ mode: "video", window_ms: 60_001 }), ["media.window_ms"]],
    [{ media: { mode: "frames", window_ms: 99 } }, ["media.window_ms"]],
    [{ local_audio: {} }, ["local_audio"]],
    [native({ mode: "video" }, { local_audio: {} }), ["local_audio"]],
    [native({ mode: "audio_video" }, { local_audio: { min_confidence: 1.1 } }), [
      "local_audio.min_confidence",
    ]],
    [native({ mode: "audio_video" }, { local_audio: { max_events: 0 } }), ["local_audio.max_events"]],
    [native({ mode: "audio_video" }, { local_audio: { max_events: 65 } }), ["local_audio.max_events"]],
    [native({ mode: "video" }, { semantic_inference: false }), ["semantic_inference"]],
    [native({ mode: "audio_video" }, { semantic_inference: false }), ["semantic_inference"]],
    [native({ mode: "audio_video" }, { semantic_inference: false, local_audio: {} }), []],
    [{ semantic_inference: false }, []],
    [{ media: { mode: "video" } }, ["media.mode"]],
    [{ media: { mode: "video" }, first_pass_model: CLOUD }, []],
    [{ media: { mode: "audio_video" }, semantic_inference: false, local_audio: {} }, []],
    [{ model: "gpt", media: { mode: "video" } }, ["model"]],
  ];
  for (const [fields, expected] of rows) {
    assert.deepEqual(faults(fields), expected, JSON.stringify(fields).slice(0, 200));
  }
  assert.deepEqual(
    faults({ media: { mode: "video" } }, { hasProvider: false }),
    [],
    "that is a 503, not a fault",
  );
});

Deno.test("one answer names every field at fault", () => {
  assert.deepEqual(
    faults({
      mode: "fast",
      max_frames: 0,
      chunk_size: 4,
      crop: { x: 2, y: 0, width: 1, height: 1 },
      semantic_prompt: "",
      local_audio: { max_events: 99 },
      output_schema: [],
    }),
    [
      "mode",
      "max_frames",
      "crop",
      "local_audio",
      "local_audio.max_events",
      "chunk_size",
      "semantic_prompt",
      "output_schema",
    ],
  );
});

Deno.test("the body is closed, at every level, and each field has its type", () => {
  const wrong: [Record<string, unknown>, string][] = [
    [{ sample_fps: 1 }, ""],
    [{ media: { mode: "video", fps: 1 } }, "media"],
    [{ local_audio: { engine: "auto" } }, "local_audio"],
    [{ crop: { x: 0, y: 0, width: 1, height: 1, z: 0 } }, "crop"],
    [{ crop: { x: 0, y: 0, width: 1 } }, "crop.height"],
    [{ media: {} }, "media.mode"],
    [{ media: { mode: "clip" } }, "media.mode"],
    [{ media: { mode: "video", resolution: "ultra" } }, "media.resolution"],
    [{ local_audio: { profile: "film" } }, "local_audio.profile"],
    [{ local_audio: { speech_engine: "sense_voice" } }, "local_audio.speech_engine"],
    [{ chunk_size: 5.5 }, "chunk_size"],
    [{ max_frames: "10" }, "max_frames"],
    [{ temporal_chain: 1 }, "temporal_chain"],
    [{ vlm_concurrency: 1.5 }, "vlm_concurrency"],
    [{ marker_correction_window_frames: -1 }, "marker_correction_window_frames"],
  ];
  for (const [fields, path] of wrong) {
    const parsed = REASON_BODY.safeParse({ source_uri: "a", model: MODEL, ...fields });
    assert.ok(!parsed.success, JSON.stringify(fields));
    assert.equal(parsed.error.issues[0]!.path.join("."), path, JSON.stringify(fields));
  }
  for (const missing of [{ model: MODEL }, { source_uri: "a" }]) {
    assert.ok(!REASON_BODY.safeParse(missing).success);
  }
});
