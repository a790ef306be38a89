import assert from "node:assert/strict";
import { join } from "node:path";
import { startServer } from "../../../scripts/server.ts";
import { event } from "../../../src/model/events/event_table.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { type Answer, Receiver, signatureFaults } from "../../support/http/receiver.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import {
  KEY_A,
  KEY_B,
  MOVES_CLOCK,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../../support/service.ts";
import { serve, TEST_ROOT } from "../../support/http/tls_server.ts";
import { UNKNOWN_RUN } from "../../support/policy_fixtures.ts";
import { until } from "../../support/until.ts";

const ROOT = "a root secret of at least thirty-two bytes";
const ON = { SERVICE_WEBHOOK_SECRET: ROOT };
/** Private receivers, and retries without delay. */
const LOCAL = { ...ON, SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true", SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,1,1" };
const UNKNOWN_HOOK = `wh_${"0".repeat(24)}`;
/** A public address that needs no name server; nothing is sent to it. */
const PUBLIC = "https://1.1.1.1/hook";

/** A registered hook of `receiver`; the answer's fields. */
async function hookOf(test: TestService, runId: string, url: string, eventKinds?: string[]) {
  const answer = await test.call("POST", `/v1/runs/${runId}/webhooks`, {
    url,
    ...(eventKinds && { event_kinds: eventKinds }),
  });
  assert.equal(answer.status, 201, answer.text);
  return answer.json as { webhook_id: string; registered_seq: number; signing_secret: string };
}

async function keepAlive(test: TestService, runId: string, times = 1): Promise<void> {
  for (let time = 0; time < times; time++) {
    assert.equal((await test.call("POST", `/v1/runs/${runId}/keepalive`)).status, 200);
  }
}

// deno-lint-ignore no-explicit-any -- an entry of the list
async function listOf(test: TestService, runId: string, key = KEY_A): Promise<any[]> {
  const answer = await test.call("GET", `/v1/runs/${runId}/webhooks`, undefined, key);
  assert.equal(answer.status, 200, answer.text);
  return answer.json.webhooks;
}

/** The entry of the run's only hook, as soon as `isDone` holds for it. */
async function entryOnce(
  test: TestService,
  runId: string,
  // deno-lint-ignore no-explicit-any -- an entry of the list
  isDone: (entry: any) => boolean,
  // deno-lint-ignore no-explicit-any -- an entry of the list
): Promise<any> {
  while (true) {
    const [entry] = await listOf(test, runId);
    if (isDone(entry)) return entry;
  }
}

async function metric(test: TestService, name: string): Promise<number> {
  const { text } = await test.call("GET", "/v1/metrics");
  return Number(new RegExp(`^${name} ([\\d.]+)$`, "m").exec(text)?.[1] ?? NaN);
}

Deno.test("a hook is registered with its own secret, and listed with all that becomes of it", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const answer = await test.call("POST", `/v1/runs/${runId}/webhooks`, {
    url: `  ${receiver.url}\n`,
    event_kinds: [" vlm", "marker_emitted", "vlm ", "some_future_kind"],
    filter: { labels: ["scene_cut"], zones: [], sources: null, min_confidence: 0.5 },
    cooldown: { interval_ms: 5000, per: ["source", "kind"] },
  });
  assert.equal(answer.status, 201);
  const { request_id, webhook_id, signing_secret, ...rest } = answer.json;
  assert.match(request_id, /^req-[0-9a-f]{16}$/);
  assert.match(webhook_id, /^wh_[0-9a-f]{24}$/);
  assert.match(signing_secret, /^[0-9a-f]{64}$/);
  const event_kinds = ["marker_emitted", "some_future_kind", "vlm"];
  const filter = { labels: ["scene_cut"], min_confidence: 0.5 };
  const cooldown = { interval_ms: 5000, per: ["kind", "source"] };
  const wanted = { url: receiver.url, event_kinds, filter, cooldown };
  assert.deepEqual(rest, { run_id: runId, ...wanted, registered_seq: 2 });
  assert.deepEqual(await listOf(test, runId), [{
    webhook_id,
    ...wanted,
    source: null,
    registered_seq: 2,
    last_terminal_seq: 2,
    delivered: 0,
    dead_letters: 0,
    withheld: 0,
    withheld_pending: 0,
    last_error: null,
    failing_since_ms: null,
    retry: null,
    state: "active",
    gone_since_ms: null,
    recent_dead_letters: [],
    redelivery: null,
  }]);
  const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
  assert.deepEqual(events.at(-1).payload, { webhook_id, ...wanted });
  const other = await hookOf(test, runId, receiver.url, []);
  assert.notEqual(other.signing_secret, signing_secret);
  assert.deepEqual(
    (await listOf(test, runId)).map((entry) => entry.webhook_id),
    [webhook_id, other.webhook_id].sort(),
  );
  assert.equal(await metric(test, "service_webhooks_configured"), 2);
});

