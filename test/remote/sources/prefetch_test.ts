import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { realWorld } from "../../../src/base/world.ts";
import type { Resolve } from "../../../src/remote/guard/address_guard.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { prefetch } from "../../../src/remote/sources/prefetch.ts";
import { type LoopbackServer, serve, serveRaw, TEST_ROOT } from "../../support/http/tls_server.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const PUBLIC = "93.184.216.34";
const LIMIT_BYTES = 256 * 2 ** 20;

interface FetchSetup {
  resolve?: Resolve;
  /** How many times faster than real time the deadline runs. */
  timerSpeed?: number;
  signal?: AbortSignal;
  roots?: string[];
  sink?: (bytes: Uint8Array) => Promise<void>;
}

/** The text that was fetched, or the reason of the refusal. Every public address is rerouted to loopback. */
async function fetched(url: string, setup: FetchSetup = {}): Promise<string> {
  const { timerSpeed = 1, signal = NEVER_ABORTED, roots = [TEST_ROOT] } = setup;
  const real = realWorld(quietLog());
  const world = { ...real, sleep: (ms: number, over?: AbortSignal) => real.sleep(ms / timerSpeed, over) };
  using agent = new PinnedAgent({ roots: () => roots, reroute: () => "127.0.0.1", isPaced: true });
  const resolve: Resolve = setup.resolve ??
    ((host) =>
      host.endsWith("media.test") ? Promise.resolve([PUBLIC]) : Promise.reject(new Error("unknown")));
  const decoder = new TextDecoder();
  let text = "";
  try {
    const sink = setup.sink ??
      ((bytes) => Promise.resolve(void (text += decoder.decode(bytes, { stream: true }))));
    await prefetch({ kind: "file", url: new URL(url) }, sink, {
      world,
      agent,
      resolve,
      allowedNetworks: [],
      signal,
    });
    return text;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    assert.equal(error.details[0]!.field, "source_uri");
    const message = error.message.replace(/\S+ is not a public address/, "");
    assert.doesNotMatch(
      message,
      /127\.0\.0\.1|93\.184|E[A-Z]{5,}/,
      "the message names nothing of the machine",
    );
    return error.details[0]!.message;
  }
}

const location = (target: string, status = 302) =>
  new Response(null, { status, headers: { location: target } });

Deno.test("a remote file is fetched by https, and by http where the redirect does not come from https", async () => {
  await using server = serve(() => new Response("film"));
  await using plain = serve(() => new Response("plain film"), { isPlain: true });
  assert.equal(await fetched(`https://media.test:${server.port}/a.mp4?b=c`), "film");
  assert.equal(
    await fetched(`http://media.test:${plain.port}/a.mp4`),
    "plain film",
  );
  const [asked] = server.requests;
  assert.equal(asked!.url, `https://media.test:${server.port}/a.mp4?b=c`);
  assert.equal(asked!.headers.get("accept-encoding"), "identity");
  assert.equal(asked!.headers.get("authorization"), null);
});

Deno.test("at most five redirects are followed, and each target is checked like the first", async () => {
  await using plain = serve(() => new Response("plain film"), { isPlain: true });
  const targets: Record<string, () => string> = {
    "/relative": () => "/film",
    "/relative2": () => "film",
    "/absolute": () => `https://deep.media.test:${server.port}/film`,
    "/schemeless": () => `//media.test:${server.port}/film`,
    "/loop": () => "/loop",
    "/private": () => "https://10.0.0.1/film",
    "/private6": () => "https://[fd00::1]/film",
    "/metadata": () => "https://169.254.169.254/latest/meta-data/",
    "/octal": () => "https://017700000001/film",
    "/localhost": () => `https://localhost:${server.port}/film`,
    "/unknown": () => "https://unknown.example/film",
    "/user": () => `https://user:pass@media.test:${server.port}/film`,
    "/downgrade": () => `http://media.test:${plain.port}/film`,
    "/file": () => "file:///etc/passwd",
    "/ftp": () => "ftp://media.test/film",
    "/data": () => "data:video/mp4,film",
    "/rtsp": () => "rtsp://media.test/film",
    "/gopher": () => "gopher://media.test:25/x",
    "/invalid": () => "https://[::1",
    "/empty": () => "",
  };
  await using server: LoopbackServer = serve((request) => {
    const { pathname } = new URL(request.url);
    const [, hops] = /^\/hops\/(\d+)$/.exec(pathname) ?? [];
    if (hops !== undefined && hops !== "0") return location(`/hops/${Number(hops) - 1}`);
    const [, status] = /^\/status\/(\d+)$/.exec(pathname) ?? [];
    if (status !== undefined) return location("/film", Number(status));
    if (pathname === "/nowhere") return new Response(null, { status: 302 });
    return targets[pathname] ? location(targets[pathname]()) : new Response("film");
  });
  const check = async (path: string, expected: string | RegExp, setup: FetchSetup = {}) => {
    const got = await fetched(`https://media.test:${server.port}${path}`, setup);
    if (typeof expected === "string") assert.equal(got, expected, path);
    else assert.match(got, expected, path);
  };
  for (const path of ["/relative", "/relative2", "/absolute", "/schemeless", "/hops/0", "/hops/5"]) {
    await check(path, "film");
  }
  for (const status of [301, 302, 303, 307, 308]) await check(`/status/${status}`, "film");
  for (const status of [300, 304, 305]) {
    await check(`/status/${status}`, new RegExp(`answered HTTP ${status}`));
  }
  const before = server.requests.length;
  await check("/hops/6", /redirected more than 5 times/);
  assert.equal(server.requests.length - before, 6, "the seventh address is not asked");
  await check("/loop", /redirected more than 5 times|nowhere/);
  for (const path of ["/private", "/private6", "/metadata", "/octal"]) {
    await check(path, /not a public address/);
  }
  await check("/localhost", /names this machine/);
  await check("/unknown", /cannot be resolved/);
  await check("/user", /user name or password/);
  await check("/downgrade", /from https to http/);
  for (const path of ["/file", "/ftp", "/data", "/rtsp", "/gopher"]) {
    await check(path, /redirected to the scheme/);
  }
  for (const path of ["/invalid", "/nowhere"]) await check(path, /redirected to nowhere/);
  assert.equal(plain.requests.length, 0);
});

