import assert from "node:assert/strict";
import { join } from "node:path";
import {
  CUT,
  fencedJson,
  goodJson,
  held,
  MALFORMED,
  type ModelAnswer,
  startModelServer,
} from "../../support/models/model_server.ts";
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
  SAMPLED,
  SECOND_MODEL,
  SEEN,
  seen,
  startReason,
} from "../../support/models/reason.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { CLIPS, KEY_A, KEY_B, MODEL, newRun, startService } from "../../support/service.ts";
import { needing, SHARED_CLIPS, SHARED_CLIPS_FOLDER } from "../../support/needs.ts";
import { until } from "../../support/until.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

interface WireMarker {
  readonly event_type: string;
  readonly origin?: string;
  readonly [field: string]: unknown;
}

/** The markers of what a model said. */
function saidBy(markers: readonly WireMarker[]): readonly WireMarker[] {
  return markers.filter(({ origin }) => origin === "model");
}

Deno.test("a film goes past the model chunk by chunk, and everything that was found is on the timeline", async () => {
  await using at = await startReason();
  const { runId, answer, events } = await at.reason({ fixed_fps: 1, chunk_size: 7, detectors: [] });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(kindsOf(events), [
    "run_created",
    "ingest_received",
    "semantic_chunk_inferred*5",
    "semantic_chunk_generated*5",
    `marker_emitted*${payloads(events, "marker_emitted").length}`,
    "analysis_generated",
    "run_completed",
  ]);
  const { coordinates, ...received } = payloads(events, "ingest_received")[0];
  assert.deepEqual(coordinates.analysis_extent, { width: 214, height: 120 });
  assert.deepEqual({ ...received, request_id: "" }, {
    request_id: "",
    source_uri: FILM,
    index_name: null,
    coordinate_schema: "service.image.v1",
    media_mode: "frames",
    media_window_ms: null,
    video_streams: null,
    audio_streams: null,
    audio_channels: null,
  });
  const inferred = payloads(events, "semantic_chunk_inferred");
  assert.deepEqual(inferred.map(({ chunk_index }) => chunk_index).toSorted(), [0, 1, 2, 3, 4]);
  const { inference_latency_ms: _, ...first } = inferred.find(({ chunk_index }) => chunk_index === 0);
  assert.deepEqual({ ...first, request_id: "" }, {
    request_id: "",
    stream_id: "stream-0",
    chunk_index: 0,
    provider: "vllm",
    provider_fallback_used: false,
    semantic_fallback_used: false,
    semantic_error: null,
    finish_reason: "stop",
    response_chars: SEEN.length,
    event_type: "keyframe_keep",
    object_label: "white_rabbit",
    summary: "A rabbit wakes up",
    description: "A large white rabbit comes out of its burrow.",
    confidence: 0.875,
    raw_output: JSON.parse(SEEN),
    prompt_tokens: 31,
    completion_tokens: 6,
    thinking_tokens: 0,
    total_tokens: 37,
    moments: [],
    local_audio: null,
    local_audio_error: null,
    pts_start_ms: 0,
    pts_end_ms: 6000,
  });
  const generated = payloads(events, "semantic_chunk_generated");
  assert.deepEqual(
    generated.map((
      { chunk_index, chunk_frames, source_span_ms, total_tokens },
    ) => [chunk_index, chunk_frames, source_span_ms, total_tokens]),
    [[0, 7, 6000, 37], [1, 7, 6000, 37], [2, 7, 6000, 37], [3, 7, 6000, 37], [4, 2, 1000, 37]],
  );
  for (const { lag_ms, process_ms, source_span_ms } of generated) {
    assert.equal(lag_ms, Math.max(0, process_ms - source_span_ms));
  }
  assert.deepEqual(
    [payloads(events, "analysis_generated")[0], payloads(events, "run_completed")[0]].map((
      payload,
    ) => [payload.frames, payload.markers, payload.index_name, payload.stream_id]),
    Array(2).fill([30, payloads(events, "marker_emitted").length, null, "stream-0"]),
  );
  const summary = payloads(events, "analysis_generated")[0];
  assert.deepEqual(
    [
      summary.sampling_policy,
      summary.source_fps,
      summary.sample_fps,
      summary.chunks_analyzed,
      summary.total_tokens,
    ],
    ["fixed", 24, 1, 5, 185],
  );

  const { metadata, markers, tokens, ...head } = answer.json;
  assert.deepEqual({ ...head, request_id: "", lag_p95_ms: 0, lag_p99_ms: 0 }, {
    request_id: "",
    run_id: runId,
    generated: 30,
    markers_emitted: markers.length,
    decoded_frames: 30,
    truncated: false,
    sample_fps: 1,
    lag_p95_ms: 0,
    lag_p99_ms: 0,
    frame_metadata_included: true,
  });
  assert.deepEqual({ ...tokens, inference_latency_ms: 0 }, {
    prompt_tokens: 155,
    completion_tokens: 30,
    thinking_tokens: 0,
    total_tokens: 185,
    inference_latency_ms: 0,
    chunks_analyzed: 5,
  });
  assert.equal(metadata.length, 30);
  const row = metadata[29];
  assert.deepEqual(row.annotations, {
    summary: "A rabbit wakes up",
    objects: [{ label: "white_rabbit", score: 0.875 }],
    events: [{
      type: "keyframe_keep",
      score: 0.875,
      description: "A large white rabbit comes out of its burrow.",
    }],
  });
  assert.deepEqual(
    [row.confidence, row.fallback.used, row.finish_reason, row.frame_index, row.pts_ms],
    [0.875, false, "stop", 29, 29000],
  );
  const said = saidBy(markers);
  const measured = markers.length - 1;
  assert.deepEqual(said.map((marker) => ({ ...marker, run_id: "" })), [{
    marker_id: `mk-${measured.toString(16).padStart(8, "0")}`,
    run_id: "",
    stream_id: "stream-0",
    event_type: "keyframe_keep",
    status: "exact",
    start_frame: 0,
    end_frame: 29,
    start_pts_ms: 0,
    end_pts_ms: 29000,
    confidence: 0.875,
    supersedes_marker_id: null,
    origin: "model",
  }]);

  assert.equal(at.model.requests.length, 5);
  for (const { schema, maxTokens, temperature, model, images } of at.model.requests) {
    assert.deepEqual(
      [schema!.schema.required, maxTokens, temperature, model, images.length],
      [["event_type", "object_label", "summary", "description", "confidence"], 320, 0, MODEL, 2],
    );
  }
  assert.match(
    at.model.requests.find(({ prompt }) => prompt.includes("chunk_frame_start=28"))!.prompt,
    /\nchunk_frame_start=28\nchunk_frame_end=29\nchunk_pts_start_ms=28000\nchunk_pts_end_ms=29000$/,
  );
  assert.equal((await at.test.call("GET", `/v1/runs/${runId}/state`)).json.state, "completed");
  const second = await at.test.call("POST", `/v1/runs/${runId}/reason`, SAMPLED);
  assert.deepEqual([second.status, second.json.error.code], [409, "conflict"]);
  assert.equal((await eventsOf(at.test, runId)).length, events.length);
  assert.ok(!JSON.stringify(events).includes(KEY_A));
  assertNothingLeft(at.test);
});

