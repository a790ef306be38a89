/** Connections of HTTP/3 on a real endpoint, with a client that sends byte by byte: faults, limits,
 * deadlines, ends.
 */

import assert from "node:assert/strict";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import type { Respond } from "../../src/http3/exchange.ts";
import { ERROR_CODES, type ErrorCode } from "../../src/http3/wire/faults.ts";
import { FRAME, frame } from "../../src/http3/wire/frames.ts";
import { Http3Listener } from "../../src/http3/listener.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { TEST_TLS } from "../support/http/tls_server.ts";
import { CONTROL, RawHttp3 } from "../support/http3/raw_client.ts";
import { headersFrame, requestFields } from "../support/http3/streams.ts";
import { until } from "../support/until.ts";

/** A listener whose timers run so many times faster. */
function listen(respond: Respond, timerSpeed = 1, log = quietLog()): Http3Listener {
  const real = realWorld(log);
  const world = {
    ...real,
    monotonicMs: () => real.monotonicMs() * timerSpeed,
    sleep: (ms: number, signal?: Parameters<typeof real.sleep>[1]) => real.sleep(ms / timerSpeed, signal),
  };
  const certificate = { chain: TEST_TLS.cert, key: TEST_TLS.key };
  return new Http3Listener({ address: { hostname: "127.0.0.1", port: 0 }, certificate, respond, world });
}

const get = (path = "/") => headersFrame(requestFields("GET", path));
const post = headersFrame(requestFields("POST", "/"));
const hello: Respond = () => new Response("hello");

Deno.test("what a client does wrong closes its connection with the code that says what", async () => {
  await using listener = listen(async (request) => new Response(await request.text()));
  const check = async (code: ErrorCode, act: (client: RawHttp3) => Promise<unknown>) => {
    using client = await RawHttp3.open(listener.port);
    await act(client);
    assert.equal(await client.closed, ERROR_CODES[code], code);
  };
  const unexpected = frame(FRAME.SETTINGS, new Uint8Array());
  await check("H3_FRAME_UNEXPECTED", (client) => client.begin(unexpected));
  await check("H3_FRAME_UNEXPECTED", (client) => client.begin(frame(FRAME.DATA, new Uint8Array(3))));
  await check("H3_FRAME_ERROR", (client) => client.begin(get().subarray(0, 5)));
  await check("H3_FRAME_ERROR", (client) => client.begin(new Uint8Array([...post, FRAME.DATA, 9, 1])));
  await check(
    "QPACK_DECOMPRESSION_FAILED",
    (client) => client.begin(frame(FRAME.HEADERS, new Uint8Array([0, 0, 0x80]))),
  );
  await check("H3_MISSING_SETTINGS", (client) => client.send(new Uint8Array([0, FRAME.GOAWAY, 1, 0])));
  await check("H3_CLOSED_CRITICAL_STREAM", (client) => client.send(CONTROL, true));
  await check("H3_STREAM_CREATION_ERROR", (client) => client.send(new Uint8Array([1, 0])));
  await check("QPACK_ENCODER_STREAM_ERROR", (client) => client.send(new Uint8Array([2, 0x3f, 1])));
  await check("QPACK_DECODER_STREAM_ERROR", (client) => client.send(new Uint8Array([3, 0x80])));
  await check("H3_STREAM_CREATION_ERROR", async (client) => {
    await client.send(CONTROL);
    await client.send(CONTROL);
  });
  await assert.rejects(RawHttp3.open(listener.port, ["hq-interop"]));
  using client = await RawHttp3.open(listener.port);
  assert.equal((await (await client.begin(get())).answer()).status, 200);
});

Deno.test("requests of one connection are answered side by side, as fast as each can be", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using listener = listen(async ({ url }) => {
    if (url.endsWith("/slow")) await promise;
    return new Response(url);
  });
  using client = await RawHttp3.open(listener.port);
  await client.send(CONTROL);
  await client.send(new Uint8Array([2, 0x20]));
  await client.send(new Uint8Array([3, 0x44]));
  await client.send(new Uint8Array([0x21, 1, 2, 3]), true);
  const slow = await client.begin(get("/slow"));
  for (let count = 0; count < 3 * LIMITS.http3.requestsPerConnection; count++) {
    const { status, body } = await (await client.begin(get(`/${count}`))).answer();
    assert.deepEqual([status, body], [200, `https://localhost/${count}`]);
  }
  resolve();
  assert.equal((await slow.answer()).body, "https://localhost/slow");
  assert.equal(listener.total, 1);
});

Deno.test("more requests than a connection may have at once wait for their turn", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  await using listener = listen(async () => {
    begun++;
    await promise;
    return new Response("done");
  });
  using client = await RawHttp3.open(listener.port);
  const maximum = LIMITS.http3.requestsPerConnection;
  const answers = Array.from(
    { length: maximum + 9 },
    async () => (await (await client.begin(get())).answer()).status,
  );
  await until("as many as may are under way", () => begun === maximum);
  await stands(() => begun);
  assert.equal(begun, maximum);
  resolve();
  assert.deepEqual(new Set(await Promise.all(answers)), new Set([200]));
  assert.equal(begun, maximum + 9);
});

