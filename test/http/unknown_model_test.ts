/** A model that its server does not know is said where people look, with the models that there are; others
 * are accepted.
 */

import assert from "node:assert/strict";
import { NO_CAP, publish, show, startLive } from "../support/live/live.ts";
import { eventsOf, kindsOf, payloads, SAMPLED, startReason } from "../support/models/reason.ts";
import { startModelProgram } from "../support/models/model_programs.ts";
import { frameFacts, jpegOf } from "../support/live/fake_live_workers.ts";
import { startModelServer } from "../support/models/model_server.ts";
import { KEY_A, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const LIVE_MODEL = "Qwen/Qwen3-VL-8B-Instruct";
const OLLAMA = ["qwen2.5vl:7b", "llava:13b"];
const told = (model: string, has: readonly string[] = OLLAMA) =>
  `The model server does not know the model ${model}; it has: ${has.join(", ")}`;

/** One frame of a caller, as `analyze` takes it. */
const FRAME = {
  ...{ frame_index: 0, pts_ms: 0, perceptual_hash: 1, luma_mean: 0.5 },
  ...{ flicker_score: 0, ghosting_score: 0, noise_variance_score: 0 },
};

interface Reason {
  readonly code: string;
  readonly text: string;
}

async function healthOf(test: TestService): Promise<{ result: string; unknown: string[] }> {
  const { json } = await test.call("GET", "/v1/system/health");
  const reasons = json.reasons as readonly Reason[];
  return {
    result: json.result,
    unknown: reasons.filter(({ code }) => code === "model_unknown").map(({ text }) => text),
  };
}

Deno.test("a live session whose model is unknown says so once in the timeline, keeps its pictures, and health is red", async () => {
  await using server = startModelProgram("ollama", { models: OLLAMA });
  await using test = await startLive({
    SERVICE_VLLM_BASE_URL: `${server.origin}/v1`,
    SERVICE_API_KEYS: KEY_A,
  });
  assert.deepEqual(await healthOf(test), { result: "idle", unknown: [told(LIVE_MODEL)] });
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 3);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "vlm", "keyframe_stored*3"]);
  assert.equal(payloads(events, "vlm")[0].description, told(LIVE_MODEL));
  assert.deepEqual(await healthOf(test), { result: "faulted", unknown: [told(LIVE_MODEL)] });
  const { json: { live_model, backends } } = await test.call("GET", "/v1/system");
  assert.deepEqual([live_model, backends[0].models], [{ id: LIVE_MODEL, is_known: false }, OLLAMA]);
});

Deno.test("clips of an unknown model say so as well", async () => {
  await using server = startModelProgram("ollama", { models: OLLAMA });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: server.origin });
  const session = await publish(test, { attach: { clip_mode: {} } });
  const jpegs = [10, 11, 12].map(jpegOf);
  session.worker.report({ kind: "clip", frame: frameFacts(12), startPtsMs: frameFacts(10).ptsMs, jpegs });
  await until("dealt with", () => session.worker.acknowledged.pictures === 1);
  const events = await eventsOf(test, session.runId);
  assert.deepEqual(kindsOf(events), ["run_created", "clip_vlm", "keyframe_stored"]);
  assert.equal(payloads(events, "clip_vlm")[0].description, told(LIVE_MODEL));
});

Deno.test("a model of the settings that is in no list is not asked, and the timeline names those that there are", async () => {
  await using server = startModelProgram("ollama", { models: OLLAMA });
  await using test = await startLive({
    SERVICE_VLLM_BASE_URL: server.origin,
    SERVICE_WEBRTC_FIRST_PASS_MODEL: "qwen2.5vl:72b",
  });
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 1);
  const [vlm] = payloads(await eventsOf(test, session.runId), "vlm");
  assert.equal(vlm.description, told("qwen2.5vl:72b"));
  assert.equal(server.asked.length, 0);
  assert.deepEqual((await healthOf(test)).unknown, [told("qwen2.5vl:72b")]);
  server.models = ["qwen2.5vl:72b"];
  assert.equal((await test.call("GET", "/v1/models")).status, 200);
  await show(session, 1, 2);
  const texts = payloads(await eventsOf(test, session.runId), "vlm").map(({ description }) => description);
  assert.deepEqual(texts, [told("qwen2.5vl:72b"), "A forklift waits."]);
});

