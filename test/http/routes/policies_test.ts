import assert from "node:assert/strict";
import { join } from "node:path";
import {
  CLIPS,
  KEY_A,
  KEY_B,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { DOCK_ZONE, UNKNOWN_RUN } from "../../support/policy_fixtures.ts";

const FILM = join(CLIPS, "bbb480.mp4");

function create(test: TestService, runId: string, body: unknown, key = KEY_A) {
  return test.call("POST", `/v1/runs/${runId}/policies`, body, key);
}

/** The number of a new revision with `body`. */
async function created(test: TestService, runId: string, body: object): Promise<number> {
  const { status, json, text } = await create(test, runId, body);
  assert.equal(status, 200, text);
  return json.policy.revision;
}

function move(test: TestService, runId: string, revision: number, verb: string, body: unknown = {}) {
  return test.call("POST", `/v1/runs/${runId}/policies/${revision}/${verb}`, body);
}

async function toActive(test: TestService, runId: string, revision: number): Promise<void> {
  for (const stage of ["shadow", "canary", "active"]) {
    const { status, text } = await move(test, runId, revision, "activate", { stage });
    assert.equal(status, 200, text);
  }
}

async function statuses(test: TestService, runId: string): Promise<string[]> {
  const { json } = await test.call("GET", `/v1/runs/${runId}/policies`);
  return json.policies.map((policy: { status: string }) => policy.status);
}

async function eventsOf(test: TestService, runId: string, prefix: string) {
  const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
  return json.events.filter(({ kind }: { kind: string }) => kind.startsWith(prefix));
}

Deno.test("a new revision is a draft under the number of its event, and reads back as it was answered", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const schema = { type: "object", properties: { label: { type: "string" } } };
  const body = {
    prompt: "  Describe the dock ",
    output_schema: schema,
    parameters: { restricted_zone: DOCK_ZONE },
  };
  const { status, json } = await create(test, runId, body);
  assert.equal(status, 200);
  const { created_at_ms, updated_at_ms, ...policy } = json.policy;
  assert.equal(created_at_ms, updated_at_ms);
  assert.deepEqual(policy, {
    revision: 2,
    parent_revision: null,
    status: "draft",
    prompt: "Describe the dock",
    output_schema: schema,
    parameters: { restricted_zone: DOCK_ZONE },
    effective_generation: null,
    effective_on_current_generation: false,
    deferred_fields: [],
  });
  const read = await test.call("GET", `/v1/runs/${runId}/policies/2`);
  assert.deepEqual(read.json, { request_id: read.json.request_id, run_id: runId, policy: json.policy });
  const [stored] = await eventsOf(test, runId, "policy_");
  assert.deepEqual([stored.seq, stored.kind, stored.payload], [2, "policy_revision_created", {
    parent_revision: null,
    prompt: "Describe the dock",
    output_schema: schema,
    parameters: { restricted_zone: DOCK_ZONE },
  }]);
  const bare = await created(test, runId, { parent_revision: 2, prompt: "Only words" });
  const { policies } = (await test.call("GET", `/v1/runs/${runId}/policies`)).json;
  assert.deepEqual(policies.map((listed: { revision: number }) => listed.revision), [2, bare]);
  assert.deepEqual(policies[1].parameters, {});
});

Deno.test("each rule of a new revision is reported on its field, all of them at once", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const zone = (change: object) => ({ parameters: { restricted_zone: { ...DOCK_ZONE, ...change } } });
  const at = "parameters.restricted_zone";
  const rows: [object, string[]][] = [
    [{}, ["prompt"]],
    [{ prompt: null, parameters: {} }, ["prompt"]],
    [{ prompt: " \n " }, ["prompt"]],
    [{ prompt: "é".repeat(16_385) }, ["prompt"]],
    [{ prompt: "p", output_schema: [] }, ["output_schema"]],
    [{ prompt: "p", output_schema: "{}" }, ["output_schema"]],
    [{ prompt: "p", output_schema: { description: "x".repeat(65_536) } }, ["output_schema"]],
    [zone({ policy_id: "" }), [`${at}.policy_id`]],
    [zone({ device_id: "d".repeat(129) }), [`${at}.device_id`]],
    [zone({ policy_version: 0 }), [`${at}.policy_version`]],
    [zone({ region: { x: 0.8, y: 0, width: 0.3, height: 1 } }), [`${at}.region`]],
    [zone({ region: { x: 0, y: 0, width: 0, height: 1 } }), [`${at}.region`]],
    [zone({ enter_motion_score: 1.2 }), [`${at}.enter_motion_score`]],
    [zone({ exit_motion_score: 0.6 }), [`${at}.enter_motion_score`]],
    [zone({ enter_after_frames: 0, exit_after_frames: 301 }), [
      `${at}.enter_after_frames`,
      `${at}.exit_after_frames`,
    ]],
    [{ prompt: " ", ...zone({ policy_id: "" }) }, ["prompt", `${at}.policy_id`]],
    [{ prompt: "p", mode: "fast" }, ["mode"]],
    [{ prompt: "p", parameters: { threshold: 1 } }, ["parameters"]],
  ];
  for (const [body, fields] of rows) {
    const { status, json } = await create(test, runId, body);
    assert.equal(status, 422, JSON.stringify(body).slice(0, 200));
    assert.deepEqual(json.error.details.map(({ field }: { field: string }) => field), fields);
  }
  assert.deepEqual(await eventsOf(test, runId, "policy_"), []);
  await created(test, runId, { prompt: "p", output_schema: { maximum: 12345678901234567890 } });
});

