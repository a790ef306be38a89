/** Direct inference through HTTP against real model servers: answers, events, every refusal, and what it
 * leaves behind.
 */

import assert from "node:assert/strict";
import {
  CUT,
  EMPTY,
  held,
  HUGE,
  MALFORMED,
  type ModelAnswer,
  type ModelServer,
  startModelServer,
} from "../../support/models/model_server.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import {
  type Answer,
  KEY_B,
  MODEL,
  MOVES_CLOCK,
  newRun,
  startService,
  type TestOptions,
  type TestService,
} from "../../support/service.ts";
import { openLog } from "../../../src/base/log.ts";
import { until } from "../../support/until.ts";

const ASK = { model: MODEL, prompt: "What waits?" };

interface Scene extends AsyncDisposable {
  readonly test: TestService;
  readonly model: ModelServer;
  infer(changes?: Record<string, unknown>, key?: string): Promise<Answer>;
  batch(requests: readonly Record<string, unknown>[], changes?: Record<string, unknown>): Promise<Answer>;
}

/** A service with one vLLM server, which gives the answers that the test sets. */
async function open(
  env: Record<string, string> = {},
  answer?: ModelServer["answer"],
  options: TestOptions = {},
): Promise<Scene> {
  const model = startModelServer(answer && { answer });
  const test = await startService({ SERVICE_VLLM_BASE_URL: model.url, ...env }, options);
  return {
    test,
    model,
    infer: (changes = {}, key) => test.call("POST", "/v1/infer", { ...ASK, ...changes }, key),
    batch: (requests, changes = {}) =>
      test.call("POST", "/v1/infer/batch", {
        requests: requests.map((request) => ({ ...ASK, ...request })),
        ...changes,
      }),
    async [Symbol.asyncDispose]() {
      await test[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}

async function eventsOf({ test }: Scene, runId: string): Promise<{ kind: string; payload: unknown }[]> {
  return (await test.call("GET", `/v1/runs/${runId}/events`)).json.events;
}

/** The values of a metrics text by "family{labels}". */
async function metricsOf({ test }: Scene): Promise<Map<string, number>> {
  const { text } = await test.call("GET", "/v1/metrics");
  return new Map(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );
}

Deno.test("an answer has exactly the documented fields, and the model gets what was asked", async () => {
  await using scene = await open();
  const { status, json } = await scene.infer({ prompt: "  What waits?\n" });
  assert.equal(status, 200);
  assert.match(json.request_id, /^req-[0-9a-f]{16}$/);
  assert.ok(Number.isInteger(json.inference_latency_ms) && json.inference_latency_ms >= 0);
  assert.deepEqual(json, {
    request_id: json.request_id,
    run_id: null,
    provider: "vllm",
    model: MODEL,
    fallback_used: false,
    output_text: "A forklift waits.",
    finish_reason: "stop",
    inference_latency_ms: json.inference_latency_ms,
    tokens: { prompt_tokens: 31, completion_tokens: 6, thinking_tokens: 0, total_tokens: 37 },
  });
  const [asked] = scene.model.requests;
  assert.deepEqual(
    [asked!.prompt, asked!.maxTokens, asked!.temperature, asked!.schema],
    ["What waits?", 256, 0, null],
  );
});

Deno.test("what is asked for reaches the model, an alias as the id that it stands for", async () => {
  await using scene = await open({}, () => ({ text: '{"a":1}', finishReason: null, usage: null }));
  const schema = { type: "object", properties: { a: { maximum: 5 } } };
  const { status, json } = await scene.infer({
    model: "MAGE-VL",
    max_tokens: 17,
    temperature: 1.5,
    primary_provider: "SGLang",
    allow_fallback: null,
    output_schema: schema,
  });
  assert.equal(status, 200);
  assert.deepEqual(
    [json.model, json.output_text, json.finish_reason, json.provider],
    ["microsoft/Mage-VL", '{"a":1}', null, "vllm"],
  );
  assert.deepEqual(json.tokens, {
    prompt_tokens: 0,
    completion_tokens: 0,
    thinking_tokens: 0,
    total_tokens: 0,
  });
  const [asked] = scene.model.requests;
  assert.deepEqual([asked!.model, asked!.maxTokens, asked!.temperature], ["microsoft/Mage-VL", 17, 1.5]);
  assert.deepEqual(asked!.schema!.schema, schema);
});

Deno.test("an inference on a run appends inference_completed and leaves the run processing", async () => {
  await using scene = await open({}, () => "Ein Gabelstapler, größer als gedacht");
  const runId = await newRun(scene.test);
  const { json } = await scene.infer({ run_id: runId, prompt: " Größe? " });
  assert.equal(json.run_id, runId);
  const [, completed, ...others] = await eventsOf(scene, runId);
  assert.deepEqual([completed!.kind, others], ["inference_completed", []]);
  assert.deepEqual(completed!.payload, {
    request_id: json.request_id,
    provider: "vllm",
    model: MODEL,
    fallback_used: false,
    prompt_bytes: 8,
    output_bytes: 38,
  });
  const { json: { state } } = await scene.test.call("GET", `/v1/runs/${runId}/state`);
  assert.equal(state, "processing");
});

/** An object nested `depth` levels deep. */
const nested = (depth: number) => JSON.parse('{"a":'.repeat(depth - 1) + "{}" + "}".repeat(depth - 1));

const INVALID: readonly (readonly [Record<string, unknown>, string])[] = [
  [{ model: "no-such-model" }, "model"],
  [{ model: "" }, "model"],
  [{ model: 1 }, "model"],
  [{ model: undefined }, "model"],
  [{ prompt: undefined }, "prompt"],
  [{ prompt: "" }, "prompt"],
  [{ prompt: " \n\t " }, "prompt"],
  [{ prompt: "a".repeat(32_769) }, "prompt"],
  [{ prompt: "ä".repeat(16_385) }, "prompt"],
  [{ prompt: ["a"] }, "prompt"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ max_tokens: 4097 }, "max_tokens"],
  [{ max_tokens: 1.5 }, "max_tokens"],
  [{ max_tokens: "9" }, "max_tokens"],
  [{ temperature: -0.01 }, "temperature"],
  [{ temperature: 2.01 }, "temperature"],
  [{ temperature: "hot" }, "temperature"],
  [{ timeout_ms: 0 }, "timeout_ms"],
  [{ timeout_ms: 120_001 }, "timeout_ms"],
  [{ timeout_ms: 10.5 }, "timeout_ms"],
  [{ primary_provider: "openai" }, "primary_provider"],
  [{ primary_provider: "" }, "primary_provider"],
  [{ allow_fallback: "no" }, "allow_fallback"],
  [{ run_id: "run-1" }, "run_id"],
  [{ run_id: "" }, "run_id"],
  [{ run_id: 7 }, "run_id"],
  [{ output_schema: [] }, "output_schema"],
  [{ output_schema: "{}" }, "output_schema"],
  [{ output_schema: { a: "x".repeat(65_536) } }, "output_schema"],
  [{ output_schema: nested(65) }, "output_schema"],
  [{ images: [] }, "images"],
];

Deno.test("a field that is wrong is named, alone and as an item of a batch, and no model is asked", async () => {
  await using scene = await open();
  for (const [changes, field] of INVALID) {
    const { status, json } = await scene.infer(changes);
    const got = JSON.stringify([status, json]).slice(0, 500);
    assert.deepEqual([status, json.error?.code], [422, "validation_error"], got);
    // deno-lint-ignore no-explicit-any
    assert.deepEqual(json.error.details.map((fault: any) => fault.field), [field], got);

    const ofBatch = await scene.batch([{}, changes]);
    const [fault, ...others] = ofBatch.json.error.details;
    assert.deepEqual([ofBatch.status, others], [422, []], ofBatch.text.slice(0, 500));
    assert.match(`${fault.field} ${fault.message}`, new RegExp(`^(${field}|requests) .*\\[1\\]`));
  }
  assert.equal(scene.model.requests.length, 0);
});

Deno.test("every field at fault is named at once", async () => {
  await using scene = await open();
  const { json } = await scene.infer({
    model: "x",
    prompt: "",
    max_tokens: 0,
    temperature: 3,
    timeout_ms: 0,
  });
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    json.error.details.map((fault: any) => fault.field),
    ["model", "prompt", "max_tokens", "temperature", "timeout_ms"],
  );
});

Deno.test("both ends of every range are taken", async () => {
  await using scene = await open();
  for (
    const changes of [
      { prompt: "a" },
      { prompt: `  ${"ä".repeat(16_384)}  ` },
      { max_tokens: 1 },
      { max_tokens: 4096 },
      { temperature: 0 },
      { temperature: 2 },
      { timeout_ms: 120_000 },
      { output_schema: { a: "x".repeat(65_528) } },
      { output_schema: nested(64) },
      { output_schema: {} },
      { model: MODEL.toUpperCase() },
      { run_id: null, max_tokens: null, temperature: null, timeout_ms: null, primary_provider: null },
    ]
  ) {
    const { status, text } = await scene.infer(changes);
    assert.equal(status, 200, `${JSON.stringify(changes).slice(0, 80)} ${text.slice(0, 300)}`);
  }
});

Deno.test("an integer past 2^53 in an output schema is no reason to fail", async () => {
  await using scene = await open();
  const body = `{"model":"${MODEL}","prompt":"?","output_schema":{"maximum":18446744073709551615}}`;
  const { status, text } = await scene.test.call("POST", "/v1/infer", body);
  assert.equal(status, 200, text);
  assert.deepEqual(scene.model.requests[0]!.schema!.schema, { maximum: 2 ** 64 });
});

Deno.test("without a backend every inference is 500 before its fields are looked at, and the catalog says so", async () => {
  await using test = await startService();
  for (
    const [path, body] of [
      ["/v1/infer", ASK],
      ["/v1/infer", { model: "no-such-model", prompt: "" }],
      ["/v1/infer/batch", { requests: [] }],
    ] as const
  ) {
    const { status, json } = await test.call("POST", path, body);
    assert.deepEqual([status, json.error.code, json.error.details], [500, "internal_error", []]);
  }
  const { status, json } = await test.call("GET", "/v1/models");
  assert.equal(status, 200);
  assert.match(json.request_id, /^req-/);
  // deno-lint-ignore no-explicit-any
  assert.ok(json.models.every((model: any) => model.availability === "unavailable"));
});

Deno.test("the catalog asks the backends that there are", async () => {
  await using scene = await open();
  const { status, json } = await scene.test.call("GET", "/v1/models");
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(json), ["request_id", "models"]);
  // deno-lint-ignore no-explicit-any
  const entry = json.models.find((model: any) => model.id === MODEL);
  assert.deepEqual([entry.availability, entry.providers_available], ["ready", ["vllm"]]);
  assert.equal(scene.model.probes, 1);
});

