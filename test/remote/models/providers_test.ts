import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import type { BackendSettings } from "../../../src/model/infer/backend_file.ts";
import { CATALOG } from "../../../src/model/infer/catalog.ts";
import { InferenceFailed, type InferenceRequest } from "../../../src/model/infer/inference.ts";
import { Providers } from "../../../src/remote/models/providers.ts";
import { startGeminiServer } from "../../support/models/gemini_server.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import {
  CUT,
  held,
  type ModelAnswer,
  type ModelServer,
  startModelServer,
} from "../../support/models/model_server.ts";
import { startModelProgram } from "../../support/models/model_programs.ts";
import { question } from "../../support/models/inference.ts";
import { until } from "../../support/until.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const OTHER = "Qwen/Qwen3-VL-2B-Instruct";
const CLOUD = "gemini-3.5-flash-lite";
const KEY = "s3cret-key";

function openai(name: string, { url }: { url: string }, fields: object = {}): BackendSettings {
  const kind = name === "sglang" || name === "mlx" ? name : "vllm";
  const common = {
    type: "openai_compat",
    apiKey: null,
    model: null,
    upstreamModel: null,
    priority: 100,
  } as const;
  return { ...common, name, kind, baseUrl: url, ...fields };
}

function gemini(name: string, { url }: { url: string }, fields: object = {}): BackendSettings {
  return { type: "gemini", name, baseUrl: url, apiKey: KEY, model: CLOUD, priority: 100, ...fields };
}

/** Providers with a clock that only the test moves. */
function open(...backends: readonly BackendSettings[]) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const world = {
    ...realWorld({ ...quietLog(), child: () => ({ ...quietLog(), warn: say, info: say }) }),
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
  };
  const providers = new Providers({ backends, world, outbound: { roots: () => [] } });
  return {
    clock,
    providers,
    /** The log messages. */
    lines,
    infer: (fields: Partial<InferenceRequest> = {}, timeoutMs = 20_000, signal = NEVER_ABORTED) =>
      providers.infer(question(fields), { timeoutMs, signal }),
    [Symbol.asyncDispose]: () => providers[Symbol.asyncDispose](),
  };
}

async function failureOf(promise: Promise<unknown>): Promise<InferenceFailed> {
  const error = await promise.then(() => assert.fail("it did not fail"), (error) => error);
  assert.ok(error instanceof InferenceFailed, String(error?.stack));
  return error;
}

const asked = (...servers: readonly ModelServer[]) => servers.map(({ requests }) => requests.length);

Deno.test("backends are asked in order of priority, and the first answer wins", async () => {
  await using last = startModelServer();
  await using first = startModelServer();
  await using test = open(openai("vllm", last, { priority: 2 }), openai("sglang", first, { priority: 1 }));
  assert.deepEqual(await test.infer(), {
    provider: "sglang",
    model: MODEL,
    fallbackUsed: false,
    outputText: "A forklift waits.",
    finishReason: "stop",
    tokens: { prompt_tokens: 31, completion_tokens: 6, thinking_tokens: 0, total_tokens: 37 },
    inferenceLatencyMs: 0,
  });
  assert.deepEqual(asked(first, last), [1, 0]);
});

Deno.test("the next backend answers where another try may help, and only if the caller allows it", async () => {
  const check = async (answer: ModelAnswer, allowFallback: boolean, expected: "fallback" | string) => {
    await using first = startModelServer({ answer: () => answer });
    await using second = startModelServer();
    await using test = open(openai("vllm", first), openai("sglang", second));
    const name = `${JSON.stringify(answer).slice(0, 40)} ${allowFallback}`;
    const infer = test.infer({ allowFallback });
    if (expected === "fallback") {
      const { provider, fallbackUsed } = await infer;
      assert.deepEqual([provider, fallbackUsed], ["sglang", true], name);
    } else {
      const error = await failureOf(infer);
      assert.deepEqual([error.failure, error.provider], [expected, "vllm"], name);
    }
    assert.deepEqual(asked(first, second), [1, expected === "fallback" ? 1 : 0], name);
  };
  for (const status of [408, 429, 500, 502, 503]) await check({ status }, true, "fallback");
  await check(CUT, true, "fallback");
  for (const status of [400, 401, 402, 404, 307]) await check({ status }, true, "http_status");
  await check({ status: 200, body: "{" }, true, "invalid_response");
  await check({ status: 500 }, false, "http_status");
  await check(CUT, false, "transport");
});

