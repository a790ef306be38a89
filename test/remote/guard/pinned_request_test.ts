import assert from "node:assert/strict";
import { areSameBytes, joinedBytes } from "../../../src/base/bytes.ts";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { GatheredChunks } from "../../../src/remote/guard/gathered_chunks.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import {
  type PinnedRequest,
  pinnedRequest,
  type PinnedResponse,
} from "../../../src/remote/guard/pinned_request.ts";
import { RequestFailed } from "../../../src/remote/guard/request_failed.ts";
import { trustedRoots } from "../../../src/remote/guard/trusted_roots.ts";
import { serve, serveRaw, TEST_ROOT, TEST_TLS } from "../../support/http/tls_server.ts";
import { until } from "../../support/until.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const DECODER = new TextDecoder();
const world = realWorld(quietLog());
const LOOPBACK = ["127.0.0.1"];

function request(
  agent: PinnedAgent,
  url: string,
  rest: Partial<PinnedRequest> = {},
): Promise<PinnedResponse> {
  const common = { world, agent, addresses: LOOPBACK, method: "GET", headers: {}, signal: NEVER_ABORTED };
  return pinnedRequest({ ...common, url: new URL(url), timeoutMs: 10_000, ...rest });
}

function agentTrusting(roots: readonly string[] = [TEST_ROOT], allowInsecureTls = false): PinnedAgent {
  return new PinnedAgent({ roots: () => roots, allowInsecureTls });
}

async function text({ body }: PinnedResponse): Promise<string> {
  const decoder = new TextDecoder();
  let whole = "";
  for await (const chunk of body) whole += decoder.decode(chunk, { stream: true });
  return whole;
}

async function textOf(agent: PinnedAgent, port: number): Promise<string> {
  return await text(await request(agent, `http://media.test:${port}/`));
}

async function collected({ body }: PinnedResponse): Promise<string> {
  return new TextDecoder().decode(joinedBytes(...await body.collect(1000)));
}

/** Ways to read a body: in a loop, and all at once. */
const WAYS_TO_READ = [text, collected];

async function failure(promise: Promise<unknown>): Promise<RequestFailed> {
  const error = await promise.then(() => assert.fail("it did not fail"), (error) => error);
  assert.ok(error instanceof RequestFailed, String(error?.stack));
  assert.doesNotMatch(
    error.message,
    /127\.0\.0\.1|::1|:\d{4,5}|E[A-Z]{5,}/,
    "the message names nothing of the machine",
  );
  return error;
}

Deno.test("a request goes to the given address with the name of the host, and with exactly the given bytes and headers", async () => {
  await using server = serve(() => new Response("hello", { status: 202, headers: { "x-answer": "yes" } }));
  using agent = agentTrusting();
  const body = new Uint8Array([0, 1, 2, 250, 10, 13]).subarray(1);
  const response = await request(agent, `https://media.test:${server.port}/a%20b/c?d=e%2f`, {
    method: "POST",
    headers: { "x-service-signature": "v1=00ff", "content-type": "application/json" },
    body,
  });
  assert.equal(response.status, 202);
  assert.equal(response.headers.get("x-answer"), "yes");
  assert.equal(await text(response), "hello");
  const [got] = server.requests;
  assert.equal(got!.method, "POST");
  assert.equal(got!.url, `https://media.test:${server.port}/a%20b/c?d=e%2f`);
  assert.deepEqual(got!.body, body.slice());
  assert.deepEqual(Object.fromEntries(got!.headers), {
    connection: "keep-alive",
    "content-length": "5",
    "content-type": "application/json",
    host: `media.test:${server.port}`,
    "x-service-signature": "v1=00ff",
  });
});

