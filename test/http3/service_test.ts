/** The service over HTTP/3, as clients that are not ours see it: aioquic, and Chromium. */

import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { basename, join } from "node:path";
import { openWatchedPage } from "../support/browser.ts";
import { ForeignProgram } from "../support/foreign/foreign_program.ts";
import { BOUNDARY, filePart, form } from "../support/http/multipart.ts";
import { TEST_ROOT, TEST_TLS } from "../support/http/tls_server.ts";
import { offerText } from "../support/live/fake_live_workers.ts";
import { startLive, WHIP } from "../support/live/live.ts";
import { held, startModelServer } from "../support/models/model_server.ts";
import { AIOQUIC, CHROMIUM, needing } from "../support/needs.ts";
import { CLIPS, KEY_A, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const TLS = join(import.meta.dirname!, "../support/http/tls");
const HTTP3 = {
  SERVICE_TRANSPORT: "h3",
  SERVICE_H3_BIND_ADDR: "127.0.0.1:0",
  SERVICE_H3_TLS_CERT_PATH: join(TLS, "leaf.crt"),
  SERVICE_H3_TLS_KEY_PATH: join(TLS, "leaf.key"),
};
const KEY = { "x-api-key": KEY_A };
const JSON_TYPE = { "content-type": "application/json" };

/** Where the TCP listener says that HTTP/3 is. */
async function portOf(test: TestService): Promise<number> {
  const { headers } = await test.call("GET", "/v1/health");
  return Number(/^h3=":(\d+)"; ma=86400$/.exec(headers.get("alt-svc")!)![1]);
}

async function connect(test: TestService): Promise<ForeignProgram> {
  const client = new ForeignProgram("aioquic_client");
  await client.order("open", { port: await portOf(test), authority: TEST_ROOT });
  return client;
}

Deno.test("an address that is taken ends the start, and without HTTP/3 nothing announces it", async () => {
  await using test = await startService(HTTP3);
  const address = `127.0.0.1:${await portOf(test)}`;
  await assert.rejects(
    startService({ ...HTTP3, SERVICE_H3_BIND_ADDR: address }),
    new RegExp(
      `SERVICE_H3_BIND_ADDR must be an address that is free, got ${address}: another program listens there already`,
    ),
  );
  await using plain = await startService();
  assert.equal((await plain.call("GET", "/v1/health")).headers.get("alt-svc"), null);
});

Deno.test({
  ...needing(AIOQUIC, "aioquic: every kind of route answers over HTTP/3 as over TCP"),
  async fn() {
    await using test = await startService(HTTP3);
    await using client = await connect(test);
    const get = (path: string, headers: Record<string, string> = {}) =>
      client.order("request", { method: "GET", path, headers: { ...KEY, ...headers } });

    // Guard, errors and headers.
    const health = await client.order("request", { method: "GET", path: "/v1/health" });
    assert.deepEqual([health.status, JSON.parse(health.text)], [200, { status: "ok" }]);
    assert.equal(health.headers["strict-transport-security"], "max-age=63072000; includeSubDomains");
    assert.equal(health.headers["alt-svc"], undefined);
    assert.equal((await client.order("request", { method: "GET", path: "/v1/runs" })).status, 401);
    assert.equal((await get("/v1/nothing")).status, 404);
    assert.equal((await get(`/v1/runs?${"a".repeat(9000)}`)).status, 414);

    // JSON there and back, and what a method alone says.
    const created = await client.order("request", {
      ...{ method: "POST", path: "/v1/runs", headers: { ...KEY, ...JSON_TYPE }, text: "{}" },
    });
    assert.equal(created.status, 200);
    const { run_id } = JSON.parse(created.text);
    const ingest = await client.order("request", {
      method: "POST",
      path: `/v1/runs/${run_id}/ingest`,
      headers: { ...KEY, ...JSON_TYPE },
      text: JSON.stringify({ source_uri: join(CLIPS, "intel_bottle.mp4") }),
    });
    assert.equal(JSON.parse(ingest.text).decoded_frames, 512);
    const overTcp = await test.call("GET", `/v1/runs/${run_id}/events`);
    const withoutId = (text: string) => text.replace(/"request_id":"[^"]+"/, "");
    const events = await get(`/v1/runs/${run_id}/events`);
    assert.ok(withoutId(events.text) === withoutId(overTcp.text));
    const head = await client.order("request", { method: "HEAD", path: `/v1/runs/${run_id}`, headers: KEY });
    assert.deepEqual([head.status, head.bytes, head.headers["content-type"]], [200, 0, "application/json"]);
    const malformed = await client.order("request", {
      ...{ method: "POST", path: "/v1/runs", headers: { ...KEY, ...JSON_TYPE }, text: "{" },
    });
    assert.equal(malformed.status, 400);
    const long = await client.order("request", {
      ...{
        method: "POST",
        path: "/v1/runs",
        headers: { ...KEY, ...JSON_TYPE },
        text: " ".repeat(5 * 2 ** 20),
      },
    });
    assert.equal(long.status, 413);

    // An upload of some MB, the file whole, and ranges of it.
    const clip = Deno.readFileSync(join(CLIPS, "bbb480.mp4"));
    const film = new Uint8Array(5 * 2 ** 20);
    film.set(clip); // what lies behind the film does not matter
    const formFile = Deno.makeTempFileSync();
    Deno.writeFileSync(formFile, form([filePart(film)]));
    const uploaded = await client.order("request", {
      method: "POST",
      path: "/v1/upload",
      headers: { ...KEY, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
      file: formFile,
    });
    Deno.removeSync(formFile);
    assert.equal(uploaded.status, 200, uploaded.text);
    const path = `/v1/files/${basename(JSON.parse(uploaded.text).file_path)}`;
    const whole = await get(path);
    const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
    assert.deepEqual([whole.status, whole.bytes, whole.sha256], [200, film.length, sha256(film)]);
    const part = await get(path, { range: "bytes=1000-70999" });
    assert.deepEqual([part.status, part.sha256], [206, sha256(film.subarray(1000, 71000))]);
    assert.equal(part.headers["content-range"], `bytes 1000-70999/${film.length}`);
    assert.equal((await get(path, { "if-none-match": whole.headers.etag })).status, 304);

    // Many at once, and the end of a run.
    const { answers } = await client.order("many", {
      count: 50,
      path: `/v1/runs/${run_id}/state`,
      headers: KEY,
    });
    assert.deepEqual(answers.map(({ status }: { status: number }) => status), Array(50).fill(200));
    const ended = await client.order("request", {
      method: "DELETE",
      path: `/v1/runs/${run_id}`,
      headers: KEY,
    });
    assert.equal(ended.status, 200);
    const metrics = (await get("/v1/metrics")).text;
    assert.match(metrics, /service_http_connections \d+\n/);
  },
});

Deno.test({
  ...needing(AIOQUIC, "aioquic: a publisher opens, trickles and ends its session over HTTP/3"),
  async fn() {
    await using test = await startLive(HTTP3);
    await using client = await connect(test);
    const send = (method: string, path: string, headers: Record<string, string>, text?: string) =>
      client.order("request", { method, path, headers: { ...KEY, ...headers }, text });
    const opened = await send("POST", WHIP, { "content-type": "application/sdp" }, offerText());
    assert.deepEqual([opened.status, opened.headers["content-type"]], [201, "application/sdp"], opened.text);
    assert.match(opened.text, /^v=0\r\n/);
    const { location, etag } = opened.headers;
    const trickled = await send(
      "PATCH",
      location,
      { "content-type": "application/trickle-ice-sdpfrag", "if-match": etag },
      "a=ice-ufrag:aaaa\r\na=ice-pwd:bbbb\r\n",
    );
    assert.equal(trickled.status, 204, trickled.text);
    assert.equal((await send("DELETE", location, {})).status, 200);
  },
});

Deno.test({
  ...needing(AIOQUIC, "aioquic: an event stream, work that is given up, and the end of the service"),
  async fn() {
    const { answer, release } = held("A forklift waits.");
    await using model = startModelServer({ answer });
    const test = await startService({ ...HTTP3, SERVICE_VLLM_BASE_URL: model.url });
    await using client = await connect(test);
    const runId = await newRun(test);
    await client.order("begin", {
      method: "GET",
      path: `/v1/runs/${runId}/events/stream?after=0`,
      headers: KEY,
    });
    const { headers } = await client.order("follow", { text: "event: run_created" });
    assert.equal(headers["content-type"], "text/event-stream");
    await test.call("POST", `/v1/runs/${runId}/keepalive`);
    await client.order("follow", { text: "event: keepalive_refreshed" });

    const question = JSON.stringify({ model: MODEL, prompt: "What waits?", timeout_ms: 60_000 });
    const ask = { method: "POST", path: "/v1/infer", headers: { ...KEY, ...JSON_TYPE }, text: question };
    await client.order("begin", ask);
    await until("the model is asked", () => model.inFlight === 1);
    await client.order("give_up");
    await until("the call is ended", () => model.inFlight === 0);
    await client.order("begin", ask);
    await until("the model is asked again", () => model.inFlight === 1);
    await using other = await connect(test);
    await other.order("begin", ask);
    await until("another client asks too", () => model.inFlight === 2);
    await client.order("close");
    await until("the first one's call is ended", () => model.inFlight === 1);
    release();
    await other.order("follow", { text: "A forklift waits." });
    await test[Symbol.asyncDispose]();
    assert.equal((await other.order("ended")).code, 0x100);
  },
});

Deno.test({
  ...needing(CHROMIUM, "Chromium loads the reference page, asks and uploads over HTTP/3"),
  async fn() {
    await using test = await startService(HTTP3);
    const port = await portOf(test);
    const spki = new X509Certificate(TEST_TLS.cert).publicKey.export({ type: "spki", format: "der" });
    const hash = createHash("sha256").update(spki).digest("base64");
    await using watched = await openWatchedPage(`https://127.0.0.1:${port}/docs`, [
      "--enable-quic",
      `--origin-to-force-quic-on=127.0.0.1:${port}`,
      `--ignore-certificate-errors-spki-list=${hash}`,
    ]);
    const { page, faults } = watched;
    await page.locator("#operations-runs-listRuns").waitFor();
    const result = await page.evaluate(async ({ headers, type }) => {
      const created = await fetch("/v1/runs", {
        method: "POST",
        headers: { ...headers, ...type },
        body: "{}",
      });
      const { run_id } = await created.json();
      const refused = await fetch("/v1/runs", { method: "POST", headers: type, body: " ".repeat(3_000_000) });
      const events = await fetch(`/v1/runs/${run_id}/events/stream?after=0`, { headers });
      const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader();
      const { value } = await reader.read();
      await reader.cancel();
      const protocols = performance.getEntriesByType("resource")
        .map((entry) => (entry as unknown as { nextHopProtocol: string }).nextHopProtocol);
      return {
        statuses: [created.status, refused.status, events.status],
        value,
        protocols: [...new Set(protocols)],
      };
    }, { headers: KEY, type: JSON_TYPE });
    assert.deepEqual(result.statuses, [200, 401, 200]);
    assert.match(result.value!, /event: run_created/);
    assert.deepEqual(result.protocols, ["h3"]);
    assert.deepEqual(faults.filter((fault) => !fault.includes("401")), []);
  },
});
