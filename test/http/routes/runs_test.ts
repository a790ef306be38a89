import assert from "node:assert/strict";
import {
  KEY_A,
  KEY_B,
  MOVES_CLOCK,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../../support/service.ts";
import { UNKNOWN_RUN } from "../../support/policy_fixtures.ts";

/** Kinds of the run's events in order. */
async function kindsOf(test: TestService, runId: string): Promise<string[]> {
  const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
  return json.events.map((event: { kind: string }) => event.kind);
}

Deno.test("a run is created pending, with the mode in lower case and the model as its catalog spells it", async () => {
  await using test = await startService();
  const created = await test.call("POST", "/v1/runs", {
    mode: "DETAILED",
    model: "qwen/qwen3-vl-4b-instruct",
  });
  assert.equal(created.status, 200);
  assert.match(created.json.run_id, /^run-[0-9a-f]{32}$/);
  assert.match(created.json.request_id, /^req-[0-9a-f]{16}$/);
  assert.deepEqual(
    { ...created.json, run_id: "", request_id: "" },
    { run_id: "", request_id: "", status: "pending", mode: "detailed", model: "Qwen/Qwen3-VL-4B-Instruct" },
  );

  const empty = await test.call("POST", "/v1/runs", {});
  assert.equal(empty.json.mode, "balanced");
  assert.equal(empty.json.model, null);
});

Deno.test("a run summary has exactly the nine keys, and its times are ISO with three fraction digits", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const { json } = await test.call("GET", `/v1/runs/${runId}`);
  assert.deepEqual(Object.keys(json), [
    "run_id",
    "status",
    "mode",
    "model",
    "source_uri",
    "on_hold",
    "events_removed",
    "created_at",
    "updated_at",
  ]);
  assert.deepEqual([json.model, json.source_uri], ["", ""]);
  assert.match(json.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(json.updated_at, json.created_at);
});

Deno.test("the list holds the caller's own runs in order of creation, without deleted ones", async () => {
  await using test = await startService();
  const [first, second, third] = [await newRun(test), await newRun(test), await newRun(test)];
  const foreign = await newRun(test, KEY_B);
  await test.call("DELETE", `/v1/runs/${second}`);
  const ids = (answer: { json: { run_id: string }[] }) => answer.json.map(({ run_id }) => run_id);
  assert.deepEqual(ids(await test.call("GET", "/v1/runs")), [first, third]);
  assert.deepEqual(ids(await test.call("GET", "/v1/runs", undefined, KEY_B)), [foreign]);
});

Deno.test("a body that breaks a rule is 422 and names every field", async () => {
  await using test = await startService();
  const check = async (body: unknown, fields: string[]) => {
    const { status, json } = await test.call("POST", "/v1/runs", body);
    assert.equal(status, 422, JSON.stringify(body));
    assert.equal(json.error.code, "validation_error");
    assert.match(json.error.request_id, /^req-/);
    assert.deepEqual(json.error.details.map((fault: { field: string }) => fault.field), fields);
  };
  await check({ mode: "fast" }, ["mode"]);
  await check({ model: "gpt" }, ["model"]);
  await check({ mode: "", model: "" }, ["mode", "model"]);
  await check({ mode: 7 }, ["mode"]);
  await check({ colour: "red" }, ["colour"]);
  await check({ colour: "red", model: 3 }, ["model", "colour"]);
  await check([], ["body"]);
  await check("null", ["body"]);
  await check("7", ["body"]);
});

Deno.test("the active limit is 409 on run_id, counts per principal, and a run that ends makes room", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "2" });
  const [first] = [await newRun(test), await newRun(test)];
  const refused = await test.call("POST", "/v1/runs", {});
  assert.equal(refused.status, 409);
  assert.equal(refused.json.error.code, "conflict");
  assert.equal(refused.json.error.details[0].field, "run_id");
  assert.match(refused.json.error.message, /2\/2/);
  await newRun(test, KEY_B);
  await test.call("POST", `/v1/runs/${first}/stop`);
  await newRun(test);
  assert.equal((await test.call("POST", "/v1/runs", {})).status, 409);
});

