import assert from "node:assert/strict";
import { join } from "node:path";
import { fullFrame } from "../../../src/model/frames/coordinates.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { make } from "../../support/media.ts";
import {
  CLIPS,
  KEY_A,
  MODEL,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../../support/service.ts";

/** A row of a decode in which nothing happens. */
function row(frame_index: number, more: Record<string, unknown> = {}) {
  return {
    frame_index,
    pts_ms: frame_index * 40,
    perceptual_hash: 43690,
    luma_mean: 0.5,
    flicker_score: 0,
    ghosting_score: 0,
    noise_variance_score: 0,
    cut_score: 0,
    ...more,
  };
}

const range = (type: string, start_frame: number, end_frame: number) => ({
  type,
  start_frame,
  end_frame,
  start_pts_ms: start_frame * 40 - 3,
  end_pts_ms: end_frame * 40 + 3,
  confidence: 0.875,
});

const RANGES = [
  range("gradual_transition", 4, 6),
  range("freeze", 4, 8),
  range("black", 10, 11),
  range("flash", 12, 12),
  range("repeat", 13, 19),
];

/** Writes a decode of 20 frames as an ingest would, with a cut at frame 9. */
function putDecode(test: TestService, runId: string, head: object, rows?: object[]) {
  const signals = rows ??
    Array.from({ length: 20 }, (_, index) => row(index, { cut_score: index === 9 ? 0.9 : 0 }));
  const payload = {
    decoded_frames: signals.length,
    sampling_policy: "fixed",
    sample_fps: 25,
    coordinates: fullFrame(320, 180),
    ...head,
    signals,
  };
  const bytes = new PreparedPayload(new TextEncoder().encode(JSON.stringify(payload)));
  test.service.timeline.commit(() => [{ kind: "frames_decoded", runId, payload: bytes }]);
}

interface WireMarker {
  marker_id: string;
  event_type: string;
  status: string;
  start_frame: number;
  end_frame: number;
  start_pts_ms: number;
  end_pts_ms: number;
  confidence: number;
}

async function analyze(test: TestService, runId: string, body: object = {}): Promise<WireMarker[]> {
  const { status, json } = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL, ...body });
  assert.equal(status, 200, JSON.stringify(json));
  return json.markers;
}

const brief = (marker: WireMarker) =>
  `${marker.marker_id} ${marker.event_type} ${marker.status} ${marker.start_frame}-${marker.end_frame}`;

const SEGMENTS = [
  "mk-00000000 keyframe_keep provisional 0-0",
  "mk-00000001 context_observation provisional 1-8",
  "mk-00000002 scene_cut exact 9-9",
  "mk-00000003 context_observation provisional 10-19",
];

Deno.test("ranges of a decode become exact markers behind the segments, which keep their ids", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putDecode(test, runId, { ranges: RANGES });
  const markers = await analyze(test, runId);
  assert.deepEqual(markers.map(brief), [
    ...SEGMENTS,
    "mk-00000004 gradual_transition exact 4-6",
    "mk-00000005 freeze exact 4-8",
    "mk-00000006 black exact 10-11",
    "mk-00000007 flash exact 12-12",
    "mk-00000008 repeat exact 13-19",
  ]);
  const { start_pts_ms, end_pts_ms, confidence } = markers[4]!;
  assert.deepEqual([start_pts_ms, end_pts_ms, confidence], [157, 243, 0.875]);

  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  // deno-lint-ignore no-explicit-any -- events of an answer
  const emitted = events.filter(({ kind }: any) => kind === "marker_emitted").map(({ payload }: any) =>
    payload
  );
  assert.deepEqual(emitted, markers);
  assert.equal(events.at(-1).payload.markers, 9);

  const read = async (query: string) =>
    (await test.call("GET", `/v1/runs/${runId}/markers${query}`)).json.markers.map(brief);
  assert.deepEqual(await read("?event_type=freeze"), ["mk-00000005 freeze exact 4-8"]);
  assert.deepEqual(await read("?from_frame=9&to_frame=10&status=exact"), [
    "mk-00000002 scene_cut exact 9-9",
    "mk-00000006 black exact 10-11",
  ]);
  const places = (await read("")).map((text: string) => parseInt(text.split(" ")[3]!));
  assert.deepEqual(places, places.toSorted((one: number, other: number) => one - other));
});

