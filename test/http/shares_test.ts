/** One principal that takes all it can get of the service leaves a share for the others. See
 * docs/security/load.md#shares.
 */

import assert from "node:assert/strict";
import { type ClientHttp2Session, connect } from "node:http2";
import { join } from "node:path";
import { LIMITS } from "../../src/contract/limits.ts";
import type { Outbound } from "../../src/remote/guard/outbound.ts";
import { BOUNDARY, filePart, form } from "../support/http/multipart.ts";
import { RawConnection } from "../support/http/raw_http.ts";
import { streamPath } from "../support/http/sse_client.ts";
import { serveRaw } from "../support/http/tls_server.ts";
import { childProcesses } from "../support/own_process.ts";
import { held } from "../support/models/model_server.ts";
import { ffmpeg, reasonOn, SAMPLED, startReason } from "../support/models/reason.ts";
import { metric, offer, publish, startLive } from "../support/live/live.ts";
import { CLIPS, KEY_A, KEY_B, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const FILM = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
/** A public address that needs no name server; nothing is sent to it. */
const PUBLIC = "https://1.1.1.1/hook";

function namesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name !== ".names");
}

function upload(test: TestService, key: string) {
  return test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": key, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: form([filePart(FILM)]),
  });
}

/** The priorities of processes in ascending order; 0 is the priority of the service. */
function niceValues(processes: readonly { readonly pid: number }[]): number[] {
  return processes.map(({ pid }) => {
    const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ");
    return Number(fields[16]);
  }).sort((a, b) => a - b);
}

Deno.test("uploads that never end take three quarters of the slots, and another principal uploads", async () => {
  await using test = await startService();
  const { host } = new URL(test.url);
  using dribbling = new DisposableStack();
  for (let client = 0; client < LIMITS.upload.concurrentMax + LIMITS.upload.waitingMax; client++) {
    const connection = dribbling.use(await RawConnection.open(test.url));
    await connection.send(
      `POST /v1/upload HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${KEY_A}\r\ncontent-length: 100000\r\n` +
        `content-type: multipart/form-data; boundary=${BOUNDARY}\r\n\r\n--${BOUNDARY}\r\n` +
        `content-disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n`,
    );
    await connection.send(FILM.subarray(0, 20_000));
  }
  await until(() => namesIn(test.uploadRoot).length === 12);
  const answer = await upload(test, KEY_B);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(namesIn(test.uploadRoot).length, 13, "no more of the first principal began");
});

Deno.test("fetches that never end take three quarters of the permits, and another principal ingests", async () => {
  const outbound: Outbound = {
    resolve: () => Promise.resolve(["93.184.216.34"]),
    reroute: () => "127.0.0.1",
  };
  let hanging = 0;
  await using slow = serveRaw("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc", () => {
    hanging++;
    return new Promise(() => {});
  });
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${FILM.length}\r\n\r\n`;
  await using film = serveRaw(new Uint8Array([...new TextEncoder().encode(head), ...FILM]));
  await using test = await startService({ SERVICE_ALLOW_INSECURE_HTTP: "true" }, { outbound });
  const ingest = (runId: string, key: string, port: number) =>
    test.call(
      "POST",
      `/v1/runs/${runId}/ingest`,
      { source_uri: `http://media.test:${port}/film`, max_frames: 2 },
      key,
    );
  const greedy = await newRun(test);
  const flood = Array.from({ length: 32 }, () => ingest(greedy, KEY_A, slow.port));
  await until(() => hanging === 12);
  const answer = await ingest(await newRun(test, KEY_B), KEY_B, film.port);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(hanging, 12);
  await test.call("POST", `/v1/runs/${greedy}/stop`);
  for (const { status } of await Promise.all(flood)) assert.equal(status, 409);
});

Deno.test("long decodes of one principal leave a permit for another's short one", async () => {
  await using test = await startService();
  const long = join(test.mediaDir, "long.mp4");
  await ffmpeg("-stream_loop", "60", "-i", join(CLIPS, "bbb120.mp4"), "-map", "0:v", "-c", "copy", long);
  const decoders = () => childProcesses(join(test.dataDir, "..", "tmp")).length;
  const greedy = await newRun(test);
  const source = { source_uri: long, max_frames: 500_000 };
  let answered = 0;
  const flood = Array.from({ length: 3 * navigator.hardwareConcurrency }, async () => {
    const { status } = await test.call("POST", `/v1/runs/${greedy}/ingest`, source);
    answered++;
    return status;
  });
  await until("the decoders run", () => decoders() >= navigator.hardwareConcurrency);
  await until("what comes on top of the first has less priority", () => {
    const nices = niceValues(childProcesses(join(test.dataDir, "..", "tmp")));
    return nices.slice(1).every((nice) => nice >= 10);
  });
  const body = { source_uri: join(CLIPS, "intel_bottle.mp4"), max_frames: 2 };
  const answer = await test.call("POST", `/v1/runs/${await newRun(test, KEY_B)}/ingest`, body, KEY_B);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answered, 0);
  await test.call("POST", `/v1/runs/${greedy}/stop`);
  assert.deepEqual(new Set(await Promise.all(flood)), new Set([409]));
});