Deno.test("when all fail, the last failure is returned", async () => {
  await using first = startModelServer({ answer: () => ({ status: 500 }) });
  await using second = startModelServer({ answer: () => ({ status: 502 }) });
  await using test = open(openai("vllm", first), openai("sglang", second));
  const error = await failureOf(test.infer());
  assert.deepEqual([error.status, error.provider], [502, "sglang"]);
});

Deno.test("the log says once that a backend is skipped, and once that it answers again", async () => {
  const body = JSON.stringify({ error: { message: `no room\nfor ${KEY}` } });
  await using first = startModelServer({ apiKey: KEY, answer: () => ({ status: 503, body }) });
  await using second = startModelServer();
  await using test = open(openai("edge", first, { apiKey: KEY }), openai("sglang", second));
  for (let call = 0; call < 5; call++) await test.infer();
  const said = "backend edge answered 503: no room for ***";
  const down = [said, `skipped for now: ${said}`];
  assert.deepEqual([asked(first, second), test.lines], [[3, 5], down]);
  await test.clock.advance(5_000);
  await test.infer();
  assert.deepEqual([asked(first, second), test.lines], [[4, 6], down], "the probe fails");
  first.answer = () => "A forklift waits.";
  await test.clock.advance(10_000);
  await test.infer();
  assert.deepEqual(test.lines, [...down, "backend edge answers again"]);
});

Deno.test("a backend that is busy is asked again when it wants to be, while there is time", async () => {
  const headers = { "retry-after": "2" };
  await using server = startModelServer();
  await using test = open(openai("vllm", server));
  const inBody = { status: 429, body: '{"error":{"message":"Please try again in 2s."}}' };
  const refusals = [{ status: 502, headers }, { status: 529, headers }, inBody, { status: 429, headers }];
  for (const refusal of refusals) {
    const before = server.requests.length;
    server.answer = () => refusal;
    const refused = await failureOf(test.infer({}, 1_999));
    assert.deepEqual([refused.status, refused.retryAfterMs, server.requests.length - before], [
      refusal.status,
      2_000,
      1,
    ]);
  }
  const first = server.requests.length + 1;
  const answer = test.infer({}, 10_000);
  await until("it is asked", () => Promise.resolve(server.requests.length === first));
  server.answer = () => "A forklift waits.";
  await until("it is asked again", async () => {
    await test.clock.advance(500);
    return server.requests.length === first + 1;
  });
  assert.equal((await answer).outputText, "A forklift waits.");
});

Deno.test("all attempts share one deadline", async () => {
  const release = held<ModelAnswer>({ status: 500 });
  await using first = startModelServer({ answer: release.answer });
  await using second = startModelServer({ answer: held().answer });
  await using test = open(openai("vllm", first), openai("sglang", second));
  const infer = failureOf(test.infer({}, 10_000));
  await until("the first is asked", () => first.inFlight === 1);
  await test.clock.advance(9_000);
  release.release();
  await until("the second is asked", () => second.inFlight === 1);
  await test.clock.advance(1_000);
  const error = await infer;
  assert.deepEqual([error.failure, error.provider], ["deadline_missed", "sglang"]);
  await until("its connection was closed", () => second.aborted === 1);
  assert.equal(test.clock.sleeping, 0, "no timer is left");
});

