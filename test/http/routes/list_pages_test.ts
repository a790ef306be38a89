/** Lists in pages and as a whole, over HTTP. See docs/api/runs.md#pages. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { NewEvent } from "../../../src/model/runs/run.ts";
import { principalKeyOf } from "../../../src/model/identifiers.ts";
import {
  CLIPS,
  KEY_A,
  KEY_B,
  MODEL,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../../support/service.ts";

const SECRET = { SERVICE_WEBHOOK_SECRET: "a root secret of at least 32 bytes" };
/** Public addresses that need no name server; nothing is sent to them. */
const RECEIVERS = [1, 2, 3, 4, 5].map((number) => `https://1.1.1.${number}/hook`);

// deno-lint-ignore no-explicit-any -- entries of any list
type Entries = readonly any[];

/** All pages of a list, one after the other. */
async function paged(test: TestService, path: string, field: string, limit: number): Promise<Entries[]> {
  const pages: Entries[] = [];
  for (let cursor: string | null = null;;) {
    const query = new URLSearchParams({ limit: String(limit), ...(cursor !== null && { cursor }) });
    const { status, json, text } = await test.call("GET", `${path}${path.includes("?") ? "&" : "?"}${query}`);
    assert.equal(status, 200, text);
    pages.push(json[field]);
    cursor = json.next_cursor;
    if (cursor === null) return pages;
  }
}

/** What each list has a few entries of. */
async function filled(test: TestService): Promise<string> {
  const runId = await newRun(test);
  const source = { source_uri: join(CLIPS, "bbb120.mp4"), max_frames: 96 };
  await test.call("POST", `/v1/runs/${runId}/ingest`, source);
  await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
  for (let rating = 0; rating < 5; rating++) {
    const feedback = { rating, category: "accuracy", feedback: '"quoted" \u0001' };
    await test.call("POST", `/v1/runs/${runId}/feedback`, feedback);
    const hook = { url: RECEIVERS[rating], event_kinds: ["vlm"] };
    assert.equal((await test.call("POST", `/v1/runs/${runId}/webhooks`, hook)).status, 201);
  }
  for (let more = 0; more < 4; more++) {
    await test.call("POST", `/v1/runs/${await newRun(test)}/stop`);
  }
  return runId;
}

const LISTS = [
  ["/v1/runs/:id/events", "events"],
  ["/v1/runs/:id/events?without_kind=marker_emitted", "events"],
  ["/v1/runs/:id/events?from_seq=3", "events"],
  ["/v1/runs/:id/markers", "markers"],
  ["/v1/runs/:id/markers?from_frame=1", "markers"],
  ["/v1/feedback", "feedback"],
  ["/v1/webhooks", "webhooks"],
  ["/v1/runs/:id/webhooks", "webhooks"],
  ["/v1/runs", "runs"],
  ["/v1/runs?order=newest", "runs"],
] as const;

Deno.test("the pages of each list have its entries once, in its order, and the last one says so", async () => {
  await using test = await startService(SECRET);
  const runId = await filled(test);
  for (const [place, field] of LISTS) {
    const path = place.replace(":id", runId);
    const { json } = await test.call("GET", path);
    const whole: Entries = field === "runs" ? json : json[field];
    assert.ok(whole.length >= 3, path);
    assert.equal("next_cursor" in json, false, path);
    for (const limit of [1, 2, whole.length - 1, whole.length, 1_000]) {
      const pages = await paged(test, path, field, limit);
      assert.deepEqual(pages.flat(), whole, `${path} by ${limit}`);
      assert.equal(pages.length, Math.ceil(whole.length / limit), `${path} by ${limit}`);
    }
    const first = await test.call("GET", `${path}${path.includes("?") ? "&" : "?"}limit=1`);
    const rest = await test.call(
      "GET",
      `${path}${path.includes("?") ? "&" : "?"}cursor=${first.json.next_cursor}`,
    );
    assert.deepEqual(rest.json[field], whole.slice(1, 1 + LIMITS.list.pageDefault), path);
  }
  const { json: runs } = await test.call("GET", "/v1/runs");
  const { json: newest } = await test.call("GET", "/v1/runs?order=newest");
  assert.deepEqual(newest, runs.toReversed());
});