Deno.test("detectors chooses the types of ranges, and changes no segment", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putDecode(test, runId, { ranges: RANGES });
  assert.deepEqual((await analyze(test, runId, { detectors: [] })).map(brief), SEGMENTS);
  assert.deepEqual((await analyze(test, runId, { detectors: ["black", "flash"] })).map(brief), [
    ...SEGMENTS,
    "mk-00000004 black exact 10-11",
    "mk-00000005 flash exact 12-12",
  ]);
  assert.equal((await analyze(test, runId, { detectors: null })).length, 9);
});

Deno.test("detectors that are none, or named twice, are refused by field and rule, and leave nothing behind", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const rule = "must be a list of gradual_transition, flash, freeze, black, repeat, each at most once: got ";
  const cases: [unknown, string][] = [
    [["freeze", "scene_cut"], `${rule}"scene_cut"`],
    [["Freeze"], `${rule}"Freeze"`],
    [["black", "black"], `${rule}"black" twice`],
    [[""], `${rule}""`],
    [["x".repeat(500)], `${rule}"${"x".repeat(80)}…"`],
    ["freeze", "must be a list, got a text"],
    [[7], "[0]: must be a text, got a number"],
    [{ freeze: true }, "must be a list, got an object"],
  ];
  for (const route of ["analyze", "reason"]) {
    for (const [detectors, message] of cases) {
      const body = {
        model: MODEL,
        detectors,
        ...(route === "reason" && { source_uri: "fixtures/clips/bbb480.mp4" }),
      };
      const { status, json } = await test.call("POST", `/v1/runs/${runId}/${route}`, body);
      assert.equal(status, 422);
      assert.deepEqual(json.error.details, [{ field: "detectors", message }]);
    }
  }
  assert.equal((await test.call("GET", `/v1/runs/${runId}/events`)).json.events.length, 1);
});

Deno.test("a decode from before there were detectors is analysed as it was", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putDecode(test, runId, {});
  assert.deepEqual((await analyze(test, runId)).map(brief), SEGMENTS);
});

Deno.test("frames of a caller have no ranges, and those of the decode before them do not count", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putDecode(test, runId, { ranges: RANGES });
  const markers = await analyze(test, runId, { frames: [row(0), row(1)], detectors: ["freeze"] });
  assert.deepEqual(markers.map(({ event_type }) => event_type), ["keyframe_keep", "context_observation"]);
});

Deno.test("label maps rename ranges too, and they stay exact", async () => {
  const maps = { default: { events: { freeze: "still", scene_cut: "cut" } } };
  const path = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    Deno.writeTextFileSync(path, JSON.stringify(maps));
    await using test = await startService({ SERVICE_TENANT_LABEL_MAPS_PATH: path }, REACHES_IN);
    const runId = await newRun(test);
    putDecode(test, runId, { ranges: [{ ...range("freeze", 4, 8), confidence: 0.5 }] });
    const markers = await analyze(test, runId);
    assert.equal(brief(markers.at(-1)!), "mk-00000004 still exact 4-8");
    assert.equal(brief(markers[2]!), "mk-00000002 cut provisional 9-9");
  } finally {
    Deno.removeSync(path);
  }
});

Deno.test("a row says the time of a cut between rows", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const rows = [
    row(0),
    row(1, { cut_score: 0.9, cut_pts_ms: 12 }),
    row(2, { cut_score: 0.9, cut_pts_ms: 80 }),
  ];
  putDecode(test, runId, { ranges: [] }, rows);
  const { json } = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
  // deno-lint-ignore no-explicit-any -- rows of an answer
  const said = json.metadata.map((each: any) => each.annotations.events[0].description);
  assert.deepEqual(said.slice(1), [
    "hard cut at 12 ms: first row of a new shot",
    "hard cut: first frame of a new shot",
  ]);
});

Deno.test("the row of an artifact says what a viewer sees of its kind", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const kinds = ["decode_damage", "flicker", "foreign_frame", "combing", "chroma_fault", "noise_burst"];
  const faulty = kinds.map((artifact_kind, index) => row(1 + index, { artifact_score: 0.75, artifact_kind }));
  const below = row(7, { artifact_score: 0.49, noise_variance_score: 1 });
  putDecode(test, runId, {}, [row(0, { artifact_score: 0 }), ...faulty, below]);
  const { json } = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
  // deno-lint-ignore no-explicit-any -- rows of an answer
  const events = json.metadata.map((each: any) => each.annotations.events[0]);
  const types = ["keyframe_keep", ...kinds.map(() => "artifact_suspected"), "context_observation"];
  assert.deepEqual(events.map(({ type }: { type: string }) => type), types);
  assert.deepEqual(
    events.slice(1, 7).map(({ description }: { description: string }) => description.split(":")[0]),
    [
      "decode damage",
      "flicker",
      "foreign frame",
      "combing",
      "chroma fault",
      "noise burst",
    ],
  );
});

