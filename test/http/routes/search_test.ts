import assert from "node:assert/strict";
import { KEY_A, KEY_B, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";
import { UNKNOWN_RUN } from "../../support/policy_fixtures.ts";

/** Appends an event as a live session would; its sequence number. */
function append(test: TestService, runId: string, kind: string, payload: unknown): number {
  return test.service.timeline.commit(() => [{ kind, runId, payload }])[0]!.seq;
}

function search(test: TestService, body: unknown, key = KEY_A) {
  return test.call("POST", "/v1/search", body, key);
}

Deno.test("a hit says where and when the text was written, by media time and as it was written", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const check = async (kind: string, payload: Record<string, unknown>, expected: Record<string, unknown>) => {
    const seq = append(test, runId, kind, payload);
    const { status, json } = await search(test, { query: "NEEDLE", run_id: runId, limit: 500 });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(json), ["request_id", "scanned", "total_hits", "hits"]);
    assert.match(json.request_id, /^req-/);
    assert.equal(json.scanned, seq);
    assert.equal(json.total_hits, json.hits.length);
    const { score, confidence, ...hit } = json.hits.at(-1);
    assert.deepEqual(hit, { seq, run_id: runId, kind, ...expected });
    assert.ok(score > 0 && score <= 1, `got ${score}`);
    assert.equal(confidence, payload.confidence ?? null);
  };
  const description = "A Needle in the hay";
  await check("vlm", { description, pts_ms: 120 }, { pts_ms: 120, description, index_name: null });
  await check("multimodal_moment", { description, start_pts_ms: 7, pts_start_ms: 8, index_name: "door" }, {
    pts_ms: 8,
    description,
    index_name: "door",
  });
  await check("clip_vlm", { description, start_pts_ms: 7, index_name: null }, {
    pts_ms: 7,
    description,
    index_name: null,
  });
  await check("clip_vlm", { description, pts_ms: 0, start_pts_ms: 7, confidence: 0.9 }, {
    pts_ms: 0,
    description,
    index_name: null,
  });
  await check("trigger.door", { summary: "needle", description: null, pts_ms: 1 }, {
    pts_ms: 1,
    description: "needle",
    index_name: null,
  });
  const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
  const envelopeMs = json.events[0].pts_ms;
  const seq = append(test, runId, "vlm", { description });
  const last = (await search(test, { query: "needle", run_id: runId })).json.hits.at(-1);
  assert.equal(last.seq, seq);
  assert.ok(last.pts_ms >= envelopeMs && last.pts_ms < envelopeMs + 60_000, `wall clock, got ${last.pts_ms}`);
});

Deno.test("the score says how well a description matches", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  for (
    const description of [
      "A red bus",
      "red",
      "A bus is covered",
      "A redder bus",
      "A red bus, a red car",
      "RED 红红",
    ]
  ) append(test, runId, "vlm", { description });
  const scores = async (query: string) =>
    Object.fromEntries(
      (await search(test, { query })).json.hits.map((hit: { description: string; score: number }) => [
        hit.description,
        hit.score,
      ]),
    );
  const found = await scores("Red");
  assert.equal(found.red, 1);
  // 3 characters are the text, 6 are not; then 6 and 14.
  assert.equal(found["A red bus"], 0.8);
  assert.equal(found["A red bus, a red car"], 0.7742);
  assert.equal(found["A redder bus"], 0.5818);
  assert.equal(found["A bus is covered"], 0.3892);
  assert.deepEqual(await scores("RED 红红"), { "RED 红红": 1 });
  assert.ok((await scores("红"))["RED 红红"] > 0);
});

Deno.test("the description is what is searched, the summary only where there is none", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const check = async (payload: unknown, query: string, hits: number) => {
    const before = (await search(test, { query })).json.total_hits;
    append(test, runId, "vlm", payload);
    const found = (await search(test, { query })).json.total_hits - before;
    assert.equal(found, hits, `${JSON.stringify(payload)} by ${JSON.stringify(query)}`);
  };
  await check({ description: "one truck", summary: "two cars" }, "truck", 1);
  await check({ description: "one truck", summary: "two cars" }, "cars", 0);
  await check({ summary: "two cars" }, "cars", 1);
  await check({ description: null, summary: "three vans" }, "vans", 1);
  await check({ description: 7, summary: "four bikes" }, "bikes", 1);
  await check({ description: ["five trams"] }, "trams", 0);
  await check({ nested: { description: "six boats" } }, "boats", 0);
  await check({ event_type: "seven planes", prompt: "eight ships" }, "s", 0);
  await check(["description", "nine"], "nine", 0);
  await check({ description: "İSTANBUL by night" }, "i̇stanbul", 1);
  await check({ description: "ΟΔΟΣ" }, "οδος", 1);
  await check({ description: "Ein Cafe\u0301 in Zu\u0308rich" }, "Café in Zürich", 1);
  await check({ description: "Ein Bistro in Köln" }, "bistro in Ko\u0308ln", 1);
  await check({ description: "die lange straße" }, "LANGE STRASSE", 1);
  await check({ description: "ein alter ﬁlm" }, "alter film", 1);
  await check({ description: "ein film ohne Ton" }, "ﬁlm ohne", 1);
  await check({ description: "a café" }, "a cafe", 0);
  await check({ description: "unseen" }, "\u00ad\u200d", 0);
  await check({ description: "СТРАННЫЙ груз" }, "Странный ГРУЗ", 1);
  await check({ description: "一辆红色的卡车" }, "红", 1);
  await check({ description: "a 🚗 and a 🚙" }, "🚙", 1);
  await check({ description: "tab\there and\nline" }, "here and\nline", 1);
  await check({ description: "  spaces  matter" }, "s  m", 1);
  await check({ description: "trim me" }, "  trim me \n", 1);
  await check({ description: "%_\\ are only characters" }, "%_\\", 1);
});