Deno.test("the deliveries of a hook are listed with their attempts, and what was sent can be read", async () => {
  await using test = await startService({ ...LOCAL, SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,1,60000" });
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { webhook_id, signing_secret } = await hookOf(test, runId, receiver.url, ["keepalive_refreshed"]);
  const place = `/v1/runs/${runId}/webhooks/${webhook_id}/deliveries`;
  const read = (tail = "", key = KEY_A) => test.call("GET", `${place}${tail}`, undefined, key);
  assert.deepEqual((await read()).json.deliveries, []);
  const before = Date.now();
  await keepAlive(test, runId);
  const first = (await entryOnce(test, runId, ({ delivered }) => delivered === 1)).last_terminal_seq;
  const { json: { deliveries: [delivery, ...others] } } = await read();
  const { attempts, took_ms, withheld, ...rest } = delivery;
  assert.deepEqual(rest, { seq: first, kind: "keepalive_refreshed", outcome: "delivered", error: null });
  assert.equal(others.length, 0);
  assert.equal(withheld, 0);
  assert.ok(attempts.length === 1 && attempts[0] >= before && took_ms < 5000, JSON.stringify(delivery));
  const [received] = receiver.received;
  const sent = (await read(`/${first}`)).json;
  assert.equal(sent.body, new TextDecoder().decode(received!.body));
  for (const [name, value] of Object.entries(sent.headers)) {
    assert.equal(received!.headers[name], value, name);
  }
  const asSent = { ...received!, headers: { ...received!.headers, ...sent.headers } };
  assert.deepEqual(signatureFaults(asSent, signing_secret), []);

  // A receiver that fails: since when, and when the next attempt comes.
  receiver.answer = () => 500;
  await keepAlive(test, runId);
  const { retry, failing_since_ms } = await entryOnce(
    test,
    runId,
    (entry) => entry.retry?.attempts.length === 3 && entry.retry.next_attempt_ms !== null,
  );
  assert.equal(failing_since_ms, retry.attempts[0]);
  assert.ok(retry.next_attempt_ms - retry.attempts[2] >= 60_000, JSON.stringify(retry));
  assert.equal((await read(`/${retry.seq}`)).json.kind, "keepalive_refreshed");
  assert.equal((await read()).json.deliveries.length, 1, "an event that is tried again has no outcome yet");

  // It survives a restart; what was not sent, and what is another's, is not there.
  await test.restart();
  assert.deepEqual((await read()).json.deliveries, [delivery]);
  for (const tail of ["/1", `/${retry.seq + 1}`, "/999999999999999"]) {
    assert.equal((await read(tail)).status, 404, tail);
  }
  assert.equal((await read("/one")).status, 400);
  assert.equal((await read("", KEY_B)).status, 404);
  assert.equal((await read(`/${first}`, KEY_B)).status, 404);
  assert.equal((await test.call("GET", place.replace(webhook_id, UNKNOWN_HOOK))).status, 404);
});

Deno.test("what may not be registered is refused, in the order run, url, kinds", async () => {
  await using test = await startService(ON);
  const [runId, foreignRun] = [await newRun(test), await newRun(test, KEY_B)];
  const check = async (body: unknown, status: number, field: string | undefined, run = runId) => {
    const answer = await test.call("POST", `/v1/runs/${run}/webhooks`, body);
    const what = JSON.stringify(body).slice(0, 120);
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    assert.equal(answer.json?.error.details[0]?.field, field, `${what}: ${answer.text}`);
  };
  for (
    const url of [
      "",
      "   ",
      "hooks.example.com/v",
      "/hook",
      "http://1.1.1.1/hook",
      "ftp://1.1.1.1/",
      "file:///etc/passwd",
      "https://",
      "https:///",
      "https://user@1.1.1.1/",
      "https://user:secret@1.1.1.1/",
      "https://:@1.1.1.1/",
      "https://@1.1.1.1/",
      "https:\\\\@1.1.1.1/",
      "https://1.1.1.1/#part",
      "https://1.1.1.1/#",
      "https://1.1.1.1/a b",
      "https://1.1.1.1/\nhost: b",
      "https://1.1.1.1/\ud800",
      `https://1.1.1.1/${"a".repeat(2048 - 15)}`,
      `https://1.1.1.1/${"é".repeat(1020)}`,
      "https://localhost/",
      "https://LOCALHOST:8443/",
      "https://hooks.localhost/",
      "https://printer.local/",
      "https://printer.local./",
      "https://127.0.0.1/",
      "https://127.1/",
      "https://2130706433/",
      "https://0x7f000001/",
      "https://0177.0.0.1/",
      "https://10.1.2.3/",
      "https://172.16.0.1/",
      "https://192.168.0.1/",
      "https://169.254.169.254/latest/meta-data",
      "https://100.64.0.1/",
      "https://198.18.0.1/",
      "https://192.0.2.1/",
      "https://224.0.0.1/",
      "https://240.0.0.1/",
      "https://255.255.255.255/",
      "https://0.0.0.0/",
      "https://[::1]/",
      "https://[::]/",
      "https://[fc00::1]/",
      "https://[fe80::1]/",
      "https://[ff02::1]/",
      "https://[2001:db8::1]/",
      "https://[::ffff:127.0.0.1]/",
      "https://[::ffff:a00:1]/",
      "https://no-such-host.invalid/",
    ]
  ) await check({ url }, 422, "url");
  for (
    const event_kinds of [
      [""],
      ["  "],
      ["a".repeat(97)],
      ["é".repeat(49)],
      ["webhook_registered"],
      [" webhook_paused "],
      Array.from({ length: 33 }, (_, at) => `kind_${at}`),
      Array.from({ length: 33 }, () => "vlm"),
    ]
  ) await check({ url: PUBLIC, event_kinds }, 422, "event_kinds");
  await check({}, 422, "url");
  await check({ url: 7 }, 422, "url");
  await check({ url: PUBLIC, event_kinds: "vlm" }, 422, "event_kinds");
  await check({ url: PUBLIC, event_kinds: [7] }, 422, "event_kinds");
  await check({ url: PUBLIC, secret: "x" }, 422, "secret");
  await check({ url: "", event_kinds: [""] }, 422, "url");
  await check({ url: "" }, 422, "run_id", "run-1");
  await check({ url: "" }, 404, "run_id", UNKNOWN_RUN);
  await check({ url: PUBLIC }, 404, "run_id", foreignRun);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/webhooks`, "{")).status, 400);

  for (
    const body of [
      { url: PUBLIC },
      { url: "HTTPS://1.1.1.1:8443/a?b=c@d", event_kinds: null },
      { url: "https://[2606:4700:4700::1111]/" },
      { url: `https://1.1.1.1/${"a".repeat(2048 - 16)}` },
      { url: PUBLIC, event_kinds: ["a".repeat(96), "webhooks", "trigger.webhook_x"] },
      { url: PUBLIC, event_kinds: Array.from({ length: 32 }, (_, at) => `kind_${at}`) },
    ]
  ) assert.equal((await test.call("POST", `/v1/runs/${runId}/webhooks`, body)).status, 201, body.url);
});