Deno.test("frames of a caller may have an artifact score from 0 to 1, a kind that exists, and the time of a cut", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const send = async (frame: object) => {
    const { status, json } = await test.call("POST", `/v1/runs/${runId}/analyze`, {
      model: MODEL,
      frames: [frame],
    });
    return status === 200 ? 200 : json.error.details[0].field + " " + json.error.details[0].message;
  };
  const artifact = { artifact_score: 0.75, artifact_kind: "combing", cut_pts_ms: 3 };
  assert.equal(await send(row(0, artifact)), 200);
  assert.equal(
    await send(row(0, { artifact_score: 1.5 })),
    "frames [0].artifact_score must be from 0 to 1: got 1.5",
  );
  assert.match(
    String(await send(row(0, { artifact_kind: "blur" }))),
    /^frames \[0\]\.artifact_kind: must be /,
  );
  assert.match(String(await send(row(0, { cut_pts_ms: 0.5 }))), /^frames \[0\]\.cut_pts_ms: must be /);
});

/**
 * A film of 24 frames a second with a moving camera that stands still from frame 34 to 69, and black from
 * frame 104 to 139.
 */
function stillAndBlack(folder: string): string {
  const held =
    `[0:v]trim=start_frame=100:end_frame=134,settb=1/24,setpts=N,setsar=1,tpad=stop_mode=clone:stop=36[held]`;
  const after = `[1:v]trim=start_frame=134:end_frame=168,settb=1/24,setpts=N,setsar=1[after]`;
  const black = `color=black:s=214x120:r=24,format=yuv420p,trim=end_frame=36,settb=1/24,setsar=1[black]`;
  const joined = `[held][after][black][end]concat=n=4,settb=1/24,setpts=N[joined]`;
  const end = `[2:v]trim=start_frame=560:end_frame=584,settb=1/24,setpts=N,setsar=1[end]`;
  const graph = [held, after, black, end, joined].join(";");
  const inputs = Array.from({ length: 3 }, () => ["-i", join(CLIPS, "bbb120.mp4")]).flat();
  const encoder = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-an"];
  return make(
    join(folder, "film.mp4"),
    ...inputs,
    "-filter_complex",
    graph,
    "-map",
    "[joined]",
    ...encoder,
  );
}

const isRange = ({ event_type }: WireMarker) => event_type === "freeze" || event_type === "black";

Deno.test("a freeze and black of a real film are markers with their exact frames, by analyze and by reason", async () => {
  await using test = await startService();
  const source_uri = stillAndBlack(test.mediaDir);
  const runId = await newRun(test);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri })).status, 200);
  const markers = await analyze(test, runId);
  const [freeze, black] = markers.filter(isRange);
  assert.deepEqual([freeze!.event_type, black!.event_type], ["freeze", "black"]);
  assert.deepEqual([black!.start_frame, black!.end_frame], [104, 139]);
  assert.deepEqual([black!.start_pts_ms, black!.end_pts_ms], [4333, 5792]);
  // What a codec leaves of the motion may fade on the first frames that stand still.
  assert.ok(Math.abs(freeze!.start_frame - 34) <= 1 && Math.abs(freeze!.end_frame - 69) <= 1, brief(freeze!));
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  // deno-lint-ignore no-explicit-any -- events of an answer
  const { ranges } = events.find(({ kind }: any) => kind === "frames_decoded").payload;
  assert.deepEqual(ranges.map(({ type }: { type: string }) => type), ["freeze", "black"]);

  const reasoned = await newRun(test);
  const body = { source_uri, model: MODEL, semantic_inference: false };
  const { status, json } = await test.call("POST", `/v1/runs/${reasoned}/reason`, body);
  assert.equal(status, 200);
  assert.deepEqual(json.markers.map(brief), markers.map(brief));
  assert.deepEqual(json.markers.filter(isRange).map(brief), markers.filter(isRange).map(brief));
  assert.equal(json.markers_emitted, markers.length);
  const kept = await newRun(test);
  const without = await test.call("POST", `/v1/runs/${kept}/reason`, { ...body, detectors: ["black"] });
  assert.deepEqual(without.json.markers.filter(isRange).map(({ event_type }: WireMarker) => event_type), [
    "black",
  ]);
});