Deno.test("certificates are verified against the host's name and the trusted authorities", async () => {
  await using server = serve(() => new Response("hello"));
  const check = async (host: string, agent: PinnedAgent, expected: RegExp | "answers") => {
    using _closed = agent;
    const answer = request(agent, `https://${host}:${server.port}/`);
    if (expected === "answers") return assert.equal(await text(await answer), "hello", host);
    const error = await failure(answer);
    assert.equal(error.kind, "tls", `${host}: ${error.message}`);
    assert.match(error.message, expected, host);
  };
  await check("media.test", agentTrusting(), "answers");
  await check("MEDIA.test.", agentTrusting(), "answers");
  await check("deep.media.test", agentTrusting(), "answers");
  await check("127.0.0.1", agentTrusting(), "answers");
  await check("media.test", agentTrusting([...trustedRoots(), TEST_ROOT]), "answers");
  await check("other.test", agentTrusting(), /certificate is for another host/);
  await check("very.deep.media.test", agentTrusting(), /certificate is for another host/);
  await check("media.test", agentTrusting([]), /certificate is not trusted/);
  await check("media.test", agentTrusting(trustedRoots()), /certificate is not trusted/);
  await check("media.test", agentTrusting([], true), "answers");
  await check("other.test", agentTrusting([], true), "answers");
  const paced = (allowInsecureTls: boolean, roots = [TEST_ROOT]) =>
    new PinnedAgent({ roots: () => roots, allowInsecureTls, isPaced: true });
  await check("media.test", paced(false), "answers");
  await check("127.0.0.1", paced(false), "answers");
  await check("other.test", paced(false), /certificate is for another host/);
  await check("media.test", paced(false, []), /certificate is not trusted/);
  await check("other.test", paced(true, []), "answers");

  await using elsewhere = serve(() => new Response("hello"), { hostname: "127.0.0.2" });
  using agent = agentTrusting();
  const byAddress = request(agent, `https://127.0.0.2:${elsewhere.port}/`, { addresses: ["127.0.0.2"] });
  assert.match((await failure(byAddress)).message, /certificate is for another host/);
});

Deno.test("a connection is reused only for the same name and address", async () => {
  await using server = serve(() => new Response("hello"));
  using agent = agentTrusting();
  const connectionsAfter = async (host: string, addresses: string[] = LOOPBACK) => {
    await text(await request(agent, `https://${host}:${server.port}/`, { addresses }));
    return server.connections.size;
  };
  assert.equal(await connectionsAfter("media.test"), 1);
  assert.equal(await connectionsAfter("media.test"), 1);
  assert.equal(await connectionsAfter("a.media.test"), 2);
  assert.equal(await connectionsAfter("media.test"), 2);
  assert.equal(
    await connectionsAfter("media.test", ["127.9.9.9", "127.0.0.1"]),
    2,
    "the one that answered goes first",
  );
  assert.equal(
    (await failure(connectionsAfter("media.test", ["127.9.9.9"]))).kind,
    "connect",
    "but only if it is among the checked addresses",
  );
});

Deno.test("drained answers keep the connection open, cancelled and too long ones close it", async () => {
  await using server = serve((asked) => new Response("x".repeat(Number(new URL(asked.url).search.slice(1)))));
  using agent = agentTrusting();
  const next = async (bytes: number, end: (response: PinnedResponse) => unknown) => {
    await end(await request(agent, `https://media.test:${server.port}/?${bytes}`));
    return server.connections.size;
  };
  assert.equal(await next(10, (response) => response.body.drain(1000)), 1);
  assert.equal(await next(10, (response) => response.body.drain(1000)), 1);
  assert.equal(await next(900_000, (response) => response.body.drain(1000)), 1);
  assert.equal(await next(900_000, (response) => response.body.cancel()), 2);
  assert.equal(await next(10, (response) => response.body.drain(1000)), 3);
});

Deno.test("the next address is tried only while nothing was sent", async () => {
  await using server = serve(() => new Response("hello"));
  await using cutting = serveRaw("");
  using agent = agentTrusting();
  const answer = await request(agent, `https://media.test:${server.port}/`, {
    addresses: ["127.9.9.9", "127.0.0.1"],
  });
  assert.equal(await text(answer), "hello");
  const cut = await failure(
    request(agent, `http://media.test:${cutting.port}/`, { addresses: ["127.0.0.1", "127.9.9.9"] }),
  );
  assert.equal(cut.kind, "reset");
  assert.equal((await failure(request(agent, "http://media.test:1/"))).message, "it refuses connections");
  assert.equal((await failure(request(agent, "http://media.test:1/", { addresses: [] }))).kind, "connect");
});

Deno.test("a kept connection that the server has closed is replaced", async () => {
  let server = serve(() => new Response("hello"), { isPlain: true });
  using agent = agentTrusting();
  const ask = async () => await text(await request(agent, `http://media.test:${server.port}/`));
  assert.equal(await ask(), "hello");
  const { port } = server;
  await server[Symbol.asyncDispose]();
  server = serve(() => new Response("again"), { isPlain: true, port });
  assert.equal(await ask(), "again");
  await server[Symbol.asyncDispose]();
});

Deno.test("redirects and errors are answers like any other", async () => {
  await using server = serve((asked) => {
    const status = Number(new URL(asked.url).pathname.slice(1));
    return new Response(status === 204 ? null : "body", {
      status,
      headers: { location: "http://127.0.0.1:1/" },
    });
  });
  using agent = agentTrusting();
  for (const status of [200, 204, 301, 302, 307, 308, 404, 500, 503]) {
    const response = await request(agent, `https://media.test:${server.port}/${status}`);
    assert.equal(response.status, status);
    assert.equal(response.headers.get("location"), "http://127.0.0.1:1/");
    await text(response);
  }
});

