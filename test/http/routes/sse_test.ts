import assert from "node:assert/strict";
import { connect } from "node:http2";
import { LIMITS } from "../../../src/contract/limits.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { KEY_A, KEY_B, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";
import { SseClient, StalledClient, streamPath } from "../../support/http/sse_client.ts";
import { until } from "../../support/until.ts";
import { UNKNOWN_RUN } from "../../support/policy_fixtures.ts";

/** Keepalives come every 15 s: this makes it 30 ms. */
const FAST = { timerSpeed: 500 };

/** Appends one event of each kind in one commit; their seqs. */
function append(test: TestService, runId: string, kinds: string[], payload: unknown = {}): number[] {
  const { timeline } = test.service;
  return timeline.commit(() => kinds.map((kind) => ({ kind, runId, payload }))).map(({ seq }) => seq);
}

function times<T>(count: number, value: T): T[] {
  return new Array(count).fill(value);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

async function metric(test: TestService, name: string): Promise<number> {
  const { text } = await test.call("GET", "/v1/metrics");
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

/** Resolves when the metric has this value. */
async function untilMetric(test: TestService, name: string, value: number): Promise<void> {
  await until(`${name} is ${value}`, async () => await metric(test, name) === value);
}

Deno.test("the whole run is replayed and then followed, each event as one CloudEvents message", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  await using client = await SseClient.open(test, runId);
  const [created] = await client.take(1);
  const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
  assert.deepEqual(created, {
    id: 1,
    event: "run_created",
    data: {
      specversion: "1.0",
      id: `${runId}:1`,
      source: `/v1/runs/${runId}`,
      type: "dev.service.timeline.run_created",
      subject: "stream-0",
      datacontenttype: "application/json",
      sequence: 1,
      pts_ms: json.events[0].pts_ms,
      data: json.events[0].payload,
    },
  });
  const payload = { description: "two\nlines, a \r, 日本語 and \u2028" };
  append(test, runId, ["vlm"], payload);
  const [vlm] = await client.take(1);
  assert.deepEqual([vlm!.id, vlm!.event, vlm!.data.data], [2, "vlm", payload]);
});

Deno.test("an event stream has the headers of every answer, is not compressed and not to be buffered", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const deleteSession = new AbortController();
  const { headers, body } = await fetch(test.url + streamPath(runId), {
    headers: { "x-api-key": KEY_A, "accept-encoding": "gzip, br" },
    signal: deleteSession.signal,
  });
  const expected: Record<string, string | null> = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
    "content-encoding": null,
    "content-length": null,
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(headers.get(name), value, name);
  const { value } = await body!.getReader().read();
  assert.match(new TextDecoder().decode(value), /^id: 1\nevent: run_created\ndata: \{.*\}\n\n$/);
  deleteSession.abort();
});

Deno.test("the cursor is Last-Event-ID, else after, else 0, and replay is strictly after it", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  append(test, runId, times(4, "vlm"));
  const check = async (query: string, header: string | null, expected: number[]) => {
    const headers: HeadersInit = header === null ? {} : { "last-event-id": header };
    await using client = await SseClient.open(test, runId, { query, headers });
    assert.deepEqual(await client.ids(expected.length), expected, `${query} ${header}`);
  };
  await check("", null, [1, 2, 3, 4, 5]);
  await check("?after=0", null, [1, 2, 3, 4, 5]);
  await check("?after=2", null, [3, 4, 5]);
  await check("?after=0002", null, [3, 4, 5]);
  await check("", "4", [5]);
  await check("?after=1", "3", [4, 5]);
  await check("?after=4", "0", [1, 2, 3, 4, 5]);
  await check("?after=18446744073709551615", "3", [4, 5]);
});

Deno.test("a cursor at the end gives only what comes, one past the end only what comes after that", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const atEnd = await SseClient.open(test, runId, { query: "?after=1" });
  const pastEnd = await SseClient.open(test, runId, { query: "?after=3" });
  const everPast = await SseClient.open(test, runId, { query: "?after=18446744073709551615&kind=vlm" });
  await untilMetric(test, "service_sse_subscribers_active", 3);
  append(test, runId, ["vlm"]);
  append(test, runId, ["vlm", "vlm", "loop_detected"]);
  assert.deepEqual(await atEnd.ids(4), [2, 3, 4, 5]);
  assert.deepEqual(await pastEnd.ids(2), [4, 5]);
  assert.equal(await metric(test, "service_sse_events_total"), 6);
  for (const client of [atEnd, pastEnd, everPast]) await client[Symbol.asyncDispose]();
});