Deno.test("pictures are as many, as large and of the region that was asked for", async () => {
  await using at = await startReason();
  const check = async (body: Record<string, unknown>, images: number[], width: number, height: number) => {
    const before = at.model.requests.length;
    const { answer, events } = await at.reason({
      source_uri: LARGE_FILM,
      max_frames: 12,
      ...body,
    });
    assert.equal(answer.status, 200, answer.text);
    const sent = at.model.requests.slice(before);
    assert.deepEqual(sent.map(({ images }) => images.length).toSorted(), images.toSorted());
    for (const image of sent.flatMap(({ images }) => images)) {
      assert.deepEqual([image.width, image.height], [width, height]);
    }
    assert.equal(payloads(events, "semantic_chunk_inferred").length, images.length);
    return events;
  };
  await check({ semantic_frames_per_chunk: 1 }, [1, 1, 1], 854, 480);
  await check({ semantic_frames_per_chunk: 3 }, [3, 3, 2], 854, 480);
  await check({ semantic_frames_per_chunk: 4, max_frames: 1 }, [1], 854, 480);
  await check({ semantic_frame_max_edge: 320 }, [2, 2, 2], 320, 178);
  await check({ semantic_frame_max_edge: 4096, max_frames: 3 }, [2], 854, 480);
  const crop = { x: 0.25, y: 0.5, width: 0.5, height: 0.25 };
  const events = await check({ crop, max_frames: 6 }, [2, 1], 426, 120);
  assert.deepEqual(payloads(events, "ingest_received")[0].coordinates, {
    source_extent: { width: 854, height: 480 },
    requested_region: crop,
    resolved_region: { x: 212, y: 240, width: 426, height: 120 },
    analysis_extent: { width: 426, height: 120 },
  });
});

Deno.test("a chunk that fails reports the reason, keeps its deterministic rows, and fails nothing else", async () => {
  await using at = await startReason({ toleratesFaults: true });
  const check = async (second: ModelAnswer, error: string, body: Record<string, unknown> = {}) => {
    at.model.answer = ({ prompt }) => prompt.includes("chunk_frame_start=5\n") ? second : SEEN;
    const { answer, events } = await at.reason({ max_frames: 15, ...body });
    assert.equal(answer.status, 200, answer.text);
    const chunks = payloads(events, "semantic_chunk_inferred")
      .toSorted((left, right) => left.chunk_index - right.chunk_index);
    assert.deepEqual(chunks.map(({ semantic_error }) => semantic_error), [null, error, null]);
    const { event_type, object_label, summary, description, confidence, semantic_fallback_used } = chunks[1];
    assert.deepEqual(
      [event_type, object_label, summary, description, confidence, semantic_fallback_used],
      [null, null, null, null, null, true],
      error,
    );
    assert.equal(payloads(events, "run_completed").length, 1);
    const row = answer.json.metadata[5];
    assert.match(row.annotations.summary, /^novelty=/);
    assert.deepEqual([row.fallback.used, answer.json.metadata[4].fallback.used], [true, false]);
    assert.equal(answer.json.tokens.chunks_analyzed, 3);
    const told = { chunks_failed: 1, first_chunk_error: error };
    for (const at of [answer.json, payloads(events, "analysis_generated")[0]]) {
      assert.deepEqual({ chunks_failed: at.chunks_failed, first_chunk_error: at.first_chunk_error }, told);
    }
    return chunks[1];
  };
  await check({ status: 500 }, "http_status_500");
  await check({ status: 400 }, "http_status_400");
  await check({ status: 429 }, "http_status_429");
  await check(CUT, "transport_error");
  await check(MALFORMED, "invalid_response");
  await check("", "semantic_parse_failed:empty_response");
  const prose = await check("I see a rabbit.", "semantic_parse_failed:json_object_not_found");
  assert.deepEqual(
    [prose.raw_output, prose.response_chars, prose.provider, prose.total_tokens],
    [null, 15, "vllm", 37],
  );
  await check("{event: rabbit}", "semantic_parse_failed:invalid_json");
  await check(seen({ confidence: 1.5 }), "semantic_parse_failed:schema_mismatch");
  await check(seen({ confidence: undefined }), "semantic_parse_failed:schema_mismatch");

  const unserved = await at.reason({ max_frames: 10, first_pass_model: "nobody/serves-this" });
  assert.deepEqual(
    payloads(unserved.events, "semantic_chunk_inferred").map((
      { semantic_error, provider },
    ) => [semantic_error, provider]),
    [["unsupported_model", null], ["unsupported_model", null]],
  );
  assert.equal(unserved.answer.status, 200);
});