Deno.test("connecting to a backend times out early enough for the next one", async () => {
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of silent) connections.push(connection);
  })();
  await using second = startModelServer();
  // It accepts the connection but never answers the TLS handshake.
  await using test = open(
    openai("vllm", { url: `https://127.0.0.1:${silent.addr.port}` }),
    openai("sglang", second),
  );
  const infer = test.infer();
  await until("it is connected to", () => connections.length === 1);
  await test.clock.advance(3_000);
  const { provider, inferenceLatencyMs } = await infer;
  assert.deepEqual([provider, inferenceLatencyMs], ["sglang", 3_000]);
  assert.equal(test.clock.sleeping, 0, "no timer is left");
  silent.close();
  await accepting;
  for (const connection of connections) connection.close();
});

Deno.test("an abort by the caller ends everything, and is not a failure of the backend", async () => {
  await using first = startModelServer({ answer: held().answer });
  await using second = startModelServer();
  await using test = open(openai("vllm", first), openai("sglang", second));
  for (let times = 1; times <= 4; times++) {
    const caller = new AbortController();
    const infer = test.infer({}, 20_000, caller.signal);
    await until("it is asked", () => first.inFlight === 1);
    const reason = new Error("gone home");
    caller.abort(reason);
    await assert.rejects(infer, reason);
    await until("its connection was closed", () => first.aborted === times && first.inFlight === 0);
  }
  assert.deepEqual(asked(first, second), [4, 0]);
  await assert.rejects(test.infer({}, 20_000, AbortSignal.abort(new Error("early"))), /early/);
});

Deno.test("a backend that keeps failing is skipped, then probed once, and then used again or skipped for longer", async () => {
  await using first = startModelServer({ answer: () => answer });
  await using second = startModelServer();
  await using test = open(openai("vllm", first), openai("sglang", second));
  let answer: ModelAnswer = { status: 500 };
  const check = async (times: number, firstAsked: number, what: string) => {
    for (let time = 0; time < times; time++) assert.equal((await test.infer()).fallbackUsed, true, what);
    assert.equal(first.requests.length, firstAsked, what);
  };
  await check(5, 3, "three failures in a row");
  await test.clock.advance(4_999);
  await check(2, 3, "still skipped");
  await test.clock.advance(1);
  await check(3, 4, "one probe, which fails");
  await test.clock.advance(9_999);
  await check(2, 4, "twice as long");
  await test.clock.advance(1);
  answer = "back again";
  assert.equal((await test.infer()).fallbackUsed, false, "the probe succeeds");
  assert.equal((await test.infer()).fallbackUsed, false, "as before");
  answer = { status: 500 };
  await check(4, 9, "and three failures again");
});

Deno.test("only one call at a time is a probe", async () => {
  const release = held();
  await using first = startModelServer({ answer: () => ({ status: 500 }) });
  await using second = startModelServer();
  await using test = open(openai("vllm", first), openai("sglang", second));
  for (let time = 0; time < 3; time++) await test.infer();
  await test.clock.advance(5_000);
  first.answer = release.answer;
  const probe = test.infer();
  await until("the probe is under way", () => first.inFlight === 1);
  for (let time = 0; time < 3; time++) assert.equal((await test.infer()).provider, "sglang");
  assert.equal(first.requests.length, 4);
  release.release();
  assert.equal((await probe).provider, "vllm");
  assert.equal((await test.infer()).provider, "vllm");
});

Deno.test("a probe that its caller aborts is neither a success nor a failure", async () => {
  await using first = startModelServer({ answer: () => ({ status: 500 }) });
  await using second = startModelServer();
  await using test = open(openai("vllm", first), openai("sglang", second));
  for (let time = 0; time < 3; time++) await test.infer();
  await test.clock.advance(5_000);
  first.answer = held().answer;
  const caller = new AbortController();
  const probe = test.infer({}, 20_000, caller.signal);
  await until("the probe is under way", () => first.inFlight === 1);
  caller.abort(new Error("gone"));
  await assert.rejects(probe, /gone/);
  first.answer = () => "back";
  assert.equal((await test.infer()).provider, "vllm");
});

Deno.test("a used-up quota opens the circuit at once", async () => {
  for (const answer of [{ status: 402 }, { status: 429, body: '{"error":{"type":"insufficient_quota"}}' }]) {
    await using first = startModelServer({ answer: () => answer });
    await using second = startModelServer();
    await using test = open(openai("vllm", first), openai("sglang", second));
    await test.infer().catch(() => {}); // 402 is not retryable for this call
    assert.equal((await test.infer()).provider, "sglang");
    assert.equal(first.requests.length, 1);
  }
});