Deno.test("what cannot be a cursor or a kind is turned away before anything is streamed", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const send = (query: string, header?: string) =>
    test.send(streamPath(runId, query), {
      headers: { "x-api-key": KEY_A, ...(header !== undefined && { "last-event-id": header }) },
    });
  const badQuery = async (query: string, header?: string) => {
    const { status, headers } = await send(query, header);
    assert.equal(status, 400, query);
    assert.match(headers.get("content-type")!, /^text\/plain/);
  };
  for (
    const after of ["", "x", "-1", "1.5", "1e3", "0x1", "+1", "%201", "1%20", "NaN", "18446744073709551616"]
  ) {
    await badQuery(`?after=${after}`);
  }
  await badQuery("?after=x", "1");
  const badField = async (fields: string[], query: string, header?: string) => {
    const { status, json } = await send(query, header);
    assert.equal(status, 422, `${query} ${header}`);
    assert.equal(json.error.code, "validation_error");
    assert.deepEqual(json.error.details.map((fault: { field: string }) => fault.field), fields);
  };
  for (
    const header of [
      "",
      "x",
      "-1",
      "1.5",
      "1e3",
      "+1",
      "1 2",
      "1, 2",
      "18446744073709551616",
      "9".repeat(400),
    ]
  ) {
    await badField(["Last-Event-ID"], "", header);
  }
  await badField(["kind"], "?kind=");
  await badField(["kind"], `?kind=${"k".repeat(97)}`);
  await badField(["kind"], `?kind=${"%C3%A9".repeat(49)}`);
  await badField(["Last-Event-ID", "kind"], "?kind=", "x");
  await badField(["without_kind"], "?without_kind=");
  await badField(["kind", "without_kind"], `?kind=&without_kind=${"k".repeat(97)}`);
  assert.equal(await metric(test, "service_sse_subscribers_active"), 0);
  for (const kind of ["k", "k".repeat(96), "%C3%A9".repeat(48)]) {
    await (await SseClient.open(test, runId, { query: `?kind=${kind}` }))[Symbol.asyncDispose]();
  }
});

Deno.test("a foreign run reads like a missing one, and a deleted run cannot be followed any more", async () => {
  await using test = await startService();
  const foreign = await newRun(test, KEY_B);
  const deleted = await newRun(test);
  await test.call("DELETE", `/v1/runs/${deleted}`);
  const check = async (runId: string, key: string | null, expected: number) => {
    const { status, text } = await test.call("GET", streamPath(runId), undefined, key);
    assert.equal(status, expected, runId);
    return text.replace(/req-[0-9a-f]+/, "");
  };
  assert.equal(await check(foreign, KEY_A, 404), await check(UNKNOWN_RUN, KEY_A, 404));
  await check(deleted, KEY_A, 404);
  await check("run-x", KEY_A, 422);
  await check(foreign, null, 401);
  const { status, headers } = await test.call("POST", streamPath(foreign), {}, KEY_B);
  assert.deepEqual([status, headers.get("allow")], [405, "GET, HEAD"]);
});

Deno.test("a HEAD request is answered like a GET and leaves no listener", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const { status, headers, text } = await test.call("HEAD", streamPath(runId));
  assert.deepEqual([status, headers.get("content-type"), text], [200, "text/event-stream", ""]);
  assert.equal(await metric(test, "service_sse_subscribers_active"), 0);
});

Deno.test("the kind filter is exact, and what it leaves out does not hold the cursor back", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  append(test, runId, [...times(600, "keyframe_stored"), "vlm", "vlm_tiered"]);
  await using client = await SseClient.open(test, runId, { query: "?kind=vlm" });
  assert.deepEqual(await client.ids(1), [602]);
  append(test, runId, [...times(LIMITS.sse.ringEvents * 2, "keyframe_stored"), "vlm"]);
  for (let round = 0; round < 3; round++) append(test, runId, ["vlm_tiered"]);
  append(test, runId, ["vlm"]);
  assert.deepEqual(await client.ids(2), [2652, 2656]);
  await using resumed = await SseClient.open(test, runId, {
    query: "?kind=vlm",
    headers: { "last-event-id": "1000" },
  });
  assert.deepEqual(await resumed.ids(2), [2652, 2656]);
  await using none = await SseClient.open(test, runId, { query: "?kind=vl" });
  await untilMetric(test, "service_sse_subscribers_active", 3);
  append(test, runId, ["vl"]);
  assert.deepEqual(await none.ids(1), [2657]);
});

Deno.test("a kind is left out, in what is replayed and in what comes", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  await test.call("POST", `/v1/runs/${runId}/keepalive`);
  await using client = await SseClient.open(test, runId, { query: "?without_kind=keepalive_refreshed" });
  assert.equal((await client.next())?.event, "run_created");
  await test.call("POST", `/v1/runs/${runId}/keepalive`);
  await test.call("POST", `/v1/runs/${runId}/stop`);
  assert.equal((await client.next())?.event, "stop_requested");
  await using all = await SseClient.open(test, runId, { query: "?after=1" });
  assert.equal((await all.next())?.event, "keepalive_refreshed");
});