Deno.test("a model that does not answer in time costs its chunk and nothing else", async () => {
  const clock = new ManualClock();
  await using at = await startReason({}, {}, { clock });
  const never = held();
  at.model.answer = ({ prompt }) => prompt.includes("chunk_frame_start=0\n") ? never.answer() : SEEN;
  const runId = await newRun(at.test);
  const chunks = async () => payloads(await eventsOf(at.test, runId), "semantic_chunk_inferred");
  const body = { ...SAMPLED, max_frames: 10, semantic_timeout_ms: 5000 };
  const reasoning = at.test.call("POST", `/v1/runs/${runId}/reason`, body);
  await until("the other chunk is answered", async () => (await chunks()).length === 1);
  await until("this one is asked", () => at.model.inFlight === 1);
  await clock.advance(5_000);
  const answer = await reasoning;
  never.release();
  assert.equal(answer.status, 200);
  const errors = (await chunks()).map(({ chunk_index, semantic_error }) => [chunk_index, semantic_error]);
  assert.equal(errors.length, 2);
  assert.notEqual(errors.find(([index]) => index === 0)![1], null);
  assert.equal(errors.find(([index]) => index === 1)![1], null);
  await until("the call was ended", () => at.model.inFlight === 0);
});

Deno.test("fenced JSON is read, unknown event types are observations, and blank texts are filled in", async () => {
  await using at = await startReason({ answer: () => fencedJson({ summary: " ", object_label: "" }) });
  const { answer, events } = await at.reason({ max_frames: 3 });
  const [chunk] = payloads(events, "semantic_chunk_inferred");
  assert.deepEqual(
    [chunk.event_type, chunk.object_label, chunk.semantic_error],
    ["context_observation", "frame_context", null],
  );
  assert.ok(chunk.summary.length > 5);
  assert.equal(answer.json.metadata[0].annotations.objects[0].label, "frame_context");
});

Deno.test("a backend that fails is replaced by the next one, unless it says that the request is wrong", async () => {
  await using second = startModelServer({ answer: () => goodJson() });
  await using at = await startReason({ toleratesFaults: true }, { SERVICE_SGLANG_BASE_URL: second.url });
  const check = async (first: ModelAnswer, expected: unknown[]) => {
    at.model.answer = () => first;
    const { answer, events } = await at.reason({ max_frames: 3 });
    const [chunk] = payloads(events, "semantic_chunk_inferred");
    assert.deepEqual(
      [chunk.provider, chunk.provider_fallback_used, chunk.semantic_fallback_used, chunk.semantic_error],
      expected,
    );
    assert.equal(answer.json.metadata[0].fallback.used, expected[2]);
  };
  await check(SEEN, ["vllm", false, false, null]);
  await check({ status: 503 }, ["sglang", true, true, null]);
  await check({ status: 400 }, [null, false, true, "http_status_400"]);
});

Deno.test("an unsure first model is followed by the second, whose word counts", async () => {
  await using at = await startReason();
  const check = async (
    answers: { first: ModelAnswer; second: ModelAnswer },
    body: Record<string, unknown>,
    expected: { asked: string[]; label: string | null; tokens: number; error?: string | null },
  ) => {
    const before = at.model.requests.length;
    at.model.answer = ({ model }) => model === MODEL ? answers.first : answers.second;
    const { events } = await at.reason({ max_frames: 3, second_pass_model: SECOND_MODEL, ...body });
    const asked = at.model.requests.slice(before);
    assert.deepEqual(asked.map(({ model }) => model), expected.asked);
    const [chunk] = payloads(events, "semantic_chunk_inferred");
    assert.deepEqual(
      [chunk.object_label, chunk.total_tokens, chunk.semantic_error],
      [expected.label, expected.tokens, expected.error ?? null],
    );
    return asked;
  };
  const unsure = seen({ confidence: 0.69 });
  const sure = seen({ confidence: 0.7 });
  const better = seen({ object_label: "hare", confidence: 0.3 });
  const both = [MODEL, SECOND_MODEL];
  const [first, second] = await check({ first: unsure, second: better }, {}, {
    asked: both,
    label: "hare",
    tokens: 74,
  });
  assert.deepEqual([first!.maxTokens, second!.maxTokens], [320, 256]);
  assert.deepEqual([second!.schema, second!.prompt], [first!.schema, first!.prompt]);
  assert.deepEqual(second!.images, first!.images);
  await check({ first: sure, second: better }, {}, { asked: [MODEL], label: "white_rabbit", tokens: 37 });
  await check({ first: unsure, second: better }, { second_pass_threshold: 0.5 }, {
    asked: [MODEL],
    label: "white_rabbit",
    tokens: 37,
  });
  await check({ first: sure, second: better }, { second_pass_threshold: 7 }, {
    asked: both,
    label: "hare",
    tokens: 74,
  });
  await check({ first: unsure, second: { status: 500 } }, {}, {
    asked: both,
    label: "white_rabbit",
    tokens: 37,
  });
  await check({ first: unsure, second: "no idea" }, {}, { asked: both, label: "white_rabbit", tokens: 74 });
  await check({ first: unsure, second: better }, { second_pass_model: MODEL }, {
    asked: [MODEL],
    label: "white_rabbit",
    tokens: 37,
  });
  // Prose around the object does not matter.
  await check({ first: fencedJson({ confidence: 1 }), second: better }, {}, {
    asked: [MODEL],
    label: "forklift",
    tokens: 37,
  });
});

