/** The proxies of deploy/ in front of the service: what they keep away, and what passes. See
 * docs/deployment.md#behind-a-proxy.
 */

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import type { NewEvent } from "../../src/model/runs/run.ts";
import { Blobs } from "../../src/store/media/blobs.ts";
import { ForeignProgram } from "../support/foreign/foreign_program.ts";
import { hasAnswerOn, http2Preface, referringHead } from "../support/http/http2_heads.ts";
import { BOUNDARY, filePart, form } from "../support/http/multipart.ts";
import { PROXIES, type Proxy, startProxy } from "../support/http/proxies.ts";
import { TEST_ROOT } from "../support/http/tls_server.ts";
import { SseClient, streamPath } from "../support/http/sse_client.ts";
import { offerText } from "../support/live/fake_live_workers.ts";
import { deleteSession, offer, publish, startLive, trickle, WHIP } from "../support/live/live.ts";
import { held, startModelServer } from "../support/models/model_server.ts";
import { AIOQUIC, type Need, needing } from "../support/needs.ts";
import { CLIPS, KEY_A, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** Caddy answers 502 where it notices the length only after it has begun to pass the body on. */
const TOO_LONG = [413, 502];

const MIB = 2 ** 20;
const KEYS = { "x-api-key": KEY_A };
const HEAD_DEADLINE = {
  nginx: ["client_header_timeout 10s;", "client_header_timeout 1s;"],
  caddy: ["read_header 10s", "read_header 1s"],
} as const;

/** What the other side sends until it ends the connection in any way. */
async function* untilEnd(connection: Deno.Conn): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(65_536);
  for (;;) {
    const count = await connection.read(buffer).catch(() => null);
    if (count === null) return;
    yield buffer.subarray(0, count);
  }
}

/** Waits until the other side has ended the connection, whatever it sent before. */
async function endOf(connection: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(65_536);
  try {
    while (await connection.read(buffer) !== null);
  } catch {
    // A reset is an end too.
  }
  connection.close();
}

async function sendAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

function send(connection: Deno.Conn, text: string): Promise<unknown> {
  return connection.write(new TextEncoder().encode(text));
}