Deno.test("without a secret of 32 bytes everything but the registration works, and the list is empty", async () => {
  for (const secret of ["", "x".repeat(31)]) {
    await using test = await startService(secret ? { SERVICE_WEBHOOK_SECRET: secret } : {});
    const runId = await newRun(test);
    const check = async (body: unknown, status: number, code: string) => {
      const answer = await test.call("POST", `/v1/runs/${runId}/webhooks`, body);
      assert.deepEqual([answer.status, answer.json.error.code], [status, code]);
    };
    await check({ url: PUBLIC }, 503, "webhooks_unavailable");
    await check({ url: "https://hooks.example.com/v" }, 503, "webhooks_unavailable");
    await check({ url: "https://127.0.0.1/" }, 422, "validation_error");
    await check({ url: PUBLIC, event_kinds: ["webhook_x"] }, 422, "validation_error");
    assert.deepEqual(await listOf(test, runId), []);
    const deleted = await test.call("DELETE", `/v1/runs/${runId}/webhooks/${UNKNOWN_HOOK}`);
    assert.deepEqual([deleted.status, deleted.json.error.details[0].field], [404, "webhook_id"]);
  }
});

Deno.test("a delivery log that cannot be opened turns webhooks off and nothing else", async () => {
  await using test = await startService(ON);
  await test.restart(() => {
    Deno.removeSync(join(test.dataDir, "webhook-delivery.wal"));
    Deno.mkdirSync(join(test.dataDir, "webhook-delivery.wal"));
  });
  const runId = await newRun(test);
  const answer = await test.call("POST", `/v1/runs/${runId}/webhooks`, { url: PUBLIC });
  assert.deepEqual([answer.status, answer.json.error.code], [503, "webhooks_unavailable"]);
  assert.deepEqual(await listOf(test, runId), []);
});

Deno.test("the process takes 64 hooks over all runs, and the next when one is gone", async () => {
  await using test = await startService({ ...ON, SERVICE_API_KEYS: KEY_A });
  const [own, other] = [await newRun(test), await newRun(test)];
  const register = (runId: string) =>
    test.call("POST", `/v1/runs/${runId}/webhooks`, { url: PUBLIC, event_kinds: ["vlm"] });
  // All at the same time, so that registrations overlap.
  const answers = await Promise.all(
    Array.from({ length: 70 }, (_, at) => register(at % 2 ? own : other)),
  );
  const statuses = answers.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 201).length, LIMITS.webhook.hooksMax);
  assert.equal(statuses.filter((status) => status === 503).length, 70 - LIMITS.webhook.hooksMax);
  const [{ webhook_id }] = await listOf(test, own);
  assert.equal((await test.call("DELETE", `/v1/runs/${own}/webhooks/${webhook_id}`)).status, 200);
  assert.equal((await register(own)).status, 201);
  // A deleted run's hooks end when there is nothing left to deliver.
  await test.call("DELETE", `/v1/runs/${other}`);
  while ((await register(own)).status !== 201);
});

Deno.test("foreign, unknown and malformed ids read alike on every route", async () => {
  await using test = await startService(ON);
  const runId = await newRun(test);
  const otherRun = await newRun(test);
  const { webhook_id } = await hookOf(test, runId, PUBLIC);
  const check = async (
    method: string,
    path: string,
    body: unknown,
    status: number,
    field: string,
    key = KEY_A,
  ) => {
    const answer = await test.call(method, path, body, key);
    assert.deepEqual(
      [answer.status, answer.json.error.details[0].field],
      [status, field],
      `${method} ${path}`,
    );
  };
  for (const [method, tail, body] of [["DELETE", "", undefined], ["POST", "/redeliver", {}]] as const) {
    const path = (run: string, hook: string) => `/v1/runs/${run}/webhooks/${hook}${tail}`;
    await check(method, path(runId, UNKNOWN_HOOK), body, 404, "webhook_id");
    await check(method, path(runId, "x"), body, 404, "webhook_id");
    await check(method, path(otherRun, webhook_id), body, 404, "webhook_id");
    await check(method, path(runId, webhook_id), body, 404, "run_id", KEY_B);
    await check(method, path(UNKNOWN_RUN, webhook_id), body, 404, "run_id");
    await check(method, path("run-1", webhook_id), body, 422, "run_id");
  }
  await check("GET", `/v1/runs/${runId}/webhooks`, undefined, 404, "run_id", KEY_B);
  await check("GET", `/v1/runs/run-1/webhooks`, undefined, 422, "run_id");
  const gone = await test.call("DELETE", `/v1/runs/${runId}/webhooks/${webhook_id}`);
  const { request_id, ...rest } = gone.json;
  assert.match(request_id, /^req-/);
  assert.deepEqual([gone.status, rest], [200, { run_id: runId, webhook_id, deleted: true }]);
  await check("DELETE", `/v1/runs/${runId}/webhooks/${webhook_id}`, undefined, 404, "webhook_id");
  const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
  assert.deepEqual(events.at(-1).payload, { webhook_id });
});

Deno.test("every event after the registration arrives once, in order and signed over its exact bytes", async () => {
  await using test = await startService(LOCAL, REACHES_IN);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  await keepAlive(test, runId);
  const { signing_secret, registered_seq } = await hookOf(test, runId, receiver.url);
  const otherRun = await newRun(test);
  await keepAlive(test, otherRun);
  await hookOf(test, runId, PUBLIC, ["vlm"]);
  // 64-bit integers must keep their digits, and text its bytes.
  test.service.timeline.commit(() => [
    event("frames_decoded", runId, { text: "ü\\ \u2028 \t", hash: 1 } as never),
  ]);
  await keepAlive(test, runId, 300);
  await test.call("POST", `/v1/runs/${runId}/stop`);
  const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
  // deno-lint-ignore no-explicit-any -- events of every shape
  const wanted = events.filter((e: any) => e.seq > registered_seq && !e.kind.startsWith("webhook_"));
  await receiver.waitFor(() => receiver.received.length >= wanted.length);
  assert.deepEqual(receiver.seqs, wanted.map((e: { seq: number }) => e.seq));
  receiver.received.forEach((received, at) => {
    const { seq, pts_ms, kind, payload } = wanted[at];
    assert.deepEqual(signatureFaults(received, signing_secret), []);
    assert.deepEqual([received.method, received.path], ["POST", "/hook?a=b%20c"]);
    assert.doesNotMatch(received.headers["user-agent"]!, /deno|node/i);
    assert.ok(Math.abs(Number(received.headers["webhook-timestamp"]) - Date.now() / 1000) < 60);
    assert.deepEqual(received.event, {
      specversion: "1.0",
      id: `${runId}:${seq}`,
      source: `/v1/runs/${runId}`,
      type: `dev.service.timeline.${kind}`,
      subject: "stream-0",
      datacontenttype: "application/json",
      sequence: seq,
      pts_ms,
      data: payload,
    });
  });
  const entry = (await listOf(test, runId)).find((each) => each.url === receiver.url);
  assert.deepEqual(
    [entry.delivered, entry.dead_letters, entry.last_error, entry.last_terminal_seq],
    [wanted.length, 0, null, wanted.at(-1).seq],
  );
  assert.equal(await metric(test, "service_webhook_delivered_total"), wanted.length);
  assert.equal(await metric(test, "service_webhook_attempts_total"), wanted.length);
});