Deno.test("in a temporal chain each chunk's prompt has the description of the one before", async () => {
  await using at = await startReason();
  let asked = 0;
  at.model.answer = () => asked++ === 1 ? "nothing" : seen({ summary: `answer ${asked}` });
  const { events } = await at.reason({ temporal_chain: true, max_frames: 20, vlm_concurrency: 8 });
  assert.equal(at.model.maxInFlight, 1);
  const previous = at.model.requests.map(({ prompt }) =>
    /^\[previous_state \((\d+)ms\): (.*)\]$/m.exec(prompt)
  );
  assert.deepEqual(previous.map((match) => match?.[1]), [undefined, "0", "0", "5000"]);
  assert.ok(previous[1]![2]!.includes("answer 1") && previous[3]![2]!.includes("answer 3"));
  assert.ok(previous.every((match) => match === null || match[2]!.length <= 200));
  assert.deepEqual(payloads(events, "semantic_chunk_inferred").map(({ chunk_index }) => chunk_index), [
    0,
    1,
    2,
    3,
  ]);
});

Deno.test("a visual difference shows the picture of the chunk before first", async () => {
  await using at = await startReason();
  await at.reason({ visual_diff: true, max_frames: 15, semantic_frames_per_chunk: 3 });
  const [first, second, third] = at.model.requests.map(({ images }) =>
    images.map(({ bytes }) => bytes.toBase64())
  );
  assert.deepEqual([first!.length, second!.length, third!.length], [3, 4, 4]);
  assert.deepEqual([second![0], third![0]], [first![1], second![2]]);
});

Deno.test("an answer of the caller's own schema is kept as it is, and the rows stay deterministic", async () => {
  await using at = await startReason();
  const schema = { type: "object", properties: { doors: { type: "integer" } }, required: ["doors"] };
  const check = async (text: string, rawOutput: unknown, error: string | null) => {
    at.model.answer = () => text;
    const { runId, answer, events } = await at.reason({ max_frames: 3, output_schema: schema });
    const [chunk] = payloads(events, "semantic_chunk_inferred");
    assert.deepEqual(chunk.raw_output, rawOutput);
    assert.deepEqual([chunk.semantic_error, chunk.event_type, chunk.semantic_fallback_used], [
      error,
      null,
      error !== null,
    ]);
    assert.match(answer.json.metadata[0].annotations.summary, /^novelty=/);
    return runId;
  };
  const runId = await check('{"doors": 3}', { doors: 3 }, null);
  const { interactions } = (await at.test.call("GET", `/v1/runs/${runId}/interactions`)).json;
  assert.deepEqual(interactions, [{ chunk_index: 0, pts_start_ms: 0, pts_end_ms: 1000, doors: 3 }]);
  await check("three doors", { raw: "three doors" }, "semantic_parse_failed:invalid_json");
  await check('{"doors": "three"}', { doors: "three" }, "semantic_parse_failed:schema_mismatch");
  assert.deepEqual([at.model.requests[0]!.maxTokens, at.model.requests[0]!.schema!.schema], [1024, schema]);
});

Deno.test("without a provider the film is analyzed all the same, and without semantic inference no model is called", async () => {
  const deterministic = async (test: Parameters<typeof reasonOn>[0], body: Record<string, unknown>) => {
    const { answer, events } = await reasonOn(test, { max_frames: 12, ...body });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json.tokens, {
      prompt_tokens: 0,
      completion_tokens: 0,
      thinking_tokens: 0,
      total_tokens: 0,
      inference_latency_ms: 0,
      chunks_analyzed: 0,
    });
    assert.deepEqual(
      answer.json.metadata.map((row: { fallback: unknown }) => row.fallback),
      Array(12).fill({ used: false }),
    );
    return events;
  };
  await using bare = await startService();
  const events = await deterministic(bare, {});
  const end = ["semantic_chunk_generated*3", "marker_emitted*2", "analysis_generated", "run_completed"];
  assert.deepEqual(kindsOf(events).slice(0, 4), [
    "run_created",
    "ingest_received",
    "semantic_fallback_activated",
    "semantic_chunk_generated*3",
  ]);
  const [{ request_id: _, ...fallback }] = payloads(events, "semantic_fallback_activated");
  assert.deepEqual(fallback, { stream_id: "stream-0", reason: "provider_not_configured" });
  await using at = await startReason();
  const silent = kindsOf(await deterministic(at.test, { semantic_inference: false }));
  assert.deepEqual(silent.slice(0, 3), ["run_created", "ingest_received", "semantic_chunk_generated*3"]);
  assert.deepEqual(silent.slice(-2), end.slice(-2));
  assert.equal(at.model.requests.length, 0);
  const ownFlag = await reasonOn(bare, { max_frames: 3, semantic_inference: false });
  assert.equal(payloads(ownFlag.events, "semantic_fallback_activated").length, 0);
});

