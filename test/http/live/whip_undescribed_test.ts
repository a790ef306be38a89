/** A picture of a live session that gets no description leaves a reason: in the timeline, the log or the
 * metrics.
 */

import assert from "node:assert/strict";
import { openLog } from "../../../src/base/log.ts";
import { deleteSession, metric, NO_CAP, publish, show, startLive } from "../../support/live/live.ts";
import { frameFacts, jpegOf, NO_COUNTS } from "../../support/live/fake_live_workers.ts";
import { axis, embedded, openEmbeddingDouble } from "../../support/sidecars/embedding_sidecar.ts";
import { held, type ModelServer, startModelServer } from "../../support/models/model_server.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import type { TestService } from "../../support/service.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { until } from "../../support/until.ts";

const UNDESCRIBED = "service_pipeline_keyframes_undescribed_total";

function backend(model: ModelServer, fields: readonly string[] = []): string {
  return ["[[backends]]", 'type = "openai_compat"', 'name = "vllm"', `base_url = "${model.url}"`, ...fields]
    .join("\n");
}

/** The reasons that were counted. */
async function reasons(test: TestService): Promise<Record<string, number>> {
  const { text } = await test.call("GET", "/v1/metrics");
  const counted = text.matchAll(
    /^service_pipeline_keyframes_undescribed_total\{reason="(\w+)"\} ([1-9]\d*)$/gm,
  );
  return Object.fromEntries(Array.from(counted, ([, reason, count]) => [reason, Number(count)]));
}

function logOf(lines: string[]) {
  const stdout = {
    writeSync(bytes: Uint8Array) {
      lines.push(new TextDecoder().decode(bytes));
      return bytes.length;
    },
  };
  return openLog("warn", { stdout, stderr: { writeSync: (bytes) => bytes.length } });
}

Deno.test("the only model of a backend file describes live sessions", async () => {
  await using model = startModelServer();
  const lines: string[] = [];
  const backendFile = backend(model, ['model = "Qwen/Qwen3-VL-2B-Instruct"']);
  await using test = await startLive({}, { backendFile, log: logOf(lines) });
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 1);
  assert.deepEqual(kindsOf(await eventsOf(test, session.runId)), ["run_created", "vlm", "keyframe_stored"]);
  assert.equal(model.requests[0]!.model, "Qwen/Qwen3-VL-2B-Instruct");
  assert.deepEqual([lines, await reasons(test)], [[], {}]);
});

Deno.test("a live model may be named by an alias, and in any case, like the model of a request", async () => {
  const check = async (name: string, expected: string) => {
    await using model = startModelServer();
    const backendFile = backend(model);
    const env = { SERVICE_WEBRTC_FIRST_PASS_MODEL: name, SERVICE_WEBRTC_SECOND_PASS_MODEL: expected };
    await using test = await startLive(env, { backendFile });
    const session = await publish(test, { attach: NO_CAP });
    await show(session, 0, 1);
    assert.equal(kindsOf(await eventsOf(test, session.runId))[1], "vlm", name);
    // no second pass: it is the same
    assert.deepEqual(model.requests.map(({ model }) => model), [expected], name);
  };
  await check("qwen/qwen3-vl-8b-INSTRUCT", "Qwen/Qwen3-VL-8B-Instruct");
  await check(" opengvlab/internvl3.5-4b", "OpenGVLab/InternVL3_5-4B");
});

Deno.test("a live model that no backend serves is reported at start, once in each run, and counted", async () => {
  await using model = startModelServer();
  const backendFile = backend(model, ['model = "Qwen/Qwen3-VL-2B-Instruct"']);
  const check = async (name: string) => {
    const lines: string[] = [];
    await using test = await startLive(
      { SERVICE_WEBRTC_FIRST_PASS_MODEL: name },
      { backendFile, log: logOf(lines) },
    );
    assert.equal(lines.length, 1);
    assert.match(lines[0]!, /live sessions are not described: no inference provider serves/);
    assert.ok(lines[0]!.includes(name) && lines[0]!.includes("Qwen/Qwen3-VL-2B-Instruct"), lines[0]);
    const session = await publish(test, { attach: NO_CAP });
    await show(session, 0, 3);
    const events = await eventsOf(test, session.runId);
    assert.deepEqual(kindsOf(events), ["run_created", "vlm", "keyframe_stored*3"]);
    const [{ description }] = payloads(events, "vlm");
    assert.equal(description, `no inference provider serves the model of live sessions, "${name}"`);
    assert.deepEqual(await reasons(test), { not_served: 3 });
  };
  await check("Qwen/Qwen3-VL-4B-Instruct");
  await check("a model of nobody");
  assert.equal(model.requests.length, 0);
});

Deno.test("clips of a model that no backend serves say so as well", async () => {
  await using test = await startLive({ SERVICE_WEBRTC_FIRST_PASS_MODEL: "nobody" });
  const session = await publish(test, { attach: { clip_mode: {} } });
  const jpegs = [10, 11, 12].map(jpegOf);
  session.worker.report({ kind: "clip", frame: frameFacts(12), startPtsMs: frameFacts(10).ptsMs, jpegs });
  await until("dealt with", () => session.worker.acknowledged.pictures === 1);
  const [clip] = payloads(await eventsOf(test, session.runId), "clip_vlm");
  assert.equal(clip.description, "no inference provider is configured");
  assert.deepEqual(await reasons(test), { not_served: 1 });
});