Deno.test("only a revision that names the newest one as its parent is created", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const stale = await create(test, runId, { prompt: "p", parent_revision: 1 });
  assert.deepEqual([stale.status, stale.json.error.details[0].field], [409, "parent_revision"]);
  const first = await created(test, runId, { prompt: "p" });
  for (const parent_revision of [undefined, null, first + 1]) {
    const { status, json } = await create(test, runId, { prompt: "p", parent_revision });
    assert.deepEqual([status, json.error.details[0].field], [409, "parent_revision"]);
  }
  const answers = await Promise.all(
    [1, 2, 3, 4].map((copy) => create(test, runId, { prompt: `p${copy}`, parent_revision: first })),
  );
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409, 409]);
});

Deno.test("a revision moves draft, shadow, canary, active and in no other order", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const revision = await created(test, runId, { prompt: "p" });
  const tried = async (stage: string) => (await move(test, runId, revision, "activate", { stage })).status;
  assert.deepEqual(
    [await tried("canary"), await tried("active"), await tried("shadow"), await tried("shadow")],
    [409, 409, 200, 409],
  );
  assert.deepEqual([await tried("active"), await tried("canary"), await tried("active")], [409, 200, 200]);
  assert.equal(await tried("active"), 409);
  const unknown = await move(test, runId, revision, "activate", { stage: "draft" });
  assert.deepEqual([unknown.status, unknown.json.error.details[0].field], [422, "stage"]);
  const kinds = (await eventsOf(test, runId, "policy_deployment")).map(({ kind }: { kind: string }) => kind);
  assert.deepEqual(
    kinds,
    Array(3).fill(["requested", "acknowledged"]).flat()
      .map((end) => `policy_deployment_${end}`),
  );
});

Deno.test("what is applied without a live session is said in the answer and in the events", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const revision = await created(test, runId, { prompt: "p", parameters: { restricted_zone: DOCK_ZONE } });
  const { json } = await move(test, runId, revision, "activate", { stage: "shadow" });
  const { note, ...application } = json.application;
  assert.match(note, /No live session/);
  assert.deepEqual(application, {
    session_id: null,
    generation: null,
    prompt_acknowledged: false,
    effective_on_current_generation: false,
    deferred_fields: ["parameters.restricted_zone"],
  });
  assert.deepEqual([json.policy.status, json.policy.deferred_fields], [
    "shadow",
    ["parameters.restricted_zone"],
  ]);
  const [requested, acknowledged] = await eventsOf(test, runId, "policy_deployment");
  assert.deepEqual(requested.payload, {
    revision,
    from_status: "draft",
    to_status: "shadow",
    expected_generation: null,
  });
  assert.deepEqual(acknowledged.payload, {
    revision,
    request_seq: requested.seq,
    status: "shadow",
    application: json.application,
  });
});

Deno.test("one revision is active at a time, and a rollback brings an earlier one back", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const first = await created(test, runId, { prompt: "one" });
  const refusedRollback = async (revision: number) => {
    const { status, json } = await move(test, runId, revision, "rollback");
    assert.deepEqual([status, json.error.details[0].field], [409, "revision"]);
  };
  await refusedRollback(first);
  await toActive(test, runId, first);
  await refusedRollback(first);
  const second = await created(test, runId, { prompt: "two", parent_revision: first });
  await refusedRollback(second);
  await toActive(test, runId, second);
  assert.deepEqual(await statuses(test, runId), ["retired", "active"]);
  const back = await move(test, runId, first, "rollback");
  assert.deepEqual([back.status, back.json.policy.status], [200, "active"]);
  assert.deepEqual(await statuses(test, runId), ["active", "rolled_back"]);
  const [requested, acknowledged] = await eventsOf(test, runId, "policy_rollback");
  assert.deepEqual(requested.payload, {
    revision: first,
    from_revision: second,
    expected_generation: null,
  });
  assert.deepEqual(acknowledged.payload, {
    revision: first,
    from_revision: second,
    request_seq: requested.seq,
    status: "active",
    application: back.json.application,
  });
  await move(test, runId, second, "rollback");
  assert.deepEqual(await statuses(test, runId), ["rolled_back", "active"]);
  await test.restart();
  assert.deepEqual(await statuses(test, runId), ["rolled_back", "active"]);
});