Deno.test("the filter is exact, and a trigger is delivered only when its program asks for it", async () => {
  await using test = await startService(LOCAL, REACHES_IN);
  await using exact = await Receiver.start();
  await using everything = await Receiver.start();
  const runId = await newRun(test);
  await hookOf(test, runId, exact.url, ["keepalive_refreshed", "trigger.door"]);
  await hookOf(test, runId, everything.url);
  const trigger = (kind: string, payload: unknown) => ({ kind, runId, payload });
  const committed = test.service.timeline.commit(() => [
    trigger("trigger.door", { trigger: { actions: { webhook: true } } }),
    trigger("trigger.door", { trigger: { actions: { webhook: false } } }),
    trigger("trigger.door", { trigger: { actions: { webhook: "true" } } }),
    trigger("trigger.door", { trigger: {} }),
    trigger("trigger.door", {}),
    trigger("trigger.window", { trigger: { actions: { webhook: true } } }),
    trigger("keepalive_refreshed_not", {}),
    trigger("keepalive_refreshed", {}),
    trigger("webhook_paused", {}),
    trigger("unknown_kind", {}),
  ]).map(({ seq }) => seq);
  const of = (...numbers: number[]) => numbers.map((number) => committed[number]!);
  await exact.waitFor(() => exact.seqs.length >= 2);
  await everything.waitFor(() => everything.seqs.length >= 5);
  assert.deepEqual(exact.seqs, of(0, 7));
  assert.deepEqual(everything.seqs, of(0, 5, 6, 7, 9));
});

Deno.test("a terminal run takes hooks, and its deletion is the last thing that is delivered", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  await test.call("POST", `/v1/runs/${runId}/stop`);
  await hookOf(test, runId, receiver.url);
  await test.call("DELETE", `/v1/runs/${runId}`);
  await receiver.waitFor(() => receiver.received.length >= 1);
  assert.deepEqual(receiver.received.map(({ event }) => event.type), ["dev.service.timeline.run_deleted"]);
  while (await metric(test, "service_webhooks_configured") !== 0);
  await test.restart();
  assert.equal(await metric(test, "service_webhooks_configured"), 0);
  assert.equal(receiver.received.length, 1);
});

Deno.test("four attempts in all, whatever the receiver does wrong, then the event is given up and the next one comes", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  await using elsewhere = await Receiver.start();
  const location = { status: 302, headers: { location: elsewhere.url } };
  const answers: Record<string, () => Answer> = {
    "webhook returned HTTP 500": () => 500,
    "webhook returned HTTP 302": () => location,
    "webhook returned HTTP 404": () => 404,
    "webhook returned HTTP 300": () => 300,
    "webhook cannot be reached: the connection was cut": () => "cut",
  };
  for (const [error, answer] of Object.entries(answers)) {
    const runId = await newRun(test);
    receiver.received.length = 0;
    const { signing_secret } = await hookOf(test, runId, receiver.url);
    let failing: number | undefined;
    receiver.answer = ({ event }) => event.sequence === (failing ??= event.sequence) ? answer() : 200;
    await keepAlive(test, runId, 2);
    const entry = await entryOnce(test, runId, (entry) => entry.delivered === 1);
    assert.deepEqual(receiver.seqs, [failing, failing, failing, failing, failing! + 1], error);
    for (const received of receiver.received) assert.deepEqual(signatureFaults(received, signing_secret), []);
    const [letter, ...others] = entry.recent_dead_letters;
    assert.deepEqual([letter.seq, letter.error, others.length], [failing, error, 0]);
    assert.deepEqual([letter.attempts.length, letter.attempts], [4, letter.attempts.toSorted()]);
    assert.deepEqual([entry.dead_letters, entry.last_error], [1, null], "null after a success");
    await test.call("DELETE", `/v1/runs/${runId}`);
  }
  assert.equal(elsewhere.received.length, 0);
  assert.equal(await metric(test, "service_webhook_dead_letters_total"), 5);
  assert.equal(await metric(test, "service_webhook_retries_total"), 15);
});

Deno.test("a receiver that recovers within four attempts gets the event, and the others wait behind it", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { registered_seq } = await hookOf(test, runId, receiver.url);
  receiver.answer = ({ attempt }) => attempt < 4 ? 503 : 200;
  await keepAlive(test, runId, 3);
  const entry = await entryOnce(test, runId, (entry) => entry.delivered === 3);
  const expected = [1, 2, 3].flatMap((number) => Array(4).fill(registered_seq + number));
  assert.deepEqual(receiver.seqs, expected);
  assert.deepEqual([entry.dead_letters, entry.recent_dead_letters], [0, []]);
});

Deno.test("a receiver on which no program listens ends in dead letters, and a hanging one never delays another", async () => {
  await using test = await startService(LOCAL);
  await using hanging = await Receiver.start();
  await using healthy = await Receiver.start();
  hanging.answer = () => "hang";
  const runId = await newRun(test);
  const closed = await Receiver.start();
  const closedUrl = closed.url;
  await closed[Symbol.asyncDispose]();
  for (let number = 0; number < 5; number++) await hookOf(test, runId, hanging.url);
  await hookOf(test, runId, closedUrl);
  await hookOf(test, runId, healthy.url);
  await keepAlive(test, runId, 50);
  await healthy.waitFor(() => healthy.received.length >= 50);
  const entries = await listOf(test, runId);
  const by = (url: string) => entries.filter((entry) => entry.url === url);
  assert.deepEqual(by(hanging.url).map((entry) => entry.delivered), [0, 0, 0, 0, 0]);
  assert.equal(by(closedUrl)[0].delivered, 0);
  assert.match(by(closedUrl)[0].last_error, /^webhook cannot be reached: /);
});