Deno.test("failures that are not the backend's fault open no circuit", async () => {
  const check = async (answer: ModelAnswer, message: string) => {
    await using first = startModelServer({ answer: () => answer });
    await using second = startModelServer();
    await using test = open(openai("vllm", first), openai("sglang", second));
    for (let time = 0; time < 6; time++) await test.infer().catch(() => {});
    assert.equal(first.requests.length, 6, message);
  };
  await check({ status: 400 }, "a bad request");
  await check({ status: 200, body: "{}" }, "an unreadable answer");
  await check("fine", "answers");

  await using slow = startModelServer({ answer: held().answer });
  await using second = startModelServer();
  await using test = open(openai("vllm", slow), openai("sglang", second));
  const late = async (timeoutMs: number) => {
    const before = slow.requests.length;
    const infer = failureOf(test.infer({}, timeoutMs));
    await until("it is asked", () => slow.requests.length > before);
    await test.clock.advance(timeoutMs);
    assert.equal((await infer).failure, "deadline_missed");
  };
  for (let time = 0; time < 4; time++) await late(500);
  for (let time = 0; time < 3; time++) await late(5_000);
  assert.equal((await test.infer()).provider, "sglang", "a backend that is silent for long is skipped");
});

Deno.test("when the circuits of all backends are open, they are asked all the same", async () => {
  await using first = startModelServer({ answer: () => ({ status: 500 }) });
  await using second = startModelServer({ answer: () => ({ status: 502 }) });
  await using test = open(openai("vllm", first), openai("sglang", second));
  for (let time = 0; time < 3; time++) await failureOf(test.infer());
  second.answer = () => "back";
  assert.equal((await test.infer()).provider, "sglang");
  assert.deepEqual(asked(first, second), [4, 4]);
  await failureOf(test.infer({ allowFallback: false }));
  assert.deepEqual(asked(first, second), [5, 4], "without fallback only the first is asked");
});

Deno.test("a backend with a model serves only that one, under its own name for it", async () => {
  await using one = startModelServer();
  await using test = open(openai("vllm", one, { model: MODEL, upstreamModel: "local/x" }));
  assert.equal((await test.infer()).model, MODEL);
  assert.equal(one.requests[0]!.model, "local/x");
  assert.equal((await failureOf(test.infer({ model: OTHER }))).failure, "unsupported_model");
  assert.equal((await failureOf(test.infer({ model: "gpt-5" }))).failure, "unsupported_model");
  assert.equal(one.requests.length, 1);
  await using none = open();
  assert.equal(none.providers.isConfigured, false);
  assert.equal((await failureOf(none.infer())).failure, "no_provider");
});

Deno.test("the model of a gemini backend goes to that backend alone", async () => {
  await using cloud = startGeminiServer({ apiKey: KEY, answer: () => ({ status: 500 }) });
  await using spare = startGeminiServer({ apiKey: KEY });
  await using server = startModelServer();
  await using test = open(
    openai("vllm", server, { priority: 0 }),
    gemini("b", spare),
    gemini("a", cloud),
    gemini("z", spare, { priority: 101 }),
  );
  assert.equal((await failureOf(test.infer({ model: CLOUD }))).provider, "gemini");
  assert.deepEqual([cloud.requests.length, spare.requests.length, server.requests.length], [1, 0, 0]);
  assert.equal(
    (await test.infer({ model: "gemini-3.6-flash" })).provider,
    "vllm",
    "one without a gemini backend",
  );
  assert.deepEqual([CLOUD, MODEL, "gpt-5"].map((model) => test.providers.hasBinaryMedia(model)), [
    true,
    false,
    false,
  ]);
});