Deno.test("a body is read no faster than it is taken, and an answer no faster than the client takes it", async () => {
  const piece = new Uint8Array(64 * 1024);
  const { promise, resolve } = Promise.withResolvers<void>();
  let made = 0;
  await using listener = listen(async ({ method, body }) => {
    if (method === "POST") {
      await promise;
      let received = 0;
      for await (const part of body!) received += part.length;
      return new Response(String(received));
    }
    return new Response(
      new ReadableStream({
        pull(controller) {
          if (++made > 400) controller.close();
          else controller.enqueue(piece);
        },
      }, { highWaterMark: 0 }),
    );
  });
  using client = await RawHttp3.open(listener.port);
  const sent = await client.begin(post, false);
  const data = frame(FRAME.DATA, piece);
  let written = 0;
  const writing = (async () => {
    for (; written < 200; written++) await sent.writer.write(data);
    await sent.writer.close();
  })();
  await until("the client waits", () => written >= 10);
  await stands(() => written);
  assert.ok(written < 100, `${written} pieces were sent to a handler that reads none`);
  resolve();
  await writing;
  assert.equal((await sent.answer()).body, String(200 * piece.length));

  const taken = await client.begin(get());
  await until("the answer is under way", () => made > 0);
  await stands(() => made);
  assert.ok(made < 200, `${made} pieces were made for a client that reads none`);
  const { body } = await taken.answer();
  assert.equal(body.length, 400 * piece.length);
});

/** Waits until a number has stayed the same for a while. */
async function stands(value: () => number): Promise<void> {
  let last = NaN;
  let same = 0;
  await until("it stands still", () => {
    same = value() === last ? same + 1 : 0;
    last = value();
    return same > 30;
  });
}

Deno.test("a client that gives up a request ends its work, also one that has sent all of it", async () => {
  const ended: string[] = [];
  let begun = 0;
  const work: Respond = ({ signal, method }) =>
    new Promise((resolve) => {
      begun++;
      signal.addEventListener("abort", () => {
        ended.push(method);
        resolve(new Response());
      });
    });
  await using listener = listen(work, 5);
  const client = await RawHttp3.open(listener.port);
  const asked = await client.begin(get());
  await until("it is under way", () => begun === 1);
  await asked.readable.cancel();
  await until("its work has ended", () => ended.length === 1);
  // With the connection, all that is under way on it ends.
  await client.begin(post, false);
  await client.begin(get());
  await until("they are under way", () => begun === 3);
  client[Symbol.dispose]();
  await until("their work has ended", () => ended.length === 3);
  assert.deepEqual(ended.toSorted(), ["GET", "GET", "POST"]);
  await until("the connection is gone", () => listener.open === 0);
});

Deno.test("an answer whose client reads no further is ended", async () => {
  let isCancelled = false;
  await using listener = listen(
    () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new Uint8Array(9)),
          cancel: () => void (isCancelled = true),
        }),
      ),
    10,
  );
  using client = await RawHttp3.open(listener.port);
  const { readable } = await client.begin(get());
  const reader = readable.getReader();
  await reader.read();
  await reader.cancel();
  await until("the body is cancelled", () => isCancelled);
});

Deno.test("an answer that breaks off is not taken for a whole one", async () => {
  const broken = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(5));
        controller.error(new Error("the disk is gone"));
      },
    }, { highWaterMark: 0 });
  const warnings: unknown[] = [];
  const log = { ...quietLog(), warn: (...line: unknown[]) => void warnings.push(line) };
  await using listener = listen(
    ({ url }) =>
      new Response(broken(), { headers: url.endsWith("/declared") ? { "content-length": "9" } : {} }),
    1,
    log,
  );
  using client = await RawHttp3.open(listener.port);
  const { headers, body } = await (await client.begin(get("/declared"))).answer();
  assert.ok(body.length < Number(headers.get("content-length")));
  await assert.rejects((await client.begin(get("/unknown"))).answer());
  assert.equal(await client.closed, ERROR_CODES.H3_INTERNAL_ERROR);
  assert.deepEqual(
    warnings,
    Array(2).fill(["an answer was cut short", { error: "the disk is gone" }]),
  );
});

Deno.test("a head that does not come in time is 408, and a connection without requests is closed", async () => {
  await using listener = listen(hello, 40);
  using client = await RawHttp3.open(listener.port);
  const late = await client.begin(get().subarray(0, 4), false);
  assert.equal((await late.answer()).status, 408);
  assert.equal(await client.closed, ERROR_CODES.H3_NO_ERROR);
});

Deno.test("an address has so many connections, and its next one is closed", async () => {
  await using listener = listen(hello);
  const clients: RawHttp3[] = [];
  for (let count = 0; count < LIMITS.http3.connectionsPerAddress; count++) {
    clients.push(await RawHttp3.open(listener.port));
  }
  await until("all are taken", () => listener.open === clients.length);
  using further = await RawHttp3.open(listener.port);
  assert.equal(await further.closed, ERROR_CODES.H3_EXCESSIVE_LOAD);
  clients.pop()![Symbol.dispose]();
  await until("one has left", () => listener.open === clients.length);
  using next = await RawHttp3.open(listener.port);
  assert.equal((await (await next.begin(get())).answer()).status, 200);
  for (const client of clients) client[Symbol.dispose]();
});

Deno.test("a listener that closes says so with GOAWAY, and answers what is under way", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  const listener = listen(async () => {
    begun++;
    await promise;
    return new Response("done");
  });
  using client = await RawHttp3.open(listener.port);
  const control = client.control();
  assert.equal((await control.next()).value!.type, FRAME.SETTINGS);
  const [first, second] = [await client.begin(get()), await client.begin(get())];
  await until("both are under way", () => begun === 2);
  const closing = listener.close(30_000);
  const { type, payload } = (await control.next()).value!;
  assert.deepEqual([type, [...payload]], [FRAME.GOAWAY, [8]]);
  const third = await client.begin(get());
  assert.equal((await third.answer()).status, 0);
  assert.equal(begun, 2);
  resolve();
  assert.deepEqual([(await first.answer()).body, (await second.answer()).body], ["done", "done"]);
  assert.equal(await client.closed, ERROR_CODES.H3_NO_ERROR);
  await closing;
});
