import assert from "node:assert/strict";
import { readConfig } from "../../../src/contract/config.ts";
import { GateKernel } from "../../../src/media/kernels/gate_kernel.ts";
import { fullFrame } from "../../../src/model/frames/coordinates.ts";
import { typedFrames } from "../../../src/model/frames/frame_row.ts";
import { labelsOf } from "../../../src/model/frames/label_map.ts";
import { deriveMarkers, type Marker } from "../../../src/model/frames/marker.ts";
import { emptyColumns, signalRowsJson } from "../../../src/model/frames/signals_json.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { MODEL, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";

interface Frame {
  frame_index: number;
  pts_ms: number;
  perceptual_hash: number | bigint;
  luma_mean: number;
  flicker_score: number;
  ghosting_score: number;
  noise_variance_score: number;
  cut_score?: number;
}

/** The worked example. See docs/frames.md#worked-vector. */
const WORKED: Frame[] = [
  [0, 0, 43690n, 0.42, 0, 0, 0],
  [1, 33, 43690n, 0.41, 0.61, 0, 0],
  [2, 66, 43690n, 0.40, 0, 0.71, 0],
  [3, 99, 2n ** 64n - 1n, 0.45, 0, 0, 0],
  [4, 132, 2n ** 64n - 1n, 0.48, 0, 0, 0.67],
].map((
  [frame_index, pts_ms, perceptual_hash, luma_mean, flicker_score, ghosting_score, noise_variance_score],
) => ({
  frame_index,
  pts_ms,
  perceptual_hash,
  luma_mean,
  flicker_score,
  ghosting_score,
  noise_variance_score,
} as Frame));

/** JSON with 64-bit integers written out. */
function exactJson(value: unknown): string {
  // deno-lint-ignore no-explicit-any -- JSON.rawJSON is not in the library's types yet
  const raw = (JSON as any).rawJSON;
  return JSON.stringify(value, (_key, part) => typeof part === "bigint" ? raw(String(part)) : part);
}

function analyze(test: TestService, runId: string, body: Record<string, unknown>) {
  return test.call("POST", `/v1/runs/${runId}/analyze`, exactJson({ model: MODEL, ...body }));
}

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) < 1e-5, `${actual} is not ${expected}`);

Deno.test("the worked vector gives the rows and markers that are documented", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const { status, json } = await analyze(test, runId, { frames: WORKED, window_size: 16, segment_ms: 250 });
  assert.equal(status, 200);
  assert.equal(json.generated, 5);
  const rows = json.metadata;
  const types = [
    "keyframe_keep",
    "artifact_suspected",
    "artifact_suspected",
    "scene_cut",
    "artifact_suspected",
  ];
  // deno-lint-ignore no-explicit-any
  assert.deepEqual(rows.map((row: any) => row.annotations.events[0].type), types);
  const confidences = [0.45, 0.0035, 0.00525, 0.58275, 0.3163125];
  // deno-lint-ignore no-explicit-any
  rows.forEach((row: any, index: number) => {
    near(row.confidence, confidences[index]!);
    near(row.annotations.objects[0].score, confidences[index]!);
    assert.equal("coordinates" in row, false);
  });
  assert.equal(rows[3].annotations.summary, "novelty=0.875, stability=0.960, motion=0.875");
  assert.deepEqual(rows[3].window, { start_ms: 0, end_ms: 250, segment_id: "seg-00000000", source: "frame" });
  assert.equal(rows[3].ordering_key, `${runId}:99:3`);
  assert.equal(rows[3].trace.span_id, "span-0000000000000003");
  assert.equal(rows[3].trace.trace_id, rows[3].trace.request_id.replace("req-", "trace-"));

  const expected: [string, string, number, number, string, number][] = [
    ["mk-00000000", "keyframe_keep", 0, 0, "provisional", 0.45],
    ["mk-00000001", "artifact_suspected", 1, 2, "provisional", 0.004375],
    ["mk-00000002", "scene_cut", 3, 3, "exact", 0.58275],
    ["mk-00000003", "artifact_suspected", 4, 4, "provisional", 0.3163125],
  ];
  assert.equal(json.markers.length, expected.length);
  expected.forEach(([id, type, start, end, markerStatus, confidence], index) => {
    const marker = json.markers[index];
    assert.deepEqual(
      [marker.marker_id, marker.event_type, marker.start_frame, marker.end_frame, marker.status],
      [id, type, start, end, markerStatus],
    );
    near(marker.confidence, confidence);
  });
});

