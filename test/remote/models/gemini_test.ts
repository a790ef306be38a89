import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import type { Backend } from "../../../src/remote/models/backend.ts";
import type { GeminiSettings } from "../../../src/model/infer/backend_file.ts";
import { InferenceFailed, type InferenceRequest } from "../../../src/model/infer/inference.ts";
import { Gemini } from "../../../src/remote/models/gemini.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { type GeminiServerOptions, startGeminiServer } from "../../support/models/gemini_server.ts";
import { held } from "../../support/models/model_server.ts";
import { question } from "../../support/models/inference.ts";
import { testJpeg } from "../../support/models/sent_media.ts";
import { CLIPS } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const KEY = "s3cret-key";
const MODEL = "gemini-3.5-flash-lite";
const CLIP = Deno.readFileSync(`${CLIPS}/bbb480.mp4`);

/** A server and the backend that calls it; `logged` has the warnings. */
function start(options: Partial<GeminiServerOptions> = {}, settings: Partial<GeminiSettings> = {}) {
  const server = startGeminiServer({ apiKey: KEY, ...options });
  const agent = new PinnedAgent({ roots: () => [] });
  const logged: string[] = [];
  const log = { ...quietLog(), child: () => log, warn: (line: string) => void logged.push(line) };
  const real = realWorld(log);
  let passedMs = 0;
  const backend = new Gemini({
    type: "gemini",
    name: "cloud",
    baseUrl: server.url,
    apiKey: KEY,
    model: MODEL,
    priority: 1,
    ...settings,
  }, { world: { ...real, monotonicMs: () => real.monotonicMs() + passedMs }, agent });
  const ask = (fields: Partial<InferenceRequest> = {}, timeoutMs = 10_000, signal = NEVER_ABORTED) =>
    backend.ask(question({ model: MODEL, temperature: 0.5, ...fields }), { timeoutMs, signal });
  return {
    server,
    backend,
    ask,
    logged,
    /** Lets this much of the deadline pass. */
    pass: (ms: number) => void (passedMs += ms),
    async [Symbol.asyncDispose]() {
      await backend.close();
      agent[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
      for (const line of logged) assert.doesNotMatch(line, /s3cret/);
    },
  };
}

async function failureOf(promise: Promise<unknown>): Promise<InferenceFailed> {
  const error = await promise.then(() => assert.fail("it did not fail"), (error) => error);
  assert.ok(error instanceof InferenceFailed, String(error?.stack));
  assert.equal(error.provider, "gemini");
  assert.doesNotMatch(`${error.message} ${error.stack}`, /s3cret|127\.0\.0\.1:|What is there/);
  return error;
}

const video = { bytes: CLIP };

Deno.test("a call with pictures and a schema is one request", async () => {
  await using test = start();
  const images = [await testJpeg(64, 48), await testJpeg(320, 180)];
  const schema = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
  assert.deepEqual(await test.ask({ images, outputSchema: { name: "answer", schema } }), {
    outputText: "A forklift waits.",
    finishReason: "stop",
    tokens: { prompt_tokens: 31, completion_tokens: 6, thinking_tokens: 2, total_tokens: 39 },
  });
  const [asked] = test.server.requests;
  assert.equal(asked!.model, MODEL);
  assert.deepEqual(asked!.images.map(({ width, height }) => [width, height]), [[64, 48], [320, 180]]);
  assert.deepEqual(asked!.schema, {
    type: "OBJECT",
    properties: { a: { type: "STRING" } },
    propertyOrdering: ["a"],
  });
  assert.equal(asked!.config.maxOutputTokens, 64);
  assert.deepEqual(test.server.steps, ["generate"]);
});

Deno.test("the temperature is left out for the models that choose it themselves", async () => {
  await using test = start();
  await test.ask();
  assert.equal(test.server.requests[0]!.config.temperature, undefined);
  await using other = start({}, { model: "gemini-3-8-flash" });
  await other.ask();
  assert.equal(other.server.requests[0]!.config.temperature, 0.5);
});

Deno.test("a clip is uploaded, polled until it is ready, used and deleted", async () => {
  await using test = start({ states: ["PROCESSING", "PROCESSING", "ACTIVE"] });
  await test.ask({ video: { ...video, resolution: "low" } });
  await test.backend.close();
  assert.deepEqual(test.server.requests[0]!.videos, [CLIP]);
  assert.equal(test.server.requests[0]!.config.mediaResolution, "MEDIA_RESOLUTION_LOW");
  assert.deepEqual(test.server.steps, ["start", "upload", "poll", "poll", "generate", "delete"]);
  assert.equal(test.server.stored, 0);
});

Deno.test("after every failure the clip is deleted, and no message contains the key", async () => {
  const check = async (
    options: Partial<GeminiServerOptions>,
    failure: string,
    status: number | null = null,
    { announced = 0, isLate = false } = {},
  ) => {
    // The upload may take its time: what is left is short only once the clip is there.
    const onStep = (step: string) => (isLate && step === "poll" && test.pass(9_700), 200);
    await using test = start({ status: onStep, ...options });
    const error = await failureOf(test.ask({ video }));
    assert.deepEqual([error.failure, error.status], [failure, status], JSON.stringify(options));
    await test.backend.close();
    assert.deepEqual([test.server.announced, test.server.stored], [announced, 0], JSON.stringify(options));
  };
  const failing = (step: string, status: number) => ({ status: (at: string) => at === step ? status : 200 });
  await check(failing("start", 429), "http_status", 429);
  await check(failing("upload", 500), "http_status", 500);
  await check({ states: ["PROCESSING"], ...failing("poll", 503) }, "http_status", 503);
  await check({ states: ["FAILED"] }, "invalid_response");
  await check({ states: ["PROCESSING", "FAILED"] }, "invalid_response");
  await check({ states: ["PROCESSING"] }, "deadline_missed", null, { isLate: true });
  await check({ answer: () => ({ status: 400 }) }, "http_status", 400);
  await check({ answer: () => ({ status: 200, body: "{" }) }, "invalid_response");
  await check({ states: ["PROCESSING", "ACTIVE"], answer: held().answer }, "deadline_missed", null, {
    isLate: true,
  });
  for (const uploadUrl of ["http://127.0.0.1:9/steal", "nowhere", "http://169.254.169.254/"]) {
    // no bytes were sent: nothing to delete
    await check({ uploadUrl }, "invalid_response", null, { announced: 1 });
  }
});

Deno.test("a clip that cannot be deleted is logged, and the answer is returned", async () => {
  await using test = start({ status: (step) => step === "delete" ? 500 : 200 });
  assert.equal((await test.ask({ video })).outputText, "A forklift waits.");
  await test.backend.close();
  assert.deepEqual(test.logged, ["a clip was not deleted: backend cloud answered 500: delete"]);
});

Deno.test("an answer does not wait for the deletion", async () => {
  const deleting = Promise.withResolvers<number>();
  await using test = start({ status: (step) => step === "delete" ? deleting.promise : 200 });
  assert.equal((await test.ask({ video })).outputText, "A forklift waits.");
  assert.equal(test.server.stored, 1);
  deleting.resolve(200);
  await test.backend.close();
  assert.equal(test.server.stored, 0);
});

Deno.test("an abort by the caller closes the connection, and the clip is deleted all the same", async () => {
  await using test = start({ answer: held().answer });
  const caller = new AbortController();
  const asked = test.ask({ video }, 60_000, caller.signal);
  await until("the server has it", () => test.server.inFlight === 1);
  const reason = new Error("gone home");
  caller.abort(reason);
  await assert.rejects(asked, reason);
  await until("the server noticed", () => test.server.aborted === 1);
  await test.backend.close();
  assert.equal(test.server.stored, 0);
});

Deno.test("a model that uses up its tokens for thinking is asked again with more, and has more from then on", async () => {
  const starved = {
    parts: [],
    finishReason: "MAX_TOKENS",
    usage: { promptTokenCount: 10, thoughtsTokenCount: 64, totalTokenCount: 74 },
  };
  await using test = start({ answer: ({ index }) => index === 0 ? starved : "done" });
  const answer = await test.ask();
  assert.equal(answer.outputText, "done");
  assert.deepEqual(answer.tokens, {
    prompt_tokens: 41,
    completion_tokens: 6,
    thinking_tokens: 66,
    total_tokens: 113,
  });
  await test.ask();
  assert.deepEqual(test.server.requests.map(({ config }) => config.maxOutputTokens), [64, 2112, 2112]);
  assert.equal(test.backend.reservedTokens(question()), 2112);

  await using hungry = start({ answer: () => starved });
  assert.deepEqual(
    [(await hungry.ask()).outputText, hungry.server.requests.length],
    ["", 2],
    "asked once more only",
  );
  await using silent = start({ answer: () => ({ ...starved, usage: {} }) });
  assert.deepEqual(
    [(await silent.ask()).finishReason, silent.server.requests.length],
    ["length", 1],
    "no thoughts",
  );
});

Deno.test("texts, reasons and counts are read from every form of answer", async () => {
  await using test = start();
  const check = async (answer: Record<string, unknown>, outputText: string, finishReason: string | null) => {
    test.server.answer = () => ({ status: 200, body: JSON.stringify(answer) });
    const got = await test.ask();
    assert.deepEqual([got.outputText, got.finishReason], [outputText, finishReason], JSON.stringify(answer));
  };
  const candidate = (finishReason: string | undefined, ...parts: readonly unknown[]) => ({
    candidates: [{ content: { parts }, finishReason }],
  });
  await check(
    candidate("STOP", { text: "hm", thought: true }, { text: "a" }, {}, { text: "b" }),
    "ab",
    "stop",
  );
  await check(candidate("STOP", { functionCall: { name: "answer", args: { a: 1 } } }), '{"a":1}', "stop");
  await check(candidate("STOP", { text: "a" }, { functionCall: { args: { a: 1 } } }), "a", "stop");
  await check(candidate("STOP", { functionCall: {} }, { functionCall: {} }), "", "stop");
  await check(candidate("MAX_TOKENS", { text: "a" }), "a", "length");
  await check(candidate("SAFETY"), "", "content_filter");
  await check(candidate("RECITATION", { text: "a" }), "a", "recitation");
  await check(candidate(undefined, { text: "a" }), "a", null);
  await check(
    { candidates: [{ finishReason: "STOP" }], usageMetadata: { promptTokenCount: "x" } },
    "",
    "stop",
  );
  await check({ promptFeedback: { blockReason: "SAFETY" } }, "", "content_filter");
  for (
    const body of ["{}", "[]", '{"candidates":[]}', '{"candidates":[{"content":{"parts":[{"text":3}]}}]}', ""]
  ) {
    test.server.answer = () => ({ status: 200, body });
    assert.equal((await failureOf(test.ask())).failure, "invalid_response", body);
  }
});

Deno.test("a wrong key is a refusal, and a probe asks for the model", async () => {
  await using test = start({}, { apiKey: "s3cret-other" });
  assert.equal((await failureOf(test.ask())).status, 403);
  assert.equal(await isReachable(test.backend), false);
  await using right = start();
  assert.equal(await isReachable(right.backend), true);
  assert.deepEqual(right.server.steps, ["probe"]);
});

async function isReachable({ models }: Backend): Promise<boolean> {
  await models.refresh(NEVER_ABORTED);
  return models.last!.fault === null;
}