Deno.test("what a call reserves depends on the backend that would answer it", () => {
  const { providers } = open(openai("vllm", { url: "http://x" }), gemini("cloud", { url: "http://x" }));
  const check = (fields: Partial<InferenceRequest>, tokens: number, bytes: number) =>
    assert.deepEqual(providers.reservation(question(fields)), { tokens, bytes });
  const bytes = (length: number) => new Uint8Array(length);
  check({}, 64, 0);
  check({ model: CLOUD }, 64 + 2048, 0);
  check({ model: "gpt-5" }, 64, 0);
  check({ images: [bytes(1), bytes(3), bytes(4)] }, 64, 4 + 4 + 8);
  check({ model: CLOUD, video: { bytes: bytes(1000) } }, 64 + 2048, 1000);
});

Deno.test("the catalog says for each model which backends can answer now", async () => {
  await using up = startModelServer();
  await using down = startModelServer({ health: () => 500 });
  await using cloud = startGeminiServer({ apiKey: KEY });
  await using test = open(
    openai("mlx", up, { model: MODEL }),
    openai("vllm", up),
    openai("sglang", down),
    openai("vllm-2", up),
    gemini("cloud", cloud),
  );
  const entries = await test.providers.catalog(NEVER_ABORTED);
  assert.deepEqual(entries.map(({ id }) => id), CATALOG.map(({ id }) => id));
  const entry = (id: string) => entries.find((entry) => entry.id === id);
  const small = CATALOG.filter(({ tier }) => tier === "small").map(({ id }) => id);
  const medium = CATALOG.filter(({ tier }) => tier === "medium").map(({ id }) => id);
  assert.deepEqual(entry(MODEL), {
    id: MODEL,
    tier: "small",
    availability: "ready",
    providers_available: ["vllm", "mlx"],
    fallback_candidates: small,
  });
  assert.deepEqual(entry("allenai/Molmo2-8B"), {
    id: "allenai/Molmo2-8B",
    tier: "medium",
    availability: "ready",
    providers_available: ["vllm"],
    fallback_candidates: medium,
  });
  assert.deepEqual(entry("microsoft/Mage-VL")!.fallback_candidates, ["microsoft/Mage-VL", MODEL]);
  assert.deepEqual(entry(CLOUD)!.providers_available, ["gemini"]);
  assert.deepEqual(entry(CLOUD)!.fallback_candidates, small);
  assert.deepEqual([up.probes, down.probes], [3, 1], "each backend is asked");
  await test.providers.catalog(NEVER_ABORTED);
  assert.equal(up.probes, 6, "and asked again");
});

Deno.test("a model whose backends do not answer in time is unavailable, and a silent backend delays no other", async () => {
  const silent = () => new Promise<number>(() => {});
  await using mute = startModelServer({ health: silent });
  await using cloud = startGeminiServer({ apiKey: KEY, status: silent });
  await using up = startModelServer();
  await using test = open(
    openai("vllm", mute),
    gemini("cloud", cloud),
    openai("sglang", up, { model: OTHER }),
  );
  const catalog = test.providers.catalog(NEVER_ABORTED);
  await until("all are asked", () => mute.probes === 1 && cloud.steps.length === 1 && up.probes === 1);
  await until("the third has answered", () => test.clock.sleeping === 2);
  await test.clock.advance(2_000);
  const states = Object.fromEntries((await catalog).map((entry) => [entry.id, entry]));
  assert.deepEqual([states[MODEL]!.availability, states[MODEL]!.providers_available], ["unavailable", []]);
  assert.deepEqual([states[CLOUD]!.availability, states[CLOUD]!.providers_available], ["unavailable", []]);
  assert.deepEqual([states[OTHER]!.availability, states[OTHER]!.providers_available], ["ready", ["sglang"]]);

  const caller = new AbortController();
  const second = test.providers.catalog(caller.signal);
  await until("all are asked again", () => mute.probes === 2);
  caller.abort(new Error("gone"));
  await assert.rejects(second, /gone/);

  await using none = open();
  assert.ok(
    (await none.providers.catalog(NEVER_ABORTED)).every(({ availability }) => availability === "unavailable"),
  );
});

