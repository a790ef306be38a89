/** What is sent again and what is not, how long the client waits, and how a call ends that is aborted or
 * late.
 */

import assert from "node:assert/strict";
import {
  Client,
  type ClientOptions,
  HttpError,
  isHttpError,
  isNetworkError,
  isServiceError,
  NetworkError,
  ParseError,
  RetryExhaustedError,
} from "../../client/mod.ts";
import { pauseMs, readRetryAfter } from "../../client/src/http/retries.ts";
import { KEY_A, startService } from "../support/service.ts";
import { refusal, rejection, startScripted } from "./scripted_service.ts";

const QUICK: ClientOptions = { retryBaseDelayMs: 1 };
const RUN = `run-${"0".repeat(32)}`;
const KEY = "idempotency-key";

Deno.test("what fails in passing is sent again where that is safe", async () => {
  const cases: [call: (client: Client) => Promise<unknown>, attempts: number][] = [
    [(client) => client.getRun(RUN), 3],
    [(client) => client.deleteRun(RUN), 3],
    [(client) => client.createRun(), 3],
    [(client) => client.ingestRun(RUN, { source_uri: "a.mp4" }), 3],
    [(client) => client.query({ run_id: RUN }), 1],
    [(client) => client.stopRun(RUN), 1],
    [(client) => client.whipUpdatePrompt("sess-1", { prompt: "" }), 1],
    [(client) => client.whipOffer("v=0"), 1],
  ];
  for (const [call, attempts] of cases) {
    const passing = [refusal(503, "storage_unavailable"), refusal(429, "rate_limited")];
    await using service = startScripted((index) => passing[index] ?? Response.json({ run_id: RUN }));
    const result = call(new Client(service.url, QUICK));
    if (attempts > 1) await result;
    else assert.ok(isHttpError(await rejection(result)));
    assert.equal(service.asked.length, attempts, call.toString());
  }
});

Deno.test("all attempts of a call have one idempotency key, and each call has another", async () => {
  await using service = startScripted((index) =>
    index % 2 === 0 ? refusal(500, "internal_error") : Response.json({ run_id: RUN })
  );
  const client = new Client(service.url, QUICK);
  await client.createRun();
  await client.createRun();
  await client.createRun({}, { idempotencyKey: "mine" });
  await client.getRun(RUN);
  const keys = service.asked.map(({ headers }) => headers.get(KEY));
  assert.match(keys[0]!, /^[0-9a-f]{32}$/);
  assert.equal(keys[1], keys[0]);
  assert.notEqual(keys[2], keys[0]);
  assert.deepEqual(keys.slice(4), ["mine", "mine", null, null]);
});

Deno.test("a failure that lasts is not repeated, and one that is being worked on is", async () => {
  const cases: [first: () => Response, attempts: number][] = [
    [() => refusal(507, "storage_quota"), 1],
    [() => refusal(404, "not_found"), 1],
    [() => refusal(409, "conflict"), 1],
    [() => refusal(409, "conflict", { headers: { "retry-after": "0" } }), 2],
  ];
  for (const [first, attempts] of cases) {
    await using service = startScripted((index) => index === 0 ? first() : Response.json({ run_id: RUN }));
    const created = new Client(service.url, QUICK).createRun();
    if (attempts > 1) await created;
    else assert.ok(await rejection(created) instanceof HttpError);
    assert.equal(service.asked.length, attempts);
  }
});

Deno.test("waiting for an earlier attempt uses up none, and ends with the time of the call", async () => {
  const running = () => refusal(409, "conflict", { headers: { "retry-after": "0" } });
  await using service = startScripted((index) => index < 9 ? running() : Response.json({ run_id: RUN }));
  await new Client(service.url, { ...QUICK, maxRetries: 1 }).createRun();
  assert.equal(service.asked.length, 10);
  await using endless = startScripted(running);
  const error = await rejection(new Client(endless.url, { ...QUICK, timeoutMs: 1_000 }).createRun());
  assert.ok(error instanceof RetryExhaustedError && isHttpError(error.lastError), String(error));
});