Deno.test("an attempt takes as long as is set at most", async () => {
  const clock = new ManualClock();
  await using test = await startService({ ...LOCAL, SERVICE_WEBHOOK_TIMEOUT_MS: "5000" }, { clock });
  await using receiver = await Receiver.start();
  receiver.answer = () => "hang";
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId);
  for (let attempt = 1; attempt <= 4; attempt++) {
    await until(`attempt ${attempt}`, async () => {
      await clock.advance(1); // the pause before it
      return receiver.received.length === attempt;
    });
    await clock.advance(5000);
  }
  const entry = await entryOnce(test, runId, (entry) => entry.dead_letters === 1);
  assert.equal(receiver.received.length, 4);
  assert.equal(entry.last_error, "webhook cannot be reached: it took too long to answer");
});

Deno.test("a receiver that takes nine seconds is sent each event once", async () => {
  const clock = new ManualClock();
  await using test = await startService(LOCAL, { clock });
  await using receiver = await Receiver.start();
  const answered = Promise.withResolvers<Answer>();
  receiver.answer = () => answered.promise;
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId);
  await until("it has come", async () => {
    await clock.advance(1); // the pause before it
    return receiver.received.length === 1;
  });
  await clock.advance(9000);
  answered.resolve(200);
  const entry = await entryOnce(test, runId, (entry) => entry.delivered === 1);
  assert.deepEqual([receiver.received.length, entry.dead_letters, entry.last_error], [1, 0, null]);
});

Deno.test("429 and 503 say when the event is tried again, in seconds or by a date", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const inAnHour = () => new Date(Date.now() + 3_600_000).toUTCString();
  const cases: [number, string, number][] = [
    [429, "120", 120_000],
    [503, "120", 120_000],
    [503, inAnHour(), LIMITS.webhook.retryAfterMsMax],
    [429, "86400", LIMITS.webhook.retryAfterMsMax],
  ];
  for (const [status, retryAfter, waitMs] of cases) {
    const runId = await newRun(test);
    receiver.answer = () => ({ status, headers: { "retry-after": retryAfter } });
    await hookOf(test, runId, receiver.url);
    await keepAlive(test, runId);
    const { retry } = await entryOnce(test, runId, (entry) => entry.retry?.next_attempt_ms != null);
    const lateMs = retry.next_attempt_ms - retry.attempts[0] - waitMs;
    assert.ok(lateMs >= 0 && lateMs < 60_000, `${status} ${retryAfter}: ${lateMs} ms later than asked`);
    await test.call("DELETE", `/v1/runs/${runId}`);
  }
  // Other answers have no say in it, and one without the header is tried again as usual.
  const runId = await newRun(test);
  receiver.answer = ({ attempt }) =>
    attempt === 1 ? { status: 500, headers: { "retry-after": "86400" } } : 429;
  await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId);
  await entryOnce(test, runId, (entry) => entry.dead_letters === 1);
});

Deno.test("410 ends a webhook: it stays in the list as gone, also after a restart, and a redelivery starts it again", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  receiver.answer = () => 410;
  const runId = await newRun(test);
  const { webhook_id } = await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId, 3);
  const last = (await test.call("GET", `/v1/runs/${runId}/events`)).json.events.at(-1).seq;
  const gone = await entryOnce(test, runId, (entry) => entry.last_terminal_seq === last);
  assert.deepEqual(
    [gone.state, gone.delivered, gone.dead_letters, gone.recent_dead_letters, gone.retry, gone.last_error],
    ["gone", 0, 0, [], null, "webhook returned HTTP 410"],
  );
  assert.ok(Number.isSafeInteger(gone.gone_since_ms));
  assert.deepEqual(receiver.seqs, [last - 2]);
  assert.equal(await metric(test, "service_webhook_dead_letters_total"), 0);
  const all = (await test.call("GET", "/v1/webhooks")).json.webhooks;
  assert.deepEqual([all[0].state, all[0].gone_since_ms], ["gone", gone.gone_since_ms]);
  const path = `/v1/runs/${runId}/webhooks/${webhook_id}`;
  const { deliveries } = (await test.call("GET", `${path}/deliveries`)).json;
  assert.deepEqual(
    deliveries.map((each: { seq: number; outcome: string; error: string }) => [
      ...[each.seq, each.outcome, each.error],
    ]),
    [[last - 2, "gone", "webhook returned HTTP 410"]],
  );

  await test.restart();
  await keepAlive(test, runId);
  const after = await entryOnce(test, runId, (entry) => entry.last_terminal_seq === last + 1);
  assert.deepEqual(after, { ...gone, last_terminal_seq: last + 1 });
  assert.equal(receiver.received.length, 1);

  receiver.answer = () => 200;
  const answer = await test.call("POST", `${path}/redeliver`, { from_seq: last });
  assert.equal(answer.status, 202, answer.text);
  assert.deepEqual([answer.json.to_seq, answer.json.scheduled], [last + 1, 2]);
  await keepAlive(test, runId);
  const active = await entryOnce(test, runId, (entry) => entry.delivered === 3);
  assert.deepEqual([active.state, active.gone_since_ms, active.last_error], ["active", null, null]);
  assert.deepEqual(receiver.seqs.toSorted((left, right) => left - right), [
    last - 2,
    last,
    last + 1,
    last + 2,
  ]);

  // An empty range starts it again, too.
  receiver.answer = () => 410;
  await keepAlive(test, runId);
  await entryOnce(test, runId, (entry) => entry.state === "gone");
  receiver.answer = () => 200;
  const none = await test.call("POST", `${path}/redeliver`, { from_seq: 1_000_000 });
  assert.deepEqual([none.status, none.json.scheduled], [202, 0]);
  await keepAlive(test, runId);
  await entryOnce(test, runId, (entry) => entry.state === "active" && entry.delivered === 4);
});

Deno.test("the deleted run of a webhook that is gone keeps no place", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  receiver.answer = () => 410;
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId);
  await entryOnce(test, runId, (entry) => entry.state === "gone");
  await test.call("DELETE", `/v1/runs/${runId}`);
  await until("the webhook has ended", async () => await metric(test, "service_webhooks_configured") === 0);
  assert.equal(receiver.received.length, 1);
});