Deno.test("answers that are cut, endless or not HTTP fail with a kind", async () => {
  using agent = agentTrusting();
  const check = async (bytes: string, expected: string, afterwards?: () => unknown) => {
    for (const read of WAYS_TO_READ) {
      await using server = serveRaw(bytes, afterwards);
      const timeoutMs = expected === "timeout" ? 300 : 30_000;
      const asked = request(agent, `http://media.test:${server.port}/`, { timeoutMs });
      const { kind } = await failure(asked.then(read));
      assert.equal(kind, expected, JSON.stringify(bytes.slice(0, 40)));
    }
  };
  const hold = () => new Promise(() => {});
  const head = "HTTP/1.1 200 OK\r\n";
  await check("", "reset");
  await check("SSH-2.0-OpenSSH_9.2\r\n", "protocol");
  await check(head, "reset");
  await check(`${head}content-length: 10\r\n\r\nabc`, "reset");
  await check(`${head}transfer-encoding: chunked\r\n\r\n5\r\nab`, "reset");
  await check(`${head}content-length: x\r\n\r\nabc`, "protocol");
  await check(`${head}x: ${"y".repeat(100_000)}\r\n\r\n`, "protocol");
  await check("", "timeout", hold);
  await check(`${head}content-length: 10\r\n\r\nabc`, "timeout", hold);
  await check(`${head}content-length: 10\r\n\r\n`, "timeout", hold);
});

Deno.test("heads that are not quite HTTP are read", async () => {
  using agent = agentTrusting();
  for (
    const head of [
      "HTTP/1.1 200 OK\nContent-Length: 3\n\n",
      "HTTP/1.1 200\r\ncontent-length:3\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX-Name: K\xfcche\x01\r\nContent-Length: 3\r\n\r\n",
      "HTTP/1.0 200 OK\r\nX-Long: a\r\n b\r\n\r\n",
    ]
  ) {
    await using server = serveRaw(`${head}abc`);
    const answer = await request(agent, `http://media.test:${server.port}/`);
    assert.deepEqual([answer.status, await text(answer)], [200, "abc"], JSON.stringify(head));
  }
});

Deno.test("a server may announce its answer some times, and not without end", async () => {
  using agent = agentTrusting();
  const [goOn, hints] = ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n"];
  const answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
  {
    await using server = serveRaw((goOn + hints).repeat(4) + answer);
    assert.equal(await text(await request(agent, `http://media.test:${server.port}/`)), "hi");
  }
  for (const announcement of [goOn, hints]) {
    let isClosed = false;
    await using server = serveRaw(announcement.repeat(2000), async (connection) => {
      const more = new TextEncoder().encode(announcement.repeat(2000));
      try {
        while (true) await connection.write(more);
      } catch {
        isClosed = true;
      }
    });
    const asked = request(agent, `http://media.test:${server.port}/`, { timeoutMs: 60_000 });
    assert.equal((await failure(asked)).kind, "protocol");
    await until("the connection is closed", () => isClosed);
  }
});

Deno.test("an answer without a length ends with its connection", async () => {
  await using server = serveRaw("HTTP/1.0 200 OK\r\n\r\nabc");
  using agent = agentTrusting();
  for (const read of WAYS_TO_READ) {
    assert.equal(await read(await request(agent, `http://media.test:${server.port}/`)), "abc");
  }
});

Deno.test("what is collected ends with the first chunk beyond the limit, and the connection is closed", async () => {
  await using server = serve(() => new Response("x".repeat(900_000)));
  using agent = agentTrusting();
  const { body } = await request(agent, `https://media.test:${server.port}/`);
  const lengths = (await body.collect(100_000)).map((chunk) => chunk.length);
  const length = lengths.reduce((sum, each) => sum + each, 0);
  assert.ok(length > 100_000 && length - lengths.at(-1)! <= 100_000, String(lengths));
  (await request(agent, `https://media.test:${server.port}/`)).body.cancel();
  assert.equal(server.connections.size, 2);
});

Deno.test("a text is sent as UTF-8, with its length in bytes", async () => {
  await using server = serve(async (asked) =>
    new Response(`${asked.headers.get("content-length")} ${await asked.text()}`)
  );
  using agent = agentTrusting();
  const url = `https://media.test:${server.port}/`;
  const sent = await request(agent, url, { method: "POST", body: "größer als 1 €" });
  assert.equal(await collected(sent), "18 größer als 1 €");
  assert.equal(await collected(await request(agent, url, { method: "POST", body: "" })), "0 ");
});