Deno.test("live sessions ask the model that the server has, where nobody names one and there is one", async () => {
  const check = async (models: readonly string[], expected: string, asked = expected) => {
    await using server = startModelProgram("ollama", { models });
    await using test = await startLive({ SERVICE_VLLM_BASE_URL: server.origin });
    const session = await publish(test, { attach: NO_CAP });
    await show(session, 0, 1);
    assert.deepEqual(server.asked.map(({ model }) => model), [asked]);
    const { json: { live_model } } = await test.call("GET", "/v1/system");
    assert.equal(live_model.id, expected);
  };
  await check(["qwen2.5vl:7b"], "qwen2.5vl:7b");
  await check(["nomic-embed-text", "qwen2.5vl:7b"], "qwen2.5vl:7b");
  await check([MODEL], MODEL);
  await check([MODEL, "llava:13b"], MODEL);
  await check(["llava:13b", LIVE_MODEL, MODEL], LIVE_MODEL);
  await check(["llava:13b", "qwen/qwen3-vl-8b-instruct"], LIVE_MODEL, "qwen/qwen3-vl-8b-instruct");
  await check([], LIVE_MODEL);
});

Deno.test("a model that is named is never replaced by another", async () => {
  await using server = startModelProgram("ollama", { models: ["qwen2.5vl:7b"] });
  await using test = await startLive({
    SERVICE_VLLM_BASE_URL: server.origin,
    SERVICE_WEBRTC_FIRST_PASS_MODEL: LIVE_MODEL,
  });
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 1);
  assert.deepEqual(server.asked.map(({ model }) => model), [LIVE_MODEL]);
  const [vlm] = payloads(await eventsOf(test, session.runId), "vlm");
  assert.equal(vlm.description, told(LIVE_MODEL, ["qwen2.5vl:7b"]));
});

Deno.test("every route that names a model takes what a server has, in any case, and refuses what none has", async () => {
  await using server = startModelProgram("ollama", { models: OLLAMA });
  await using test = await startService({ SERVICE_VLLM_BASE_URL: server.origin });
  const bodies: readonly [
    path: (runId: string) => string,
    body: (model: string) => Record<string, unknown>,
  ][] = [
    [() => "/v1/runs", (model) => ({ model })],
    [() => "/v1/infer", (model) => ({ model, prompt: "What waits?" })],
    [() => "/v1/infer/batch", (model) => ({ requests: [{ model, prompt: "What waits?" }] })],
    [(runId) => `/v1/runs/${runId}/analyze`, (model) => ({ model, frames: [FRAME] })],
    [(runId) => `/v1/runs/${runId}/reason`, (model) => ({ ...SAMPLED, max_frames: 5, model })],
  ];
  for (const [path, body] of bodies) {
    const runId = await newRun(test);
    const wrong = await test.call("POST", path(runId), body("llava:70b"));
    assert.deepEqual([wrong.status, wrong.json.error.details[0].field], [422, "model"], path(runId));
    const right = await test.call("POST", path(runId), body("QWEN2.5vl:7B"));
    assert.equal(right.status, 200, `${path(runId)} ${right.text}`);
    if ("model" in right.json) assert.equal(right.json.model, "qwen2.5vl:7b");
    await test.call("DELETE", `/v1/runs/${runId}`);
  }
  assert.ok(server.asked.every(({ model }) => model === "qwen2.5vl:7b"));
});