Deno.test("bookkeeping is streamed like every other kind, and neither a stop nor a delete ends the stream", async () => {
  await using test = await startService({}, FAST);
  const runId = await newRun(test);
  await using client = await SseClient.open(test, runId);
  append(test, runId, ["webhook_registered", "webhook_deleted"]);
  await test.call("POST", `/v1/runs/${runId}/stop`);
  const kinds = async (count: number) => (await client.take(count)).map(({ event }) => event);
  assert.deepEqual(await kinds(4), [
    "run_created",
    "webhook_registered",
    "webhook_deleted",
    "stop_requested",
  ]);
  assert.equal(await client.comment(), ": keepalive");
  await test.call("DELETE", `/v1/runs/${runId}`);
  assert.deepEqual(await kinds(1), ["run_deleted"]);
  assert.equal(await client.comment(), ": keepalive");
});

Deno.test("a client without events for 15 s gets a comment, again and again, and events come in between", async () => {
  await using test = await startService({}, FAST);
  const runId = await newRun(test);
  await using quiet = await SseClient.open(test, runId, { query: "?after=1&kind=none" });
  await using client = await SseClient.open(test, runId, { query: "?after=1" });
  for (let round = 1; round <= 3; round++) {
    assert.equal(await client.comment(), ": keepalive");
    append(test, runId, ["vlm"]);
    assert.deepEqual(await client.ids(1), [1 + round]);
    assert.equal(await quiet.comment(), ": keepalive");
  }
});

Deno.test("a client that does not read costs the others nothing, and gets every event when it reads again", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  using stalled = await StalledClient.open(test, runId);
  await using client = await SseClient.open(test, runId);
  await untilMetric(test, "service_sse_subscribers_active", 2);
  const total = 1000;
  const payload = { description: "x".repeat(64 * 1024) };
  for (let seq = 2; seq <= total; seq++) {
    append(test, runId, ["vlm"], payload);
    assert.equal((await client.take(1))[0]!.id, seq === 2 ? 1 : seq - 1);
  }
  assert.equal(await metric(test, "service_sse_output_queue_stalls_total"), 1);
  await using late = await stalled.read();
  assert.deepEqual(await late.ids(total), range(1, total));
  append(test, runId, ["loop_detected"]);
  assert.deepEqual(await late.ids(1), [total + 1]);
});

Deno.test("a reader that the ring has lapped goes back to the log and misses nothing", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  await using all = await SseClient.open(test, runId, { query: "?after=1" });
  await using some = await SseClient.open(test, runId, { query: "?kind=loop_detected" });
  await untilMetric(test, "service_sse_subscribers_active", 2);
  const burst = LIMITS.sse.ringEvents * 5;
  append(test, runId, [...times(burst, "vlm"), "loop_detected"]);
  assert.deepEqual(await all.ids(burst + 1), range(2, burst + 2));
  assert.deepEqual(await some.ids(1), [burst + 2]);
  assert.equal(await metric(test, "service_sse_notification_lag_total"), 2);
  append(test, runId, ["loop_detected"]);
  assert.deepEqual([await all.ids(1), await some.ids(1)], [[burst + 3], [burst + 3]]);
});

Deno.test("a client that disconnects is removed at once, before its first event and after it", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const clients = [];
  for (const query of ["", "", "?kind=vlm", "?after=99"]) {
    clients.push(await SseClient.open(test, runId, { query }));
  }
  using stalled = await StalledClient.open(test, runId);
  await untilMetric(test, "service_sse_subscribers_active", 5);
  await clients[0]!.take(1);
  for (const client of clients) await client[Symbol.asyncDispose]();
  stalled[Symbol.dispose]();
  await untilMetric(test, "service_sse_subscribers_active", 0);
});

Deno.test("the metrics count replayed and new events apart, and how long a new one took", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  append(test, runId, times(300, "vlm"));
  await using first = await SseClient.open(test, runId);
  await using second = await SseClient.open(test, runId, { query: "?after=300" });
  await first.take(301);
  await second.take(1);
  append(test, runId, ["vlm"]);
  await first.take(1);
  await second.take(1);
  assert.equal(await metric(test, "service_sse_events_total"), 304);
  assert.equal(await metric(test, "service_sse_replayed_events_total"), 302);
  assert.equal(await metric(test, "service_sse_commit_to_send_latency_ms_count"), 1);
});