Deno.test("with few rows a range keeps its own times, and names the rows inside or the one before", async () => {
  await using test = await startService();
  const source_uri = stillAndBlack(test.mediaDir);
  const decode = async (sampling: object) => {
    const runId = await newRun(test);
    const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri, ...sampling });
    assert.equal(ingested.status, 200);
    const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
    const markers = (await analyze(test, runId)).filter(isRange);
    return { markers, signals: events.at(-1).payload.signals as { pts_ms: number; cut_pts_ms?: number }[] };
  };
  const every = await decode({});
  const times = ({ start_pts_ms, end_pts_ms }: WireMarker) => [start_pts_ms, end_pts_ms];
  for (const fixed_fps of [4, 0.5]) {
    const { markers, signals } = await decode({ sampling_policy: "fixed", fixed_fps });
    assert.deepEqual(markers.map(times), every.markers.map(times));
    for (const { start_frame, end_frame, start_pts_ms, end_pts_ms } of markers) {
      const inside = signals.keys().filter((row) =>
        signals[row]!.pts_ms >= start_pts_ms && signals[row]!.pts_ms <= end_pts_ms
      ).toArray();
      const before = signals.findLastIndex(({ pts_ms }) => pts_ms <= start_pts_ms);
      assert.deepEqual([start_frame, end_frame], [inside[0] ?? before, inside.at(-1) ?? before]);
    }
  }
});

Deno.test("an ingest writes its ranges, also where there are none", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const source_uri = join(CLIPS, "own_screenrec.mp4");
  assert.equal(
    (await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri, max_frames: 8 })).status,
    200,
  );
  const { payload } = (await test.call("GET", `/v1/runs/${runId}/events`)).json.events.at(-1);
  assert.deepEqual(payload.ranges, []);
  assert.equal("ranges_truncated" in payload, false);
});

Deno.test("subtitles of a film whose sound begins before its pictures are at the times that players show", async () => {
  await using test = await startService();
  const film = join(CLIPS, "bbb120.mp4");
  for (
    const [name, startMs] of [["even.mp4", 0], ["sound_first.mp4", 700], ["sound_first.ts", 700]] as const
  ) {
    const path = make(
      join(test.mediaDir, name),
      ...["-f", "lavfi", "-i", "sine=440:d=30", "-itsoffset", String(startMs / 1000), "-i", film],
      ...["-map", "1:v", "-map", "0:a", "-c:v", "copy", "-c:a", "aac", "-shortest"],
    );
    const runId = await newRun(test);
    const ingest = { source_uri: path, max_frames: 500 };
    assert.equal((await test.call("POST", `/v1/runs/${runId}/ingest`, ingest)).status, 200, name);
    assert.equal((await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL })).status, 200);
    const cuts = `/v1/runs/${runId}/markers?event_type=scene_cut`;
    const { markers } = (await test.call("GET", cuts)).json;
    assert.equal(markers[0].start_pts_ms, 11_875, `${name}: markers count from the first frame`);
    const { text } = await test.send(cuts, { headers: { "x-api-key": KEY_A, accept: "text/vtt" } });
    const [, seconds, ms] = /^00:00:(\d\d)\.(\d\d\d) -->/m.exec(text)!;
    const shownMs = Number(seconds) * 1000 + Number(ms) - 11_875;
    assert.ok(Math.abs(shownMs - startMs) <= 25, `${name}: ${shownMs} ms`);
  }
});

Deno.test("a film that declares its fields is ingested, has no combing, and says how its fields are ordered", async () => {
  await using test = await startService();
  const source_uri = make(
    join(test.mediaDir, "fields.ts"),
    ...["-f", "lavfi", "-i", "testsrc2=s=352x288:r=50:d=2,scroll=h=0.004,format=yuv420p"],
    ...["-vf", "tinterlace=interleave_top,fieldorder=tff", "-c:v", "mpeg2video", "-flags", "+ilme+ildct"],
    ...["-top", "1", "-b:v", "4M", "-r", "25"],
  );
  const runId = await newRun(test);
  const { status, text } = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri });
  assert.equal(status, 200, text);
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  const { payload } = events.find(({ kind }: { kind: string }) => kind === "frames_decoded");
  assert.equal(payload.field_order, "tt");
  const combed = payload.signals.filter((row: { artifact_kind?: string }) => row.artifact_kind === "combing");
  assert.deepEqual(combed, []);
});