Deno.test("reason and analyze give the same rows for frames that no model described", async () => {
  await using test = await startService();
  const { answer } = await reasonOn(test, { fixed_fps: 8, chunk_size: 9 });
  const analyzed = await newRun(test);
  const sampling = { sampling_policy: "fixed", fixed_fps: 8 };
  await test.call("POST", `/v1/runs/${analyzed}/ingest`, { source_uri: FILM, max_frames: 1000, ...sampling });
  const { json } = await test.call("POST", `/v1/runs/${analyzed}/analyze`, { model: MODEL });
  const plain = (rows: Record<string, unknown>[]) =>
    rows.map((row) => ({ ...row, run_id: "", trace: null, ordering_key: "" }));
  assert.deepEqual(plain(answer.json.metadata), plain(json.metadata));
  assert.deepEqual(plain(answer.json.markers), plain(json.markers));
  assert.equal(json.metadata.length, 240);
});

Deno.test("what is measured of a film is the same with a question and without, and a model's cuts are its own", async () => {
  await using at = await startReason({ answer: () => seen({ event_type: "scene_cut", confidence: 1 }) });
  const measuredAlone = async (sampling: Record<string, unknown>) => {
    const runId = await newRun(at.test);
    await at.test.call("POST", `/v1/runs/${runId}/ingest`, {
      source_uri: FILM,
      max_frames: 1000,
      ...sampling,
    });
    return (await at.test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL })).json.markers;
  };
  const plain = (markers: readonly WireMarker[]) => markers.map((marker) => ({ ...marker, run_id: "" }));
  const cutsOf = (markers: readonly WireMarker[]) =>
    markers.filter(({ event_type, origin }) => event_type === "scene_cut" && origin === undefined)
      .map(({ start_pts_ms, end_pts_ms, status }) => [start_pts_ms, end_pts_ms, status]);
  const everyFrame = { sampling_policy: "source_fps_adaptive" };
  const exact = cutsOf(await measuredAlone(everyFrame));
  assert.deepEqual(exact, [
    [11_875, 11_875, "exact"],
    [15_750, 15_750, "exact"],
    [23_042, 23_042, "exact"],
  ]);
  const plans = [
    [everyFrame, { chunk_size: 100 }],
    [{ sampling_policy: "fixed", fixed_fps: 2 }, { chunk_size: 24 }],
    [{ sampling_policy: "fixed", fixed_fps: 2 }, {
      ...{ chunk_size: 24, second_pass_model: SECOND_MODEL, second_pass_threshold: 1 },
      semantic_prompt: "Where are cuts?",
    }],
    [{ sampling_policy: "fixed", fixed_fps: 0.5 }, { video_clip_mode: true, chunk_size: 24 }],
  ] as const;
  for (const [sampling, question] of plans) {
    const { answer, runId } = await at.reason({ max_frames: 1000, ...sampling, ...question });
    assert.equal(answer.status, 200, answer.text);
    const { markers } = answer.json;
    const said = saidBy(markers);
    const about = JSON.stringify([sampling, question]);
    assert.deepEqual(
      plain(markers.filter((marker: WireMarker) => !said.includes(marker))),
      plain(await measuredAlone(sampling)),
      about,
    );
    assert.deepEqual(cutsOf(markers), exact, about);
    assert.ok(said.length > 0 && said.every(({ event_type }) => event_type === "scene_cut"), about);
    const ids = markers.map(({ marker_id }: WireMarker) => marker_id);
    assert.equal(new Set(ids).size, ids.length, about);
    const list = async (type: string) =>
      (await at.test.call("GET", `/v1/runs/${runId}/markers?event_type=${type}`)).json.markers;
    assert.deepEqual(cutsOf(await list("measured:scene_cut")), exact);
    assert.deepEqual(await list("model:scene_cut"), said);
    assert.equal((await list("scene_cut")).length, exact.length + said.length);
  }
});

Deno.test("no cut is lost between two rows, with a question and without", async () => {
  await using at = await startReason({ answer: () => seen({ event_type: "scene_cut", confidence: 1 }) });
  const film = join(at.test.mediaDir, "fast.mp4");
  const parts = [[0, 2], [12, 12.25], [16, 16.25], [24, 26]] as const;
  const shots = parts.map(([from, to], part) => `[0:v]trim=${from}:${to},setpts=PTS-STARTPTS[p${part}]`);
  const joined = `${parts.map((_, part) => `[p${part}]`).join("")}concat=n=4:v=1[v]`;
  const lossless = ["-c:v", "libx264", "-qp", "0", "-r", "24"];
  await ffmpeg(
    "-i",
    FILM,
    "-filter_complex",
    [...shots, joined].join(";"),
    "-map",
    "[v]",
    ...lossless,
    film,
  );
  const measured = (markers: readonly WireMarker[]) =>
    markers.filter(({ event_type, origin }) => event_type === "scene_cut" && origin === undefined)
      .map(({ start_pts_ms, end_pts_ms, status }) => [start_pts_ms, end_pts_ms, status]);
  for (
    const sampling of [{}, { sampling_policy: "fixed", fixed_fps: 0.5 }, {
      sampling_policy: "fixed",
      fixed_fps: 0.2,
    }]
  ) {
    const runId = await newRun(at.test);
    const ingested = await at.test.call("POST", `/v1/runs/${runId}/ingest`, {
      source_uri: film,
      ...sampling,
    });
    assert.equal(ingested.status, 200, ingested.text);
    const alone = (await at.test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL })).json.markers;
    const about = JSON.stringify(sampling);
    assert.deepEqual(measured(alone), [2000, 2250, 2500].map((ms) => [ms, ms, "exact"]), about);
    const every = { sampling_policy: "source_fps_adaptive", ...sampling };
    const { answer, events } = await at.reason({ source_uri: film, ...every, chunk_size: 100 });
    const { markers } = answer.json;
    const plain = (marker: WireMarker) => ({ ...marker, run_id: "" });
    assert.deepEqual(
      markers.filter(({ origin }: WireMarker) => origin === undefined).map(plain),
      alone.map(plain),
      about,
    );
    assert.equal(payloads(events, "marker_emitted").length, markers.length);
  }
});