Deno.test("closing the service ends every stream between two messages, and the cursor goes on after a restart", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  await using client = await SseClient.open(test, runId);
  await using idle = await SseClient.open(test, runId, { query: "?kind=none" });
  await untilMetric(test, "service_sse_subscribers_active", 2);
  for (let round = 0; round < 20; round++) append(test, runId, times(100, "vlm"), { text: "x".repeat(500) });
  const seen = await client.ids(150);
  const restarting = test.restart();
  for (let message = await client.next(); message; message = await client.next()) seen.push(message.id);
  assert.equal(await idle.next(), undefined);
  await restarting;
  append(test, runId, ["vlm"]);
  await using resumed = await SseClient.open(test, runId, { headers: { "last-event-id": `${seen.at(-1)}` } });
  assert.deepEqual(seen.concat(await resumed.ids(2002 - seen.length)), range(1, 2002));
});

Deno.test("many streams share one HTTP/2 connection", async () => {
  await using test = await startService({}, FAST);
  const runId = await newRun(test);
  const session = connect(test.url);
  const open = (query: string) => {
    const stream = session.request({ ":path": streamPath(runId, query), "x-api-key": KEY_A });
    const status = new Promise<number>((resolve) =>
      stream.once("response", (head) => resolve(head[":status"] as number))
    );
    const close = () => Promise.resolve(void stream.destroy());
    return { status, client: new SseClient(stream[Symbol.asyncIterator](), close) };
  };
  const streams = [open(""), open("?after=1"), open("?kind=vlm")];
  for (const { status } of streams) assert.equal(await status, 200);
  await untilMetric(test, "service_sse_subscribers_active", 3);
  append(test, runId, ["keyframe_stored", "vlm"]);
  const [all, after, vlm] = streams.map(({ client }) => client);
  assert.deepEqual(await all!.ids(3), [1, 2, 3]);
  assert.deepEqual(await after!.ids(2), [2, 3]);
  assert.deepEqual(await vlm!.ids(1), [3]);
  assert.equal(await vlm!.comment(), ": keepalive");
  await all![Symbol.asyncDispose]();
  await untilMetric(test, "service_sse_subscribers_active", 2);
  append(test, runId, ["vlm"]);
  assert.deepEqual([await after!.ids(1), await vlm!.ids(1)], [[4], [4]]);
  await vlm![Symbol.asyncDispose]();
  await untilMetric(test, "service_sse_subscribers_active", 1);
  const restarting = test.restart();
  assert.equal(await after!.next(), undefined);
  await restarting;
  session.destroy();
});

Deno.test("300 reconnects while events are appended lose, repeat and reorder nothing", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const random = seededRandom(11);
  let isWriting = true;
  const writing = (async () => {
    while (isWriting) {
      append(test, runId, times(1 + Math.floor(random() * 4), "vlm"), { text: "x".repeat(200) });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  const seen: number[] = [];
  for (let connection = 0; connection < 300; connection++) {
    await using client = await SseClient.open(test, runId, {
      headers: { "last-event-id": String(seen.at(-1) ?? 0) },
    });
    seen.push(...await client.ids(1 + Math.floor(random() * 12)));
  }
  isWriting = false;
  await writing;
  assert.deepEqual(seen, range(1, seen.length));
  await untilMetric(test, "service_sse_subscribers_active", 0);
});

Deno.test("integers beyond 2^53 keep every digit", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const json = '{"perceptual_hash":18446744073709551615}';
  append(test, runId, ["vlm"], new PreparedPayload(new TextEncoder().encode(json)));
  const deleteSession = new AbortController();
  const { body } = await fetch(`${test.url}${streamPath(runId, "?after=1")}`, {
    headers: { "x-api-key": KEY_A },
    signal: deleteSession.signal,
  });
  const { value } = await body!.getReader().read();
  assert.ok(new TextDecoder().decode(value).includes(`"data":${json}}`));
  deleteSession.abort();
});

Deno.test("an event of any length is one message, for a client that replays, one that waits and one that reads late", async () => {
  await using test = await startService({}, { ...REACHES_IN, ...FAST });
  const runId = await newRun(test);
  const text = "é€😀x\r\n".repeat(300_000);
  await using waiting = await SseClient.open(test, runId);
  await waiting.ids(1);
  await waiting.comment(); // it waits now
  const seqs = append(test, runId, ["vlm", "vlm"], { text });
  seqs.push(...append(test, runId, ["asr"], { after: true }));
  await using replaying = await SseClient.open(test, runId, { query: "?after=1" });
  await using ofKind = await SseClient.open(test, runId, { query: "?after=1&kind=asr" });
  await using late = await SseClient.open(test, runId);
  for (const client of [waiting, replaying]) {
    const messages = await client.take(3);
    assert.deepEqual(messages.map(({ id }) => id), seqs);
    assert.equal(messages[1]!.data.data.text, text);
    assert.deepEqual(messages[2]!.data.data, { after: true });
  }
  assert.deepEqual(await ofKind.ids(1), seqs.slice(2));
  assert.deepEqual(await late.ids(4), [1, ...seqs]);
  const last = append(test, runId, ["asr"]);
  for (const client of [waiting, replaying, ofKind, late]) assert.deepEqual(await client.ids(1), last);
});