Deno.test("a second model that no backend serves is reported at start and never called", async () => {
  await using model = startModelServer();
  const lines: string[] = [];
  await using test = await startLive({ SERVICE_WEBRTC_SECOND_PASS_MODEL: "Qwen/Qwen3-VL-8B-Instruct" }, {
    backendFile: backend(model, ['model = "Qwen/Qwen3-VL-2B-Instruct"']),
    log: logOf(lines),
  });
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /no second model is asked about live sessions/);
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 1);
  assert.equal(kindsOf(await eventsOf(test, session.runId))[1], "vlm");
  assert.equal(await metric(test, "service_pipeline_vlm_inferences_total"), 1);
});

Deno.test("every keyframe is described or counted with its reason", async () => {
  const slow = held("A door.");
  const answers = [
    { status: 400 },
    " ",
    "A door.",
    "A door.",
  ] as const;
  await using embeddings = openEmbeddingDouble();
  await using model = startModelServer({
    answer: ({ index }) => index < answers.length ? answers[index]! : slow.answer(),
  });
  const lines: string[] = [];
  await using test = await startLive({
    SERVICE_VLLM_BASE_URL: model.url,
    SERVICE_NOVELTY_EMBEDDING_ADDR: embeddings.address,
    SERVICE_NOVELTY_SHADOW_SAMPLE_RATE: "0",
  }, { log: logOf(lines) });
  const session = await publish(test, { attach: NO_CAP });
  await show(session, 0, 3); // refused, empty, described
  await show(session, 3, 1); // looks the same
  embeddings.answer(embedded(axis(1)));
  await show(session, 4, 1); // the same text
  assert.deepEqual(await reasons(test), { provider_failed: 2, reused: 1, repeated: 1 });
  assert.deepEqual(
    lines.flatMap((line) => /was not described.* failure=?\W*(\w+)/.exec(line)?.[1] ?? []),
    ["http_status", "invalid_response"],
  );
  // Whether the model answers or not, the picture is kept; not again for a text that repeats.
  assert.equal(payloads(await eventsOf(test, session.runId), "keyframe_stored").length, 4);

  embeddings.answer(embedded(axis(2)));
  session.worker.report({
    kind: "counts",
    counts: { ...NO_COUNTS, keyframesLooping: 5, keyframesWithoutCredit: 2, keyframesNotEncoded: 1 },
  });
  for (let index = 5; index < 37; index++) session.worker.picture(index);
  await until("the model is asked", () => model.requests.length === 5);
  const full = await reasons(test);
  assert.deepEqual([full.loop, full.not_encoded], [5, 1]);
  assert.equal(full.queue_full, 2 + 30);
  const deleted = deleteSession(test, session);
  await until("the session ends", () => session.worker.isAskedToClose);
  slow.release();
  assert.equal((await deleted).status, 200);
  const vlm = payloads(await eventsOf(test, session.runId), "vlm").length;
  const counted = Object.values(await reasons(test)).reduce((sum, count) => sum + count);
  assert.equal(vlm + counted, 37 + 5 + 2 + 1);
  assert.equal(await metric(test, UNDESCRIBED, 'reason="session_ended"'), 1);
  // One looked the same; the picture that waited at the end is kept as well.
  assert.equal(payloads(await eventsOf(test, session.runId), "keyframe_stored").length, 36);
});

Deno.test("a model has the time of the setting, and a picture without an answer is kept", async () => {
  const check = async (env: Record<string, string>, timeoutMs: number) => {
    const never = held("A door.");
    const clock = new ManualClock();
    await using model = startModelServer({ answer: never.answer });
    await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url, ...env }, { clock });
    const session = await publish(test, { attach: NO_CAP });
    session.worker.picture(0);
    await until("the model is asked", () => model.inFlight === 1);
    await clock.advance(timeoutMs - 1);
    assert.deepEqual([model.inFlight, kindsOf(await eventsOf(test, session.runId))], [1, ["run_created"]]);
    await clock.advance(1);
    await until("the picture is dealt with", () => session.worker.acknowledged.pictures === 1);
    never.release();
    const events = await eventsOf(test, session.runId);
    assert.deepEqual(kindsOf(events), ["run_created", "keyframe_stored"]);
    const [{ description }] = payloads(events, "keyframe_stored");
    assert.match(description, /^The model gave no answer: deadline missed\.$/);
    assert.deepEqual(await reasons(test), { provider_failed: 1 });
  };
  await check({ SERVICE_LIVE_MODEL_TIMEOUT_MS: "2000" }, 2_000);
  await check({ SERVICE_LIVE_MODEL_TIMEOUT_MS: "5000" }, 5_000);
});

Deno.test("the cap of output tokens is a reason", async () => {
  await using model = startModelServer({ answer: () => "x".repeat(64) });
  await using test = await startLive({ SERVICE_VLLM_BASE_URL: model.url });
  const session = await publish(test, { attach: { token_cap: 16 } });
  await show(session, 0, 3);
  assert.deepEqual(await reasons(test), { cap: 2 });
});