for (const { name, need } of PROXIES) {
  Deno.test({
    ...needing(need, `${name} turns heads of HTTP/2 away that name a long header thousands of times`),
    async fn() {
      const reached: string[] = [];
      await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, ({ url }) => {
        reached.push(new URL(url).pathname);
        return new Response("ok");
      });
      await using proxy = await startProxy(name, { url: `http://127.0.0.1:${server.addr.port}` });
      using connection = await Deno.connectTls({
        ...{ hostname: "127.0.0.1", port: proxy.port, caCerts: [TEST_ROOT], alpnProtocols: ["h2"] },
      });
      const authority = `127.0.0.1:${proxy.port}`;
      let sent = joinedBytes(http2Preface(), referringHead(1, authority, "/short", 4));
      for (const stream of [3, 5, 7]) {
        sent = joinedBytes(sent, referringHead(stream, authority, "/long", 10_000));
      }
      const writing = sendAll(connection, sent).catch(() => {/* it has ended the connection */});
      let answers: Uint8Array = new Uint8Array();
      for await (const bytes of untilEnd(connection)) {
        answers = joinedBytes(answers, bytes);
        if (hasAnswerOn(7, answers)) break;
      }
      await writing;
      await until("a short head has come through", () => reached.includes("/short"));
      assert.equal(await (await proxy.fetch("/after")).text(), "ok");
      assert.ok(!reached.includes("/long"), reached.join());
    },
  });

  Deno.test({
    ...needing(need, `${name} ends a connection whose request head does not come to its end`),
    async fn() {
      await using test = await startService();
      await using proxy = await startProxy(name, test, [HEAD_DEADLINE[name]]);
      const dribbling = await proxy.connect();
      let hasEnded = false;
      const ended = endOf(dribbling).then(() => void (hasEnded = true));
      await send(dribbling, "GET /v1/health HTTP/1.1\r\nx-slow: ");
      await until("the slow one is ended", async () => {
        if (!hasEnded) await send(dribbling, "x").catch(() => {});
        return hasEnded;
      });
      await ended;
      await endOf(await Deno.connect({ hostname: "127.0.0.1", port: proxy.port })); // not even a handshake
      assert.equal((await proxy.through(test).call("GET", "/v1/health")).status, 200);
    },
  });

  Deno.test({
    ...needing(need, `${name} passes an event stream at once, and keeps it while nothing happens`),
    async fn() {
      await using test = await startLive({}, { timerSpeed: 100 });
      await using proxy = await startProxy(name, test);
      const runId = await newRun(proxy.through(test));
      const response = await proxy.fetch(streamPath(runId), { headers: KEYS });
      const chunks = response.body![Symbol.asyncIterator]();
      await using stream = new SseClient(chunks, async () => void await chunks.return!());
      assert.equal((await stream.next())?.event, "run_created");
      for (let round = 0; round < 3; round++) {
        const beat = stream.next();
        // Many times the service's pause between two comments.
        await until("comments come", () => stream.comments.length >= 3 * (round + 1));
        test.service.timeline.commit(() => [requestStop(runId)]);
        assert.equal((await beat)?.event, "stop_requested");
      }
    },
  });

  Deno.test({
    ...needing(need, `${name} passes uploads, ranges, long URLs, WHIP, and the limits of the service`),
    async fn() {
      await using test = await startLive();
      await using proxy = await startProxy(name, test);
      const through = proxy.through(test);
      await checkUploads(through, proxy);

      const runId = await newRun(through);
      const bytes = new TextEncoder().encode("0123456789");
      const blob = await Blobs.open(test.dataDir, realWorld(quietLog())).put(bytes, "mp4");
      const evidence = {
        ...{ media_ref: blob.ref, media_sha256: blob.sha256 },
        ...{ media_bytes: blob.sizeBytes, media_type: blob.mediaType },
      };
      test.service.timeline.commit(() => [
        { kind: "multimodal_moment", runId, payload: { evidence } } as NewEvent,
      ]);
      const part = await through.send(`/v1/runs/${runId}/media/${blob.sha256}`, {
        headers: { ...KEYS, range: "bytes=2-4" },
      });
      assert.deepEqual([part.status, part.text], [206, "234"]);

      assert.equal((await through.call("GET", `/v1/runs?ignored=${"x".repeat(8000)}`)).status, 200);
      const long = await through.call("POST", "/v1/runs", { text: "x".repeat(4 * MIB) }).catch(() => null);
      if (long !== null) assert.ok(TOO_LONG.includes(long.status), String(long.status));

      const session = await publish(through);
      assert.equal((await trickle(through, session, "a=ice-ufrag:aaaa\r\na=ice-pwd:bbbb\r\n")).status, 204);
      assert.equal((await deleteSession(through, session)).status, 200);
      const tooLong = await offer(through, { offer: offerText() + "a=x\r\n".repeat(20_000) }).catch(() =>
        null
      );
      if (tooLong !== null) assert.ok(TOO_LONG.includes(tooLong.status), String(tooLong.status));
      assert.equal((await through.send(WHIP, { method: "OPTIONS" })).status, 204);

      const page = await through.send("/console/", {});
      assert.equal(page.status, 200);
      assert.match(page.headers.get("content-security-policy") ?? "", /script-src/);
    },
  });

  Deno.test({
    ...needing(need, `a caller who hangs up ends its work through ${name}`),
    async fn() {
      const { answer, release } = held();
      await using model = startModelServer({ answer });
      await using test = await startService({ SERVICE_VLLM_BASE_URL: model.url });
      await using proxy = await startProxy(name, test);
      const caller = new AbortController();
      const asked = proxy.fetch("/v1/infer", {
        method: "POST",
        headers: { ...KEYS, "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, prompt: "What waits?", timeout_ms: 60_000 }).padEnd(2000),
        signal: caller.signal,
      });
      await until("the model is asked", () => model.inFlight === 1);
      caller.abort();
      await assert.rejects(asked);
      await until("the call is ended", () => model.inFlight === 0);
      release();
    },
  });
}

Deno.test({
  ...needing(
    PROXIES[0]!.need,
    "nginx closes connections of an address beyond the limit, though they send no request",
  ),
  async fn() {
    await using test = await startService();
    await using proxy = await startProxy("nginx", test, [[
      "limit_conn connections 64;",
      "limit_conn connections 8;",
    ]]);
    const admitted: Deno.TlsConn[] = [];
    const admit = async () => {
      const connection = await proxy.connect();
      try {
        await connection.handshake();
        await send(connection, "GET /v1/health HTTP/1.1\r\n");
        return connection;
      } catch (error) {
        connection.close();
        throw error;
      }
    };
    try {
      while (admitted.length <= 8) admitted.push(await admit());
    } catch {
      // Refused.
    }
    assert.ok(admitted.length >= 6 && admitted.length <= 8, `${admitted.length} were admitted`);
    await assert.rejects(admit());
    for (const connection of admitted) connection.close();
    await until(
      "there is room again",
      () => admit().then((one) => one.close()).then(() => true, () => false),
    );
  },
});