Deno.test("an index names every event of the call that is looked for by it", async () => {
  await using at = await startReason();
  const { runId, events } = await at.reason({ max_frames: 10, index_name: "dock" });
  const named = (kind: string) => payloads(events, kind).map(({ index_name }) => index_name);
  for (const kind of ["ingest_received", "semantic_chunk_generated", "analysis_generated", "run_completed"]) {
    assert.deepEqual(new Set(named(kind)), new Set(["dock"]), kind);
  }
  assert.deepEqual(named("semantic_chunk_inferred"), ["dock", "dock"]);
  assert.deepEqual(new Set(named("marker_emitted")), new Set(["dock"]));
  const filtered = (await at.test.call("GET", `/v1/runs/${runId}/events?index=dock`)).json.events;
  assert.equal(filtered.length, events.length - 1);
  const interactions = async (query: string) =>
    (await at.test.call("GET", `/v1/runs/${runId}/interactions${query}`)).json;
  assert.equal((await interactions("?index=dock")).count, 2);
  assert.equal((await interactions("?index=gate")).count, 0);
  const { interactions: all } = await interactions("");
  assert.deepEqual(
    all.map((item: Record<string, unknown>) => [item.object_label, item.pts_start_ms]).toSorted(),
    [
      ["White Rabbit", 0],
      ["White Rabbit", 2500],
    ],
  );
  const { json: found } = await at.test.call("POST", "/v1/search", { query: "its BURROW", run_id: runId });
  assert.equal(found.total_hits, 2);
  assert.deepEqual(
    found.hits.map(({ kind, index_name }: Record<string, unknown>) => [kind, index_name]),
    [["semantic_chunk_inferred", "dock"], ["semantic_chunk_inferred", "dock"]],
  );
  assert.equal((await at.test.call("POST", "/v1/search", { query: "burrow" }, KEY_B)).json.total_hits, 0);
});

Deno.test("label maps rename what the model says, in rows and markers", async () => {
  const maps = await Deno.makeTempFile();
  await Deno.writeTextFile(
    maps,
    JSON.stringify({
      default: { events: { keyframe_keep: "key_moment" }, objects: { white_rabbit: "pet" } },
    }),
  );
  try {
    await using at = await startReason({}, { SERVICE_TENANT_LABEL_MAPS_PATH: maps });
    const { answer, events } = await at.reason({ max_frames: 3 });
    const { annotations, fallback } = answer.json.metadata[0];
    assert.deepEqual([annotations.events[0].type, annotations.objects[0].label], ["key_moment", "pet"]);
    assert.equal(fallback.used, true, "the caller's own map lacks the label");
    assert.deepEqual(saidBy(answer.json.markers).map(({ event_type }) => event_type), ["key_moment"]);
    assert.equal(payloads(events, "semantic_chunk_inferred")[0].event_type, "keyframe_keep");
  } finally {
    await Deno.remove(maps);
  }
});

Deno.test("a marker follows what the model says, and corrects itself within the window that was asked for", async () => {
  await using at = await startReason();
  at.model.answer = ({ prompt }) =>
    seen(
      prompt.includes("chunk_frame_start=5\n")
        ? { event_type: "scene_cut", confidence: 0.2 }
        : { confidence: 0.5 },
    );
  const { answer } = await at.reason({ max_frames: 15, detectors: [] });
  const brief = saidBy(answer.json.markers).map((
    marker,
  ) => [marker.event_type, marker.status, marker.start_frame, marker.end_frame, marker.confidence]);
  assert.deepEqual(brief, [
    ["keyframe_keep", "provisional", 0, 4, 0.5],
    ["scene_cut", "exact", 5, 9, 0.2],
    ["keyframe_keep", "provisional", 10, 14, 0.5],
  ]);
});

Deno.test("rows are left out where they are not wanted, and counted all the same", async () => {
  await using at = await startReason();
  const { answer } = await at.reason({ max_frames: 6, include_frame_metadata: false, detectors: [] });
  assert.deepEqual(
    [
      answer.json.metadata,
      answer.json.generated,
      answer.json.frame_metadata_included,
      saidBy(answer.json.markers).length,
    ],
    [[], 6, false, 1],
  );
});

Deno.test("the first chunk is on the timeline while the model still thinks about a later one", async () => {
  await using at = await startReason();
  const later = held(SEEN);
  at.model.answer = ({ prompt }) => prompt.includes("chunk_frame_start=0\n") ? SEEN : later.answer();
  const runId = await newRun(at.test);
  const reasoning = at.test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, vlm_concurrency: 3 });
  await until(
    "the first chunk is there",
    async () => payloads(await eventsOf(at.test, runId), "semantic_chunk_inferred").length === 1,
  );
  await until("three calls wait", () => at.model.inFlight === 3);
  assert.equal((await at.test.call("GET", `/v1/runs/${runId}/state`)).json.state, "processing");
  assert.equal(at.model.requests.length, 4, "nothing is asked beyond the concurrency");
  assert.deepEqual(kindsOf(await eventsOf(at.test, runId)), [
    "run_created",
    "ingest_received",
    "semantic_chunk_inferred",
  ]);
  later.release();
  const answer = await reasoning;
  assert.equal(answer.status, 200);
  assert.equal(answer.json.tokens.chunks_analyzed, 12);
  assert.equal(at.model.maxInFlight, 3);
});

