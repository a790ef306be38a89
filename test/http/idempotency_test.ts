/** Idempotency keys through HTTP: what a second request with the same key gets. See
 * docs/api.md#idempotency-keys.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { startServer } from "../../scripts/server.ts";
import { ROUTES } from "../../src/http/routes/route_table.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { eventsOf, kindsOf, metric } from "../support/models/reason.ts";
import { held, startModelServer } from "../support/models/model_server.ts";
import {
  type Answer,
  CLIPS,
  KEY_A,
  KEY_B,
  MODEL,
  MOVES_CLOCK,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../support/service.ts";
import { until } from "../support/until.ts";

const FILM = join(CLIPS, "bbb120.mp4");
const HOOKS = { SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes" };
/** A public address that needs no name server; nothing is sent to it. */
const HOOK = { url: "https://1.1.1.1/hook" };
const RATING = { rating: 7, category: "accuracy", feedback: "Good." };
const ASK = { model: MODEL, prompt: "What waits?" };
const FRAME = {
  frame_index: 0,
  pts_ms: 0,
  perceptual_hash: 1,
  luma_mean: 0.5,
  flicker_score: 0,
  ghosting_score: 0,
  noise_variance_score: 0,
};

interface Sending {
  readonly key?: string;
  readonly principal?: string;
  readonly signal?: AbortSignal;
}

function post(
  test: Pick<TestService, "send">,
  path: string,
  body: unknown,
  { key = "k-1", principal = KEY_A, signal }: Sending = {},
): Promise<Answer> {
  return test.send(path, {
    method: "POST",
    headers: { "x-api-key": principal, "content-type": "application/json", "idempotency-key": key },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal && { signal }),
  });
}

function assertAgain(again: Answer, first: Answer): void {
  assert.equal(again.text, first.text);
  assert.equal(again.status, first.status);
  assert.equal(again.headers.get("content-type"), first.headers.get("content-type"));
  assert.equal(first.headers.get("idempotency-replayed"), null);
  assert.equal(again.headers.get("idempotency-replayed"), "true");
}

/**
 * Checks the refusal of a key: its status, and `field` and rule of the only detail, which is about the key.
 */
function assertKeyRefused({ status, json }: Answer, expected: number, rule: RegExp): void {
  assert.equal(status, expected, JSON.stringify(json));
  assert.equal(json.error.details.length, 1);
  assert.equal(json.error.details[0].field, "idempotency-key");
  assert.match(json.error.details[0].message, rule);
}

function keysOf(test: TestService): string[] {
  return Array.from(Deno.readDirSync(join(test.dataDir, "idempotency")), ({ name }) => name);
}

async function runsOf(test: TestService): Promise<number> {
  return (await test.call("GET", "/v1/runs")).json.length;
}

/**
 * Cuts every key's file after its first line, as it is when the process stops before the answer is written.
 */
function loseAnswers(test: TestService): void {
  for (const name of keysOf(test)) {
    const path = join(test.dataDir, "idempotency", name);
    const text = Deno.readTextFileSync(path);
    Deno.writeTextFileSync(path, text.slice(0, text.indexOf("\n") + 1));
  }
}

Deno.test("a second request creates no second run, after a restart too, and its answer is the first, byte by byte", async () => {
  await using test = await startService();
  const first = await post(test, "/v1/runs", { mode: "detailed" });
  assert.equal(first.status, 200);
  assertAgain(await post(test, "/v1/runs", { mode: "detailed" }), first);
  await test.restart();
  assertAgain(await post(test, "/v1/runs", { mode: "detailed" }), first);
  assert.equal(await runsOf(test), 1);
  assert.equal(await metric(test, "service_idempotency_replays_total"), 1);
  assert.equal(await metric(test, "service_idempotency_keys"), 1);
});

