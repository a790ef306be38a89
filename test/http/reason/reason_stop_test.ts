import assert from "node:assert/strict";
import { join } from "node:path";
import { openLog } from "../../../src/base/log.ts";
import { held } from "../../support/models/model_server.ts";
import {
  assertNothingLeft,
  connectionsTo,
  eventsOf,
  ffmpeg,
  FILM,
  kindsOf,
  metric,
  payloads,
  type ReasonTest,
  SAMPLED,
  SEEN,
  startReason,
} from "../../support/models/reason.ts";
import { KEY_A, newRun } from "../../support/service.ts";
import { until } from "../../support/until.ts";

/** Ten minutes of film, repeated without encoding again: takes seconds to decode on any machine. */
async function longFilm(at: ReasonTest): Promise<string> {
  const path = join(at.test.mediaDir, "long.mp4");
  await ffmpeg("-stream_loop", "19", "-i", FILM, "-map", "0:v", "-c", "copy", path);
  return path;
}

/** Waits until nothing runs, nothing waits, and the only open connections are idle ones of the pool. */
async function quiet(at: ReasonTest, idleConnections = 0): Promise<void> {
  await until("every call to the model was ended", () => connectionsTo(at.model.url) <= idleConnections);
  await until("no program runs", () => {
    try {
      assertNothingLeft(at.test);
      return true;
    } catch {
      return false;
    }
  });
  assert.equal(await metric(at.test, "service_infer_admission_active"), 0);
  assert.equal(await metric(at.test, "service_infer_admission_waiting"), 0);
}

Deno.test("a stop and a delete end the decoder and every model call, and the caller gets the reason", async () => {
  await using at = await startReason();
  const source_uri = await longFilm(at);
  for (const [action, status] of [["stop", 409], ["delete", 404]] as const) {
    const never = held();
    let answered = 0;
    at.model.answer = () => answered++ < 2 ? SEEN : never.answer();
    const asked = at.model.requests.length;
    const runId = await newRun(at.test);
    const reasoning = at.test.call("POST", `/v1/runs/${runId}/reason`, {
      ...SAMPLED,
      source_uri,
      vlm_concurrency: 3,
      semantic_timeout_ms: 60_000,
    });
    await until("three calls wait", () => at.model.inFlight === 3);
    if (action === "stop") await at.test.call("POST", `/v1/runs/${runId}/stop`);
    else await at.test.call("DELETE", `/v1/runs/${runId}`);
    const answer = await reasoning;
    assert.equal(answer.status, status, answer.text);
    await quiet(at);
    assert.equal(at.model.requests.length - asked, 5, "nobody was asked after the end");
    if (action === "stop") {
      const events = await eventsOf(at.test, runId);
      assert.deepEqual(kindsOf(events), [
        "run_created",
        "ingest_received",
        "semantic_chunk_inferred*2",
        "stop_requested",
      ]);
      assert.deepEqual(
        payloads(events, "semantic_chunk_inferred").map(({ semantic_error }) => semantic_error),
        [null, null],
      );
    }
    never.release();
  }
});

Deno.test("a run that is stopped before its first frame has nothing but the stop", async () => {
  await using at = await startReason();
  const source_uri = await longFilm(at);
  const runId = await newRun(at.test);
  const reasoning = at.test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, source_uri });
  await at.test.call("POST", `/v1/runs/${runId}/stop`);
  assert.equal((await reasoning).status, 409);
  await quiet(at);
  const kinds = kindsOf(await eventsOf(at.test, runId));
  assert.equal(kinds.at(-1), "stop_requested");
});

Deno.test("a caller who disconnects ends everything, which is no failure, and the run can be reasoned on again", async () => {
  const lines: string[] = [];
  const stdout = {
    writeSync(bytes: Uint8Array) {
      lines.push(new TextDecoder().decode(bytes));
      return bytes.length;
    },
  };
  const log = openLog("warn", { stdout, stderr: { writeSync: (bytes) => bytes.length } });
  await using at = await startReason({}, {}, { log });
  const source_uri = await longFilm(at);
  const never = held();
  at.model.answer = never.answer;
  const runId = await newRun(at.test);
  const deleteSession = new AbortController();
  const reasoning = fetch(`${at.test.url}/v1/runs/${runId}/reason`, {
    method: "POST",
    headers: { "x-api-key": KEY_A, "content-type": "application/json" },
    body: JSON.stringify({ ...SAMPLED, source_uri, semantic_timeout_ms: 60_000 }) + " ".repeat(2000),
    signal: deleteSession.signal,
  }).then(() => "answered", (error) => error.name);
  await until("four calls wait", () => at.model.inFlight === 4);
  deleteSession.abort();
  assert.equal(await reasoning, "AbortError");
  await quiet(at);
  never.release();
  assert.deepEqual(kindsOf(await eventsOf(at.test, runId)), ["run_created", "ingest_received"]);
  at.model.answer = () => SEEN;
  const again = await at.test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, max_frames: 5 });
  assert.equal(again.status, 200, again.text);
  assert.deepEqual(lines, []);
});

Deno.test("of two calls on one run the first to finish completes it, and the other ends at once", async () => {
  await using at = await startReason();
  const source_uri = await longFilm(at);
  const never = held();
  at.model.answer = ({ prompt }) => prompt.startsWith("slow") ? never.answer() : SEEN;
  const runId = await newRun(at.test);
  const reason = (body: Record<string, unknown>) =>
    at.test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, ...body });
  const slow = reason({
    source_uri,
    semantic_prompt: "slow",
    vlm_concurrency: 2,
    semantic_timeout_ms: 60_000,
  });
  await until("the slow one is under way", () => at.model.inFlight === 2);
  assert.equal((await reason({ max_frames: 10 })).status, 200);
  assert.equal((await slow).status, 409);
  await quiet(at, 2);
  never.release();
});

Deno.test("a service that closes ends what is under way, and reports no chunk as failed", async () => {
  await using at = await startReason();
  const source_uri = await longFilm(at);
  const never = held();
  at.model.answer = never.answer;
  const runId = await newRun(at.test);
  const reasoning = at.test.call("POST", `/v1/runs/${runId}/reason`, {
    ...SAMPLED,
    source_uri,
    semantic_timeout_ms: 60_000,
  }).then(({ status }) => status, () => "cut off");
  await until("four calls wait", () => at.model.inFlight === 4);
  await at.test.restart();
  assert.ok([500, "cut off"].includes(await reasoning));
  await quiet(at);
  never.release();
  assert.deepEqual(kindsOf(await eventsOf(at.test, runId)), ["run_created", "ingest_received"]);
  assert.equal((await at.test.call("GET", `/v1/runs/${runId}/state`)).json.state, "processing");
});