Deno.test("the fifth call of one principal waits for its turn, and another principal does not wait", async () => {
  const { answer, release } = held();
  await using scene = await open({}, answer);
  const mine = Array.from({ length: 5 }, () => scene.infer());
  await until("four are asked", () => scene.model.inFlight === 4);
  const theirs = scene.infer({}, KEY_B);
  await until("the other one is asked", () => scene.model.inFlight === 5);
  assert.equal((await metricsOf(scene)).get("service_infer_admission_waiting"), 1);
  release();
  assert.deepEqual((await Promise.all([...mine, theirs])).map(({ status }) => status), Array(6).fill(200));
  assert.equal(scene.model.requests.length, 6);
});

Deno.test("a call that waits in vain is 503 provider_saturated", async () => {
  const { answer, release } = held();
  await using scene = await open({ SERVICE_INFERENCE_WAIT_TIMEOUT_MS: "50" }, answer);
  const mine = Array.from({ length: 4 }, () => scene.infer());
  await until("four are asked", () => scene.model.inFlight === 4);
  const { status, json } = await scene.infer();
  assert.deepEqual([status, json.error.code], [503, "provider_saturated"]);
  release();
  await Promise.all(mine);
  const metrics = await metricsOf(scene);
  assert.equal(metrics.get('service_infer_admission_timeouts_total{limit="principal"}'), 1);
  assert.equal(scene.model.requests.length, 4);
});