Deno.test("of concurrent creations at the limit only as many succeed as there is room", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "5" });
  const answers = await Promise.all(Array.from({ length: 20 }, () => test.call("POST", "/v1/runs", {})));
  assert.equal(answers.filter(({ status }) => status === 200).length, 5);
  assert.equal(answers.filter(({ status }) => status === 409).length, 15);
});

Deno.test("an idle run reads as expired, is terminal for actions, frees its place, and nothing is written", async () => {
  await using test = await startService(
    { SERVICE_STREAM_TTL_SECS: "60", SERVICE_ACTIVE_STREAM_LIMIT: "1" },
    MOVES_CLOCK,
  );
  const runId = await newRun(test);
  test.advance(60_000 - 5_000);
  await test.call("POST", `/v1/runs/${runId}/keepalive`);
  test.advance(60_000 - 5_000);
  assert.equal((await test.call("GET", `/v1/runs/${runId}/state`)).json.state, "processing");
  test.advance(10_000);
  assert.equal((await test.call("GET", `/v1/runs/${runId}/state`)).json.state, "expired");
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.status, "expired");
  for (const action of ["stop", "keepalive"]) {
    assert.equal((await test.call("POST", `/v1/runs/${runId}/${action}`)).status, 409);
  }
  assert.deepEqual(await kindsOf(test, runId), ["run_created", "keepalive_refreshed"]);
  await newRun(test);
});

Deno.test("stop cancels once, keepalive makes a run processing, and every later action is 409", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const kept = await test.call("POST", `/v1/runs/${runId}/keepalive`);
  assert.deepEqual({ ...kept.json, request_id: "" }, { request_id: "", run_id: runId, state: "processing" });
  assert.equal((await test.call("GET", `/v1/runs/${runId}/state`)).json.state, "processing");
  const stopped = await test.call("POST", `/v1/runs/${runId}/stop`);
  assert.deepEqual({ ...stopped.json, request_id: "" }, {
    request_id: "",
    run_id: runId,
    status: "cancelled",
  });

  const actions: [string, unknown][] = [
    ["stop", undefined],
    ["keepalive", undefined],
    ["ingest", { source_uri: "x" }],
    ["analyze", { model: "unknown model: the run is looked at first" }],
  ];
  for (const [action, body] of actions) {
    const { status, json } = await test.call("POST", `/v1/runs/${runId}/${action}`, body);
    assert.equal(status, 409, action);
    assert.equal(json.error.code, "conflict");
    assert.equal(json.error.details[0].field, "run_id");
  }
  assert.deepEqual(await kindsOf(test, runId), ["run_created", "keepalive_refreshed", "stop_requested"]);
});

Deno.test("of many deletes one wins, all answer 200, and the run then reads as missing", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const deletes = await Promise.all(
    Array.from({ length: 8 }, () => test.call("DELETE", `/v1/runs/${runId}`)),
  );
  assert.deepEqual(new Set(deletes.map(({ status }) => status)), new Set([200]));
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).status, 404);
  const written = [...test.service.timeline.read(runId)].flat().filter(({ kind }) => kind === "run_deleted");
  assert.equal(written.length, 1);
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}`, undefined, KEY_B)).status, 404);
  await test.restart();
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}`)).status, 200);
  assert.equal((await test.call("GET", `/v1/runs/${runId}/events`)).status, 404);
});