Deno.test("another body is refused, also another spelling of the same values; another key, route, run or principal is another request", async () => {
  await using test = await startService();
  const first = await post(test, "/v1/runs", "{}");
  for (const body of ["{ }", '{"mode":"detailed"}']) {
    assertKeyRefused(await post(test, "/v1/runs", body), 422, /^was used with another body/);
  }
  const ids = new Set([first.json.run_id]);
  for (const sending of [{ key: "k-2" }, { principal: KEY_B }]) {
    const other = await post(test, "/v1/runs", "{}", sending);
    assert.equal(other.headers.get("idempotency-replayed"), null);
    ids.add(other.json.run_id);
  }
  assert.equal(ids.size, 3);
  const [one, two] = [await newRun(test), await newRun(test)];
  const rated = [];
  for (const runId of [one, two]) rated.push(await post(test, `/v1/runs/${runId}/feedback`, RATING));
  assert.notEqual(rated[0]!.json.feedback_id, rated[1]!.json.feedback_id);
  assertAgain(await post(test, `/v1/runs/${one}/feedback`, RATING), rated[0]!);
});

Deno.test("without API keys all callers are one principal", async () => {
  await using test = await startService({ SERVICE_API_KEYS: "", SERVICE_REQUIRE_API_KEY: "false" });
  const first = await post(test, "/v1/runs", {});
  assertAgain(await post(test, "/v1/runs", {}, { principal: "any" }), first);
});

Deno.test("a malformed key is refused before anything is done; other routes ignore the header", async () => {
  await using test = await startService();
  for (const key of ["", "two words", "x".repeat(129), "clé"]) {
    assertKeyRefused(
      await post(test, "/v1/runs", {}, { key }),
      422,
      /^must have 1 to 128 visible ASCII characters/,
    );
  }
  assert.equal(await runsOf(test), 0);
  assert.equal((await post(test, "/v1/runs", {}, { key: `~!"${"x".repeat(125)}` })).status, 200);
  const runId = await newRun(test);
  for (const key of ["", "k", "k"]) {
    const answer = await post(test, `/v1/runs/${runId}/keepalive`, {}, { key });
    assert.deepEqual([answer.status, answer.headers.get("idempotency-replayed")], [200, null]);
  }
});

Deno.test("every route that takes keys gives its answer again, and does its work once", async () => {
  await using model = startModelServer();
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url, ...HOOKS });
  const runId = await newRun(test);
  const reasoned = await newRun(test);
  const path = `/v1/runs/${runId}`;
  const source = { source_uri: FILM, max_frames: 8 };
  const answers = new Map<string, Answer>();
  const check = async (route: string, url: string, body: unknown) => {
    const first = await post(test, url, body);
    assert.ok(first.status < 300, `${route}: ${first.text}`);
    const before = test.call("GET", "/v1/runs");
    const asked = model.requests.length;
    const events = kindsOf(await eventsOf(test, runId)).length;
    assertAgain(await post(test, url, body), first);
    assert.equal((await test.call("GET", "/v1/runs")).text.length, (await before).text.length, route);
    assert.equal(model.requests.length, asked, route);
    assert.equal(kindsOf(await eventsOf(test, runId)).length, events, route);
    answers.set(route, first);
    return first.json;
  };
  await check("/v1/runs", "/v1/runs", { model: MODEL });
  await check("/v1/runs/:id/ingest", `${path}/ingest`, source);
  await check("/v1/runs/:id/analyze", `${path}/analyze`, { model: MODEL, frames: [FRAME] });
  await check("/v1/runs/:id/reason", `/v1/runs/${reasoned}/reason`, {
    ...source,
    model: MODEL,
    semantic_inference: false,
  });
  await check("/v1/infer", "/v1/infer", ASK);
  await check("/v1/infer/batch", "/v1/infer/batch", { requests: [ASK, { ...ASK, run_id: runId }] });
  await check("/v1/runs/:id/feedback", `${path}/feedback`, RATING);
  const hook = await check("/v1/runs/:id/webhooks", `${path}/webhooks`, HOOK);
  await check(
    "/v1/runs/:id/webhooks/:webhook_id/redeliver",
    `${path}/webhooks/${hook.webhook_id}/redeliver`,
    { from_seq: 1, to_seq: 1 },
  );
  const made = await check("/v1/runs/:id/policies", `${path}/policies`, { prompt: "Watch." });
  const policy = `${path}/policies/${made.policy.revision}`;
  for (const stage of ["shadow", "canary", "active"]) {
    const body = { stage };
    const first = await post(test, `${policy}/activate`, body, { key: stage });
    assert.equal(first.status, 200, first.text);
    assertAgain(await post(test, `${policy}/activate`, body, { key: stage }), first);
    answers.set("/v1/runs/:id/policies/:revision/activate", first);
  }
  await check("/v1/runs/:id/policies/:revision/replay", `${policy}/replay`, {});
  const next = await post(test, `${path}/policies`, {
    prompt: "Look.",
    parent_revision: made.policy.revision,
  }, {
    key: "next",
  });
  for (const stage of ["shadow", "canary", "active"]) {
    await test.call("POST", `${path}/policies/${next.json.policy.revision}/activate`, { stage });
  }
  await check("/v1/runs/:id/policies/:revision/rollback", `${policy}/rollback`, {});
  assert.deepEqual(
    [...answers.keys()].sort(),
    ROUTES.filter(({ once }) => once !== undefined).map((route) => route.path).sort(),
  );
});

