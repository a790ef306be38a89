import assert from "node:assert/strict";
import { KEY_A, KEY_B, MOVES_CLOCK, newRun, startService, type TestService } from "../../support/service.ts";
import { UNKNOWN_RUN } from "../../support/policy_fixtures.ts";

function submit(test: TestService, runId: string, body: unknown, key = KEY_A) {
  return test.call("POST", `/v1/runs/${runId}/feedback`, body, key);
}

async function listed(test: TestService, key = KEY_A): Promise<Record<string, unknown>[]> {
  const { status, json } = await test.call("GET", "/v1/feedback", undefined, key);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(json), ["request_id", "feedback", "storage"]);
  assert.equal(json.storage, "local_wal");
  return json.feedback;
}

Deno.test("feedback is committed to the run's timeline under the number that it is answered with", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const text = 'tab\tquote" line\nbackslash\\ 🚗';
  const { status, json } = await submit(test, runId, { rating: 8, category: "accuracy", feedback: text });
  assert.equal(status, 200);
  assert.deepEqual({ ...json, request_id: "" }, {
    request_id: "",
    run_id: runId,
    feedback_id: 2,
    status: "submitted",
    storage: "local_wal",
    mirrored_to_database: false,
  });
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual([events[1].seq, events[1].kind], [2, "operator_feedback_submitted"]);
  assert.deepEqual(events[1].payload, { session_id: "", rating: 8, category: "accuracy", feedback: text });
  assert.deepEqual(await listed(test), [{
    id: 2,
    run_id: runId,
    session_id: "",
    rating: 8,
    category: "accuracy",
    feedback: text,
    timestamp_micros: events[1].pts_ms * 1000,
    storage: "local_wal",
  }]);
});

Deno.test("the payload is checked before the run is looked for, and every field at fault is named", async () => {
  await using test = await startService();
  const check = async (body: unknown, status: number, fields: string[], runId = UNKNOWN_RUN) => {
    const answer = await submit(test, runId, body);
    assert.equal(answer.status, status, JSON.stringify(body).slice(0, 100));
    assert.equal(answer.json.error.code, status === 404 ? "not_found" : "validation_error");
    assert.deepEqual(answer.json.error.details.map((fault: { field: string }) => fault.field), fields);
  };
  await check({ rating: 0, category: "x" }, 404, ["run_id"]);
  await check({ rating: 10, category: "é".repeat(32), feedback: "é".repeat(32_768) }, 404, ["run_id"]);
  await check({ rating: 10, category: "x", feedback: null }, 404, ["run_id"]);
  await check({ rating: 0, category: "x" }, 422, ["run_id"], "nonsense");
  await check({ rating: 11, category: "x" }, 422, ["rating"], "nonsense");
  for (const rating of [11, -1, 1.5, "5", null, 1e300]) {
    await check({ rating, category: "x" }, 422, ["rating"]);
  }
  await check({ category: "x" }, 422, ["rating"]);
  for (const category of ["", " \t", "x".repeat(65), "é".repeat(33), 7, null]) {
    await check({ rating: 5, category }, 422, ["category"]);
  }
  await check({ rating: 5 }, 422, ["category"]);
  await check({ rating: 5, category: "x", feedback: "x".repeat(65_537) }, 422, ["feedback"]);
  await check({ rating: 5, category: "x", feedback: 7 }, 422, ["feedback"]);
  await check({ rating: 5, category: "x", stars: 3 }, 422, ["stars"]);
  await check({ rating: 12, category: "", feedback: "x".repeat(70_000) }, 422, [
    "rating",
    "category",
    "feedback",
  ]);
  await check([], 422, ["body"]);
  assert.equal((await submit(test, UNKNOWN_RUN, "{")).status, 400);
  assert.equal((await submit(test, UNKNOWN_RUN, { rating: 5, category: "x" }, KEY_B)).status, 404);
});

Deno.test("a terminal run takes feedback, a deleted or foreign one does not", async () => {
  await using test = await startService({ SERVICE_STREAM_TTL_SECS: "60" }, MOVES_CLOCK);
  const [stopped, expired, deleted] = [await newRun(test), await newRun(test), await newRun(test)];
  const body = { rating: 1, category: "speed" };
  await test.call("POST", `/v1/runs/${stopped}/stop`);
  assert.equal((await submit(test, stopped, body)).status, 200);
  assert.equal((await test.call("GET", `/v1/runs/${stopped}/state`)).json.state, "cancelled");
  test.advance(61_000);
  assert.equal((await submit(test, expired, body)).status, 200);
  await test.call("DELETE", `/v1/runs/${deleted}`);
  assert.equal((await submit(test, deleted, body)).status, 404);
  assert.equal((await submit(test, stopped, body, KEY_B)).status, 404);
});

Deno.test("the list holds feedback on the caller's runs in order, also after a restart, deleted runs left out", async () => {
  await using test = await startService();
  const [first, second] = [await newRun(test), await newRun(test)];
  const foreign = await newRun(test, KEY_B);
  const ids = async (key?: string) => (await listed(test, key)).map((item) => item.id);
  assert.deepEqual(await ids(), []);
  const given: number[] = [];
  // Enough for several batches of the answer.
  for (let number = 0; number < 300; number++) {
    const runId = number % 2 === 0 ? first : second;
    given.push((await submit(test, runId, { rating: number % 11, category: "x" })).json.feedback_id);
  }
  const theirs = (await submit(test, foreign, { rating: 3, category: "x" }, KEY_B)).json.feedback_id;
  assert.deepEqual(await ids(), given);
  assert.deepEqual(await ids(KEY_B), [theirs]);
  await test.restart();
  given.push((await submit(test, second, { rating: 4, category: "late" })).json.feedback_id);
  assert.deepEqual(await ids(), given);
  await test.call("DELETE", `/v1/runs/${second}`);
  assert.deepEqual(await ids(), given.filter((_, number) => number % 2 === 0 && number < 300));
  assert.deepEqual(await ids(KEY_B), [theirs]);
});