Deno.test("a run on hold is not deleted until it is released, after a restart too, and a hold wakes no expired run", async () => {
  await using test = await startService({ SERVICE_STREAM_TTL_SECS: "60" }, {
    inProcess: "it moves the clock",
  });
  const runId = await newRun(test);
  const before = (await test.call("GET", `/v1/runs/${runId}`)).json;
  assert.equal(before.on_hold, false);
  test.advance(61_000);
  for (const _ of ["first", "again"]) {
    const held = await test.call("POST", `/v1/runs/${runId}/hold`);
    assert.deepEqual([held.status, held.json.run_id, held.json.on_hold], [200, runId, true]);
  }
  const refused = await test.call("DELETE", `/v1/runs/${runId}`);
  assert.deepEqual([refused.status, refused.json.error.code], [409, "conflict"]);
  assert.match(
    refused.json.error.details[0].message,
    /on hold: release it with DELETE \/v1\/runs\/:id\/hold first/,
  );
  await test.restart();
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}`)).status, 409);
  const { json } = await test.call("GET", `/v1/runs/${runId}`);
  assert.deepEqual(json, { ...before, status: "expired", on_hold: true });
  assert.equal((await test.call("POST", `/v1/runs/${runId}/hold`, undefined, KEY_B)).status, 404);
  const released = await test.call("DELETE", `/v1/runs/${runId}/hold`);
  assert.deepEqual([released.status, released.json.on_hold], [200, false]);
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}/hold`)).status, 200);
  assert.deepEqual(await kindsOf(test, runId), ["run_created", "hold_placed", "hold_released"]);
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}`)).status, 200);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/hold`)).status, 404);
});

Deno.test("a foreign run and a missing one answer alike on every route, and a malformed id is 422", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const routes: [string, string, unknown?][] = [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/stop"],
    ["POST", "/keepalive"],
    ["POST", "/hold"],
    ["DELETE", "/hold"],
    ["GET", "/state"],
    ["GET", "/events"],
    ["GET", "/markers"],
    ["POST", "/ingest", { source_uri: "/x" }],
    ["POST", "/analyze", { model: "x" }],
  ];
  const stripped = (answer: { text: string }) => answer.text.replace(/req-[0-9a-f]{16}/, "");
  for (const [method, path, body] of routes) {
    const foreign = await test.call(method, `/v1/runs/${runId}${path}`, body, KEY_B);
    const missing = await test.call(method, `/v1/runs/${UNKNOWN_RUN}${path}`, body, KEY_B);
    assert.equal(foreign.status, 404, `${method} ${path}`);
    assert.equal(foreign.json.error.code, "not_found");
    assert.equal(stripped(foreign), stripped(missing));
    for (
      const malformed of [
        "run-1",
        `run-${"g".repeat(32)}`,
        `run-${"0".repeat(33)}`,
        "run%2f..",
        "x".repeat(500),
      ]
    ) {
      const { status, json } = await test.call(method, `/v1/runs/${malformed}${path}`, body);
      assert.equal(status, 422, `${method} ${malformed}${path}`);
      assert.equal(json.error.details[0].field, "run_id");
    }
  }
  for (const wellFormed of [`run-${"0".repeat(16)}`, `run-${"A".repeat(32)}`]) {
    assert.equal((await test.call("GET", `/v1/runs/${wellFormed}`)).status, 404);
  }
});

Deno.test("x-tenant-id is recorded and is no way to another principal", async () => {
  await using test = await startService();
  const created = await test.send("/v1/runs", {
    method: "POST",
    headers: { "x-api-key": KEY_A, "x-tenant-id": "acme", "content-type": "application/json" },
    body: "{}",
  });
  const runId = created.json.run_id;
  const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
  assert.equal(json.events[0].payload.tenant_id, "acme");
  assert.match(json.events[0].payload.principal_key, /^api-key:[0-9a-f]{64}$/);
  const foreign = await test.send(`/v1/runs/${runId}`, {
    headers: { "x-api-key": KEY_B, "x-tenant-id": "acme" },
  });
  assert.equal(foreign.status, 404);
});

Deno.test("runs, events and sequence numbers survive a restart", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  await test.call("POST", `/v1/runs/${runId}/keepalive`);
  const before = (await test.call("GET", `/v1/runs/${runId}/events`)).json.events;
  await test.restart();
  const after = (await test.call("GET", `/v1/runs/${runId}/events`)).json.events;
  assert.deepEqual(after, before);
  await test.call("POST", `/v1/runs/${runId}/keepalive`);
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual(events.map(({ seq }: { seq: number }) => seq), [1, 2, 3]);
});