Deno.test("more chunks at once than a principal may have under way do not crowd each other out", async () => {
  await using at = await startReason({}, {
    SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "2",
    SERVICE_INFERENCE_WAIT_TIMEOUT_MS: "1",
  });
  at.model.answer = async () => {
    await until("two were asked at once", () => at.model.maxInFlight >= 2);
    return SEEN;
  };
  const { events } = await at.reason({ vlm_concurrency: 64 });
  const errors = payloads(events, "semantic_chunk_inferred").map(({ semantic_error }) => semantic_error);
  assert.deepEqual([at.model.maxInFlight, errors], [2, Array(12).fill(null)]);
});

Deno.test("a refusal of reason names the field and leaves nothing behind", async () => {
  await using at = await startReason();
  const runId = await newRun(at.test);
  const check = async (body: Record<string, unknown>, field: string) => {
    const { status, json } = await at.test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, ...body });
    assert.equal(status, 422, JSON.stringify(body));
    assert.ok(
      json.error.details.some((detail: { field: string }) => detail.field === field),
      `${JSON.stringify(body)}: ${JSON.stringify(json)}`,
    );
  };
  Deno.writeTextFileSync(join(at.test.mediaDir, "text.mp4"), "not a film\n".repeat(100));
  await check({ source_uri: join(at.test.mediaDir, "text.mp4") }, "source_uri");
  await check({ source_uri: "/etc/passwd" }, "source_uri");
  await check({ source_uri: join(at.test.mediaDir, "none.mp4") }, "source_uri");
  await check({ model: "gpt-x" }, "model");
  await check({ mode: "fast" }, "mode");
  await check({ chunk_size: 4 }, "chunk_size");
  await check({ chunk_size: 501 }, "chunk_size");
  await check({ window_size: 1 }, "window_size");
  await check({ segment_ms: 0 }, "segment_ms");
  await check({ max_frames: 0 }, "max_frames");
  await check({ max_frames: 500_001 }, "max_frames");
  await check({ semantic_frames_per_chunk: 5 }, "semantic_frames_per_chunk");
  await check({ semantic_frame_max_edge: 63 }, "semantic_frame_max_edge");
  await check({ semantic_timeout_ms: 99 }, "semantic_timeout_ms");
  await check({ semantic_prompt: " " }, "semantic_prompt");
  await check({ semantic_prompt: "é".repeat(2049) }, "semantic_prompt");
  await check({ output_schema: { type: "nonsense" } }, "output_schema");
  await check({ crop: { x: 0.5, y: 0, width: 0.6, height: 1 } }, "crop");
  await check({ crop: { x: 0, y: 0, width: 0.001, height: 1 } }, "source_uri");
  await check({ fixed_fps: 0.1 }, "fixed_fps");
  await check({ sampling_policy: "sometimes" }, "sampling_policy");
  await check({ sample_fps: 2 }, "sample_fps");
  await check({ video_clip_duration_s: 61, video_clip_mode: true }, "video_clip_duration_s");
  await check({ media: { mode: "video" } }, "chunk_size");
  await check({ media: { mode: "video" }, chunk_size: undefined }, "media.mode");
  await check({ media: { mode: "video" }, video_clip_mode: true }, "media");
  await check({ local_audio: {} }, "local_audio");
  assert.equal((await eventsOf(at.test, runId)).length, 1);
  assert.equal(at.model.requests.length, 0);
  assertNothingLeft(at.test);

  const foreign = await at.test.call("POST", `/v1/runs/${runId}/reason`, SAMPLED, KEY_B);
  assert.equal(foreign.status, 404);
  await at.test.call("POST", `/v1/runs/${runId}/stop`);
  const stopped = await at.test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, model: "gpt-x" });
  assert.equal(stopped.status, 409);
});

Deno.test("what the service lacks for native media is 503, after every fault of the fields", async () => {
  await using bare = await startService();
  const check = async (body: Record<string, unknown>, status: number, code: string) => {
    const { answer } = await reasonOn(bare, { chunk_size: undefined, ...body });
    assert.deepEqual([answer.status, answer.json.error.code], [status, code], JSON.stringify(body));
    assert.deepEqual(Array.isArray(answer.json.error.details), true);
  };
  await check({ media: { mode: "video" } }, 503, "inference_provider_unavailable");
  await check({ media: { mode: "audio_video" } }, 503, "inference_provider_unavailable");
  await check({ media: { mode: "audio_video" }, local_audio: {} }, 503, "audio_sidecar_unavailable");
  await check(
    { media: { mode: "audio_video" }, local_audio: {}, semantic_inference: false },
    503,
    "audio_sidecar_unavailable",
  );
  await check({ media: { mode: "audio_video", window_ms: 99 }, local_audio: {} }, 422, "validation_error");
});