Deno.test("the same input gives the same bytes every time, but for the request's own ids", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const texts = [];
  for (let pass = 0; pass < 3; pass++) {
    const { text } = await analyze(test, runId, { frames: WORKED, trace_id: "t" });
    texts.push(text.replaceAll(/req-[0-9a-f]{16}/g, "req"));
  }
  assert.equal(new Set(texts).size, 1);
});

Deno.test("analyze appends a marker_emitted a marker and then analysis_generated, and may be repeated", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  await analyze(test, runId, { frames: WORKED });
  await analyze(test, runId, { frames: WORKED });
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  const kinds = events.map(({ kind }: { kind: string }) => kind);
  const pass = [...Array(4).fill("marker_emitted"), "analysis_generated"];
  assert.deepEqual(kinds, ["run_created", ...pass, ...pass]);
  const { payload } = events.at(-1);
  assert.deepEqual({ ...payload, request_id: "" }, {
    request_id: "",
    stream_id: "stream-0",
    frames: 5,
    window_size: 16,
    segment_ms: 250,
    sampling_policy: "source_fps_adaptive",
    sample_fps: 1000 / 33,
    mode: "balanced",
    model: MODEL,
    markers: 4,
  });
  assert.equal((await test.call("GET", `/v1/runs/${runId}/state`)).json.state, "processing");
  assert.equal((await test.call("GET", `/v1/runs/${runId}/markers`)).json.markers.length, 8);
});

Deno.test("a last analysis completes its run, and the rows can be left out of the answer", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const open = await analyze(test, runId, { frames: WORKED });
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.status, "processing");
  const last = await analyze(test, runId, { frames: WORKED, complete: true, include_frame_metadata: false });
  assert.equal(last.status, 200);
  assert.deepEqual([last.json.generated, last.json.metadata], [WORKED.length, []]);
  assert.deepEqual(last.json.markers, open.json.markers);
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.status, "completed");
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual(events.slice(-2).map(({ kind }: { kind: string }) => kind), [
    "analysis_generated",
    "run_completed",
  ]);
  assert.equal(events.at(-1).payload.frames, WORKED.length);
  const late = await analyze(test, runId, { frames: WORKED });
  assert.equal(late.status, 409);
  const wrong = await analyze(test, await newRun(test), { frames: WORKED, complete: "yes" });
  assert.deepEqual([wrong.status, wrong.json.error.details[0].field], [422, "complete"]);
});

Deno.test("a cut score decides the cut alone, a frame without one falls back to the hash", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const flat = (frame_index: number, perceptual_hash: bigint, cut_score?: number): Frame => ({
    frame_index,
    pts_ms: frame_index * 40,
    perceptual_hash,
    luma_mean: 0.5,
    flicker_score: 0,
    ghosting_score: 0,
    noise_variance_score: 0,
    ...(cut_score !== undefined && { cut_score }),
  });
  const all = 2n ** 64n - 1n;
  const frames = [flat(0, 0n, 0.9), flat(1, all, 0.1), flat(2, all, 0.5), flat(3, 0n), flat(4, 0n, 0)];
  const { json } = await analyze(test, runId, { frames });
  // deno-lint-ignore no-explicit-any
  const types = json.metadata.map((row: any) => row.annotations.events[0].type);
  assert.deepEqual(types, [
    "keyframe_keep",
    "context_observation",
    "scene_cut",
    "scene_cut",
    "context_observation",
  ]);
});