Deno.test("without a free slot a call is refused at once", async () => {
  const { answer, release } = held();
  const env = {
    SERVICE_INFERENCE_GLOBAL_LIMIT: "1",
    SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "1",
    SERVICE_INFERENCE_WAITER_LIMIT: "1",
  };
  await using scene = await open(env, answer);
  const admitted = scene.infer();
  await until("one is asked", () => scene.model.inFlight === 1);
  const waiting = scene.infer();
  const waits = async () => (await metricsOf(scene)).get("service_infer_admission_waiting") === 1;
  await until("one waits", waits);
  const refused = await scene.infer();
  assert.deepEqual([refused.status, refused.json.error.code], [503, "provider_saturated"]);
  release();
  assert.deepEqual([(await admitted).status, (await waiting).status], [200, 200]);
  assert.equal((await metricsOf(scene)).get("service_infer_admission_waiter_rejections_total"), 1);
});

Deno.test("a model that is too slow is 503 deadline_missed, and its request is aborted", async () => {
  const clock = new ManualClock();
  await using scene = await open({}, held().answer, { clock });
  const asked = scene.infer({ timeout_ms: 5_000 });
  await until("the model is asked", () => scene.model.inFlight === 1);
  await clock.advance(5_000);
  const { status, json } = await asked;
  assert.deepEqual([status, json.error.code], [503, "deadline_missed"]);
  await until("the call is cut", () => scene.model.aborted === 1);
});