Deno.test("while the first request is running a second is refused at once; then it gets the answer", async () => {
  const slow = held();
  await using model = startModelServer({ answer: slow.answer });
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
  const first = post(test, "/v1/infer", ASK);
  await until(() => model.requests.length === 1);
  const second = await post(test, "/v1/infer", ASK);
  assertKeyRefused(second, 409, /still running/);
  assert.equal(second.headers.get("retry-after"), "1");
  assertKeyRefused(await post(test, "/v1/infer", { ...ASK, prompt: "Other?" }), 422, /another body/);
  slow.release();
  assertAgain(
    await post(test, "/v1/infer", ASK).then(() => first).then(() => post(test, "/v1/infer", ASK)),
    await first,
  );
  assert.equal(model.requests.length, 1);
});

Deno.test("of requests at the same time one does the work", async () => {
  await using test = await startService();
  const answers = await Promise.all(Array.from({ length: 16 }, () => post(test, "/v1/runs", {})));
  const ids = new Set(answers.filter(({ status }) => status === 200).map(({ json }) => json.run_id));
  assert.equal(ids.size, 1);
  for (const answer of answers) if (answer.status !== 200) assertKeyRefused(answer, 409, /still running/);
  assert.equal(await runsOf(test), 1);
});

Deno.test("a refused request and one whose client has gone leave the key free, also for another body", async () => {
  const slow = held();
  await using model = startModelServer({ answer: slow.answer });
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
  const runId = await newRun(test);
  for (
    const [body, status] of [["{", 400], [{ rating: 99, category: "x" }, 422], [
      { rating: "x" },
      422,
    ]] as const
  ) {
    assert.equal((await post(test, `/v1/runs/${runId}/feedback`, body)).status, status);
    assert.deepEqual(keysOf(test), []);
  }
  assert.equal((await post(test, `/v1/runs/run-${"0".repeat(32)}/feedback`, RATING)).status, 404);
  assert.equal((await post(test, `/v1/runs/${runId}/feedback`, RATING)).status, 200);

  const leaving = new AbortController();
  const left = post(test, "/v1/infer", ASK, { signal: leaving.signal });
  await until(() => model.requests.length === 1);
  leaving.abort();
  await assert.rejects(left);
  await until(() => keysOf(test).length === 1);
  slow.release();
  assert.equal((await post(test, "/v1/infer", { ...ASK, prompt: "Other?" })).status, 200);
});