Deno.test("policies answer 404, 400 and 405 like every other resource, and a terminal run still takes them", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const revision = await created(test, runId, { prompt: "p" });
  const statusOf = async (method: string, path: string, body?: unknown, key = KEY_A) =>
    (await test.call(method, path, body, key)).status;
  const at = `/v1/runs/${runId}/policies`;
  assert.equal(await statusOf("GET", `${at}/${revision}`, undefined, KEY_B), 404);
  assert.equal(await statusOf("GET", at, undefined, KEY_B), 404);
  assert.equal(await statusOf("GET", `/v1/runs/${UNKNOWN_RUN}/policies`), 404);
  assert.equal(await statusOf("GET", `${at}/999`), 404);
  assert.equal(await statusOf("GET", `${at}/first`), 400);
  assert.equal(await statusOf("POST", `${at}/-1/replay`, {}), 400);
  assert.equal(await statusOf("POST", `${at}/1/activate`, { stage: "shadow" }), 404);
  assert.equal(await statusOf("DELETE", `${at}/${revision}`), 405);
  assert.equal(await statusOf("POST", `${at}/${revision}/rollback`), 409);
  await test.call("POST", `/v1/runs/${runId}/stop`);
  assert.equal((await move(test, runId, revision, "activate", { stage: "shadow" })).status, 200);
  await created(test, runId, { prompt: "q", parent_revision: revision });
  await test.call("DELETE", `/v1/runs/${runId}`);
  assert.equal(await statusOf("GET", at), 404);
});

/** Puts zone events into the log as a live session would. */
function zoneEvents(test: TestService, runId: string, payloads: object[]): void {
  test.service.timeline.commit(() =>
    payloads.map((payload) => ({ kind: "restricted_zone_activity_entered", runId, payload }))
  );
}

Deno.test("replay counts the stored candidates against the revision's threshold", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const withZone = await created(test, runId, { parameters: { restricted_zone: DOCK_ZONE } });
  const without = await created(test, runId, { prompt: "p", parent_revision: withZone });
  zoneEvents(test, runId, [
    { confidence: 0.6 },
    { confidence: 0.59 },
    { assertion: { trigger: { score: 0.9 } } },
    { confidence: "high" },
    { confidence: 0.95 },
  ]);
  const replayed = async (revision: number, body: object) => {
    const { status, json, text } = await move(test, runId, revision, "replay", body);
    assert.equal(status, 200, text);
    const { candidate_events, accepted_events, rejected_events, events_without_score } = json.evaluation;
    return [candidate_events, accepted_events, rejected_events, events_without_score];
  };
  assert.deepEqual(await replayed(withZone, {}), [5, 3, 1, 1]);
  assert.deepEqual(await replayed(without, {}), [5, 0, 0, 5]);
  assert.deepEqual(await replayed(withZone, { from_seq: 5, to_seq: 6, source: "local_wal" }), [2, 1, 1, 0]);
  const { status, json } = await move(test, runId, withZone, "replay", { from_seq: 6, to_seq: 5 });
  assert.deepEqual([status, json.error.details[0].field], [422, "to_seq"]);
  const evaluations = await eventsOf(test, runId, "policy_replay");
  assert.equal(evaluations.length, 3);
  assert.deepEqual(
    { ...evaluations[2].payload, comparison: "", limitation: "" },
    {
      revision: withZone,
      source: "local_wal",
      comparison: "",
      from_seq: 5,
      to_seq: 6,
      candidate_events: 2,
      accepted_events: 1,
      rejected_events: 1,
      events_without_score: 0,
      threshold: 0.6,
      limitation: "",
    },
  );
});

/** Six seconds of a gray picture; in seconds 2 to 4 a bright square moves through its upper left quarter. */
async function wanderingSquare(path: string): Promise<void> {
  await ffmpeg(
    ..."-f lavfi -i color=c=gray:s=320x240:r=10:d=6 -f lavfi -i color=c=white:s=40x40:r=10:d=6".split(" "),
    "-filter_complex",
    "[0][1]overlay=x='mod(t*150\\,120)':y='mod(t*110\\,80)':enable='between(t,2,4)'",
    ..."-c:v libx264 -preset ultrafast -crf 18 -pix_fmt yuv420p".split(" "),
    path,
  );
}