Deno.test("an event of more than 1 MiB is given up without an attempt", async () => {
  await using test = await startService(LOCAL, REACHES_IN);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  const envelope = new TextEncoder().encode(
    `{"specversion":"1.0","id":"${runId}:3","source":"/v1/runs/${runId}","type":"dev.service.timeline.vlm",` +
      `"subject":"stream-0","datacontenttype":"application/json","sequence":3,"pts_ms":${Date.now()},"data":{"t":""}}`,
  ).length;
  const room = LIMITS.webhook.bodyBytesMax - envelope;
  test.service.timeline.commit(() => [
    { kind: "vlm", runId, payload: { t: "x".repeat(room) } },
    { kind: "vlm", runId, payload: { t: "x".repeat(room + 1) } },
    { kind: "vlm", runId, payload: { t: "é".repeat(room) } },
    { kind: "vlm", runId, payload: { t: "" } },
  ]);
  test.service.timeline.commit(() => [{ kind: "vlm", runId, payload: { t: "é".repeat(2 * room) } }]);
  const entry = await entryOnce(test, runId, (entry) => entry.delivered + entry.dead_letters === 5);
  assert.deepEqual(receiver.received.map(({ event }) => event.sequence), [3, 6]);
  assert.equal(receiver.received[0]!.body.length, LIMITS.webhook.bodyBytesMax);
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any -- an entry of the list
    entry.recent_dead_letters.map(({ seq, attempts }: any) => ({ seq, attempts })),
    [{ seq: 4, attempts: [] }, { seq: 5, attempts: [] }, { seq: 7, attempts: [] }],
  );
  assert.equal(
    entry.last_error,
    `event of ${envelope + 4 * room} bytes is longer than ${LIMITS.webhook.bodyBytesMax}`,
  );
  for (const [seq, isSent] of [[3, true], [4, false], [5, false], [6, true], [7, false]] as const) {
    const path = `/v1/runs/${runId}/webhooks/${entry.webhook_id}/deliveries/${seq}`;
    const { json: { body, headers } } = await test.call("GET", path);
    assert.deepEqual([body !== null, headers !== null], [isSent, isSent], `event ${seq}`);
  }
});

Deno.test("hooks, their secrets, counters and dead letters survive a restart, and so does what was not delivered", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { webhook_id, signing_secret } = await hookOf(test, runId, receiver.url);
  const gone = await hookOf(test, runId, receiver.url, ["vlm"]);
  await test.call("DELETE", `/v1/runs/${runId}/webhooks/${gone.webhook_id}`);
  const first = (await test.call("GET", `/v1/runs/${runId}/events`)).json.events.at(-1).seq + 1;
  receiver.answer = ({ event }) =>
    event.sequence === first ? 500 : event.sequence === first + 1 ? 200 : "hang";
  await keepAlive(test, runId, 4);
  await receiver.waitFor(() => receiver.seqs.includes(first + 2));
  const before = (await listOf(test, runId))[0];
  assert.deepEqual([before.delivered, before.dead_letters], [1, 1]);
  await test.restart();
  assert.deepEqual((await listOf(test, runId))[0], before);
  await receiver.waitFor(() => receiver.seqs.filter((seq) => seq === first + 2).length === 2);
  receiver.answer = () => 200;
  await test.restart();
  const after = await entryOnce(test, runId, (entry) => entry.delivered === 3);
  assert.deepEqual([after.webhook_id, after.last_terminal_seq], [webhook_id, first + 3]);
  assert.deepEqual(after.recent_dead_letters, before.recent_dead_letters);
  for (const received of receiver.received) assert.deepEqual(signatureFaults(received, signing_secret), []);
  const ids = new Set(
    receiver.received.filter(({ event }) => event.sequence === first + 2).map(({ event }) => event.id),
  );
  assert.deepEqual([...ids], [`${runId}:${first + 2}`], "a repeated delivery has the same id");
});