Deno.test("a wait that leaves too little time is 503 deadline_missed, and the model is not asked", async () => {
  const { answer, release } = held();
  await using scene = await open({ SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "1" }, answer);
  const first = scene.infer();
  await until("one is asked", () => scene.model.inFlight === 1);
  const { status, json } = await scene.infer({ timeout_ms: 1100 });
  assert.deepEqual([status, json.error.code], [503, "deadline_missed"]);
  release();
  await first;
  assert.equal(scene.model.requests.length, 1);
  assert.equal((await metricsOf(scene)).get("service_infer_admission_deadline_missed_total"), 1);
});

Deno.test("a request larger than the whole token budget is 422 on request", async () => {
  await using scene = await open({ SERVICE_INFERENCE_TOKEN_BUDGET: "100" });
  const { status, json } = await scene.infer({ max_tokens: 101 });
  assert.deepEqual(
    [status, json.error.code, json.error.details[0].field],
    [422, "validation_error", "request"],
  );
  assert.equal((await scene.infer({ max_tokens: 100 })).status, 200);
  assert.equal(scene.model.requests.length, 1);
});

Deno.test("calls share the token budget", async () => {
  const { answer, release } = held();
  await using scene = await open({ SERVICE_INFERENCE_TOKEN_BUDGET: "100" }, answer);
  const first = scene.infer({ max_tokens: 60 });
  await until("one is asked", () => scene.model.inFlight === 1);
  const second = scene.infer({ max_tokens: 41 });
  const third = scene.infer({ max_tokens: 40 });
  await until("the one that fits is asked", () => scene.model.inFlight === 2);
  assert.equal((await metricsOf(scene)).get("service_infer_admission_active_tokens"), 100);
  release();
  const statuses = (await Promise.all([first, second, third])).map(({ status }) => status);
  assert.deepEqual(statuses, [200, 200, 200]);
  assert.deepEqual(scene.model.requests.map(({ maxTokens }) => maxTokens), [60, 40, 41]);
});

const SECRET_TEXT = "a word of the provider";

Deno.test("whatever the provider does wrong is 500 without a word of its own", async () => {
  const model = startModelServer({ apiKey: "sk-hush" });
  await using _model = model;
  const env = { SERVICE_VLLM_BASE_URL: model.url, SERVICE_VLLM_API_KEY: "sk-hush" };
  await using test = await startService(env);
  const runId = await newRun(test);
  const faults: readonly [ModelAnswer, string][] = [
    [{ status: 400, body: SECRET_TEXT }, "provider_http_status"],
    [{ status: 401, body: SECRET_TEXT }, "provider_http_status"],
    [{ status: 500, body: SECRET_TEXT }, "provider_http_status"],
    [{ status: 302, body: SECRET_TEXT }, "provider_http_status"],
    [{ status: 200, body: SECRET_TEXT }, "provider_invalid_response"],
    [{ status: 200, body: `{"error":"${SECRET_TEXT}"}` }, "provider_invalid_response"],
    [MALFORMED, "provider_invalid_response"],
    [HUGE, "provider_invalid_response"],
    [CUT, "provider_transport"],
  ];
  for (const [answer, code] of faults) {
    await test.restart(); // the circuit breaker of a failing backend would skip it
    model.answer = () => answer;
    const single = await test.call("POST", "/v1/infer", { ...ASK, run_id: runId });
    const what = `${JSON.stringify(answer).slice(0, 80)}: ${single.text}`;
    assert.deepEqual([single.status, single.json.error.code], [500, "internal_error"], what);
    const batch = await test.call("POST", "/v1/infer/batch", { requests: [ASK] });
    assert.deepEqual([batch.status, batch.json.results[0].error.code], [200, code], what);
    for (const { text } of [single, batch]) {
      assert.doesNotMatch(text, /sk-hush|a word of|127\.0\.0\.1|choices/);
    }
  }
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual(events.map(({ kind }: { kind: string }) => kind), ["run_created"]);
});