Deno.test("a whole list has the bytes that it always had", async () => {
  await using test = await startService(SECRET);
  const empty = await test.call("GET", "/v1/runs");
  assert.equal(empty.text, "[]");
  const { text, json } = await test.call("GET", "/v1/feedback");
  assert.equal(text, `{"request_id":"${json.request_id}","feedback":[],"storage":"local_wal"}`);

  const runId = await filled(test);
  const runs = await test.call("GET", "/v1/runs");
  const each = await Promise.all(
    runs.json.map(async ({ run_id }: { run_id: string }) =>
      (await test.call("GET", `/v1/runs/${run_id}`)).text
    ),
  );
  assert.equal(runs.text, `[${each.join(",")}]`);
  const feedback = await test.call("GET", "/v1/feedback");
  const items = feedback.json.feedback.map((item: object) => JSON.stringify(item)).join(",");
  assert.equal(
    feedback.text,
    `{"request_id":"${feedback.json.request_id}","feedback":[${items}],"storage":"local_wal"}`,
  );
  for (
    const [field, entry] of [["events", /^\{"seq":\d+,"pts_ms":\d+,"kind":"/], ["markers", /^\{"/]] as const
  ) {
    const list = await test.call("GET", `/v1/runs/${runId}/${field}`);
    const head = `{"request_id":"${list.json.request_id}","run_id":"${runId}","${field}":[`;
    assert.ok(list.text.startsWith(head) && list.text.endsWith("]}"), field);
    assert.match(list.text.slice(head.length), entry);
  }
  const hooks = await test.call("GET", `/v1/runs/${runId}/webhooks`);
  assert.equal(hooks.text, JSON.stringify(hooks.json));
  assert.deepEqual(Object.keys(hooks.json), ["request_id", "run_id", "webhooks"]);
});

Deno.test("a limit or cursor that is none is refused with its field and rule", async () => {
  await using test = await startService(SECRET);
  const runId = await filled(test);
  for (const [place] of LISTS) {
    const path = place.replace(":id", runId) + (place.includes("?") ? "&" : "?");
    for (const limit of ["0", "1001"]) {
      const { status, json } = await test.call("GET", `${path}limit=${limit}`);
      assert.deepEqual([status, json.error.details], [422, [{
        field: "limit",
        message: "must be from 1 to 1000",
      }]]);
    }
    const wrong = await test.call("GET", `${path}limit=x`);
    assert.deepEqual([wrong.status, wrong.text], [400, "limit must be a whole number from 0"]);
    if (place === "/v1/runs/:id/webhooks") continue; // any text stands between two ids
    for (const cursor of ["", "x", "1-x", "1-2-3", "-1", "1e3", "9999999999999999999"]) {
      const { status, json } = await test.call("GET", `${path}cursor=${cursor}`);
      assert.deepEqual([status, json.error?.details[0].field], [422, "cursor"], `${path}cursor=${cursor}`);
    }
  }
  const order = await test.call("GET", "/v1/runs?order=latest");
  assert.deepEqual([order.status, order.json.error.details], [422, [{
    field: "order",
    message: 'must be oldest or newest: got "latest"',
  }]]);
  assert.equal(
    (await test.call("GET", `/v1/runs/${runId}/markers?cursor=1`)).status,
    422,
    "run_created is no marker",
  );
  for (const [list, type] of [["events", "text/csv"], ["markers", "text/vtt"]]) {
    const response = await test.send(`/v1/runs/${runId}/${list}?limit=2`, {
      headers: { "x-api-key": KEY_A, accept: type! },
    });
    assert.equal(response.status, 422);
    assert.match(response.text, /Invalid limit: is for application\/json alone/);
  }
});

Deno.test("runs that come and go between two pages are in none or one, and the others stay", async () => {
  await using test = await startService({}, REACHES_IN);
  const runs: string[] = [];
  for (let run = 0; run < 6; run++) {
    runs.push(await newRun(test));
    await test.call("POST", `/v1/runs/${runs[run]}/stop`);
  }
  const ids = ({ json }: { json: { runs: { run_id: string }[] } }) => json.runs.map(({ run_id }) => run_id);
  const first = await test.call("GET", "/v1/runs?limit=2");
  assert.deepEqual(ids(first), runs.slice(0, 2));
  for (const gone of [0, 1, 2]) await test.call("DELETE", `/v1/runs/${runs[gone]}`);
  await test.call("DELETE", `/v1/runs/${runs[4]}`); // more than half of them: the list is made anew
  const late = await newRun(test);
  const second = await test.call("GET", `/v1/runs?limit=5&cursor=${first.json.next_cursor}`);
  assert.deepEqual([ids(second), second.json.next_cursor], [[runs[3], runs[5], late], null]);

  const newest = await test.call("GET", "/v1/runs?limit=1&order=newest");
  assert.deepEqual(ids(newest), [late]);
  await test.call("DELETE", `/v1/runs/${late}`);
  const later = await newRun(test);
  const older = await test.call("GET", `/v1/runs?order=newest&cursor=${newest.json.next_cursor}`);
  assert.deepEqual(ids(older), [runs[5], runs[3]]);
  assert.deepEqual((await test.call("GET", "/v1/runs")).json.at(-1).run_id, later);
  assert.deepEqual((await test.call("GET", "/v1/runs?limit=3", undefined, KEY_B)).json.runs, []);
});

Deno.test("a list of thousands of runs, many of one millisecond, is the same whole and in pages", async () => {
  await using test = await startService({}, REACHES_IN);
  const { timeline } = test.service;
  for (let batch = 0; batch < 10; batch++) {
    timeline.commit((): NewEvent[] =>
      Array.from({ length: 300 }, (_, index) => ({
        kind: "run_created",
        runId: `run-${(batch * 300 + index).toString(16).padStart(32, "0")}`,
        payload: { mode: "balanced", model: null, principal_key: principalKeyOf(KEY_A) },
      }))
    );
  }
  const { json: whole } = await test.call("GET", "/v1/runs");
  assert.equal(whole.length, 3_000);
  assert.deepEqual((await paged(test, "/v1/runs", "runs", 7 * 64)).flat(), whole);
  assert.deepEqual((await paged(test, "/v1/runs?order=newest", "runs", 1_000)).flat(), whole.toReversed());
});