Deno.test("the last failure is told when all attempts are used, also when there is only one", async () => {
  await using service = startScripted(() => refusal(503, "storage_unavailable"));
  for (const maxRetries of [0, 2]) {
    const error = await rejection(new Client(service.url, { ...QUICK, maxRetries }).listRuns());
    assert.ok(error instanceof RetryExhaustedError && isServiceError(error));
    assert.deepEqual([error.attempts, error.code], [maxRetries + 1, "retry_exhausted"]);
    assert.ok(isHttpError(error.lastError) && error.lastError.status === 503);
    assert.match(error.message, /GET \/v1\/runs: 503 storage_unavailable: No\. .*after \d attempt/);
  }
});

Deno.test("pauses double, have a random part and an upper bound; the service's wish goes before", () => {
  for (let attempt = 1; attempt < 20; attempt++) {
    const ms = pauseMs(attempt, 200);
    const least = 200 * 2 ** (attempt - 1);
    assert.ok(ms >= Math.min(least, 30_000) && ms <= Math.min(least + 200, 30_000), `${attempt}: ${ms}`);
  }
  const asking = (retryAfterMs: number | null) =>
    new HttpError("GET /", { status: 429, apiError: null, text: "", retryAfterMs });
  assert.equal(pauseMs(5, 200, asking(1000)), 1000);
  assert.equal(pauseMs(1, 200, asking(3_600_000)), 30_000);
  assert.ok(pauseMs(1, 200, asking(null)) >= 200);
});

Deno.test("Retry-After is whole seconds or a date", () => {
  const nowMs = Date.parse("Wed, 21 Oct 2026 07:28:00 GMT");
  const cases: [string | null, number | null][] = [
    ["3", 3000],
    [" 0 ", 0],
    ["Wed, 21 Oct 2026 07:28:10 GMT", 10_000],
    ["Wednesday, 21-Oct-26 07:28:10 GMT", 10_000],
    ["Wed, 21 Oct 2026 07:27:00 GMT", 0],
    ["-1", null],
    ["1.5", null],
    ["soon", null],
    ["", null],
    [null, null],
  ];
  for (const [value, expected] of cases) assert.equal(readRetryAfter(value, nowMs), expected, String(value));
});

Deno.test("a service that cannot be reached is a network error, and no message has the API key", async () => {
  const gone = startScripted(() => Response.json({}));
  await gone[Symbol.asyncDispose]();
  const error = await rejection(new Client(gone.url, { ...QUICK, apiKey: "secret-key" }).stopRun(RUN));
  assert.ok(isNetworkError(error) && error.cause !== undefined);
  assert.doesNotMatch(String(error), /secret-key/);
  assert.throws(() => new Client(gone.url, { apiKey: "secret\nkey" }), (thrown: Error) => {
    assert.match(thrown.message, /^apiKey must be visible ASCII/);
    return !thrown.message.includes("secret");
  });
  const refused = rejection(new Client(gone.url).createRun({}, { idempotencyKey: "a\nb" }));
  assert.ok(await refused instanceof TypeError);
  const cyclic: Record<string, unknown> = {};
  cyclic.output_schema = cyclic;
  assert.ok(await rejection(new Client(gone.url).createPolicy(RUN, cyclic)) instanceof TypeError);
  assert.doesNotMatch(Deno.inspect(new Client(gone.url, { apiKey: "secret-key" })), /secret-key/);
});

Deno.test("the base URL is checked, and an id cannot change the path", async () => {
  await using service = startScripted(() => Response.json({}));
  for (const bad of ["", "runs", "ftp://a", "http://user:pass@a", "http://a?b", "http://a#b"]) {
    assert.throws(() => new Client(bad), { name: "TypeError", message: /^baseUrl must/ }, bad);
  }
  const client = new Client(`${service.url}/proxy/`);
  await client.getRun("a/../b?c#d");
  assert.equal(service.asked[0]!.path, "/proxy/v1/runs/a%2F..%2Fb%3Fc%23d");
  for (const id of ["", ".", ".."]) assert.throws(() => client.getRun(id), TypeError);
});