Deno.test("a provider that is busy for longer than the call may take is passed on as busy, with what it asks for", async () => {
  await using scene = await open();
  for (const [status, code] of [[429, "rate_limited"], [503, "provider_saturated"]] as const) {
    const headers = { "retry-after": "3600" };
    scene.model.answer = () => ({ status, headers, body: `{"error":"${SECRET_TEXT}"}` });
    const single = await scene.infer();
    assert.deepEqual(
      [single.status, single.json.error.code, single.headers.get("retry-after")],
      [status, code, "3600"],
      single.text,
    );
    assert.doesNotMatch(single.text, /a word of/);
    const batch = await scene.batch([{}]);
    assert.deepEqual([batch.status, batch.json.results[0].error.code], [200, "provider_http_status"]);
  }
  assert.equal(scene.model.requests.length, 4, "each call asks once, as the time of the call is too short");
});

Deno.test("an unreachable provider is 500", async () => {
  await using test = await startService({ SERVICE_VLLM_BASE_URL: "http://127.0.0.1:1" });
  const { status, json } = await test.call("POST", "/v1/infer", ASK);
  assert.deepEqual([status, json.error.code], [500, "internal_error"]);
});

Deno.test("an empty text is an answer", async () => {
  await using scene = await open({}, () => EMPTY);
  const { status, json } = await scene.infer();
  assert.deepEqual([status, json.output_text], [200, ""]);
});

Deno.test("a second backend answers where the first fails in a way that may pass, unless that is not wanted", async () => {
  await using first = startModelServer({ answer: () => ({ status: 500 }) });
  await using second = startModelServer({ answer: () => "from the second" });
  await using test = await startService({
    SERVICE_VLLM_BASE_URL: first.url,
    SERVICE_SGLANG_BASE_URL: second.url,
  });
  const runId = await newRun(test);
  const { json } = await test.call("POST", "/v1/infer", { ...ASK, run_id: runId });
  assert.deepEqual([json.provider, json.fallback_used, json.output_text], [
    "sglang",
    true,
    "from the second",
  ]);
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual([events[1].payload.provider, events[1].payload.fallback_used], ["sglang", true]);

  assert.equal((await test.call("POST", "/v1/infer", { ...ASK, allow_fallback: false })).status, 500);
  first.answer = () => ({ status: 400 });
  assert.equal((await test.call("POST", "/v1/infer", ASK)).status, 500);
  assert.equal(second.requests.length, 1);
  const { text } = await test.call("GET", "/v1/metrics");
  assert.match(text, /^service_infer_fallback_total\{provider="sglang"\} 1$/m);
});

Deno.test("a run that is foreign, missing or over is refused, and no model is asked", async () => {
  await using scene = await open({ SERVICE_STREAM_TTL_SECS: "60" }, undefined, MOVES_CLOCK);
  const { test } = scene;
  const check = async (runId: string, expected: number, code: string) => {
    const { status, json } = await scene.infer({ run_id: runId });
    assert.deepEqual([status, json.error.code, json.error.details[0].field], [expected, code, "run_id"]);
    const batch = await scene.batch([{}, { run_id: runId }]);
    assert.deepEqual([batch.status, batch.json.error.code], [expected, code]);
    assert.match(batch.json.error.message, /^requests\[1\]/);
  };
  await check(await newRun(test, KEY_B), 404, "not_found");
  await check(`run-${"0".repeat(32)}`, 404, "not_found");
  const deleted = await newRun(test);
  await test.call("DELETE", `/v1/runs/${deleted}`);
  await check(deleted, 404, "not_found");
  const stopped = await newRun(test);
  await test.call("POST", `/v1/runs/${stopped}/stop`);
  await check(stopped, 409, "conflict");
  const expired = await newRun(test);
  test.advance(60_001);
  await check(expired, 409, "conflict");
  assert.equal(scene.model.requests.length, 0);
});