Deno.test("a key is free again after 24 hours, and its file goes", async () => {
  await using test = await startService({}, MOVES_CLOCK);
  const first = await post(test, "/v1/runs", {});
  test.advance(LIMITS.idempotency.keptMs - 60_000);
  assertAgain(await post(test, "/v1/runs", {}), first);
  test.advance(60_000);
  const later = await post(test, "/v1/runs", {});
  assert.notEqual(later.json.run_id, first.json.run_id);
  test.advance(LIMITS.idempotency.keptMs);
  await test.restart();
  assert.deepEqual(keysOf(test), []);
});

Deno.test("the secret of a webhook is in no file, and in the answer again", async () => {
  await using test = await startService(HOOKS);
  const path = `/v1/runs/${await newRun(test)}/webhooks`;
  const first = await post(test, path, HOOK);
  assert.match(first.json.signing_secret, /^[0-9a-f]{64}$/);
  for (const name of keysOf(test)) {
    const text = Deno.readTextFileSync(join(test.dataDir, "idempotency", name));
    assert.ok(!text.includes(first.json.signing_secret));
  }
  assertAgain(await post(test, path, HOOK), first);
  await test.restart();
  assertAgain(await post(test, path, HOOK), first);
  assert.equal((await test.call("GET", path)).json.webhooks.length, 1);
});

Deno.test("with its run the answers go: those of the run's routes, and of questions about it", async () => {
  await using model = startModelServer();
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
  const first = await post(test, "/v1/runs", {});
  const runId = first.json.run_id;
  await post(test, `/v1/runs/${runId}/feedback`, RATING);
  await post(test, "/v1/infer", { ...ASK, run_id: runId });
  await post(test, "/v1/infer/batch", { requests: [{ ...ASK, run_id: runId }] });
  assert.equal(keysOf(test).length, 4);
  await test.call("DELETE", `/v1/runs/${runId}`);
  assert.equal(keysOf(test).length, 1);
  assert.equal((await post(test, `/v1/runs/${runId}/feedback`, RATING)).status, 404);
  assertAgain(await post(test, "/v1/runs", {}), first);
});

Deno.test("a long answer is kept and sent in pieces", async () => {
  await using test = await startService();
  const frames = Array.from(
    { length: 2000 },
    (_, index) => ({ ...FRAME, frame_index: index, pts_ms: index * 40 }),
  );
  const path = `/v1/runs/${await newRun(test)}/analyze`;
  const first = await post(test, path, { model: MODEL, frames });
  assert.ok(first.text.length > 2 ** 20, `${first.text.length}`);
  assert.equal(first.json.metadata.length, 2000);
  assertAgain(await post(test, path, { model: MODEL, frames }), first);
  await test.restart();
  assertAgain(await post(test, path, { model: MODEL, frames }), first);
});

Deno.test("a run whose creation was committed, but not answered, is the answer to the same key", async () => {
  await using test = await startService();
  const first = await post(test, "/v1/runs", { mode: "detailed", model: MODEL });
  await test.restart(() => loseAnswers(test));
  await newRun(test);
  for (let time = 0; time < 2; time++) {
    assertAgain(await post(test, "/v1/runs", { mode: "detailed", model: MODEL }), first);
  }
  assertKeyRefused(await post(test, "/v1/runs", {}), 422, /another body/);
  assert.equal(await runsOf(test), 2);
});

Deno.test("after a crash work that may be in the events is not done again; work that is not, is", async () => {
  await using model = startModelServer();
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
  const runId = await newRun(test);
  const path = `/v1/runs/${runId}/feedback`;
  assert.equal((await post(test, path, RATING)).status, 200);
  assert.equal((await post(test, "/v1/infer", ASK)).status, 200);
  await test.restart(() => loseAnswers(test));
  assertKeyRefused(await post(test, path, RATING), 409, /may have appended event 2 of run-/);
  assert.equal(kindsOf(await eventsOf(test, runId)).length, 2);
  const asked = await post(test, "/v1/infer", ASK);
  assert.deepEqual([asked.status, asked.headers.get("idempotency-replayed")], [200, null]);
  assert.equal(model.requests.length, 2, "a question without a run leaves no event");
});