const CADDY = PROXIES.find(({ name }) => name === "caddy")!.need;
const CADDY_AND_AIOQUIC: Need = {
  isMet: () => CADDY.isMet() && AIOQUIC.isMet(),
  reason: `${CADDY.isMet() ? AIOQUIC.reason : CADDY.reason}`,
};

Deno.test({
  ...needing(CADDY_AND_AIOQUIC, "caddy speaks HTTP/3 with callers: JSON, an event stream at once, an upload"),
  async fn() {
    await using test = await startService();
    await using proxy = await startProxy("caddy", test);
    await using client = new ForeignProgram("aioquic_client");
    await client.order("open", { port: proxy.port, authority: TEST_ROOT });
    const headers = { ...KEYS, ":authority": `127.0.0.1:${proxy.port}` };
    // Without a length Caddy 2.6 drops the body of a request over HTTP/3.
    const body = { "content-type": "application/json", "content-length": "2" };
    const created = await client.order("request", {
      ...{ method: "POST", path: "/v1/runs", headers: { ...headers, ...body }, text: "{}" },
    });
    assert.equal(created.status, 200, created.text);
    const { run_id } = JSON.parse(created.text);
    await client.order("begin", { method: "GET", path: streamPath(run_id), headers });
    await client.order("follow", { text: "event: run_created" });
    assert.equal((await test.call("POST", `/v1/runs/${run_id}/keepalive`)).status, 200);
    await client.order("follow", { text: "event: keepalive_refreshed" });

    const folder = Deno.makeTempDirSync();
    const file = join(folder, "form");
    const whole = form([filePart(Deno.readFileSync(join(CLIPS, "bbb120.mp4")))]);
    Deno.writeFileSync(file, whole);
    const length = { "content-length": String(whole.length) };
    const uploaded = await client.order("request", {
      method: "POST",
      path: "/v1/upload",
      headers: { ...headers, ...length, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
      file,
    });
    Deno.removeSync(folder, { recursive: true });
    assert.equal(uploaded.status, 200, uploaded.text);
    const path = `/v1/files/${basename(JSON.parse(uploaded.text).file_path)}`;
    const part = await client.order("request", {
      ...{ method: "GET", path, headers: { ...headers, range: "bytes=100-199" } },
    });
    assert.deepEqual([part.status, part.bytes], [206, 100]);
  },
});

/**
 * A film of more bytes than a JSON body may have reaches the service piece by piece, and is served in parts.
 */
async function checkUploads(test: TestService, proxy: Proxy): Promise<void> {
  const film = Deno.readFileSync(join(CLIPS, "bbb120.mp4"));
  const padded = new Uint8Array(film.length + 5 * MIB);
  padded.set(film);
  new DataView(padded.buffer).setUint32(film.length, 5 * MIB);
  padded.set(new TextEncoder().encode("free"), film.length + 4);
  const whole = form([filePart(padded, "long.mp4")]);
  const isUnderWay = () => [...Deno.readDirSync(test.uploadRoot)].length > 0;
  const half = MIB;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(whole.subarray(0, half)),
    async pull(controller) {
      await until("the service has the beginning before the end was sent", isUnderWay);
      controller.enqueue(whole.subarray(half));
      controller.close();
    },
  }, { highWaterMark: 0 });
  const upload = await proxy.fetch("/v1/upload", {
    method: "POST",
    headers: { ...KEYS, "content-type": "multipart/form-data; boundary=----boundary-of-the-test" },
    body,
  });
  assert.equal(upload.status, 200, upload.ok ? "" : await upload.text());
  const { file_path } = await upload.json();
  const part = await proxy.fetch(`/v1/files/${basename(file_path)}`, {
    headers: { ...KEYS, range: "bytes=100-199" },
  });
  assert.equal(part.status, 206, part.ok ? "" : await part.text());
  assert.deepEqual(await part.bytes(), film.slice(100, 200));
}

function requestStop(runId: string): NewEvent {
  return { kind: "stop_requested", runId, payload: {} } as NewEvent;
}