Deno.test("a run that is stopped or deleted ends its inference at once and gets no event", async () => {
  await using scene = await open({}, held().answer);
  const { test, model } = scene;
  const check = async (method: string, path: (runId: string) => string, expected: number, code: string) => {
    const runId = await newRun(test);
    const asked = scene.infer({ run_id: runId });
    const ofBatch = scene.batch([{ run_id: runId }]);
    await until("both are asked", () => model.inFlight === 2);
    await test.call(method, path(runId));
    const { status, json } = await asked;
    assert.deepEqual([status, json.error.code], [expected, code]);
    assert.equal((await ofBatch).json.results[0].error.code, "validation_error");
    await until("the model is let go", () => model.inFlight === 0);
    const { status: read, json: events } = await test.call("GET", `/v1/runs/${runId}/events`);
    if (read === 200) {
      const kinds = events.events.map(({ kind }: { kind: string }) => kind);
      assert.deepEqual(kinds, ["run_created", "stop_requested"]);
    }
  };
  await check("POST", (runId) => `/v1/runs/${runId}/stop`, 409, "conflict");
  await check("DELETE", (runId) => `/v1/runs/${runId}`, 404, "not_found");
});

Deno.test("a model that no backend serves is refused at once, however many calls are waiting", async () => {
  await using model = startModelServer({ answer: held().answer });
  await using test = await startService({
    SERVICE_INFERENCE_GLOBAL_LIMIT: "1",
    SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "1",
    SERVICE_INFERENCE_WAITER_LIMIT: "1",
  }, {
    backendFile: `[[backends]]
      name = "edge"
      type = "openai_compat"
      base_url = "${model.url}"
      model = "${MODEL}"`,
  });
  const deleteSession = new AbortController();
  const ask = (fields: object, signal?: AbortSignal) =>
    fetch(`${test.url}/v1/infer`, {
      method: "POST",
      headers: { "x-api-key": "key-of-a", "content-type": "application/json" },
      body: JSON.stringify({ ...ASK, ...fields }),
      ...(signal && { signal }),
    });
  const pending = [ask({}, deleteSession.signal), ask({}, deleteSession.signal)];
  await until("one call is under way", () => model.inFlight === 1);
  await until("one call is waiting", async () => {
    const { text } = await test.call("GET", "/v1/metrics");
    return text.includes("service_infer_admission_waiting 1\n");
  });
  assert.equal((await ask({}).then((full) => full.json())).error.code, "provider_saturated");
  const refused = await ask({ model: "Qwen/Qwen3-VL-2B-Instruct" });
  const { error } = await refused.json();
  assert.deepEqual([refused.status, error.details[0].field], [422, "model"]);
  deleteSession.abort();
  await Promise.all(pending.map((call) => assert.rejects(call)));
});

Deno.test("a caller who disconnects ends the provider call, and a batch calls no provider any more", async () => {
  await using scene = await open({}, held().answer);
  const { test, model } = scene;
  const check = async (path: string, body: unknown, expectedInFlight: number, padding = "") => {
    const before = model.requests.length;
    const deleteSession = new AbortController();
    const asked = test.send(path, {
      method: "POST",
      headers: { "x-api-key": "key-of-a", "content-type": "application/json" },
      body: JSON.stringify(body) + padding,
      signal: deleteSession.signal,
    });
    await until("the model is asked", () => model.inFlight === expectedInFlight);
    deleteSession.abort();
    await assert.rejects(asked);
    await until("the model is let go", () => model.inFlight === 0);
    await until(
      "nobody is admitted",
      async () => (await metricsOf(scene)).get("service_infer_admission_active") === 0,
    );
    assert.equal(model.requests.length - before, expectedInFlight);
  };
  await check("/v1/infer", ASK, 1);
  await check("/v1/infer/batch", { requests: Array(6).fill({ ...ASK, prompt: "?" }) }, 4);
  // The runtime itself does not notice a client that disconnects after a body of more than 512 bytes.
  for (const padding of [600, 100_000]) await check("/v1/infer", ASK, 1, " ".repeat(padding));
});

