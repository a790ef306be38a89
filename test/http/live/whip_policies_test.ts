/** Policies of a run with a live session: what is applied, acknowledged, deferred, rejected. */

import assert from "node:assert/strict";
import { deleteSession, type LiveTest, publish, type Published, startLive } from "../../support/live/live.ts";
import { startModelServer } from "../../support/models/model_server.ts";
import { eventsOf, payloads } from "../../support/models/reason.ts";
import { until } from "../../support/until.ts";
import { DOCK_ZONE } from "../../support/policy_fixtures.ts";

async function draft(test: LiveTest, { runId }: Published, body: object): Promise<number> {
  const { json, text } = await test.call("POST", `/v1/runs/${runId}/policies`, body);
  assert.ok(json.policy, text);
  return json.policy.revision;
}

function move(test: LiveTest, { runId }: Published, revision: number, verb: string, body: object) {
  return test.call("POST", `/v1/runs/${runId}/policies/${revision}/${verb}`, body);
}

/** Through shadow and canary, then active for the generation. */
async function activate(test: LiveTest, session: Published, revision: number, generation = 1) {
  for (const stage of ["shadow", "canary"]) {
    assert.equal((await move(test, session, revision, "activate", { stage })).status, 200);
  }
  return await move(test, session, revision, "activate", {
    stage: "active",
    expected_generation: generation,
  });
}

Deno.test("an active prompt is acknowledged by the generation and asked from the next picture on", async () => {
  await using model = startModelServer();
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: { token_cap: 0 } });
  const schema = { type: "object" };
  const revision = await draft(test, session, { prompt: "Watch the gate.", output_schema: schema });
  const shadow = await move(test, session, revision, "activate", { stage: "shadow" });
  assert.deepEqual({ ...shadow.json.application, note: "" }, {
    session_id: session.sessionId,
    generation: 1,
    prompt_acknowledged: false,
    effective_on_current_generation: false,
    deferred_fields: [],
    note: "",
  });
  await move(test, session, revision, "activate", { stage: "canary" });
  const active = await move(test, session, revision, "activate", { stage: "active", expected_generation: 1 });
  assert.equal(active.status, 200, active.text);
  assert.deepEqual({ ...active.json.application, note: "" }, {
    session_id: session.sessionId,
    generation: 1,
    prompt_acknowledged: true,
    effective_on_current_generation: true,
    deferred_fields: [],
    note: "",
  });
  assert.equal(active.json.policy.effective_generation, 1);
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.match(model.requests[0]!.prompt, /^Watch the gate\./);
  assert.deepEqual(model.requests[0]!.schema?.schema, schema);
});

Deno.test("a zone stays as it is for the generation, and is deferred", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const revision = await draft(test, session, { prompt: "x", parameters: { restricted_zone: DOCK_ZONE } });
  const { json } = await activate(test, session, revision);
  assert.equal(json.application.prompt_acknowledged, true);
  assert.equal(json.application.effective_on_current_generation, false);
  assert.deepEqual(json.application.deferred_fields, ["parameters.restricted_zone"]);
});

Deno.test("the generation must be named, and be the one that is open", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const revision = await draft(test, session, { prompt: "x" });
  const listed = async () => (await test.call("GET", `/v1/runs/${session.runId}/policies`)).json.generation;
  assert.equal(await listed(), 1);
  const check = async (body: object, reason: RegExp) => {
    const { status, json } = await move(test, session, revision, "activate", { stage: "active", ...body });
    assert.deepEqual([status, json.error.details[0].field], [409, "expected_generation"]);
    const rejected = payloads(await eventsOf(test, session.runId), "policy_deployment_rejected");
    assert.match(rejected.at(-1).reason, reason);
  };
  for (const stage of ["shadow", "canary"]) await move(test, session, revision, "activate", { stage });
  await check({}, /^expected_generation_required$/);
  await check({ expected_generation: 2 }, /^stale_generation: /);
  await deleteSession(test, session);
  assert.equal(await listed(), null);
  await check({ expected_generation: 1 }, /^generation_closed: /);
});

Deno.test("a rollback is applied to the generation like an activation", async () => {
  await using model = startModelServer();
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: { token_cap: 0 } });
  const first = await draft(test, session, { prompt: "Watch the gate." });
  await activate(test, session, first);
  const second = await draft(test, session, { parent_revision: first, prompt: "Watch the door." });
  await activate(test, session, second);
  const back = await move(test, session, first, "rollback", { expected_generation: 1 });
  assert.equal(back.status, 200, back.text);
  assert.equal(back.json.application.prompt_acknowledged, true);
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.match(model.requests[0]!.prompt, /^Watch the gate\./);
});

Deno.test("a generation that is too busy for two seconds turns the activation down, and nothing is applied", async () => {
  const released = Promise.withResolvers<void>();
  await using model = startModelServer({
    answer: async ({ index }) => {
      if (index === 0) await released.promise;
      return "A door.";
    },
  });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url }, { timerSpeed: 2 });
  const session = await publish(test, { attach: { token_cap: 0 } });
  const revision = await draft(test, session, { prompt: "Watch the gate." });
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  const { status, json } = await activate(test, session, revision);
  assert.deepEqual([status, json.error.code], [503, "policy_acknowledgement_timeout"]);
  released.resolve();
  await until("answered", () => session.worker.acknowledged.pictures === 1);
  session.worker.picture(1);
  await until("asked again", () => model.requests.length === 2);
  assert.doesNotMatch(model.requests[1]!.prompt, /Watch the gate/);
  const rejected = payloads(await eventsOf(test, session.runId), "policy_deployment_rejected");
  assert.deepEqual(rejected.map(({ reason }) => reason), ["acknowledgement_timeout"]);
});

Deno.test("a revision with a schema and no prompt applies its schema and keeps the prompt", async () => {
  await using model = startModelServer();
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const attach = { token_cap: 0, prompt: "Watch the gate.", restricted_zone: DOCK_ZONE };
  const session = await publish(test, { attach });
  const schema = { type: "object", properties: { seen: { type: "string" } } };
  const parameters = { restricted_zone: DOCK_ZONE };
  const revision = await draft(test, session, { output_schema: schema, parameters });
  const { json } = await activate(test, session, revision);
  assert.deepEqual({ ...json.application, note: "" }, {
    session_id: session.sessionId,
    generation: 1,
    prompt_acknowledged: true,
    effective_on_current_generation: true, // the session has this zone already
    deferred_fields: [],
    note: "",
  });
  session.worker.picture(0);
  await until("asked", () => model.requests.length === 1);
  assert.match(model.requests[0]!.prompt, /^Watch the gate\./);
  assert.deepEqual(model.requests[0]!.schema?.schema, schema);
});

Deno.test("a revision is effective until its generation ends", async () => {
  await using test = await startLive();
  const session = await publish(test);
  const revision = await draft(test, session, { prompt: "x" });
  await activate(test, session, revision);
  const read = async () => {
    const { json } = await test.call("GET", `/v1/runs/${session.runId}/policies/${revision}`);
    return [json.policy.effective_generation, json.policy.effective_on_current_generation];
  };
  assert.deepEqual(await read(), [1, true]);
  await deleteSession(test, session);
  assert.deepEqual(await read(), [1, false]);
  const { json } = await test.call("GET", `/v1/runs/${session.runId}/policies`);
  assert.equal(json.policies[0].effective_on_current_generation, false);
});