Deno.test("a name is looked up once for each hop, and a later change of its addresses has no effect", async () => {
  await using server = serve(() => new Response("film"));
  const lookups: string[] = [];
  const rebinding: Resolve = (host) => {
    lookups.push(host);
    return Promise.resolve(lookups.length === 1 ? [PUBLIC] : ["10.0.0.1"]);
  };
  assert.equal(await fetched(`https://media.test:${server.port}/film`, { resolve: rebinding }), "film");
  assert.deepEqual(lookups, ["media.test"]);
  const again: string[] = [];
  const perHop: Resolve = (host) => Promise.resolve(again.push(host) === 1 ? [PUBLIC] : ["10.0.0.1"]);
  await using redirecting = serve(() => location("/film"));
  assert.match(
    await fetched(`https://media.test:${redirecting.port}/`, { resolve: perHop }),
    /cannot be resolved to public addresses/,
  );
  assert.equal(redirecting.requests.length, 1);
});

Deno.test("an answer that is not a whole file is refused with its reason", async () => {
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(2 ** 20)),
    });
  const answers: Record<string, () => Response> = {
    "/404": () => new Response("nothing here", { status: 404 }),
    "/500": () => new Response("oh", { status: 500 }),
    "/206": () => new Response("part", { status: 206 }),
    "/204": () => new Response(null, { status: 204 }),
    "/empty": () => new Response(""),
    "/endless": () => new Response(endless()),
    "/gzip": () => new Response("x", { headers: { "content-encoding": "gzip" } }),
  };
  await using server = serve((request) => answers[new URL(request.url).pathname]!());
  const check = async (path: string, expected: RegExp) => {
    const sink = () => Promise.resolve();
    assert.match(await fetched(`https://media.test:${server.port}${path}`, { sink }), expected, path);
  };
  for (const status of ["404", "500", "206", "204"]) {
    await check(`/${status}`, new RegExp(`answered HTTP ${status}`));
  }
  await check("/empty", /file is empty/);
  await check("/endless", /larger than 256 MiB/);
  await check("/gzip", /compressed/);
});

Deno.test("the declared length decides before anything is received, and a length up to the limit is accepted", async () => {
  const check = async (declared: string, expected: RegExp) => {
    await using server = serveRaw(`HTTP/1.1 200 OK\r\ncontent-length: ${declared}\r\n\r\nabc`);
    let receivedBytes = 0;
    const sink = (bytes: Uint8Array) => Promise.resolve(void (receivedBytes += bytes.length));
    const setup = { sink };
    assert.match(await fetched(`http://media.test:${server.port}/`, setup), expected, declared);
    return receivedBytes;
  };
  assert.equal(await check(String(LIMIT_BYTES + 1), /larger than 256 MiB/), 0);
  assert.equal(await check("99999999999999999", /larger than 256 MiB/), 0);
  assert.equal(await check(String(LIMIT_BYTES), /connection was cut/), 3);
  assert.equal(await check("0", /file is empty/), 0);
});

Deno.test("a slow server, a cut connection and an untrusted certificate have different reasons", async () => {
  const hold = () => new Promise(() => {});
  const head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n";
  const check = async (bytes: string, expected: RegExp, afterwards?: () => unknown) => {
    await using server = serveRaw(bytes, afterwards);
    // Of 30 s only those are made short that are waited for.
    const timerSpeed = afterwards === hold ? 100 : 1;
    assert.match(await fetched(`http://media.test:${server.port}/`, { timerSpeed }), expected, bytes);
  };
  await check("", /took longer than 30 s/, hold);
  await check(head, /took longer than 30 s/, hold);
  await check(`${head}abc`, /took longer than 30 s/, hold);
  await check(`${head}abc`, /connection was cut/);
  await check("", /connection was cut/);
  await check("220 mail.example ESMTP\r\n", /not HTTP/);
  await using server = serve(() => new Response("film"));
  const url = `https://media.test:${server.port}/`;
  assert.match(await fetched(url, { roots: [] }), /certificate is not trusted/);
  assert.match(
    await fetched(url, { resolve: () => new Promise(() => {}), timerSpeed: 100 }),
    /longer than 30 s|within/,
  );
  assert.match(await fetched("https://media.test:1/"), /refuses connections/);
});

Deno.test("an abort rejects with its reason, and a failing sink with the sink's error", async () => {
  await using server = serveRaw(
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
    () => new Promise(() => {}),
  );
  const url = `http://media.test:${server.port}/`;
  const controller = new AbortController();
  const stop = () => Promise.resolve(controller.abort(new Error("the run ended")));
  await assert.rejects(
    fetched(url, { signal: controller.signal, sink: stop }),
    /the run ended/,
  );
  const full = () => Promise.reject(new Error("disk full"));
  await assert.rejects(fetched(url, { sink: full }), /disk full/);
});