Deno.test("a kind of backend with too many slow calls is saturated, until these calls are too old to count", async () => {
  await using server = startModelServer();
  await using other = startModelServer();
  await using test = open(
    openai("vllm", server, { model: MODEL }),
    openai("sglang", other, { model: OTHER }),
  );
  const stateOf = async (model: string) =>
    (await test.providers.catalog(NEVER_ABORTED)).find(({ id }) => id === model)!.availability;
  const call = async (latencyMs: number) => {
    const release = held();
    server.answer = release.answer;
    const before = server.requests.length;
    const infer = test.infer();
    await until("it is asked", () => server.requests.length > before);
    await test.clock.advance(latencyMs);
    release.release();
    assert.equal((await infer).inferenceLatencyMs, latencyMs);
  };
  await call(5_001);
  for (let time = 0; time < 8; time++) await call(5_000);
  assert.equal(await stateOf(MODEL), "ready", "nine calls say nothing yet");
  await call(0);
  assert.deepEqual([await stateOf(MODEL), await stateOf(OTHER)], ["saturated", "ready"]);
  for (let time = 0; time < 10; time++) await call(0);
  assert.equal(await stateOf(MODEL), "ready", "19 of 20 in time");
  await call(6_000);
  assert.equal(await stateOf(MODEL), "saturated");
  await test.clock.advance(600_000);
  assert.equal(await stateOf(MODEL), "ready");
});

Deno.test("a list is asked for again after a minute, after five seconds where that failed, and once for all who wait", async () => {
  await using server = startModelProgram("ollama", { models: ["a:1"] });
  let status = 500;
  await using failing = startModelServer({ health: () => status });
  await using test = open(openai("vllm", { url: server.origin }), openai("sglang", failing));
  const identify = async (model: string) => (await test.providers.identify([model], NEVER_ABORTED))(model);
  assert.deepEqual(await Promise.all(["A:1", "b:1", "b:1"].map(identify)), ["a:1", undefined, undefined]);
  assert.deepEqual([server.lists, failing.probes], [1, 1]);
  server.models = ["a:1", "b:1"];
  await test.clock.advance(5_000);
  status = 200;
  assert.deepEqual([await identify("b:1"), server.lists, failing.probes], [undefined, 1, 2]);
  await test.clock.advance(55_000);
  assert.deepEqual([await identify("b:1"), server.lists, failing.probes], ["b:1", 2, 2]);
  assert.equal(await identify("x".repeat(257)), undefined);
});

Deno.test("a server that spells a model otherwise is asked once more in its own spelling", async () => {
  await using server = startModelProgram("openrouter", { models: ["qwen/qwen3-vl-4b-instruct"] });
  await using test = open(openai("vllm", { url: `${server.origin}/api` }));
  for (let times = 0; times < 2; times++) assert.equal((await test.infer()).model, MODEL);
  assert.deepEqual(server.asked.map(({ model }) => model), [
    MODEL,
    "qwen/qwen3-vl-4b-instruct",
    "qwen/qwen3-vl-4b-instruct",
  ]);
  const error = await failureOf(test.infer({ model: OTHER }));
  assert.deepEqual([error.failure, error.status], ["unsupported_model", 400]);
  assert.match(error.told!, /^The model server does not know the model .*; it has: qwen\/.* and 396 more$/);
  assert.equal(test.lines.length, 1, "the log says it once");
});

Deno.test("a model for which a server has answered is unknown once the server refuses it", async () => {
  let status = 200;
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    await request.body?.cancel();
    return request.method === "GET"
      ? Response.json({ data: [{ id: "other-vl" }] })
      : Response.json({ choices: [{ message: { content: "a" } }] }, { status });
  });
  await using test = open(openai("vllm", { url: `http://127.0.0.1:${server.addr.port}` }));
  await test.infer();
  await test.providers.renew(NEVER_ABORTED);
  assert.equal(test.providers.unknown(MODEL), null, "it answers for a name that is in no list");
  status = 404;
  await failureOf(test.infer());
  assert.deepEqual(test.providers.unknown(MODEL), { model: MODEL, has: ["other-vl"] });
});
