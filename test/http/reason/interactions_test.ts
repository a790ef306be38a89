import assert from "node:assert/strict";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { KEY_B, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";

/** The run's interactions after these events, each a kind and its payload as an object or as JSON text. */
async function interactionsAfter(
  test: TestService,
  events: readonly [kind: string, payload: object | string][],
  query = "",
): Promise<{ text: string; interactions: unknown[] }> {
  const runId = await newRun(test);
  for (const [kind, payload] of events) {
    const json = typeof payload === "string"
      ? new PreparedPayload(new TextEncoder().encode(payload))
      : payload;
    test.service.timeline.commit(() => [{ kind, runId, payload: json }]);
  }
  const { status, text, json } = await test.call("GET", `/v1/runs/${runId}/interactions${query}`);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(json), ["run_id", "count", "interactions"]);
  assert.equal(json.run_id, runId);
  assert.equal(json.count, json.interactions.length);
  return { text, interactions: json.interactions };
}

const INFERRED = "semantic_chunk_inferred";
const GENERATED = "semantic_chunk_generated";
const TIMES = { pts_start_ms: 1000, pts_end_ms: 2500 };

Deno.test("each chunk gives what the model said, once, with its number and its media time", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "100" }, REACHES_IN);
  const check = async (events: readonly [string, object][], expected: unknown[]) => {
    const { interactions } = await interactionsAfter(test, events);
    assert.deepEqual(interactions, expected);
  };
  const base = { request_id: "req-1", stream_id: "stream-0", chunk_index: 4 };
  const at = { chunk_index: 4, ...TIMES };
  await check([], []);
  await check([[INFERRED, { ...base, ...TIMES, raw_output: { a: 1 } }]], [{ ...at, a: 1 }]);
  await check(
    [[INFERRED, { ...base, ...TIMES, raw_output: { a: 1 } }], [GENERATED, { ...base, process_ms: 5 }]],
    [{ ...at, a: 1 }],
  );
  await check(
    [[INFERRED, { ...base, raw_output: { a: 1 } }], [GENERATED, { ...base, ...TIMES }]],
    [{ ...at, a: 1 }],
  );
  await check([[GENERATED, { ...base, ...TIMES }]], []);
  await check([[GENERATED, { ...base, ...TIMES, raw_output: { b: 2 } }]], [{ ...at, b: 2 }]);
  await check(
    [[INFERRED, { ...base, ...TIMES, raw_output: [{ a: 1 }, { a: 2, chunk_index: 9, pts_start_ms: 3 }] }]],
    [{ ...at, a: 1 }, { ...at, a: 2, chunk_index: 9, pts_start_ms: 3 }],
  );
  await check([[INFERRED, { ...base, ...TIMES, raw_output: [] }]], []);
  await check([[INFERRED, { ...base, ...TIMES, raw_output: { raw: "no JSON" } }]], [{
    ...at,
    raw: "no JSON",
  }]);
  await check(
    [[INFERRED, { ...base, ...TIMES, raw_output: ["text", 7, null, [1]] }]],
    [{ ...at, raw: "text" }, { ...at, raw: 7 }, { ...at, raw: null }, { ...at, raw: [1] }],
  );
  await check([[INFERRED, { ...base, ...TIMES, raw_output: false }]], [{ ...at, raw: false }]);
  await check(
    [[INFERRED, { ...base, ...TIMES, raw_output: null, object_label: "car", event_type: "scene_cut" }]],
    [{ ...at, object_label: "car", event_type: "scene_cut" }],
  );
  await check(
    [[INFERRED, { ...base, ...TIMES, object_label: "car", event_type: null }]],
    [{ ...at, object_label: "car", event_type: "" }],
  );
  await check([[INFERRED, { ...base, ...TIMES, object_label: "", event_type: "" }]], []);
  await check([[INFERRED, { ...base, ...TIMES, object_label: null }]], []);
  await check(
    [
      [INFERRED, {
        ...base,
        ...TIMES,
        object_label: null,
        event_type: null,
        semantic_error: "http_status_500",
      }],
      [GENERATED, base],
      [INFERRED, { ...base, ...TIMES, chunk_index: 5, raw_output: { a: 5 } }],
      ["vlm", { ...base, raw_output: { a: 6 } }],
    ],
    [{ ...at, chunk_index: 5, a: 5 }],
  );
  // Two tracks and two requests each number their chunks from 0.
  await check(
    [
      [INFERRED, { ...base, ...TIMES, session_id: "s", track_id: 1, raw_output: { a: 1 } }],
      [INFERRED, { ...base, ...TIMES, session_id: "s", track_id: 2, raw_output: { a: 2 } }],
      [INFERRED, { ...base, ...TIMES, request_id: "req-2", raw_output: { a: 3 } }],
    ],
    [{ ...at, a: 1 }, { ...at, a: 2 }, { ...at, a: 3 }],
  );
});