Deno.test("an abort by the caller ends a request at any point, with the caller's reason", async () => {
  using agent = agentTrusting();
  const hold = () => new Promise(() => {});
  const check = async (bytes: string, when: "before" | "during") => {
    for (const read of WAYS_TO_READ) {
      await using server = serveRaw(bytes, hold);
      const controller = new AbortController();
      const reason = new Error("the run ended");
      if (when === "before") controller.abort(reason);
      const { signal } = controller;
      const asked = request(agent, `http://media.test:${server.port}/`, { signal }).then(read);
      setTimeout(() => controller.abort(reason), 50);
      await assert.rejects(asked, (error) => error === reason);
    }
  };
  await check("", "before");
  await check("", "during");
  await check("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "during");
});

Deno.test("of media sources, heads that the runtime refuses are read as players read them, and only there", async () => {
  const heads: readonly (readonly [string, boolean])[] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\n", true],
    ["HTTP/1.1 200 OK\r\nno header\r\n folded\r\nContent-Length: 5\r\nX-A: b\r\n\r\n", false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\ncontent-length:5\r\n\r\n", false],
    ["HTTP/1.1 200 OK\nX Y: z\nX-A: b\nContent-Length: 5\n\n", false],
    [
      "HTTP/1.1 100 Continue\r\nno header\r\n\r\nHTTP/1.1 200 OK\r\nno header\r\nContent-Length: 5\r\nX-A: b\r\n\r\n",
      false,
    ],
    ["ICY 200 OK\r\nX-A: b\r\n\r\n", false],
    ["ICY 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\n", false],
    ["\r\nHTTP/1.1 200OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\n", false],
    ["HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\nno header\r\n\r\n5\r\n", false],
  ];
  using media = new PinnedAgent({ roots: () => [], readsOddHeads: true });
  using other = new PinnedAgent({ roots: () => [] });
  for (const [head, isUsual] of heads) {
    const isChunked = head.includes("chunked");
    await using server = serveRaw(`${head}a\n\r\nb${isChunked ? "\r\n0\r\n\r\n" : ""}`);
    const response = await request(media, `http://media.test:${server.port}/`);
    assert.deepEqual([response.status, response.headers.get("x-a")], [200, "b"], head);
    assert.equal(await text(response), "a\n\r\nb", head);
    const strict = request(other, `http://media.test:${server.port}/`);
    if (isUsual) assert.equal(await text(await strict), "a\n\r\nb");
    else assert.match((await failure(strict)).kind, /protocol|reset/, head);
  }
  for (
    const head of [
      "HELLO\r\nno header\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    ]
  ) {
    await using server = serveRaw(`${head}hello`);
    await failure(request(media, `http://media.test:${server.port}/`));
  }
});

Deno.test("of media sources, chunks of a body are gathered, however they are cut and written", async () => {
  const chunks =
    "3;name=value\r\nabc\r\n1\nd\n00002 \r\nef\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n folded\r\n\r\n";
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const sizes: number[] = [];
  for (let step = 1; step <= chunks.length; step++) {
    const gathered = new GatheredChunks();
    let text = "";
    for (let at = 0; at < chunks.length; at += step) {
      text += DECODER.decode(gathered.take(new TextEncoder().encode(chunks.slice(at, at + step))));
    }
    assert.equal(
      DECODER.decode(gathered.take(new TextEncoder().encode("HTTP/1.1 "))),
      "HTTP/1.1 ",
      "the next answer",
    );
    await using server = serveRaw(`${head}${text}`);
    using media = new PinnedAgent({ roots: () => [], readsOddHeads: true });
    assert.equal(await textOf(media, server.port), "abcdef0123456789", `${step}`);
    sizes.push(text.length);
  }
  assert.equal(sizes.at(-1), "10\r\n\r\n0\r\n\r\n".length + 16);

  using media = new PinnedAgent({ roots: () => [], readsOddHeads: true });
  for (
    const wrong of [
      "x\r\nabc\r\n",
      "\r\nabc",
      "1\r\na\r\n-1\r\n",
      "fffffffffffffff\r\n",
      `1;${"x".repeat(17_000)}\r\n`,
    ]
  ) {
    await using server = serveRaw(`${head}${wrong}0\r\n\r\n`);
    assert.match((await failure(textOf(media, server.port))).kind, /protocol|reset/, wrong.slice(0, 20));
  }
  await using cut = serveRaw(`${head}1\r\na\r\n`);
  assert.equal((await failure(textOf(media, cut.port))).kind, "reset");
});

Deno.test("a body in many chunks of one byte comes in a few pieces, also over TLS", async () => {
  const answer = new TextEncoder().encode(
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(100_000)}0\r\n\r\n`,
  );
  const where = { hostname: "127.0.0.1", port: 0 };
  for (const scheme of ["http", "https"]) {
    using listener = scheme === "http" ? Deno.listen(where) : Deno.listenTls({ ...where, ...TEST_TLS });
    const answering = (async () => {
      using connection = await listener.accept();
      await connection.read(new Uint8Array(4096));
      for (let at = 0; at < answer.length;) at += await connection.write(answer.subarray(at));
    })();
    using media = new PinnedAgent({ roots: () => [TEST_ROOT], readsOddHeads: true });
    const { port } = listener.addr as Deno.NetAddr;
    const { body } = await request(media, `${scheme}://media.test:${port}/`);
    let [pieces, bytes] = [0, 0];
    for await (const piece of body) [pieces, bytes] = [pieces + 1, bytes + piece.length];
    await answering;
    assert.equal(bytes, 100_000);
    assert.ok(pieces < 1_000, `${scheme}: ${pieces} pieces`);
  }
});

Deno.test("a body that its reader does not take is not read on, also over TLS", async () => {
  const MIB = 2 ** 20;
  const where = { hostname: "127.0.0.1", port: 0 };
  const head = new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n");
  for (const scheme of ["http", "https"]) {
    using listener = scheme === "http" ? Deno.listen(where) : Deno.listenTls({ ...where, ...TEST_TLS });
    let sentBytes = 0;
    const sending = (async () => {
      using connection = await listener.accept();
      await connection.read(new Uint8Array(4096));
      await connection.write(head);
      const piece = new Uint8Array(MIB);
      while (sentBytes < 128 * MIB) sentBytes += await connection.write(piece);
    })().catch(() => {/* the reader has left */});
    using paced = new PinnedAgent({ roots: () => [TEST_ROOT], isPaced: true });
    const { port } = listener.addr as Deno.NetAddr;
    const going = Promise.withResolvers<void>();
    const told: number[] = [];
    const { body } = await request(paced, `${scheme}://media.test:${port}/`, {
      pace: (bytes) => (told.push(bytes), going.promise),
    });
    const first = body[Symbol.asyncIterator]().next();
    let before = -1;
    await until("no more is taken", async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      const isStill = before === sentBytes && told.length > 0;
      before = sentBytes;
      return isStill;
    });
    // What the system keeps of both sides, and some pieces of the runtime.
    assert.ok(sentBytes < 32 * MIB, `${scheme}: ${sentBytes} bytes`);
    assert.equal(told.length, 1);
    going.resolve();
    assert.ok((await first).value!.length > 0);
    body.cancel();
    await sending;
  }
});