Deno.test("a late answer is a network error after the time, and counts as an attempt", async () => {
  await using service = startScripted(() => "hang");
  const late = await rejection(new Client(service.url, { ...QUICK, timeoutMs: 20 }).query({ run_id: RUN }));
  assert.ok(late instanceof NetworkError);
  assert.match(late.message, /POST \/v1\/query: no answer within 20 ms/);
  const client = new Client(service.url, { ...QUICK, maxRetries: 1 });
  const twice = await rejection(client.getRun(RUN, { timeoutMs: 20 }));
  assert.ok(twice instanceof RetryExhaustedError && twice.attempts === 2);
  const halfway = startScripted(() => new Response(new ReadableStream({ start: (c) => c.enqueue(SPACE) })));
  const half = await rejection(new Client(halfway.url).query({ run_id: RUN }, { timeoutMs: 20 }));
  assert.ok(half instanceof NetworkError, String(half));
  await halfway[Symbol.asyncDispose]();
});

const SPACE = new TextEncoder().encode(" ");

Deno.test("an abort rejects with its reason: before, during an attempt, and between two", async () => {
  await using hanging = startScripted(() => "hang");
  await using failing = startScripted(() => refusal(503, "storage_unavailable"));
  const reason = new Error("the user has left");
  const before = new AbortController();
  before.abort(reason);
  assert.equal(await rejection(new Client(hanging.url).getRun(RUN, { signal: before.signal })), reason);
  assert.equal(hanging.asked.length, 0);
  for (const service of [hanging, failing]) {
    const counted = countingSignal();
    const client = new Client(service.url, { retryBaseDelayMs: 60_000 });
    const result = rejection(client.getRun(RUN, { signal: counted.controller.signal }));
    while (service.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    setTimeout(() => counted.controller.abort(reason), 5);
    assert.equal(await result, reason);
    assert.equal(counted.listeners(), 0);
  }
});

Deno.test("a call that ends well leaves no listener on its signal", async () => {
  await using service = startScripted((index) =>
    index < 2 ? refusal(500, "internal_error") : Response.json({})
  );
  const counted = countingSignal();
  await new Client(service.url, QUICK).getRun(RUN, { signal: counted.controller.signal });
  assert.equal(counted.listeners(), 0);
});

Deno.test("an answer that is no JSON is a ParseError with its text, an empty one is undefined", async () => {
  await using service = startScripted((index) => new Response(index === 0 ? "<html>" : ""));
  const client = new Client(service.url);
  const error = await rejection(client.getRun(RUN));
  assert.ok(error instanceof ParseError && error.raw === "<html>" && error.code === "parse_error");
  assert.equal(await client.getRun(RUN), undefined);
});

Deno.test("a redirect is not followed: the key would go with it", async () => {
  await using other = startScripted(() => Response.json({}));
  await using service = startScripted(() => Response.redirect(`${other.url}/v1/runs`, 307));
  assert.ok(isNetworkError(await rejection(new Client(service.url, { apiKey: "k" }).stopRun(RUN))));
  assert.equal(other.asked.length, 0);
});

Deno.test("waiting for health ends with the service, with the time, or with the signal", async () => {
  await using service = startScripted((index) =>
    index < 3 ? refusal(503, "x") : Response.json({ status: "ok" })
  );
  assert.equal(await new Client(service.url).waitUntilHealthy(1), true);
  assert.equal(service.asked.length, 4);
  await using hanging = startScripted(() => "hang");
  assert.equal(await new Client(hanging.url).waitUntilHealthy(1, 20), false);
  const stop = new AbortController();
  setTimeout(() => stop.abort("enough"), 5);
  const waiting = new Client(hanging.url).waitUntilHealthy(1, 60_000, { signal: stop.signal });
  assert.equal(await rejection(waiting), "enough");
});

/** A signal that counts the listeners on it. */
function countingSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Set<unknown>();
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
    listeners.add(listener);
    add(type, (event) => (listeners.delete(listener), listener(event)), options);
  };
  signal.removeEventListener = (type: string, listener: EventListener) => {
    listeners.delete(listener);
    remove(type, listener);
  };
  return { controller, listeners: () => listeners.size };
}

Deno.test("a call whose answer was lost does its work once", async () => {
  await using test = await startService();
  let lost = 0;
  const client = new Client(test.url, {
    ...QUICK,
    apiKey: KEY_A,
    async fetch(input, init) {
      const response = await fetch(input, init);
      if (init?.method !== "POST" || lost++ > 0) return response;
      await response.text();
      throw new TypeError("the connection broke");
    },
  });
  const { run_id } = await client.createRun();
  assert.equal(lost, 2);
  assert.deepEqual((await client.listRuns()).map((run) => run.run_id), [run_id]);
});