Deno.test("attempts that were made before a restart count", async () => {
  await using test = await startService({ ...LOCAL, SERVICE_WEBHOOK_RETRY_DELAYS_MS: "3600000,1,1" });
  await using receiver = await Receiver.start();
  receiver.answer = () => 500;
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId);
  const waiting = await entryOnce(test, runId, (entry) => entry.last_error !== null);
  assert.equal(waiting.dead_letters, 0);
  await test.restart(undefined, { SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,1,1" });
  const entry = await entryOnce(test, runId, (entry) => entry.dead_letters === 1);
  assert.equal(receiver.received.length, 4);
  assert.equal(entry.recent_dead_letters[0].attempts.length, 4);
});

Deno.test("a public https receiver is reached at the address that was checked, and only with a certificate of its name", async () => {
  const answers = new Map([["hooks.media.test", ["93.184.216.34"]], ["other.test", ["93.184.216.34"]], [
    "inside.media.test",
    ["93.184.216.34", "10.0.0.7"],
  ]]);
  await using receiver = serve(() => new Response(null, { status: 202 }));
  await using test = await startService({ ...ON, SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,1,1" }, {
    outbound: {
      roots: [TEST_ROOT],
      resolve: (name) => Promise.resolve(answers.get(name) ?? []),
      reroute: () => "127.0.0.1",
    },
  });
  const runId = await newRun(test);
  const url = (name: string) => `https://${name}:${receiver.port}/`;
  for (const name of ["inside.media.test", "unknown.test"]) {
    const refused = await test.call("POST", `/v1/runs/${runId}/webhooks`, { url: url(name) });
    assert.deepEqual([refused.status, refused.json.error.details[0].field], [422, "url"], name);
  }
  await hookOf(test, runId, url("hooks.media.test"));
  const wrongName = await hookOf(test, runId, url("other.test"), ["run_deleted", "keepalive_refreshed"]);
  await keepAlive(test, runId);
  const entries = async () =>
    (await listOf(test, runId)).sort((a) => a.webhook_id === wrongName.webhook_id ? 1 : -1);
  while ((await entries()).some((entry) => entry.delivered + entry.dead_letters === 0));
  const [right, wrong] = await entries();
  assert.deepEqual([right.delivered, wrong.dead_letters, receiver.requests.length], [1, 1, 1]);
  assert.equal(wrong.last_error, "webhook cannot be reached: its certificate is for another host");

  // The name now resolves to a private address. The check of the earlier connection does not cover a new one.
  answers.set("hooks.media.test", ["127.0.0.1"]);
  await test.restart();
  await keepAlive(test, runId);
  while ((await entries())[0].dead_letters === 0);
  assert.match(
    (await entries())[0].last_error,
    /^webhook host is refused: hooks\.media\.test cannot be resolved/,
  );
  assert.equal(receiver.requests.length, 1);
});

Deno.test("a host that cannot be looked up within three seconds is refused", async () => {
  const resolve = () => new Promise<string[]>(() => {});
  await using test = await startService(ON, { timerSpeed: 100, outbound: { resolve } });
  const runId = await newRun(test);
  const answer = await test.call("POST", `/v1/runs/${runId}/webhooks`, { url: "https://slow.example/" });
  assert.deepEqual([answer.status, answer.json.error.details[0].field], [422, "url"]);
});

Deno.test("a range is sent again under the same ids, and the counters count it", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { webhook_id, registered_seq } = await hookOf(test, runId, receiver.url, ["keepalive_refreshed"]);
  receiver.answer = ({ event }) => event.sequence === registered_seq + 2 ? 500 : 200;
  await keepAlive(test, runId, 5);
  await entryOnce(test, runId, (entry) => entry.delivered === 4);
  receiver.answer = () => 200;
  const path = `/v1/runs/${runId}/webhooks/${webhook_id}/redeliver`;
  const check = async (body: unknown, from: number, to: number, seqs: number[]) => {
    const [{ delivered }] = await listOf(test, runId);
    receiver.received.length = 0;
    const answer = await test.call("POST", path, body);
    const { request_id, ...rest } = answer.json;
    assert.match(request_id, /^req-/);
    assert.deepEqual([answer.status, rest], [202, {
      run_id: runId,
      webhook_id,
      from_seq: from,
      to_seq: to,
      scheduled: seqs.length,
    }]);
    const entry = await entryOnce(test, runId, (entry) => entry.redelivery === null);
    assert.deepEqual(receiver.seqs, seqs);
    assert.equal(entry.delivered, delivered + seqs.length);
    return entry;
  };
  const at = (...numbers: number[]) => numbers.map((number) => registered_seq + number);
  const home = await check(
    { from_seq: registered_seq + 2, to_seq: registered_seq + 2 },
    ...pair(at(2, 2)),
    at(2),
  );
  assert.deepEqual([home.dead_letters, home.recent_dead_letters], [1, []], "given up once, home now");
  await check({}, ...pair(at(1, 5)), at(1, 2, 3, 4, 5));
  await check({ from_seq: null, to_seq: null }, ...pair(at(1, 5)), at(1, 2, 3, 4, 5));
  await check({ from_seq: 0, to_seq: registered_seq + 1 }, ...pair(at(1, 1)), at(1));
  await check({ from_seq: registered_seq + 4 }, ...pair(at(4, 5)), at(4, 5));
  await check({ to_seq: 1e9 }, ...pair(at(1, 5)), at(1, 2, 3, 4, 5));
  await check({ from_seq: registered_seq + 6 }, registered_seq + 6, registered_seq + 5, []);

  const refused = async (body: unknown, status: number, field: string) => {
    const answer = await test.call("POST", path, body);
    assert.deepEqual([answer.status, answer.json.error.details[0].field], [status, field]);
  };
  await refused({ from_seq: 5, to_seq: 4 }, 422, "from_seq");
  await refused({ from_seq: -1 }, 422, "from_seq");
  await refused({ to_seq: 1.5 }, 422, "to_seq");
  await refused({ seq: 1 }, 422, "seq");
});

Deno.test("a redelivery takes turns with new events, is one at a time, and survives a restart", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { webhook_id, registered_seq } = await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId, 3);
  await entryOnce(test, runId, (entry) => entry.delivered === 3);
  receiver.received.length = 0;
  receiver.answer = ({ event }) => event.sequence === registered_seq + 2 ? "hang" : 200;
  const path = `/v1/runs/${runId}/webhooks/${webhook_id}/redeliver`;
  assert.equal((await test.call("POST", path, {})).json.scheduled, 3);
  const second = await test.call("POST", path, {});
  assert.deepEqual([second.status, second.json.error.details[0].field], [409, "webhook_id"]);
  await receiver.waitFor(() => receiver.seqs.includes(registered_seq + 2));
  await keepAlive(test, runId);
  const [waiting] = await listOf(test, runId);
  assert.deepEqual(waiting.redelivery, { from_seq: registered_seq + 2, to_seq: registered_seq + 3 });
  receiver.answer = () => 200;
  await test.restart();
  const entry = await entryOnce(test, runId, (entry) => entry.delivered === 7 && entry.redelivery === null);
  assert.deepEqual(receiver.seqs.map((seq) => seq - registered_seq), [1, 2, 4, 2, 3]);
  assert.equal(entry.last_terminal_seq, registered_seq + 4);
});

Deno.test("deleting a hook or its run ends what is under way for it at once", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  receiver.answer = () => "hang";
  const runId = await newRun(test);
  const { webhook_id } = await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId, 3);
  await receiver.waitFor(() => receiver.received.length === 1);
  await test.call("DELETE", `/v1/runs/${runId}/webhooks/${webhook_id}`);
  assert.equal(await metric(test, "service_webhooks_configured"), 0);
  // Nothing of the deleted hook is left to deliver.
  await test.restart();
  assert.equal(await metric(test, "service_webhooks_configured"), 0);
  assert.equal(receiver.received.length, 1);
});

Deno.test("a deleted run's hook whose receiver is broken is given up and does not hold its place", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  receiver.answer = () => "hang";
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId, 20);
  await receiver.waitFor(() => receiver.received.length === 1);
  await test.call("DELETE", `/v1/runs/${runId}`);
  receiver.answer = () => 500;
  await test.restart();
  while (await metric(test, "service_webhooks_configured") !== 0);
  assert.equal(receiver.received.length, 5);
});

