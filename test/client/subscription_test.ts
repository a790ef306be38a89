/** The events of a run as they come: each once, over broken connections, restarts and silence, until an end.
 */

import assert from "node:assert/strict";
import {
  Client,
  HttpError,
  isNetworkError,
  ParseError,
  type RunEvent,
  type TimelineEvent,
} from "../../client/mod.ts";
import { KEY_A, MOVES_CLOCK, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Asked, refusal, rejection, type Scripted, startScripted } from "./scripted_service.ts";

const RUN = `run-${"0".repeat(32)}`;
const QUICK = { reconnectDelayMs: 1 };

function message(seq: number, kind = "k", changes: object = {}): string {
  const envelope = {
    type: `dev.service.timeline.${kind}`,
    sequence: seq,
    pts_ms: 7,
    data: { seq },
    ...changes,
  };
  return `id: ${seq}\nevent: ${kind}\ndata: ${JSON.stringify(envelope)}\n\n`;
}

/** A stream with these texts, which then ends or stays open. */
function stream(texts: readonly string[], end: "ends" | "stays" = "ends"): Response {
  const body = new ReadableStream({
    start(controller) {
      for (const text of texts) controller.enqueue(new TextEncoder().encode(text));
      if (end === "ends") controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** The first `count` events of `answers`, then the loop is left. */
async function taken(
  count: number,
  answer: (index: number, asked: Asked) => Scripted,
  options: Parameters<Client["subscribeEvents"]>[1] = {},
) {
  await using service = startScripted(answer);
  const events: TimelineEvent[] = [];
  for await (const event of new Client(service.url).subscribeEvents(RUN, { ...QUICK, ...options })) {
    events.push(event);
    if (events.length === count) break;
  }
  return { events, asked: service.asked };
}

Deno.test("events come once and in order, and each connection begins after the last one", async () => {
  const { events, asked } = await taken(5, (index) =>
    [
      stream([message(3), ": keepalive\n\n", message(5)]),
      stream([message(4), message(5), message(6)]),
      stream([": keepalive\n\n"]),
      stream([message(8), message(9)], "stays"),
    ][index]!, { after: 2 });
  assert.deepEqual(events[0], { seq: 3, pts_ms: 7, kind: "k", payload: { seq: 3 } });
  assert.deepEqual(events.map(({ seq }) => seq), [3, 5, 6, 8, 9]);
  assert.deepEqual(asked.map(({ headers }) => headers.get("last-event-id")), ["2", "5", "6", "6"]);
  assert.equal(asked[0]!.path, `/v1/runs/${RUN}/events/stream?after=2`);
});

Deno.test("a cursor of 0 is not sent, and a broken message is a ParseError", async () => {
  const cases = [
    message(3, "k", { sequence: 4 }),
    message(3, "k", { pts_ms: "7" }),
    message(3).replace("id: 3", "id: 9007199254740993"),
    message(3).replace("id: 3", "id: three"),
    message(3).replace('{"', "{"),
  ];
  for (const text of cases) {
    const failed = await rejection(taken(1, () => stream([text])));
    assert.ok(failed instanceof ParseError, `${text}: ${failed}`);
  }
  const long = taken(1, () => stream([message(3, "k", { data: "x".repeat(200) })]), {
    maxEventCharacters: 100,
  });
  assert.ok(await rejection(long) instanceof ParseError);
  const { asked } = await taken(1, () => stream([message(1)]));
  assert.equal(asked[0]!.headers.get("last-event-id"), null);
});

Deno.test("a refusal is thrown at first, and waited out where a stream was there before", async () => {
  const refused = await rejection(taken(1, () => refusal(404, "not_found")));
  assert.ok(refused instanceof HttpError && refused.isNotFound);
  const busy = await rejection(taken(1, () => refusal(503, "x")));
  assert.ok(busy instanceof HttpError && busy.status === 503);
  const { events } = await taken(
    2,
    (index) => index === 0 ? stream([message(1)]) : index < 4 ? refusal(502, "x") : stream([message(2)]),
  );
  assert.deepEqual(events.map(({ seq }) => seq), [1, 2]);
  const gone = rejection(taken(2, (index) => index === 0 ? stream([message(1)]) : refusal(404, "not_found")));
  assert.ok(await gone instanceof HttpError);
});

Deno.test("without reconnect the end of the stream is the end, and a broken one is thrown", async () => {
  const { events } = await taken(9, () => stream([message(1), message(2)]), { reconnect: false });
  assert.equal(events.length, 2);
  const closed = startScripted(() => stream([]));
  await closed[Symbol.asyncDispose]();
  const next = new Client(closed.url).subscribeEvents(RUN, { reconnect: false }).next();
  assert.ok(isNetworkError(await rejection(next)));
});

Deno.test("a stream that is silent for too long is opened again", async () => {
  // A machine that is slow may be as silent for a moment, before the first event too.
  const next = (_: number, { headers }: Asked) => message(Number(headers.get("last-event-id") ?? 0) + 1);
  const { events, asked } = await taken(2, (...args) => stream([next(...args)], "stays"), {
    idleTimeoutMs: 30,
  });
  assert.deepEqual(events.map(({ seq }) => seq), [1, 2]);
  assert.ok(asked.length >= 2, `${asked.length}`);
});

Deno.test("an abort ends it at once: while it waits for an event and between two connections", async () => {
  for (const answer of [() => stream([message(1)], "stays"), () => stream([message(1)])]) {
    await using service = startScripted(answer);
    const stop = new AbortController();
    const options = { signal: stop.signal, reconnectDelayMs: 60_000 };
    const events = new Client(service.url).subscribeEvents(RUN, options);
    assert.equal((await events.next()).value?.seq, 1);
    const next = rejection(events.next());
    setTimeout(() => stop.abort("enough"), 5);
    assert.equal(await next, "enough");
  }
});

/** The port of a service changes when it starts again; a client that finds it. */
function clientOf(test: TestService): Client {
  const { origin } = new URL(test.url);
  return new Client(origin, {
    apiKey: KEY_A,
    fetch: (input, init) => fetch(String(input).replace(origin, test.url), init),
  });
}

Deno.test("a subscription survives a restart of the service and misses nothing", async () => {
  await using test = await startService();
  const client = clientOf(test);
  const { run_id } = await client.createRun();
  const seqs: number[] = [];
  const stop = new AbortController();
  const following = rejection((async () => {
    for await (const { seq } of client.subscribeEvents(run_id, { ...QUICK, signal: stop.signal })) {
      seqs.push(seq);
    }
  })());
  for (let round = 0; round < 3; round++) {
    await client.keepaliveRun(run_id);
    await until("it came", () => seqs.length === 2 * round + 2);
    await test.restart();
    await client.keepaliveRun(run_id);
    await until("it came after the restart", () => seqs.length === 2 * round + 3);
  }
  stop.abort("done");
  assert.equal(await following, "done");
  assert.deepEqual(seqs, (await client.getEvents(run_id)).map(({ seq }) => seq));
});

Deno.test("a subscription ends with the run, also where the filter hides its end", async () => {
  await using test = await startService({}, { inProcess: "quick keepalives", timerSpeed: 100 });
  const client = new Client(test.url, { apiKey: KEY_A });
  for (const kind of [undefined, "keepalive_refreshed"]) {
    const { run_id } = await client.createRun();
    const kinds: string[] = [];
    const following = (async () => {
      for await (const event of client.subscribeEvents(run_id, { ...kind && { kind } })) {
        kinds.push(event.kind);
      }
    })();
    await client.keepaliveRun(run_id);
    await until("it came", () => kinds.includes("keepalive_refreshed"));
    await client.deleteRun(run_id);
    await following;
    assert.equal(kinds.at(-1), kind ?? "run_deleted");
  }
});

Deno.test("watching ends when the run is terminal, was so before, or expires", async () => {
  const options = { ...MOVES_CLOCK, timerSpeed: 100 };
  await using test = await startService({ SERVICE_STREAM_TTL_SECS: "60" }, options);
  const client = new Client(test.url, { apiKey: KEY_A });
  const { run_id } = await client.createRun();
  const watching = kindsOf(client.watch(run_id));
  await client.keepaliveRun(run_id);
  await client.stopRun(run_id);
  const kinds = ["run_created", "keepalive_refreshed", "stop_requested"];
  assert.deepEqual(await watching, kinds);
  assert.deepEqual(await kindsOf(client.watch(run_id)), kinds);
  const [first] = await client.getEvents(run_id);
  assert.deepEqual(await kindsOf(client.watch(run_id, { after: first!.seq })), kinds.slice(1));
  const { run_id: idle } = await client.createRun();
  const expiring = client.watch(idle);
  assert.equal((await expiring.next()).value?.kind, "run_created");
  test.advance(61_000);
  assert.equal((await expiring.next()).done, true);
  const absent = await rejection(client.watch(RUN).next());
  assert.ok(absent instanceof HttpError && absent.isNotFound);
});

async function kindsOf(events: AsyncIterable<RunEvent>): Promise<string[]> {
  const kinds: string[] = [];
  for await (const { kind } of events) kinds.push(kind);
  return kinds;
}