Deno.test("markers filter by status, type and frame range, sorted by their place", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  await analyze(test, runId, { frames: WORKED });
  const check = async (query: string, expected: string[]) => {
    const { json } = await test.call("GET", `/v1/runs/${runId}/markers${query}`);
    assert.deepEqual(
      json.markers.map(({ marker_id }: { marker_id: string }) => Number(marker_id.slice(-1))).join(""),
      expected.join(""),
      query,
    );
  };
  await check("", ["0", "1", "2", "3"]);
  await check("?status=exact", ["2"]);
  await check("?status=EXACT", []);
  await check("?event_type=artifact_suspected", ["1", "3"]);
  await check("?from_frame=2", ["1", "2", "3"]);
  await check("?to_frame=1", ["0", "1"]);
  await check("?from_frame=2&to_frame=2", ["1"]);
  await check("?from_frame=5", []);
  for (const bad of ["from_frame=x", "to_frame=-1", "from_frame=1.5", "to_frame="]) {
    assert.equal((await test.call("GET", `/v1/runs/${runId}/markers?${bad}`)).status, 400, bad);
  }
});

Deno.test("a long decode is analysed in pieces, with the result of one piece", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const count = 20_000;
  const columns = emptyColumns(count, { cutScore: true, artifactScore: false });
  for (let row = 0; row < count; row++) {
    columns.frameIndex[row] = row;
    columns.signals.ptsMs[row] = row * 8;
    columns.signals.perceptualHash[row] = BigInt.asUintN(64, BigInt(row >> 6) * 0x9e3779b97f4a7c15n);
    columns.signals.flickerScore[row] = row % 5 === 0 ? 0.75 : 0;
    columns.signals.cutScore![row] = row % 1000 === 999 ? 0.75 : 0;
  }
  const coordinates = fullFrame(320, 180);
  const head = { decoded_frames: count, sampling_policy: "fixed", sample_fps: 120, coordinates };
  const text = `${JSON.stringify(head).slice(0, -1)},"signals":[${
    signalRowsJson(columns.signals, 0, count)
  }]}`;
  const payload = new PreparedPayload(new TextEncoder().encode(text));
  test.service.timeline.commit(() => [{ kind: "frames_decoded", runId, payload }]);
  const { status, json } = await analyze(test, runId, {});
  assert.equal(status, 200);
  assert.equal(json.generated, count);
  const { gateThresholds } = readConfig({ SERVICE_REQUIRE_API_KEY: "false" });
  const gate = (await GateKernel.load()).run(columns.signals, columns.frameIndex, gateThresholds, 16);
  const labels = labelsOf(null, "public");
  const markers = deriveMarkers(typedFrames({ ...columns, gate }, labels), { runId, streamId: "stream-0" });
  assert.deepEqual(json.markers, markers);

  const read = await test.call("GET", `/v1/runs/${runId}/events`);
  assert.ok(read.text.includes(`"kind":"frames_decoded","payload":${text}},{"seq":`));
  assert.equal(read.json.events.at(-1).kind, "analysis_generated");
  const query = { run_id: runId, kind: "frames_decoded" };
  assert.ok((await test.call("POST", "/v1/query", query)).text.endsWith(`"payload":${text}}]}`));
});

Deno.test("an event of any length is found by the index that it names", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  for (const [index_name, length] of [["a", 2_000_000], ["b", 2_000_000], ["a", 1]] as const) {
    const payload = { text: "x".repeat(length), index_name };
    test.service.timeline.commit(() => [{ kind: "vlm", runId, payload }]);
  }
  const { json } = await test.call("GET", `/v1/runs/${runId}/events?index=a`);
  const lengths = json.events.map(({ payload }: { payload: { text: string } }) => payload.text.length);
  assert.deepEqual(lengths, [2_000_000, 1]);
});