Deno.test("a batch answers each item by its index, and a failing item fails alone", async () => {
  await using scene = await open({}, ({ prompt }) => {
    if (prompt === "bad") return { status: 400 };
    if (prompt === "garbled") return MALFORMED;
    return `about ${prompt}`;
  });
  const runId = await newRun(scene.test);
  const prompts = ["a", "bad", "b", "garbled", "c"];
  const { status, json } = await scene.batch(
    prompts.map((prompt, index) => ({ prompt, ...(index !== 2 && { run_id: runId }) })),
    { max_parallel: 2 },
  );
  assert.equal(status, 200);
  assert.deepEqual([json.processed, json.succeeded, json.failed], [5, 3, 2]);
  assert.deepEqual(Object.keys(json), ["request_id", "processed", "succeeded", "failed", "results"]);
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    json.results.map((item: any) => [item.index, item.ok, item.result?.output_text, item.error?.code]),
    [
      [0, true, "about a", undefined],
      [1, false, undefined, "provider_http_status"],
      [2, true, "about b", undefined],
      [3, false, undefined, "provider_invalid_response"],
      [4, true, "about c", undefined],
    ],
  );
  const [good, bad] = json.results;
  assert.deepEqual(good, {
    index: 0,
    ok: true,
    result: {
      request_id: json.request_id,
      run_id: runId,
      provider: "vllm",
      model: MODEL,
      fallback_used: false,
      output_text: "about a",
      finish_reason: "stop",
      inference_latency_ms: good.result.inference_latency_ms,
      tokens: { prompt_tokens: 31, completion_tokens: 6, thinking_tokens: 0, total_tokens: 37 },
    },
    error: null,
  });
  assert.deepEqual([bad.result, Object.keys(bad.error)], [null, ["code", "message"]]);
  const kinds = (await eventsOf(scene, runId)).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["run_created", "inference_completed", "inference_completed"]);
  assert.ok(scene.model.maxInFlight <= 2);
});

Deno.test("items that wait while their run is stopped ask no model, and those of other runs go on", async () => {
  const { answer, release } = held();
  await using scene = await open({}, answer);
  const [stopped, other] = [await newRun(scene.test), await newRun(scene.test)];
  const runs = [other, stopped, stopped, other];
  const asked = scene.batch(runs.map((run_id) => ({ run_id })), { max_parallel: 1 });
  await until("the first is asked", () => scene.model.inFlight === 1);
  await scene.test.call("POST", `/v1/runs/${stopped}/stop`);
  release();
  const { json } = await asked;
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    json.results.map((item: any) => item.error?.code),
    [undefined, "validation_error", "validation_error", undefined],
  );
  assert.equal(scene.model.requests.length, 2);
});

Deno.test("a batch of the wrong size or parallelism is refused", async () => {
  await using scene = await open();
  const many = (length: number) => Array<Record<string, unknown>>(length).fill({});
  const check = async (
    requests: readonly Record<string, unknown>[],
    max_parallel: unknown,
    field: string,
  ) => {
    const { status, json } = await scene.batch(requests, { max_parallel });
    assert.deepEqual([status, json.error.details[0].field], [422, field]);
  };
  await check([], 1, "requests");
  await check(many(257), 1, "requests");
  await check(many(1), 0, "max_parallel");
  await check(many(1), 65, "max_parallel");
  await check(many(1), 1.5, "max_parallel");
  const missing = await scene.test.call("POST", "/v1/infer/batch", { max_parallel: 1 });
  assert.deepEqual([missing.status, missing.json.error.details[0].field], [422, "requests"]);
  assert.equal(scene.model.requests.length, 0);
});

Deno.test("the largest batch does not saturate itself, whatever the waiters", async () => {
  await using scene = await open({
    SERVICE_INFERENCE_WAITER_LIMIT: "1",
    SERVICE_INFERENCE_WAIT_TIMEOUT_MS: "1",
  });
  const { json } = await scene.batch(Array(256).fill({}), { max_parallel: 64 });
  assert.deepEqual([json.processed, json.succeeded], [256, 256]);
  assert.ok(scene.model.maxInFlight <= 4);
});

Deno.test("items that are refused at admission say so, each for itself", async () => {
  await using scene = await open({ SERVICE_INFERENCE_TOKEN_BUDGET: "100" });
  const { json } = await scene.batch([{ max_tokens: 50 }, { max_tokens: 101 }]);
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    json.results.map((item: any) => item.error?.code),
    [undefined, "request_budget_exceeded"],
  );
});

Deno.test("a model that no backend serves is 422 on model, alone, and validation_error in a batch", async () => {
  await using model = startModelServer();
  const backendFile = `
    [[backends]]
    name = "edge"
    type = "openai_compat"
    base_url = "${model.url}"
    model = "${MODEL}"
  `;
  await using test = await startService({}, { backendFile });
  const other = { ...ASK, model: "Qwen/Qwen3.5-9B" };
  const { status, json } = await test.call("POST", "/v1/infer", other);
  assert.deepEqual([status, json.error.code, json.error.details[0].field], [
    422,
    "validation_error",
    "model",
  ]);
  const batch = await test.call("POST", "/v1/infer/batch", { requests: [ASK, other] });
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    batch.json.results.map((item: any) => item.error?.code),
    [undefined, "validation_error"],
  );
  const { text } = await test.call("GET", "/v1/metrics");
  assert.match(text, /^service_infer_requests_total\{provider="vllm",status="error"\} 0$/m);
});