Deno.test("a chunk without media times still has integers there", async () => {
  await using test = await startService({}, REACHES_IN);
  const { interactions } = await interactionsAfter(test, [[INFERRED, { chunk_index: 0, raw_output: {} }]]);
  const [item] = interactions as [Record<string, number>];
  assert.ok(Number.isSafeInteger(item.pts_start_ms) && item.pts_start_ms! > 0);
  assert.ok(item.pts_end_ms! >= item.pts_start_ms!);
});

Deno.test("numbers of the model's output arrive digit for digit", async () => {
  await using test = await startService({}, REACHES_IN);
  const { text } = await interactionsAfter(test, [[
    INFERRED,
    '{"chunk_index":1,"pts_start_ms":0,"pts_end_ms":9,"raw_output":{"hash":18446744073709551615,' +
    '"big":[-9223372036854775808,12345678901234567890.5],"one":1.0,"tiny":1e-400,"text":"18446744073709551615"}}',
  ]]);
  assert.ok(
    text.includes(
      '"hash":18446744073709551615,"big":[-9223372036854775808,12345678901234567890.5],' +
        '"one":1.0,"tiny":1e-400,"text":"18446744073709551615"',
    ),
    text,
  );
});

Deno.test("an index keeps the interactions of its chunks, and an unknown one has none", async () => {
  await using test = await startService({}, REACHES_IN);
  const events: [string, object][] = ["door", "gate", "door"].map((index_name, chunk_index) => [
    INFERRED,
    { chunk_index, index_name, ...TIMES, raw_output: {} },
  ]);
  const numbers = async (query: string) =>
    (await interactionsAfter(test, events, query)).interactions.map((item) =>
      (item as { chunk_index: number }).chunk_index
    );
  assert.deepEqual(await numbers(""), [0, 1, 2]);
  assert.deepEqual(await numbers("?index=door"), [0, 2]);
  assert.deepEqual(await numbers("?index=Door"), []);
});

Deno.test("a foreign, missing or deleted run has no interactions, and a malformed id is 422", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const check = async (id: string, status: number, key?: string) => {
    const answer = await test.call("GET", `/v1/runs/${id}/interactions`, undefined, key);
    assert.equal(answer.status, status);
    if (status !== 200) assert.equal(answer.json.error.details[0].field, "run_id");
  };
  await check(runId, 200);
  await check(runId, 404, KEY_B);
  await check(`run-${"0".repeat(32)}`, 404);
  await check("nonsense", 422);
  await test.call("DELETE", `/v1/runs/${runId}`);
  await check(runId, 404);
});

Deno.test("events of an index are those whose payload names it", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  for (
    const payload of [{ index_name: "door" }, { index_name: "gate" }, { note: '"index_name":"door"' }, {
      a: { index_name: "door" },
    }]
  ) {
    test.service.timeline.commit(() => [{ kind: "vlm", runId, payload }]);
  }
  const seqs = async (query: string) =>
    (await test.call("GET", `/v1/runs/${runId}/events${query}`)).json.events.map((each: { seq: number }) =>
      each.seq
    );
  assert.deepEqual(await seqs(""), [1, 2, 3, 4, 5]);
  assert.deepEqual(await seqs("?index=door"), [2]);
  assert.deepEqual(await seqs("?index=doo"), []);
});