Deno.test("a query that breaks a rule is 422 and names every field; a run that is not the caller's is 404", async () => {
  await using test = await startService();
  const mine = await newRun(test);
  const deleted = await newRun(test);
  await test.call("DELETE", `/v1/runs/${deleted}`);
  const foreign = await newRun(test, KEY_B);
  const check = async (body: unknown, status: number, fields: string[]) => {
    const answer = await search(test, body);
    assert.equal(answer.status, status, JSON.stringify(body));
    if (status === 200) return;
    assert.equal(answer.json.error.code, status === 404 ? "not_found" : "validation_error");
    assert.deepEqual(answer.json.error.details.map((fault: { field: string }) => fault.field), fields);
  };
  await check({ query: "x", run_id: mine, limit: 500 }, 200, []);
  await check({ query: "x", run_id: null, limit: null }, 200, []);
  await check({ query: "x".repeat(1024), limit: 1 }, 200, []);
  await check({ query: ` ${"é".repeat(512)} ` }, 200, []);
  await check({ query: "x".repeat(1025) }, 422, ["query"]);
  await check({ query: "é".repeat(513) }, 422, ["query"]);
  await check({ query: "" }, 422, ["query"]);
  await check({ query: " \t\n" }, 422, ["query"]);
  await check({}, 422, ["query"]);
  await check({ query: 7 }, 422, ["query"]);
  await check({ query: "x", limit: 0 }, 422, ["limit"]);
  await check({ query: "x", limit: 501 }, 422, ["limit"]);
  await check({ query: "x", limit: -1 }, 422, ["limit"]);
  await check({ query: "x", limit: 1.5 }, 422, ["limit"]);
  await check({ query: "x", limit: "5" }, 422, ["limit"]);
  await check({ query: "", limit: 0, run_id: "nonsense" }, 422, ["query", "limit", "run_id"]);
  await check({ query: "x", run_id: "nonsense" }, 422, ["run_id"]);
  await check({ query: "x", colour: "red" }, 422, ["colour"]);
  await check({ query: "x", run_id: UNKNOWN_RUN }, 404, ["run_id"]);
  await check({ query: "x", run_id: foreign }, 404, ["run_id"]);
  await check({ query: "x", run_id: deleted }, 404, ["run_id"]);
  assert.equal((await search(test, "{")).status, 400);
  assert.equal((await test.call("GET", "/v1/search")).status, 405);
});

Deno.test("a search sees the caller's own runs that are not deleted, and nothing of anyone else", async () => {
  await using test = await startService({}, REACHES_IN);
  const [first, second] = [await newRun(test), await newRun(test)];
  const foreign = await newRun(test, KEY_B);
  const seqs = [first, second, foreign, first].map((runId) =>
    append(test, runId, "vlm", { description: "same" })
  );
  const found = async (key: string, body = {}) => {
    const { json } = await search(test, { query: "same", ...body }, key);
    return [json.scanned, json.total_hits, json.hits.map((hit: { seq: number }) => hit.seq)];
  };
  assert.deepEqual(await found(KEY_A), [5, 3, [seqs[0], seqs[1], seqs[3]]]);
  assert.deepEqual(await found(KEY_A, { limit: 2 }), [5, 3, [seqs[0], seqs[1]]]);
  assert.deepEqual(await found(KEY_A, { run_id: first }), [3, 2, [seqs[0], seqs[3]]]);
  assert.deepEqual(await found(KEY_B), [2, 1, [seqs[2]]]);
  await test.call("DELETE", `/v1/runs/${first}`);
  assert.deepEqual(await found(KEY_A), [2, 1, [seqs[1]]]);
  await test.restart();
  assert.deepEqual(await found(KEY_A), [2, 1, [seqs[1]]]);
  assert.deepEqual(await found(KEY_B), [2, 1, [seqs[2]]]);
});

Deno.test("search works the same in open mode", async () => {
  await using test = await startService({ SERVICE_REQUIRE_API_KEY: "false" }, REACHES_IN);
  const runId = await newRun(test);
  append(test, runId, "vlm", { description: "open house" });
  assert.equal((await search(test, { query: "OPEN" })).json.total_hits, 1);
});

Deno.test("query reads events of one kind from a number on, and echoes what it was asked", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const seqs = ["vlm", "state_transition", "vlm"].map((kind) =>
    append(test, runId, kind, { description: kind })
  );
  const check = async (body: Record<string, unknown>, expected: number[]) => {
    const { status, json } = await test.call("POST", "/v1/query", { run_id: runId, ...body });
    assert.equal(status, 200);
    assert.deepEqual(json.query, { run_id: runId, kind: null, from_seq: null, ...body });
    assert.deepEqual(json.matches.map((match: { seq: number }) => match.seq), expected);
  };
  await check({}, [1, ...seqs]);
  await check({ kind: "vlm" }, [seqs[0]!, seqs[2]!]);
  await check({ kind: "vlm", from_seq: seqs[0]! + 1 }, [seqs[2]!]);
  await check({ kind: "unheard_of" }, []);
  await check({ from_seq: 10_000 }, []);
});