Deno.test("every outcome is counted", async () => {
  await using scene = await open({ SERVICE_INFERENCE_TOKEN_BUDGET: "1000" });
  for (let count = 0; count < 3; count++) await scene.infer();
  await scene.infer({ max_tokens: 2000 });
  scene.model.answer = () => ({ status: 400 });
  await scene.infer({ primary_provider: "mlx" });
  const metrics = await metricsOf(scene);
  const expected = {
    'service_infer_requests_total{provider="vllm",status="ok"}': 3,
    'service_infer_requests_total{provider="vllm",status="error"}': 1,
    'service_infer_requests_total{provider="mlx",status="error"}': 0,
    'service_infer_fallback_total{provider="vllm"}': 0,
    'service_infer_tokens_total{provider="vllm",kind="prompt"}': 93,
    'service_infer_tokens_total{provider="vllm",kind="completion"}': 18,
    'service_infer_tokens_total{provider="vllm",kind="thinking"}': 0,
    'service_infer_latency_ms_count{provider="vllm"}': 4,
    'service_infer_latency_ms_count{provider="mlx"}': 0,
    'service_infer_slo_target_ratio{provider="vllm"}': 0.99,
    'service_infer_error_budget_remaining_ratio{provider="vllm"}': 0,
    'service_infer_error_budget_remaining_ratio{provider="mlx"}': 1,
    service_infer_admission_active: 0,
    service_infer_admission_waiting: 0,
    service_infer_admission_acquired_total: 4,
    'service_infer_admission_acquired_by_class_total{class="live"}': 4,
    'service_infer_admission_acquired_by_class_total{class="offline"}': 0,
    'service_infer_admission_timeouts_total{limit="global"}': 0,
    service_infer_admission_waiter_rejections_total: 0,
    service_infer_admission_wait_duration_us_sum: 0,
    service_infer_admission_wait_duration_us_count: 4,
    service_infer_admission_active_tokens: 0,
    service_infer_admission_active_bytes: 0,
    service_infer_admission_token_limit: 1000,
    service_infer_admission_byte_limit: 268435456,
    service_infer_admission_deadline_missed_total: 0,
    service_infer_admission_budget_rejections_total: 1,
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(metrics.get(name), value, name);
});

Deno.test("what failed before a backend was asked counts against the primary provider", async () => {
  const { answer, release } = held();
  const env = { SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "1", SERVICE_INFERENCE_WAIT_TIMEOUT_MS: "1" };
  await using scene = await open(env, answer);
  const first = scene.infer();
  await until("one is asked", () => scene.model.inFlight === 1);
  await scene.infer({ primary_provider: "MLX" });
  release();
  await first;
  const metrics = await metricsOf(scene);
  assert.equal(metrics.get('service_infer_requests_total{provider="mlx",status="error"}'), 1);
  assert.equal(metrics.get('service_infer_requests_total{provider="vllm",status="error"}'), 0);
});

Deno.test("closing the service ends calls that are under way, with a run and without", async () => {
  await using model = startModelServer({ answer: held().answer });
  const test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
  const runId = await newRun(test);
  const asked = [{}, { run_id: runId }].map((changes) =>
    test.call("POST", "/v1/infer", { ...ASK, ...changes })
  );
  await until("both are asked", () => model.inFlight === 2);
  await test[Symbol.asyncDispose]();
  for (const { status, json } of await Promise.all(asked)) {
    assert.deepEqual([status, json.error.code], [503, "provider_saturated"]);
  }
  await until("the model is let go", () => model.inFlight === 0);
});

Deno.test("a batch whose items fail logs one line, which says of how many", async () => {
  const lines: string[] = [];
  const stderr = {
    writeSync(bytes: Uint8Array) {
      lines.push(new TextDecoder().decode(bytes));
      return bytes.length;
    },
  };
  const log = openLog("warn", { stdout: { writeSync: (bytes) => bytes.length }, stderr });
  await using scene = await open({}, () => MALFORMED, { log });
  const { json } = await scene.batch([{}, {}, {}]);
  assert.equal(json.failed, 3);
  const faults = lines.map((line) => JSON.parse(line)).filter(({ message }) =>
    message === "inference failed"
  );
  assert.deepEqual(faults.map(({ fields }) => [fields.request_id, fields.items]), [[json.request_id, 3]]);
});