Deno.test("reasoning that waits for a model takes no permit from another principal", async () => {
  const never = held();
  await using at = await startReason({ answer: () => never.answer() });
  const { test } = at;
  const greedy = await newRun(test);
  const body = { ...SAMPLED, semantic_timeout_ms: 60_000 };
  let answered = 0;
  const flood = Array.from({ length: 8 * navigator.hardwareConcurrency }, async () => {
    await test.call("POST", `/v1/runs/${greedy}/reason`, body);
    answered++;
  });
  await until("the model is asked", () => at.model.inFlight >= 4);
  const { answer } = await reasonOn(test, { semantic_inference: false }, KEY_B);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answered, 0);
  await test.call("POST", `/v1/runs/${greedy}/stop`);
  await Promise.all(flood);
});

Deno.test("a principal has a limited number of event streams, and the others still get theirs", async () => {
  await using test = await startService();
  using closing = new DisposableStack();
  const sessions: ClientHttp2Session[] = [];
  const closeAll = () => sessions.splice(0).forEach((session) => session.destroy());
  closing.defer(closeAll);
  const statuses = async (runId: string, key: string, count: number) => {
    const session = connect(test.url);
    sessions.push(session);
    return await Promise.all(
      Array.from(
        { length: count },
        () =>
          new Promise<readonly [status: number, retryAfter: unknown]>((resolve, reject) => {
            const stream = session.request({ ":path": streamPath(runId), "x-api-key": key });
            stream.once(
              "response",
              (answered) => resolve([answered[":status"] as number, answered["retry-after"]]),
            );
            stream.once("error", reject);
            stream.resume();
          }),
      ),
    );
  };
  const [own, foreign] = [await newRun(test), await newRun(test, KEY_B)];
  const { streamsPerPrincipal } = LIMITS.sse;
  for (let open = 0; open < streamsPerPrincipal; open += 128) {
    for (const [status] of await statuses(own, KEY_A, 128)) assert.equal(status, 200);
  }
  await until(async () => await metric(test, "service_sse_subscribers_active") === streamsPerPrincipal);
  assert.deepEqual(await statuses(own, KEY_A, 1), [[429, "10"]]);
  const { json: { error } } = await test.call("GET", streamPath(own));
  assert.equal(error.code, "rate_limited");
  assert.match(error.message, /more than 1024 event streams/);
  assert.equal((await statuses(foreign, KEY_B, 1))[0]![0], 200);
  closeAll();
  await until(async () => await metric(test, "service_sse_subscribers_active") === 0);
  assert.equal((await statuses(own, KEY_A, 1))[0]![0], 200);
});

Deno.test("one principal cannot take every webhook of the process", async () => {
  await using test = await startService({ SERVICE_WEBHOOK_SECRET: "a root secret of at least 32 bytes" });
  const register = (runId: string, key: string) =>
    test.call("POST", `/v1/runs/${runId}/webhooks`, { url: PUBLIC, event_kinds: ["vlm"] }, key);
  const own = await newRun(test);
  const answers = await Promise.all(Array.from({ length: 70 }, () => register(own, KEY_A)));
  assert.equal(answers.filter(({ status }) => status === 201).length, LIMITS.webhook.hooksMax * 3 / 4);
  const refused = answers.find(({ status }) => status !== 201)!;
  assert.deepEqual([refused.status, refused.json.error.code], [503, "webhooks_unavailable"]);
  assert.match(refused.json.error.message, /48 of the 64 webhooks are yours/);
  assert.equal((await register(await newRun(test, KEY_B), KEY_B)).status, 201);
});

Deno.test("one principal cannot take the whole media capacity of live sessions", async () => {
  // Sixteen sessions of four threads.
  await using test = await startLive({
    SERVICE_ACTIVE_STREAM_LIMIT: "100",
    SERVICE_MEDIA_WORKER_THREAD_BUDGET: "64",
  });
  for (let session = 0; session < 12; session++) await publish(test);
  const refused = await offer(test);
  assert.equal(refused.status, 503);
  assert.match(refused.text, /kept for other callers/);
  assert.equal((await offer(test, { key: KEY_B })).status, 201);
});