Deno.test("what a paced TLS connection brings is what was sent, with pauses and without", async () => {
  const film = Uint8Array.from({ length: 24 * 2 ** 20 }, (_, at) => (at * 31 + (at >> 9)) & 0xff);
  await using server = serve(() => new Response(film));
  using media = new PinnedAgent({ roots: () => [TEST_ROOT], readsOddHeads: true, isPaced: true });
  for (const pauseMs of [0, 5]) {
    const { body } = await request(media, `https://media.test:${server.port}/`, {
      pace: () => pauseMs === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, pauseMs)),
    });
    const pieces: Uint8Array[] = [];
    for await (const piece of body) pieces.push(piece.slice());
    assert.ok(areSameBytes(joinedBytes(...pieces), film));
  }
  assert.equal(server.connections.size, 1, "one connection for both");
});

Deno.test("odd heads come in pieces, one after the other on one connection", async () => {
  using media = new PinnedAgent({ roots: () => [], readsOddHeads: true });
  const answer = new TextEncoder().encode(
    "HTTP/1.1 200 OK\r\nno header\r\nContent-Length: 7\r\n\r\nODD\r\n\r\n",
  );
  await using server = serveRaw(answer.subarray(0, 1), async (connection) => {
    for (let at = 1; at < answer.length; at++) await connection.write(answer.subarray(at, at + 1));
    for (let answers = 0; answers < 2; answers++) {
      await connection.read(new Uint8Array(4096));
      await connection.write(answer);
    }
  });
  for (let answers = 0; answers < 3; answers++) {
    const response = await request(media, `http://media.test:${server.port}/`);
    assert.equal(await text(response), "ODD\r\n\r\n");
  }
});