Deno.test("what the timeline lost in a power cut is delivered when its numbers are given out again", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { registered_seq } = await hookOf(test, runId, receiver.url);
  const segment = join(test.dataDir, "timeline", `${"1".padStart(20, "0")}.wal`);
  const sizeBytes = Deno.statSync(segment).size;
  await keepAlive(test, runId, 5);
  await entryOnce(test, runId, (entry) => entry.delivered === 5);
  await test.restart(() => {
    Deno.truncateSync(segment, sizeBytes);
    Deno.removeSync(join(test.dataDir, "timeline", "snapshot"));
  });
  assert.equal((await listOf(test, runId))[0].last_terminal_seq, registered_seq);
  receiver.received.length = 0;
  await keepAlive(test, runId, 2);
  await receiver.waitFor(() => receiver.received.length === 2);
  assert.deepEqual(receiver.seqs, [registered_seq + 1, registered_seq + 2]);
});

Deno.test("killed between a receiver's acceptance and the record of it, the service delivers that event again and loses none", async () => {
  await using receiver = await Receiver.start();
  const dataDir = Deno.makeTempDirSync({ prefix: "service-webhook-kill-" });
  const env = { ...LOCAL, SERVICE_DATA_DIR: dataDir, SERVICE_API_KEYS: KEY_A };
  const server = await startServer(env);
  const call = async (url: string, path: string, body: unknown) => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "x-api-key": KEY_A, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    assert.ok(response.ok);
    return await response.json();
  };
  const { run_id } = await call(server.url, "/v1/runs", {});
  const { signing_secret, registered_seq } = await call(server.url, `/v1/runs/${run_id}/webhooks`, {
    url: receiver.url,
  });
  // The receiver has the third event when the server is killed, so the server has seen no answer to it.
  let dead: Promise<void> | undefined;
  const isAllSent = Promise.withResolvers<void>();
  receiver.answer = async ({ event }) => {
    if (event.sequence < registered_seq + 3 || dead) return 200;
    await isAllSent.promise;
    await (dead = server.kill());
    return 200;
  };
  for (let number = 0; number < 6; number++) await call(server.url, `/v1/runs/${run_id}/keepalive`, {});
  isAllSent.resolve();
  await receiver.waitFor(() => dead !== undefined);
  await dead;
  {
    await using _again = await startServer(env);
    await receiver.waitFor(() => receiver.seqs.includes(registered_seq + 6));
  }
  assert.deepEqual(receiver.seqs.map((seq) => seq - registered_seq), [1, 2, 3, 3, 4, 5, 6]);
  const [first, second] = receiver.received.filter(({ event }) => event.sequence === registered_seq + 3);
  assert.equal(first!.headers["x-service-event-id"], second!.headers["x-service-event-id"]);
  assert.deepEqual(first!.body, second!.body);
  for (const received of receiver.received) assert.deepEqual(signatureFaults(received, signing_secret), []);
  Deno.removeSync(dataDir, { recursive: true });
});

Deno.test("no secret is in any file of the data directory", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const runId = await newRun(test);
  const { signing_secret } = await hookOf(test, runId, receiver.url);
  await keepAlive(test, runId);
  await entryOnce(test, runId, (entry) => entry.delivered === 1);
  await test.restart(() => {
    const files = [...filesIn(test.dataDir)];
    assert.ok(files.some((path) => path.endsWith("webhook-delivery.wal")));
    for (const path of files) {
      const text = new TextDecoder("latin1").decode(Deno.readFileSync(path));
      assert.ok(!text.includes(signing_secret) && !text.includes(ROOT), path);
    }
  });
});

function pair(numbers: number[]): [number, number] {
  return [numbers[0]!, numbers[1]!];
}

function* filesIn(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* filesIn(join(folder, name));
    else yield join(folder, name);
  }
}

Deno.test("the list of all webhooks has those of the caller's runs that are not deleted, the newest first", async () => {
  await using test = await startService(LOCAL);
  await using receiver = await Receiver.start();
  const [first, second, deleted, foreign] = [
    await newRun(test),
    await newRun(test),
    await newRun(test),
    await newRun(test, KEY_B),
  ];
  const { webhook_id: one } = await hookOf(test, first, receiver.url);
  const { webhook_id: two } = await hookOf(test, second, receiver.url, ["keepalive_refreshed"]);
  await hookOf(test, deleted, receiver.url);
  await test.call("DELETE", `/v1/runs/${deleted}`);
  const other = await test.call("POST", `/v1/runs/${foreign}/webhooks`, { url: receiver.url }, KEY_B);
  assert.equal(other.status, 201);
  await keepAlive(test, first);
  await entryOnce(test, first, (entry) => entry.delivered > 0);
  const { json } = await test.call("GET", "/v1/webhooks");
  assert.deepEqual(
    json.webhooks.map((entry: Record<string, unknown>) => [entry.run_id, entry.webhook_id]),
    [[second, two], [first, one]],
  );
  const [, entry] = json.webhooks;
  const { run_last_seq, run_id: _, ...listedAlone } = entry;
  assert.deepEqual(listedAlone, (await listOf(test, first))[0]);
  const events = (await test.call("GET", `/v1/runs/${first}/events`)).json.events;
  assert.equal(run_last_seq, events.at(-1).seq);
  const ofOther = await test.call("GET", "/v1/webhooks", undefined, KEY_B);
  assert.deepEqual(ofOther.json.webhooks.map(({ run_id }: { run_id: string }) => run_id), [foreign]);
});

Deno.test("the metrics tell for how long the oldest event has waited for its receiver", async () => {
  await using test = await startService(LOCAL, MOVES_CLOCK);
  await using receiver = await Receiver.start();
  const answered = Promise.withResolvers<Answer>();
  const asked = Promise.withResolvers<void>();
  receiver.answer = () => {
    asked.resolve();
    return answered.promise;
  };
  const runId = await newRun(test);
  await hookOf(test, runId, receiver.url);
  const waited = () => metric(test, "service_webhook_oldest_waiting_seconds");
  assert.equal(await waited(), 0);
  await keepAlive(test, runId);
  await asked.promise;
  test.advance(700_000);
  assert.ok(await waited() >= 700, String(await waited()));
  answered.resolve(204);
  while (await waited() !== 0);
});