async function ffmpeg(...args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", {
    args: ["-nostdin", "-v", "error", "-y", ...args],
    stderr: "piped",
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

Deno.test("replay over signals runs the zone over the run's media and reports when it would have entered", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const clip = join(test.mediaDir, "square.mp4");
  await wanderingSquare(clip);
  const zone = {
    ...DOCK_ZONE,
    region: { x: 0, y: 0, width: 0.5, height: 0.5 },
    enter_motion_score: 0.05,
    exit_motion_score: 0.01,
    exit_after_frames: 5,
  };
  const elsewhere = { ...zone, region: { x: 0.5, y: 0.5, width: 0.5, height: 0.5 } };
  const first = await created(test, runId, { parameters: { restricted_zone: zone } });
  const early = await move(test, runId, first, "replay", { source: "signals" });
  assert.deepEqual([early.status, early.json.error.details[0].field], [422, "source"]);
  const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: clip });
  assert.equal(ingested.status, 200, ingested.text);

  const { status, json, text } = await move(test, runId, first, "replay", { source: "signals" });
  assert.equal(status, 200, text);
  const { evaluation } = json;
  assert.deepEqual([evaluation.source, evaluation.frames, evaluation.candidate_events], ["signals", 60, 0]);
  assert.deepEqual(evaluation.coordinates.resolved_region, { x: 0, y: 0, width: 160, height: 120 });
  assert.equal(evaluation.intervals_total, 1);
  const [interval] = evaluation.intervals;
  assert.ok(interval.entered_pts_ms >= 2000 && interval.entered_pts_ms <= 2400, JSON.stringify(interval));
  assert.ok(interval.left_pts_ms >= 4000 && interval.left_pts_ms <= 4900, JSON.stringify(interval));
  assert.ok(interval.peak_motion_score >= 0.05);
  const stored = (await eventsOf(test, runId, "policy_replay")).at(-1);
  assert.deepEqual([stored.seq, stored.payload], [json.evaluation_id, evaluation]);

  const second = await created(test, runId, {
    parent_revision: first,
    parameters: { restricted_zone: elsewhere },
  });
  const still = await move(test, runId, second, "replay", { source: "signals" });
  assert.deepEqual(still.json.evaluation.intervals, []);
  const words = await created(test, runId, { parent_revision: second, prompt: "p" });
  for (
    const [revision, body, field] of [
      [words, { source: "signals" }, "source"],
      [first, { source: "signals", from_seq: 1 }, "from_seq"],
      [first, { source: "memory" }, "source"],
    ] as const
  ) {
    const refused = await move(test, runId, revision, "replay", body);
    assert.deepEqual([refused.status, refused.json.error.details[0].field], [422, field]);
  }
  Deno.removeSync(clip);
  const gone = await move(test, runId, first, "replay", { source: "signals" });
  assert.deepEqual([gone.status, gone.json.error.details[0].field], [422, "source_uri"]);
});

Deno.test("a replay over signals that a stop or a delete ends says so, and can be repeated after the stop", async () => {
  await using test = await startService();
  const still = join(test.mediaDir, "still.mp4");
  const film = join(test.mediaDir, "film.mp4");
  const clip = join(test.mediaDir, "clip.mp4");
  await ffmpeg(..."-f lavfi -i color=c=gray:s=64x64:r=1:d=1200 -c:v mpeg4".split(" "), still);
  await ffmpeg("-stream_loop", "40", "-i", FILM, ..."-map 0:v -c copy".split(" "), film);
  const decodes = () => [...Deno.readDirSync(join(test.dataDir, "..", "tmp"))].length;
  const check = async (end: (path: string) => Promise<unknown>, status: number) => {
    const runId = await newRun(test);
    const revision = await created(test, runId, { parameters: { restricted_zone: DOCK_ZONE } });
    Deno.copyFileSync(still, clip);
    const sparsely = { source_uri: clip, sampling_policy: "fixed", fixed_fps: 0.2 };
    const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, sparsely);
    assert.equal(ingested.status, 200, ingested.text);
    Deno.copyFileSync(film, clip);
    const replay = move(test, runId, revision, "replay", { source: "signals" });
    await until("the film is decoded", () => decodes() > 0);
    await end(`/v1/runs/${runId}`);
    const { json, text } = await replay;
    assert.deepEqual([json.error?.details[0]?.field, json.error?.code], [
      "run_id",
      status === 409 ? "conflict" : "not_found",
    ], text);
    await until("nothing is left", () => decodes() === 0);
    Deno.copyFileSync(still, clip);
    const again = await move(test, runId, revision, "replay", { source: "signals" });
    assert.equal(again.status, status === 409 ? 200 : 404, again.text);
  };
  await check((run) => test.call("POST", `${run}/stop`), 409);
  await check((run) => test.call("DELETE", run), 404);
});