Deno.test("markers of many passes are merged by their place, ties in the order of their passes", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  // Each pass begins somewhere else, so that their markers interleave.
  for (let pass = 0; pass < 7; pass++) {
    const frames = WORKED.map((frame) => ({
      ...frame,
      frame_index: Number(frame.frame_index) + 3 * (pass % 4),
    }));
    assert.equal((await analyze(test, runId, { frames, stream_id: `pass-${pass}` })).status, 200);
  }
  const stored: Marker[] = (await test.call("GET", `/v1/runs/${runId}/events`)).json.events
    .filter(({ kind }: { kind: string }) => kind === "marker_emitted").map((
      { payload }: { payload: Marker },
    ) => payload);
  const { markers } = (await test.call("GET", `/v1/runs/${runId}/markers`)).json;
  assert.equal(markers.length, 28);
  const byPlace = (one: Marker, other: Marker) =>
    one.start_frame - other.start_frame || one.end_frame - other.end_frame ||
    (one.marker_id < other.marker_id ? -1 : one.marker_id > other.marker_id ? 1 : 0);
  assert.deepEqual(markers, stored.toSorted(byPlace));
});

Deno.test("what analyze refuses is 422 on the field that is wrong, and appends nothing", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const check = async (body: Record<string, unknown>, fields: string[]) => {
    const { status, json } = await analyze(test, runId, body);
    assert.equal(status, 422, exactJson(body).slice(0, 200));
    assert.deepEqual(json.error.details.map(({ field }: { field: string }) => field), fields);
  };
  const one = WORKED[0]!;
  await check({}, ["frames"]);
  await check({ frames: [] }, ["frames"]);
  await check({ frames: Array(4097).fill(one) }, ["frames"]);
  await check({ frames: [{ ...one, luma_mean: 1.01 }] }, ["frames"]);
  await check({ frames: [{ ...one, flicker_score: -0.1 }] }, ["frames"]);
  await check({ frames: [one, { ...one, cut_score: 2 }] }, ["frames"]);
  await check({ frames: [{ ...one, perceptual_hash: 2n ** 64n }] }, ["frames"]);
  await check({ frames: [{ ...one, perceptual_hash: -1 }] }, ["frames"]);
  await check({ frames: [{ ...one, perceptual_hash: 1.5 }] }, ["frames"]);
  await check({ frames: [{ ...one, extra: 1 }] }, ["frames"]);
  await check({ frames: [{ frame_index: 0 }] }, Array(6).fill("frames"));
  await check({ frames: [one], window_size: 1 }, ["window_size"]);
  await check({ frames: [one], window_size: 257 }, ["window_size"]);
  await check({ frames: [one], segment_ms: 49 }, ["segment_ms"]);
  await check({ frames: [one], segment_ms: 60_001, window_size: 0 }, ["window_size", "segment_ms"]);
  await check({ frames: [one], model: "none" }, ["model"]);
  await check({ frames: [one], mode: "none" }, ["mode"]);
  await check({ frames: [one], sampling_policy: "none" }, ["sampling_policy"]);
  await check({ frames: [one], sampling_policy: "fixed" }, ["fixed_fps"]);
  await check({ frames: [one], sampling_policy: "fixed", fixed_fps: 0.1 }, ["fixed_fps"]);
  await check({ frames: [one], fixed_fps: 121 }, ["fixed_fps"]);
  await check({ frames: [one], sample_fps: 2 }, ["sample_fps"]);
  assert.equal(
    (await test.call("POST", `/v1/runs/${runId}/analyze`, { frames: [] })).json.error.details[0].field,
    "model",
  );
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.equal(events.length, 1);
});

Deno.test("as many frames as the limit allows are analyzed, and every 64-bit hash counts in full", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const frames = Array.from({ length: 4096 }, (_, index) => ({
    ...WORKED[0]!,
    frame_index: index,
    pts_ms: index * 10,
    perceptual_hash: 2n ** 63n + BigInt(index % 2), // one bit apart, which a double cannot hold
  }));
  const { json } = await analyze(test, runId, { frames, sampling_policy: "fixed", fixed_fps: 100 });
  assert.equal(json.generated, 4096);
  assert.equal(json.metadata[1].annotations.summary, "novelty=0.016, stability=1.000, motion=0.016");
  assert.equal(json.metadata[1].sample_fps, 100);
});
