/** Policies of a run that watches a source: a generation starts with the revision that is active. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { type LiveTest, startLive } from "../../support/live/live.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { makeClip, TempFolder } from "../../support/media.ts";
import { startModelServer } from "../../support/models/model_server.ts";
import { eventsOf, payloads } from "../../support/models/reason.ts";
import { DOCK_ZONE, QUARTER_ZONE } from "../../support/policy_fixtures.ts";
import { newRun } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const ZONE_FIELD = "parameters.restricted_zone";

/** A service that watches one camera. */
async function start() {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  await using opening = new AsyncDisposableStack();
  const dock = opening.use(serveRtsp(Deno.readFileSync(clip), { isEndless: true }));
  const model = opening.use(startModelServer());
  const test = opening.use(
    await startLive({ SERVICE_ALLOW_UNENCRYPTED_RTSP: "true", SERVICE_VLLM_BASE_URL: model.url }, {
      outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    }),
  );
  const open = opening.move();
  return {
    test,
    model,
    watch: (runId: string, attach: object = {}) =>
      test.call("POST", `/v1/runs/${runId}/live`, {
        source_uri: `rtsp://camera.test:${dock.port}/dock`,
        token_cap: 0,
        ...attach,
      }),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

async function move(test: LiveTest, runId: string, revision: number, body: object) {
  return await test.call("POST", `/v1/runs/${runId}/policies/${revision}/activate`, body);
}

/** A revision that is the run's active one; a live session of the run must be named. */
async function active(test: LiveTest, runId: string, body: object, expected: object = {}) {
  const { json, text } = await test.call("POST", `/v1/runs/${runId}/policies`, body);
  assert.ok(json.policy, text);
  const { revision } = json.policy;
  for (const stage of ["shadow", "canary"]) await move(test, runId, revision, { stage });
  const moved = await move(test, runId, revision, { stage: "active", ...expected });
  assert.equal(moved.status, 200, moved.text);
  return { revision, application: moved.json.application, policy: moved.json.policy };
}

async function read(test: LiveTest, runId: string, revision: number) {
  return (await test.call("GET", `/v1/runs/${runId}/policies/${revision}`)).json.policy;
}

Deno.test("zone, prompt and schema of the active revision are in force from the first frame", async () => {
  await using at = await start();
  const { test, model } = at;
  const runId = await newRun(test);
  const schema = { type: "object" };
  const { revision, application } = await active(test, runId, {
    prompt: "Watch the gate.",
    output_schema: schema,
    parameters: { restricted_zone: DOCK_ZONE },
  });
  assert.deepEqual(application.deferred_fields, [ZONE_FIELD]);
  const opened = await at.watch(runId, { prompt: "Watch the door." });
  assert.equal(opened.status, 200, opened.text);
  const worker = test.workers.last;
  assert.deepEqual(worker.settings.zone, DOCK_ZONE);
  assert.deepEqual(worker.settings.crop, DOCK_ZONE.region);
  worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.match(model.requests[0]!.prompt, /^Watch the gate\./);
  assert.deepEqual(model.requests[0]!.schema?.schema, schema);
  const policy = await read(test, runId, revision);
  assert.deepEqual(
    [policy.effective_generation, policy.effective_on_current_generation, policy.deferred_fields],
    [opened.json.generation, true, []],
  );
  await test.call("DELETE", `/v1/runs/${runId}/live`);
  assert.equal((await read(test, runId, revision)).effective_on_current_generation, false);
});

Deno.test("what the revision leaves open comes from the request", async () => {
  await using at = await start();
  const { test, model } = at;
  const runId = await newRun(test);
  const schema = { type: "object" };
  await active(test, runId, { output_schema: schema, parameters: { restricted_zone: DOCK_ZONE } });
  const clip = await at.watch(runId, { clip_mode: {} });
  assert.deepEqual([clip.status, clip.json.error.details[0].field], [422, "clip_mode"]);
  assert.match(clip.json.error.details[0].message, /active policy revision/);
  assert.equal((await at.watch(runId, { prompt: "Watch the door." })).status, 200);
  test.workers.last.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.match(model.requests[0]!.prompt, /^Watch the door\./);
  assert.deepEqual(model.requests[0]!.schema?.schema, schema);
});

Deno.test("deferred_fields names the zone exactly where the next generation would have another one", async () => {
  await using at = await start();
  const { test } = at;
  const runId = await newRun(test);
  const zoned = { prompt: "x", parameters: { restricted_zone: DOCK_ZONE } };
  const first = await active(test, runId, zoned);
  const { json: { generation: expected_generation } } = await at.watch(runId);
  const next = async (body: object, parent: number) =>
    await active(test, runId, { parent_revision: parent, ...body }, { expected_generation });
  const check = ({ application }: Awaited<ReturnType<typeof next>>, deferred: readonly string[]) => {
    assert.deepEqual(application.deferred_fields, deferred);
    assert.equal(application.effective_on_current_generation, deferred.length === 0);
  };
  const without = await next({ prompt: "y" }, first.revision);
  check(without, [ZONE_FIELD]); // the session keeps the zone of the first revision
  const same = await next(zoned, without.revision);
  check(same, []);
  check(await next({ prompt: "z", parameters: { restricted_zone: QUARTER_ZONE } }, same.revision), [
    ZONE_FIELD,
  ]);
});

Deno.test("a generation that has ended cannot be named, of a camera as of a publisher", async () => {
  await using at = await start();
  const { test } = at;
  const runId = await newRun(test);
  const { json: { policy: { revision } } } = await test.call("POST", `/v1/runs/${runId}/policies`, {
    prompt: "x",
  });
  const { json: { generation: expected_generation } } = await at.watch(runId);
  for (const stage of ["shadow", "canary"]) await move(test, runId, revision, { stage });
  await test.call("DELETE", `/v1/runs/${runId}/live`);
  const ended = await move(test, runId, revision, { stage: "active", expected_generation });
  assert.deepEqual([ended.status, ended.json.error.details[0].field], [409, "expected_generation"]);
  const [rejected] = payloads(await eventsOf(test, runId), "policy_deployment_rejected");
  assert.match(rejected.reason, /^generation_closed: /);
  assert.equal((await move(test, runId, revision, { stage: "active" })).status, 200);
});
