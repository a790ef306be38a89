import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import type { Backend } from "../../../src/remote/models/backend.ts";
import type { OpenaiCompatSettings } from "../../../src/model/infer/backend_file.ts";
import { InferenceFailed, type InferenceRequest } from "../../../src/model/infer/inference.ts";
import { OpenaiCompat } from "../../../src/remote/models/openai_compat.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import {
  CUT,
  EMPTY,
  held,
  HUGE,
  MALFORMED,
  type ModelAnswer,
  type ModelServerOptions,
  startModelServer,
} from "../../support/models/model_server.ts";
import { question } from "../../support/models/inference.ts";
import { CLIPS } from "../../support/service.ts";
import { readJpeg, testJpeg } from "../../support/models/sent_media.ts";
import { serve, TEST_ROOT } from "../../support/http/tls_server.ts";
import { until } from "../../support/until.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const CLIP = Deno.readFileSync(`${CLIPS}/bbb480.mp4`);

/** A server and the backend that calls it. */
function start(options: ModelServerOptions = {}, settings: Partial<OpenaiCompatSettings> = {}) {
  const server = startModelServer(options);
  const agent = new PinnedAgent({ roots: () => [TEST_ROOT] });
  const backend = new OpenaiCompat({
    type: "openai_compat",
    name: "edge",
    kind: "vllm",
    baseUrl: server.url,
    apiKey: null,
    model: null,
    upstreamModel: null,
    priority: 1,
    ...settings,
  }, { world: realWorld(quietLog()), agent });
  const ask = (fields: Partial<InferenceRequest> = {}, timeoutMs = 10_000, signal = NEVER_ABORTED) =>
    backend.ask(question(fields), { timeoutMs, signal });
  return {
    server,
    backend,
    ask,
    async [Symbol.asyncDispose]() {
      agent[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function failureOf(promise: Promise<unknown>): Promise<InferenceFailed> {
  const error = await promise.then(() => assert.fail("it did not fail"), (error) => error);
  assert.ok(error instanceof InferenceFailed, String(error?.stack));
  assert.equal(error.provider, "vllm");
  assert.match(error.message, /^backend edge/);
  assert.doesNotMatch(
    error.message,
    /127\.0\.0\.1|:\d{4,}|s3cret|What is there/,
    "nothing of the machine, no secrets",
  );
  return error;
}

Deno.test("a prompt without media is a plain string, and its answer has reason and counts", async () => {
  await using test = start();
  assert.deepEqual(await test.ask({ prompt: 'Say "ü" \\ \u{1f600}\u0000\n', temperature: 0.5 }), {
    outputText: "A forklift waits.",
    finishReason: "stop",
    tokens: { prompt_tokens: 31, completion_tokens: 6, thinking_tokens: 0, total_tokens: 37 },
  });
  const [asked] = test.server.requests;
  assert.deepEqual(asked!.body, {
    model: MODEL,
    messages: [{ role: "user", content: 'Say "ü" \\ \u{1f600}\u0000\n' }],
    max_tokens: 64,
    temperature: 0.5,
  });
  assert.equal(asked!.headers.get("authorization"), null);
});

Deno.test("media come after the text, images in order and the clip last, byte for byte", async () => {
  await using test = start();
  const images = [await testJpeg(64, 48), await testJpeg(320, 180)];
  await test.ask({ images, video: { bytes: CLIP, resolution: "low" } });
  const [asked] = test.server.requests;
  assert.equal(asked!.prompt, "What is there?");
  assert.deepEqual(asked!.images.map(({ width, height }) => [width, height]), [[64, 48], [320, 180]]);
  assert.deepEqual(asked!.images.map(({ bytes }) => bytes), images);
  assert.deepEqual(asked!.video, CLIP);
});

Deno.test("files of every length arrive unchanged", async () => {
  await using test = start();
  // Nothing on the way reads more than the start of the file.
  for (const length of [12, 13, 14, 49_151, 49_152, 49_153, 98_304, 98_305]) {
    const bytes = CLIP.slice(0, length);
    await test.ask({ video: { bytes } });
    assert.deepEqual(test.server.requests.at(-1)!.video, bytes, `${length} bytes`);
  }
  assert.equal(readJpeg(await testJpeg(16, 16)).width, 16);
});

Deno.test("a schema is sent with its name, and thinking is turned off for models that think", async () => {
  await using test = start();
  const schema = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
  await test.ask({ outputSchema: { name: "answer", schema } });
  assert.deepEqual(test.server.requests[0]!.schema, { name: "answer", schema });
  await test.ask({ model: "Qwen/Qwen3.5-4B" });
  assert.deepEqual(test.server.requests[1]!.body.chat_template_kwargs, { enable_thinking: false });
  assert.equal(test.server.requests[0]!.body.chat_template_kwargs, undefined);
});

Deno.test("the request has the base path, the key and the server's own name of the model", async () => {
  const settings = { apiKey: "s3cret", model: MODEL, upstreamModel: "local/qwen-4bit" };
  await using test = start({ apiKey: "s3cret", basePath: "/llm/a" }, settings);
  await test.ask();
  assert.equal(test.server.requests[0]!.model, "local/qwen-4bit");
  assert.equal(await isReachable(test.backend), true);
  assert.equal(test.server.probes, 1);
});

Deno.test("the text is read from every form of answer", async () => {
  await using test = start();
  const check = async (answer: ModelAnswer, expected: Record<string, unknown>) => {
    test.server.answer = () => answer;
    const { outputText, finishReason, tokens } = await test.ask();
    const { thinking_tokens: thinking, total_tokens: total } = tokens;
    const given = { outputText, finishReason, thinking, total };
    assert.deepEqual(
      given,
      { finishReason: "stop", thinking: 0, total: 37, ...expected },
      JSON.stringify(answer),
    );
  };
  const body = (choice: unknown, more: object = {}) => ({
    status: 200,
    body: JSON.stringify({ choices: [choice], ...more }),
  });
  await check({ text: "a", form: "parts" }, { outputText: "a" });
  await check({ text: "a", form: "legacy" }, { outputText: "a" });
  await check({ text: "a", finishReason: null }, { outputText: "a", finishReason: null });
  await check({ text: "a", finishReason: "length" }, { outputText: "a", finishReason: "length" });
  await check({ text: "a", usage: null }, { outputText: "a", total: 0 });
  await check({ text: "a", usage: { prompt_tokens: 2, completion_tokens: 3 } }, {
    outputText: "a",
    total: 5,
  });
  await check({ text: "a", usage: { prompt_tokens: "x", total_tokens: -1 } }, { outputText: "a", total: 0 });
  const details = { completion_tokens_details: { reasoning_tokens: 4 } };
  await check({ text: "a", usage: { total_tokens: 9, ...details } }, {
    outputText: "a",
    thinking: 4,
    total: 9,
  });
  await check(EMPTY, { outputText: "" });
  const parts = [{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }];
  const bare = { finishReason: null, total: 0 };
  await check(body({ message: { content: parts } }), { outputText: "ab", ...bare });
  await check(body({ message: { content: null, reasoning: "hm" } }), { outputText: "", ...bare });
  // The whole answer where the server takes it for thinking, or for the call of a tool.
  const finished = (message: object, finish_reason = "stop") => body({ message, finish_reason });
  const whole = { outputText: '{"a":1}', total: 0 };
  await check(finished({ content: null, reasoning_content: '{"a":1}' }), whole);
  await check(finished({ content: " ", reasoning: '{"a":1}' }), whole);
  await check(finished({ content: '{"a":1}', reasoning_content: "hm" }), whole);
  const call = (given: unknown) => ({ type: "function", function: { name: "answer", arguments: given } });
  const called = { ...whole, finishReason: "tool_calls" };
  await check(finished({ content: null, tool_calls: [call('{"a":1}')] }, "tool_calls"), called);
  await check(finished({ content: "", tool_calls: [call({ a: 1 })] }, "tool_calls"), called);
  await check(finished({ content: null, function_call: { arguments: '{"a":1}' } }, "function_call"), {
    ...{ ...whole, finishReason: "function_call" },
  });
  await check(finished({ content: "", tool_calls: [call("{}"), call("{}")] }, "tool_calls"), {
    ...{ ...called, outputText: "" },
  });
  await check(finished({ content: "", reasoning_content: "hm, I" }, "length"), {
    ...{ outputText: "", finishReason: "length", total: 0 },
  });
  for (const finishReason of ["eos_token", "tool_use", "STOP"]) {
    await check(finished({ content: null, tool_calls: [call({ a: 1 })] }, finishReason), {
      ...{ ...whole, finishReason },
    });
    await check(finished({ content: "", reasoning: '{"a":1}' }, finishReason), { ...whole, finishReason });
  }
  await check(body({ message: { content: null, tool_calls: [call('{"a":1}')] } }), {
    ...{ ...bare, outputText: '{"a":1}' },
  });
  await check(finished({ content: null, refusal: "I cannot help with that." }), {
    ...{ outputText: "I cannot help with that.", total: 0 },
  });
  await check(body({ message: { content: "a" }, finish_reason: "stop" }, { usage: "no" }), {
    outputText: "a",
    total: 0,
  });
});

Deno.test("an answer that breaks the protocol is an invalid response", async () => {
  await using test = start({}, { apiKey: null });
  const check = async (
    answer: ModelAnswer,
    failure: string,
    status: number | null = null,
    isQuotaSpent = false,
  ) => {
    test.server.answer = () => answer;
    const error = await failureOf(test.ask());
    assert.deepEqual(
      [error.failure, error.status, error.isQuotaSpent],
      [failure, status, isQuotaSpent],
      String(answer),
    );
  };
  const body = (value: unknown) => ({ status: 200, body: JSON.stringify(value) });
  await check(MALFORMED, "invalid_response");
  await check(HUGE, "invalid_response");
  await check({ status: 200, body: "" }, "invalid_response");
  const answered = { choices: [{ message: { content: "A dock." } }] };
  for (
    const more of [
      "[".repeat(1100) + "]".repeat(1100),
      `[${"0,".repeat(140_000)}0]`,
      `"${"x".repeat(2 ** 20)}"`,
    ]
  ) {
    await check(
      { status: 200, body: `{"more":${more},${JSON.stringify(answered).slice(1)}` },
      "invalid_response",
    );
  }
  for (
    const value of [null, [], {}, { choices: [] }, { choices: [{}] }, {
      choices: [{ message: { content: 3 } }],
    }]
  ) {
    await check(body(value), "invalid_response");
  }
  await check(CUT, "transport");
  for (const status of [400, 401, 404, 408, 422, 429, 500, 503]) {
    await check({ status }, "http_status", status);
  }
  await check({ status: 402 }, "http_status", 402, true);
  await check({ status: 429, body: '{"error":{"code":"insufficient_quota"}}' }, "http_status", 429, true);
  const back = '{"error":{"message":"You exceeded your quota. Please retry in 2s"}}';
  await check({ status: 429, body: back }, "http_status", 429, false);
  await check({ status: 500, body: "x".repeat(2 ** 20) }, "http_status", 500);
  await check(body({ error: { message: "busy", code: 429 } }), "http_status", 429);
  await check(body({ error: "busy" }), "invalid_response");
  await check(body({ choices: [{ error: { code: 502 }, message: { content: "" } }] }), "http_status", 502);
});

Deno.test("a redirect is not followed, so the key is sent to no other server", async () => {
  await using elsewhere = startModelServer({ toleratesFaults: true });
  await using server = serve(() => Response.redirect(`${elsewhere.url}/v1/chat/completions`, 307), {
    isPlain: true,
  });
  await using test = start({}, { baseUrl: `http://127.0.0.1:${server.port}`, apiKey: "s3cret" });
  assert.equal((await failureOf(test.ask())).status, 307);
  assert.equal(elsewhere.requests.length + elsewhere.faults.length, 0);
});

Deno.test("a server that refuses connections or has an untrusted certificate cannot be reached", async () => {
  const gone = startModelServer();
  await gone[Symbol.asyncDispose]();
  await using secure = serve(() => new Response());
  for (const baseUrl of [gone.url, `https://localhost:${secure.port}`, "http://no-such-host.invalid"]) {
    await using test = start({}, { baseUrl });
    assert.equal((await failureOf(test.ask())).failure, "transport", baseUrl);
    assert.equal(await isReachable(test.backend), false, baseUrl);
  }
});

Deno.test("a server with a certificate of a trusted authority is called over TLS", async () => {
  await using secure = serve(() => Response.json({ choices: [{ message: { content: "safe" } }] }));
  await using test = start({}, { baseUrl: `https://127.0.0.1:${secure.port}` });
  assert.equal((await test.ask()).outputText, "safe");
});

Deno.test("an abort by the caller closes the connection and rejects with the caller's reason", async () => {
  await using test = start({ answer: held().answer });
  const caller = new AbortController();
  const asked = test.ask({}, 60_000, caller.signal);
  await until("the server has it", () => test.server.inFlight === 1);
  const reason = new Error("gone home");
  caller.abort(reason);
  await assert.rejects(asked, reason);
  await until("the server noticed", () => test.server.aborted === 1 && test.server.inFlight === 0);
});

Deno.test("a deadline ends the call and closes the connection", async () => {
  await using test = start({ answer: held().answer });
  assert.equal((await failureOf(test.ask({}, 50))).failure, "deadline_missed");
  assert.equal((await failureOf(test.ask({}, 0))).failure, "deadline_missed");
  await until("the server noticed", () => test.server.inFlight === 0);
  assert.equal(test.server.aborted, test.server.requests.length);
});

Deno.test("a connection is reused", async () => {
  await using server = serve(() => Response.json({ choices: [{ text: "a" }] }), { isPlain: true });
  await using test = start({}, { baseUrl: `http://127.0.0.1:${server.port}` });
  for (let times = 0; times < 5; times++) await test.ask();
  assert.equal(server.connections.size, 1);
});

Deno.test("a probe says whether the server answers with 2xx", async () => {
  await using test = start({ health: () => status });
  let status = 200;
  for (status of [200, 204, 500, 401, 302]) {
    assert.equal(await isReachable(test.backend), status < 300, String(status));
  }
});

async function isReachable({ models }: Backend): Promise<boolean> {
  await models.refresh(NEVER_ABORTED);
  return models.last!.fault === null;
}