Deno.test("a film that is cut off gives the chunks that can be decoded", async () => {
  await using at = await startReason();
  const broken = join(at.test.mediaDir, "broken.mp4");
  // The index is first in the file, so the rest of the pictures can be found.
  await ffmpeg("-i", FILM, "-c", "copy", "-movflags", "+faststart", broken);
  const { size } = Deno.statSync(broken);
  Deno.truncateSync(broken, Math.floor(size / 2));
  const { answer, events } = await at.reason({ source_uri: broken });
  assert.equal(answer.status, 200, answer.text);
  assert.ok(answer.json.decoded_frames > 5 && answer.json.decoded_frames < 60, answer.json.decoded_frames);
  assert.equal(payloads(events, "semantic_chunk_inferred").length, Math.ceil(answer.json.decoded_frames / 5));
  assert.equal(kindsOf(events).at(-1), "run_completed");
});

Deno.test("frames and decisions of reason are counted with those of ingest and analyze", async () => {
  await using at = await startReason();
  await at.reason();
  assert.equal(await metric(at.test, "service_pipeline_frames_decoded_total"), 60);
  assert.equal(await metric(at.test, "service_pipeline_gate_frames_analyzed_total"), 60);
  assert.ok(await metric(at.test, "service_pipeline_gate_keyframes_selected_total") >= 1);
  assert.equal(await metric(at.test, "service_pipeline_gate_latency_us_count"), 12);
});

Deno.test("events of chunks of one model come in the order of the source, those of the others as they are done", async () => {
  const orderOf = async (model: string) => {
    await using at = await startReason();
    const first = held(SEEN);
    at.model.answer = ({ prompt, index }) => {
      if (index === 2) first.release();
      return prompt.includes("chunk_frame_start=0\n") ? first.answer() : SEEN;
    };
    const { events } = await at.reason({ max_frames: 15, model });
    return payloads(events, "semantic_chunk_inferred").map(({ chunk_index }) => chunk_index);
  };
  assert.deepEqual(await orderOf("gemini-3-8-flash"), [0, 1, 2]);
  assert.deepEqual((await orderOf(MODEL)).toSorted(), [0, 1, 2]);
});

Deno.test("the older clip mode sends a silent clip of each chunk to any backend", async () => {
  await using at = await startReason();
  const { answer, events } = await at.reason({
    max_frames: 10,
    video_clip_mode: true,
    video_clip_duration_s: 1,
  });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(at.model.requests.length, 2);
  for (const { video, images, prompt } of at.model.requests) {
    assert.ok(video && video.length > 1000 && images.length === 0);
    assert.doesNotMatch(prompt, /chunk_frame_start/);
  }
  assert.deepEqual(
    payloads(events, "semantic_chunk_inferred").map((
      chunk,
    ) => [chunk.pts_end_ms - chunk.pts_start_ms, chunk.evidence]),
    [[1000, undefined], [1000, undefined]],
  );
  for (const chunk of payloads(events, "semantic_chunk_inferred")) {
    assert.deepEqual(
      [chunk.media_mode, chunk.media_resolution, chunk.timestamp_resolution_ms, chunk.audio_streams],
      ["video", null, 1, null],
    );
    assert.ok(chunk.clip_bytes > 1000 && chunk.extraction_ms >= 0);
  }
  const [received] = payloads(events, "ingest_received");
  assert.deepEqual([received.media_mode, received.media_window_ms, received.video_streams], [
    "video",
    1000,
    1,
  ]);
});

/** Clips of each container, codec and fault; ingest has the others, too. */
const ODD_CLIPS = [
  ...["bad_audio_only.mp4", "bad_bitflips.mp4", "bad_empty.mp4", "bad_notvideo.mp4"],
  ...["bad_truncated_nomoov.mp4", "bad_truncated_tail.mp4", "bbb_rotated.mp4", "bgs_video02.avi"],
  ...["flower_av1.mp4", "flower_vp9.webm", "mediabunny_hevc.mp4", "mediabunny_vfr_3026x1386.mp4"],
  ...["tos_battle.webm", "vp8_1432x888.ivf"],
];

Deno.test({
  ...needing(SHARED_CLIPS, "a real clip of any kind is reasoned on or refused on source_uri"),
  ...LONG_TEST,
  async fn() {
    await using at = await startReason();
    for (const name of ODD_CLIPS) {
      const source_uri = join(at.test.mediaDir, name);
      Deno.copyFileSync(join(SHARED_CLIPS_FOLDER, name), source_uri);
      const { answer, events } = await at.reason({
        source_uri,
        max_frames: 12,
        semantic_frame_max_edge: 256,
      });
      const isBroken = ["bad_empty", "bad_notvideo", "bad_truncated_nomoov", "bad_audio_only"]
        .some((broken) => name.startsWith(broken));
      assert.equal(answer.status, isBroken ? 422 : 200, `${name}: ${answer.text.slice(0, 300)}`);
      if (isBroken) {
        assert.equal(answer.json.error.details[0].field, "source_uri");
        assert.equal(events.length, 1);
        continue;
      }
      const errors = payloads(events, "semantic_chunk_inferred").map(({ semantic_error }) => semantic_error);
      assert.deepEqual(errors, Array(Math.ceil(answer.json.decoded_frames / 5)).fill(null), name);
    }
    assertNothingLeft(at.test);
  },
});

Deno.test("a portrait, an odd size and other containers are reasoned on like any film", async () => {
  await using at = await startReason();
  for (const clip of ["intel_bottle.mp4", "own_screenrec.mp4"]) {
    const { answer } = await at.reason({ source_uri: join(CLIPS, clip), fixed_fps: 1, max_frames: 7 });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.json.decoded_frames, answer.json.truncated], [7, true]);
  }
  assert.equal(at.model.requests.length, 4);
});