Deno.test("a process that is killed in the middle of the work leaves the key to be used again", async () => {
  const dataDir = Deno.makeTempDirSync({ prefix: "service-test-" });
  const slow = held();
  await using model = startModelServer({ answer: slow.answer });
  const env = {
    SERVICE_API_KEYS: KEY_A,
    SERVICE_DATA_DIR: dataDir,
    SERVICE_UPLOAD_DIR: join(dataDir, "uploads"),
    SERVICE_VLLM_BASE_URL: model.url,
    SERVICE_WAL_SYNC: "group",
  };
  const send = async (url: string, path: string, body: unknown): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "x-api-key": KEY_A, "content-type": "application/json", "idempotency-key": "k-1" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
  };
  await using server = await startServer(env);
  const created = await send(server.url, "/v1/runs", {});
  const body = { ...ASK, run_id: created.json.run_id };
  const lost = send(server.url, "/v1/infer", body).catch(() => "cut");
  await until(() => model.requests.length === 1);
  await server.kill();
  assert.equal(await lost, "cut");
  slow.release();
  {
    await using again = await startServer(env);
    assertAgain(await send(again.url, "/v1/runs", {}), created);
    const first = await send(again.url, "/v1/infer", body);
    assert.equal(first.status, 200, first.text);
    assertAgain(await send(again.url, "/v1/infer", body), first);
    assert.equal(model.requests.length, 2);
  }
  Deno.removeSync(dataDir, { recursive: true });
});

Deno.test("where the disk takes no key nothing is done, and a damaged answer is not sent", async () => {
  await using test = await startService({}, REACHES_IN);
  const folder = join(test.dataDir, "idempotency");
  const first = await post(test, "/v1/runs", {});
  const [name] = keysOf(test);
  const path = join(folder, name!);
  Deno.writeTextFileSync(
    path,
    Deno.readTextFileSync(path).replace(first.json.run_id, `run-${"0".repeat(32)}`),
  );
  assertKeyRefused(await post(test, "/v1/runs", {}), 409, /its answer is not kept/);
  assertKeyRefused(await post(test, "/v1/runs", {}), 409, /its answer is not kept/);
  Deno.removeSync(folder, { recursive: true });
  Deno.writeTextFileSync(folder, "in the way");
  const response = await fetchUnwatched(test, "/v1/runs", { key: "k-2" });
  assert.deepEqual([response.status, response.json.error.code], [503, "storage_unavailable"]);
  assert.equal(await runsOf(test), 1);
  Deno.removeSync(folder);
  Deno.mkdirSync(folder);
  assert.equal((await post(test, "/v1/runs", {}, { key: "k-2" })).status, 200);
});

/** The routes of the contract do not list what a failing disk answers. */
function fetchUnwatched(test: TestService, path: string, sending: Sending): Promise<Answer> {
  return post(
    {
      send: async (path, init) => {
        const response = await test.service.respond(new Request(`${test.url}${path}`, init));
        const text = await response.text();
        return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
      },
    },
    path,
    {},
    sending,
  );
}

Deno.test("a batch that is too long is refused for its length with a key too, whatever its items are", async () => {
  await using model = startModelServer({ answer: () => "A forklift." });
  await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
  const requests = Array(LIMITS.infer.batchRequests.maximum + 1).fill(null);
  const refused = await post(test, "/v1/infer/batch", { requests });
  assert.equal(refused.status, 422, refused.text);
  assert.deepEqual(refused.json.error.details.map(({ field }: { field: string }) => field), ["requests"]);
});