Deno.test("a catalog model that its server does not know is refused with those that it has", async () => {
  await using server = startModelProgram("vllm", { models: ["qwen2.5vl:7b"] });
  await using scene = await startReason({}, { SERVICE_VLLM_BASE_URL: server.origin });
  const { test } = scene;
  const text = told(MODEL, ["qwen2.5vl:7b"]);
  const one = await test.call("POST", "/v1/infer", { model: MODEL, prompt: "What?" });
  assert.deepEqual([one.status, one.json.error.code], [422, "validation_error"]);
  assert.ok(one.json.error.message.includes(text), one.text);
  const batch = await test.call("POST", "/v1/infer/batch", { requests: [{ model: MODEL, prompt: "What?" }] });
  assert.deepEqual(batch.json.results[0].error, { code: "validation_error", message: text });
  const { events } = await scene.reason({ max_frames: 5 });
  const [chunk] = payloads(events, "semantic_chunk_inferred");
  assert.deepEqual([chunk.semantic_error, chunk.semantic_error_text], ["unsupported_model", text]);
  assert.deepEqual((await healthOf(test)).result, "faulted");
  server.models = [MODEL];
  assert.equal((await test.call("GET", "/v1/models")).status, 200);
  assert.equal((await test.call("POST", "/v1/infer", { model: MODEL, prompt: "What?" })).status, 200);
  assert.deepEqual(await healthOf(test), { result: "idle", unknown: [] });
});

Deno.test("a server that has the model is asked before one that says that it has it not", async () => {
  await using first = startModelProgram("vllm", { models: ["qwen2.5vl:7b"] });
  await using second = startModelProgram("sglang", { models: [MODEL] });
  await using test = await startService({
    SERVICE_VLLM_BASE_URL: first.origin,
    SERVICE_SGLANG_BASE_URL: second.origin,
  });
  const infer = async (model: string) => {
    const { json } = await test.call("POST", "/v1/infer", { model, prompt: "What?" });
    return [json.provider, json.fallback_used];
  };
  assert.deepEqual(await infer(MODEL), ["sglang", true], "it is not known yet");
  assert.equal((await test.call("GET", "/v1/models")).status, 200);
  assert.deepEqual(await infer(MODEL), ["sglang", false]);
  assert.deepEqual(await infer("qwen2.5vl:7b"), ["vllm", false]);
  assert.deepEqual([first.asked.length, second.asked.length], [2, 2]);
});

Deno.test("a server without a list, and one that takes any name, are asked and are no fault", async () => {
  await using silent = startModelServer();
  await using any = startModelProgram("llama.cpp", { models: ["/models/qwen3-vl.gguf"] });
  for (const url of [silent.url, any.origin]) {
    await using test = await startService({ SERVICE_VLLM_BASE_URL: url });
    assert.equal((await test.call("POST", "/v1/infer", { model: LIVE_MODEL, prompt: "What?" })).status, 200);
    assert.deepEqual(await healthOf(test), { result: "idle", unknown: [] }, url);
  }
});

Deno.test("a server that is away has not lost its models", async () => {
  const server = startModelProgram("ollama", { models: OLLAMA });
  await using test = await startService({ SERVICE_VLLM_BASE_URL: server.origin, SERVICE_API_KEYS: KEY_A });
  const create = async (model: string) => (await test.call("POST", "/v1/runs", { model })).status;
  assert.equal(await create("llava:13b"), 200);
  assert.equal(await create("llava:13b"), 200);
  assert.equal(server.lists, 1, "asked once");
  await server[Symbol.asyncDispose]();
  const { json: { models } } = await test.call("GET", "/v1/models");
  // deno-lint-ignore no-explicit-any -- an answer
  const entry = models.find(({ id }: any) => id === "llava:13b");
  assert.deepEqual([entry.availability, entry.tier], ["unavailable", "experimental"]);
  const { json: { backends } } = await test.call("GET", "/v1/system");
  assert.match(backends[0].fault, /cannot be reached/);
  assert.deepEqual(backends[0].models, OLLAMA);
  assert.equal(await create("llava:13b"), 200);
});
