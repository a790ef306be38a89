/** What a hostile playlist server can make the relay do, seen by the program that reads through it. */

import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { realWorld } from "../../../src/base/world.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import type { HlsProgress } from "../../../src/remote/sources/hls_progress.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { HlsRelay } from "../../../src/remote/sources/hls_relay.ts";
import { type LoopbackServer, serve, serveRaw } from "../../support/http/tls_server.ts";
import { until } from "../../support/until.ts";

const LIST = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n";

/** A relay whose source is `/a.m3u8` of the port; public addresses are rerouted to loopback. */
async function opened(
  port: number,
  world = realWorld(quietLog()),
  { before = null, endsStill = false }: { before?: HlsProgress | null; endsStill?: boolean } = {},
) {
  const agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
  try {
    const relay = await HlsRelay.open(new URL(`http://media.test:${port}/a.m3u8`), {
      world,
      agent,
      resolve: (host) =>
        host === "media.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
      allowedNetworks: [],
      signal: NEVER_ABORTED,
    }, { before, endsStill });
    return {
      relay,
      read: async (url = relay.url) => {
        const response = await fetch(url);
        return { status: response.status, text: await response.text() };
      },
      async [Symbol.asyncDispose]() {
        await relay[Symbol.asyncDispose]();
        agent[Symbol.dispose]();
      },
    };
  } catch (error) {
    agent[Symbol.dispose]();
    throw error;
  }
}

/** The first address of a playlist. */
function addressOf(playlist: string): string {
  return /^http:.*$/m.exec(playlist)![0];
}

function reasonOf(error: unknown): string {
  assert.ok(error instanceof Refusal, String(error));
  assert.equal(error.details[0]!.field, "source_uri");
  return error.details[0]!.message;
}

/** Why a source with this playlist is refused before anything else is asked for. */
async function refusedAtOnce(answer: () => Response): Promise<string> {
  await using server: LoopbackServer = serve(answer, { isPlain: true });
  const error = await opened(server.port).then(async (test) => {
    await test[Symbol.asyncDispose]();
    assert.fail("opened");
  }, (reason) => reason);
  assert.equal(server.requests.length, 1);
  return reasonOf(error);
}

/** What the reader gets of a part with this answer, and why. */
async function part(
  answer: (request: Request) => Response,
): Promise<{ status: number; fault: string | null; text: string }> {
  const list = () => new Response(`${LIST}#EXTINF:1,\npart.ts\n`);
  await using server: LoopbackServer = serve(
    (request) => request.url.endsWith(".m3u8") ? list() : answer(request),
    { isPlain: true },
  );
  await using test = await opened(server.port);
  const { text: playlist } = await test.read();
  const { status, text } = await test.read(addressOf(playlist));
  const { fault } = test.relay;
  return { status, text, fault: fault ? reasonOf(fault) : null };
}

/** A part of MPEG-TS that has its tables and no packets. */
function tablesOf(streamType: number): Uint8Array<ArrayBuffer> {
  const section = (pid: number, table: readonly number[], body: readonly number[]) => {
    const head = [0x47, 0x40 | pid >> 8, pid & 255, 0x10, 0, ...table, 0xb0, body.length + 4];
    return [...head, ...body, ...new Array<number>(188 - head.length - body.length).fill(0xff)];
  };
  return Uint8Array.from([
    ...section(0, [0], [0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0]),
    ...section(0x1000, [2], [0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0, streamType, 0xe1, 0, 0xf0, 0]),
  ]);
}

Deno.test("a live source that changes its codec ends there, and the next connection begins with the part of the other one", async () => {
  const parts = [0x1b, 0x1b, 0x24, 0x24].map(tablesOf);
  let end = "";
  const list = () => `${LIST}${parts.map((_, at) => `#EXTINF:1,\n${at}.ts\n`).join("")}${end}`;
  await using server: LoopbackServer = serve((request) => {
    const part = /(\d)\.ts$/.exec(request.url);
    return new Response(part ? parts[Number(part[1])] : list());
  }, { isPlain: true });
  const addresses = (playlist: string) => [...playlist.matchAll(/^http:.*$/mg)].map(([address]) => address);
  await using first = await opened(server.port);
  const given: number[] = [];
  for (const address of addresses((await first.read()).text)) given.push((await first.read(address)).status);
  assert.deepEqual(given, [200, 200, 404, 404]);
  assert.equal((await first.read()).status, 404);
  assert.equal(first.relay.end, "it sends another codec");

  await using second = await opened(server.port, realWorld(quietLog()), { before: first.relay.progress });
  const rest = addresses((await second.read()).text);
  assert.equal(rest.length, 2);
  for (const address of rest) assert.equal((await second.read(address)).status, 200);
  assert.equal(second.relay.end, undefined);

  // A film goes on behind a part of another codec, such as an advertisement.
  end = "#EXT-X-ENDLIST\n";
  await using film = await opened(server.port);
  for (const address of addresses((await film.read()).text)) {
    assert.equal((await film.read(address)).status, 200);
  }
});

const redirect = (target: string) => new Response(null, { status: 302, headers: { location: target } });

Deno.test("playlists that are too long in any way are refused at once", async () => {
  const playlist = (text: string) => refusedAtOnce(() => new Response(text));
  assert.match(await playlist(`${LIST}${"#\n".repeat(5 * 2 ** 20)}`), /playlist is too long/);
  assert.match(await playlist(`${LIST}${"#EXTINF:1,\ns.ts\n".repeat(100_000)}`), /too many parts/);
  assert.match(await playlist(`${LIST}#EXTINF:1,\n${"s".repeat(100_000)}.ts\n`), /address in it is too long/);
  assert.match(await playlist(`${LIST}#EXT-X-KEY:METHOD=NONE,URI="${"s".repeat(100_000)}"\n`), /too long/);
  assert.match(await playlist(`${LIST}${"\n".repeat(2 ** 20)}`), /too many lines/);
});

Deno.test("a playlist that does not end is refused when it has become too long", async () => {
  let sent = 0;
  const endless = () =>
    new Response(
      new ReadableStream({
        pull: (controller) =>
          controller.enqueue(new TextEncoder().encode(sent++ === 0 ? LIST : "#\n".repeat(2 ** 15))),
      }),
    );
  assert.match(await refusedAtOnce(endless), /playlist is too long/);
  assert.ok(sent < 1000, `${sent} pieces of 64 KiB`);
});

Deno.test("what comes compressed is unpacked, and never to more than its bound", async () => {
  const small = new Response(
    new Blob([`${LIST}${"#\n".repeat(100)}`]).stream().pipeThrough(new CompressionStream("gzip")),
  );
  const packed = new Uint8Array(await small.arrayBuffer());
  const headers = { "content-encoding": "gzip" };
  const bombed = new Blob([`${LIST}${"#\n".repeat(5 * 2 ** 20)}`]).stream()
    .pipeThrough(new CompressionStream("gzip"));
  const bombBytes = new Uint8Array(await new Response(bombed).arrayBuffer());
  assert.match(await refusedAtOnce(() => new Response(bombBytes, { headers })), /playlist is too long/);
  assert.match(await refusedAtOnce(() => new Response("words", { headers })), /cannot be unpacked/);
  const brotli = { "content-encoding": "br" };
  assert.match(await refusedAtOnce(() => new Response(packed, { headers: brotli })), /sends it compressed/);
  const { status, text } = await part(() => new Response(packed, { headers }));
  assert.deepEqual([status, text.startsWith("#EXTM3U\n")], [200, true]);
  const media = new Blob([Uint8Array.from({ length: 188 * 8 }, (_, at) => at % 188 === 0 ? 0x47 : 1)]);
  const packedMedia = new Response(media.stream().pipeThrough(new CompressionStream("deflate")));
  const bytes = new Uint8Array(await packedMedia.arrayBuffer());
  const unpacked = await part(() => new Response(bytes, { headers: { "content-encoding": "deflate" } }));
  assert.deepEqual([unpacked.status, unpacked.text.length], [200, 188 * 8]);
});

Deno.test("each redirect of a playlist or a part is checked, and there are five at most", async () => {
  assert.match(await refusedAtOnce(() => redirect("http://10.0.0.1/a.m3u8")), /not a public address/);
  for (
    const [target, reason] of [
      ["/part.ts", /redirected more than 5 times/],
      ["http://10.0.0.1/", /not a public address/],
      ["file:///etc/passwd", /redirected to the scheme file/],
      ["http://", /redirected to nowhere/],
    ] as const
  ) {
    const { status, fault } = await part(() => redirect(target));
    assert.equal(status, 502, target);
    assert.match(fault!, reason);
  }
});

/** A server of these answers by path; every other path is 404. */
function serveFiles(files: Readonly<Record<string, (request: Request) => Response>>): LoopbackServer {
  return serve((request) => {
    const answer = files[new URL(request.url).pathname];
    return answer ? answer(request) : new Response(null, { status: 404 });
  }, { isPlain: true });
}

const MEDIA = Uint8Array.from({ length: 188 * 8 }, (_, at) => at % 188 === 0 ? 0x47 : 0);

Deno.test("addresses are relative to where a redirect has led, and cookies go back to the server that set them", async () => {
  await using other = serveFiles({ "/part.ts": () => new Response(MEDIA) });
  await using server = serveFiles({
    "/a.m3u8": () =>
      new Response(null, {
        status: 302,
        headers: { location: "/deep/b.m3u8", "set-cookie": "way=1; Path=/" },
      }),
    "/deep/b.m3u8": () => {
      const headers = new Headers({ "set-cookie": "login=2" });
      headers.append("set-cookie", "gone=3; Max-Age=0");
      headers.append("set-cookie", "safe=4; Secure");
      headers.append("set-cookie", "far=5; Domain=example.com");
      return new Response(
        `${LIST}#EXTINF:1,\npart.ts\n#EXTINF:1,\n/top.ts\n#EXTINF:1,\nhttp://media.test:${other.port}/part.ts\n`,
        { headers },
      );
    },
    "/deep/part.ts": () => new Response(MEDIA),
    "/top.ts": () => new Response(MEDIA),
  });
  await using test = await opened(server.port);
  const { text } = await test.read();
  for (const [address] of text.matchAll(/^http:.*$/gm)) {
    assert.equal((await test.read(address)).status, 200);
  }
  const sent = [...server.requests.slice(-2), ...other.requests].map(({ url, headers }) => [
    new URL(url).pathname,
    headers.get("cookie"),
  ]);
  assert.deepEqual(sent, [["/deep/part.ts", "login=2; way=1"], ["/top.ts", "way=1"], ["/part.ts", null]]);
});

Deno.test("of a master playlist the best variant that can be read is taken, with its sound", async () => {
  const variant = (attributes: string, uri: string) => `#EXT-X-STREAM-INF:${attributes}\n${uri}\n`;
  const sound = (name: string, group: string, more: string) =>
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",URI="${name}.m3u8"${more}\n`;
  const media = () => new Response(`${LIST}#EXTINF:1,\npart.ts\n`);
  await using server = serveFiles({
    "/a.m3u8": () =>
      new Response(
        `#EXTM3U\n${sound("other", "low", ",DEFAULT=YES")}${sound("first", "hi", "")}${
          sound("main", "hi", ",DEFAULT=YES")
        }` +
          variant("BANDWIDTH=100,RESOLUTION=106x60", "low.m3u8") +
          variant('BANDWIDTH=900,RESOLUTION=214x120,AUDIO="hi"', "best.m3u8") +
          variant("BANDWIDTH=800,RESOLUTION=214x120", "good.m3u8") +
          variant("BANDWIDTH=9000,RESOLUTION=1920x1080", "missing.m3u8") +
          variant('BANDWIDTH=9000,RESOLUTION=3840x2160,CODECS="vvc1.1.L60,mp4a.40.2"', "unknown.m3u8") +
          variant('BANDWIDTH=9900,CODECS="mp4a.40.2"', "sound.m3u8") +
          '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9,RESOLUTION=7680x4320,URI="frames.m3u8"\n',
      ),
    ...Object.fromEntries(
      ["low", "best", "good", "unknown", "sound", "frames", "main", "first", "other"].map((name) => [
        `/${name}.m3u8`,
        media,
      ]),
    ),
  });
  await using test = await opened(server.port);
  const { text } = await test.read();
  const addresses = text.match(/http:[^"\n]*/g)!;
  assert.equal(addresses.length, 2, text);
  const seen = server.requests.length;
  for (const address of addresses) assert.equal((await test.read(address)).status, 200);
  const paths = server.requests.slice(seen).map(({ url }) => new URL(url).pathname);
  assert.deepEqual(paths, ["/main.m3u8", "/best.m3u8"]);
});

Deno.test("a variant that does not say what it is and has no picture is left for the next one", async () => {
  const variants = (names: readonly string[]) =>
    new Response(
      `#EXTM3U\n${
        names.map((name, at) => `#EXT-X-STREAM-INF:BANDWIDTH=${900 - at}\n${name}.m3u8\n`).join("")
      }`,
    );
  let names = ["sound", "bare", "picture", "low"];
  const sound = tablesOf(0x0f);
  await using server = serveFiles({
    "/a.m3u8": () => variants(names),
    "/sound.m3u8": () => new Response(`${LIST}#EXTINF:1,\nsound.ts\n`),
    "/bare.m3u8": () => new Response(`${LIST}#EXTINF:1,\nbare.aac\n`),
    "/picture.m3u8": () => new Response(`${LIST}#EXTINF:1,\npicture.ts\n`),
    "/low.m3u8": () => new Response(`${LIST}#EXTINF:1,\npicture.ts\n`),
    "/gone.m3u8": () => new Response(`${LIST}#EXTINF:1,\ngone.ts\n`),
    "/sound.ts": () => new Response(Uint8Array.from([...sound, ...sound])),
    "/bare.aac": () => new Response(Uint8Array.from([0xff, 0xf1, 0x50])),
    "/picture.ts": () => new Response(tablesOf(0x1b)),
  });
  const taken = async (given: readonly string[]) => {
    names = [...given];
    await using test = await opened(server.port);
    await test.read(addressOf((await test.read()).text));
    return server.requests.map(({ url }) => /(\w+)\.m3u8$/.exec(url)?.[1]).at(-1);
  };
  assert.equal(await taken(names), "picture");
  assert.equal(await taken(["sound", "bare"]), "sound");
  assert.equal(await taken(["sound", "gone", "low"]), "low", "one whose part is not there");
});

Deno.test("all pictures of a variant are given to the reader, and none as the default one", async () => {
  const rendition = (type: string, group: string, name: string) =>
    `#EXT-X-MEDIA:TYPE=${type},GROUP-ID="${group}",NAME="${name}",DEFAULT=YES,URI="${name}.m3u8"\n`;
  await using server = serveFiles({
    "/a.m3u8": () =>
      new Response(
        `#EXTM3U\n${rendition("VIDEO", "v", "small")}${rendition("VIDEO", "w", "other")}${
          rendition("VIDEO", "v", "large")
        }${rendition("AUDIO", "v", "sound")}#EXT-X-STREAM-INF:BANDWIDTH=9,VIDEO="v"\nown.m3u8\n`,
      ),
    ...Object.fromEntries(["own", "small", "large"].map((name) => [
      `/${name}.m3u8`,
      () => new Response(`${LIST}#EXTINF:1,\npart.ts\n`),
    ])),
  });
  await using test = await opened(server.port);
  const { text } = await test.read();
  assert.deepEqual(text.match(/DEFAULT=\w+/g), ["DEFAULT=NO", "DEFAULT=NO"]);
  for (const [address] of text.matchAll(/http:[^"\n]*/g)) {
    assert.equal((await test.read(address)).status, 200);
  }
  const asked = server.requests.map(({ url }) => /(\w+)\.m3u8$/.exec(url)?.[1]);
  assert.deepEqual(asked.slice(-3), ["own", "small", "large"]);
});

Deno.test("parts may have any name", async () => {
  const names = ["part", "pic.jpg", "a.ts?x=1", "part.php?n=2", "sound.aac"];
  const parts = names.map((name) => `#EXTINF:1,\n${name}\n`).join("");
  await using server = serveFiles({
    "/a.m3u8": () => new Response(`${LIST}${parts}`),
    "/part": () => new Response(MEDIA),
  });
  await using test = await opened(server.port);
  const { text } = await test.read();
  const addresses = text.match(/http:.*/g)!;
  assert.deepEqual(addresses.map((address) => address.split("/").at(-1)), [
    ...["part.ts", "part.ts", "part.ts", "part.ts", "part.aac"],
  ]);
  assert.equal((await test.read(addresses[0])).status, 200);
});

Deno.test("a part that is not there yet is asked for again, one that its playlist calls missing is not", async () => {
  let asked = 0;
  await using server = serveFiles({
    "/a.m3u8": () =>
      new Response(`${LIST}#EXTINF:1,\nlate.ts\n#EXT-X-GAP\n#EXTINF:1,\ngap.ts\n#EXTINF:1,\nend.ts\n`),
    "/late.ts": () => asked++ === 0 ? new Response(null, { status: 404 }) : new Response(MEDIA),
    "/end.ts": () => new Response(MEDIA),
  });
  await using test = await opened(server.port);
  const { text } = await test.read();
  const statuses: number[] = [];
  for (const [address] of text.matchAll(/^http:.*$/gm)) statuses.push((await test.read(address)).status);
  assert.deepEqual(statuses, [200, 404, 200]);
  assert.equal(test.relay.fault, undefined);
  assert.ok(!server.requests.some(({ url }) => url.endsWith("gap.ts")));
});

Deno.test("a film tells of a part that its playlist calls missing, and of one that is empty", async () => {
  const films = {
    "its playlist says that a part of it is missing": "#EXT-X-GAP\n#EXTINF:1,\ngap.ts\n",
    "something that its playlist names: it is empty": "#EXTINF:1,\nempty.ts\n",
  };
  for (const [fault, parts] of Object.entries(films)) {
    await using server = serveFiles({
      "/a.m3u8": () => new Response(`${LIST}${parts}#EXTINF:1,\nend.ts\n#EXT-X-ENDLIST\n`),
      "/empty.ts": () => new Response(""),
      "/end.ts": () => new Response(MEDIA),
    });
    await using test = await opened(server.port);
    const { text } = await test.read();
    for (const [address] of text.matchAll(/^http:.*$/gm)) await test.read(address);
    assert.equal(reasonOf(test.relay.fault), fault);
  }
});

Deno.test("an encrypted playlist is refused as that", async () => {
  const keys = ['METHOD=AES-128,URI="key.bin"', 'URI="key.bin",METHOD=SAMPLE-AES'];
  for (const key of keys) {
    const text = `${LIST}#EXT-X-KEY:${key}\n#EXTINF:1,\na.ts\n#EXT-X-ENDLIST\n`;
    assert.equal(
      await refusedAtOnce(() => new Response(text)),
      "its media are encrypted, which is not supported",
    );
  }
});

Deno.test("a part that is a playlist in disguise does not reach the reader, nor does a half of one", async () => {
  const nested = `${LIST}#EXTINF:1,\nhttp://10.0.0.1/x.ts\n`;
  const tag = `ID3\x03\0\0\0\0\0\x04abcd`;
  for (const body of [`${tag}${nested}`, "#EXT", nested.slice(4), `${tag}`, "<html>", "{}"]) {
    const { status, text, fault } = await part(() => new Response(body));
    assert.deepEqual([status, text], [502, ""], body);
    assert.match(fault!, /something that its playlist names: it is neither media nor a playlist/);
  }
  const { status, text } = await part(() => new Response(nested));
  assert.equal(status, 200);
  assert.match(
    text,
    /^#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp:\/\/127\.0\.0\.1:\d+\/\w+\/3\/part\.ts\n/,
  );
});

Deno.test("a playlist that becomes one in disguise after it was checked does not reach the reader", async () => {
  let asked = 0;
  const nested = `ID3\x03\0\0\0\0\0\x04abcd${LIST}#EXTINF:1,\nhttp://10.0.0.1/x.ts\n`;
  await using server: LoopbackServer = serve(
    () => new Response(asked++ === 0 ? `${LIST}#EXTINF:1,\ns.ts\n` : nested),
    { isPlain: true },
  );
  await using test = await opened(server.port);
  assert.deepEqual(await test.read(), { status: 502, text: "" });
});

Deno.test("a playlist may become another kind of playlist, and every address in it is still the relay's", async () => {
  let asked = 0;
  const kinds = [
    `${LIST}#EXTINF:1,\ns.ts\n`,
    '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nhttp://10.0.0.1/v.m3u8\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",URI="file:///etc/passwd"\n',
    "words",
  ];
  await using server: LoopbackServer = serve(() => new Response(kinds[Math.min(asked++, 2)]), {
    isPlain: true,
  });
  await using test = await opened(server.port);
  const { text } = await test.read();
  assert.doesNotMatch(text, /10\.0\.0\.1|file:/);
  const addresses = text.match(/http:[^"\n]*/g)!;
  assert.equal(addresses.length, 2);
  for (const address of addresses) assert.deepEqual(await test.read(address), { status: 502, text: "" });
  assert.match(reasonOf(test.relay.fault), /not a public address/);
  assert.deepEqual(await test.read(), { status: 502, text: "" });
  assert.equal(server.requests.length, 3, "neither of the two was asked for");
});

Deno.test("a part that never ends is cut off at its largest size", async () => {
  const piece = new Uint8Array(2 ** 22);
  for (let at = 0; at < piece.length; at += 188) piece[at] = 0x47;
  let [sent, received] = [0, 0];
  const list = () => new Response(`${LIST}#EXTINF:1,\npart.ts\n`);
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          sent++;
          controller.enqueue(piece);
        },
      }, { highWaterMark: 0 }),
    );
  await using server = serve(({ url }) => url.endsWith(".m3u8") ? list() : endless(), { isPlain: true });
  await using test = await opened(server.port);
  const response = await fetch(addressOf((await test.read()).text));
  await assert.rejects(async () => {
    for await (const bytes of response.body!) received += bytes.length;
  });
  assert.ok(received > 255 * 2 ** 20 && received <= 256 * 2 ** 20, `${received} bytes`);
  assert.ok(sent < 80);
  assert.match(reasonOf(test.relay.fault), /a part of it is too large/);
});

Deno.test("a broken or endless head of an answer ends that part only", async () => {
  await using raw = serveRaw(`HTTP/1.1 200 OK\r\n${"X-Y: z\r\n".repeat(20_000)}`);
  await using server: LoopbackServer = serve(
    () => new Response(`${LIST}#EXTINF:1,\nhttp://media.test:${raw.port}/s.ts\n`),
    { isPlain: true },
  );
  await using test = await opened(server.port);
  const { text } = await test.read();
  assert.equal((await test.read(addressOf(text))).status, 502);
  assert.ok(test.relay.fault);
  assert.equal((await test.read()).status, 200);
});

Deno.test("a source whose playlists are read again and again waits, and the longer they are the longer", async () => {
  const real = realWorld(quietLog());
  const waits: number[] = [];
  const world = {
    ...real,
    monotonicMs: () => 0,
    sleep: (ms: number, signal?: AbortSignal) => {
      if (signal && ms < 30_000) waits.push(Math.round(ms));
      return ms < 30_000 ? Promise.resolve() : real.sleep(ms, signal);
    },
  };
  let parts = 1;
  await using server: LoopbackServer = serve(
    () => new Response(`${LIST}${"#EXTINF:1,\ns.ts\n".repeat(parts)}`),
    { isPlain: true },
  );
  await using test = await opened(server.port, world);
  for (let request = 0; request < 90; request++) await test.read();
  assert.deepEqual(waits, [], "the first requests are free");
  assert.equal(test.relay.end, undefined);
  for (let request = 0; request < 15; request++) await test.read();
  const waitedMs = waits.at(-1)!;
  assert.ok(waitedMs > 20 && waitedMs < 100, `${waits}`);
  assert.match(test.relay.end!, /^its server sends more than one source may/);
  parts = LIMITS.sources.budget.addressesPerSecond;
  await test.read();
  await test.read();
  const addressesMs = waits.at(-1)! - waitedMs;
  assert.ok(addressesMs > 1000 && addressesMs < 1100, `the addresses of a second cost one: ${waits}`);
});

Deno.test("addresses that are not the relay's own are not served", async () => {
  await using server: LoopbackServer = serve(() => new Response(`${LIST}#EXTINF:1,\ns.ts\n`), {
    isPlain: true,
  });
  await using test = await opened(server.port);
  const { origin, pathname } = new URL(test.relay.url);
  const secret = pathname.split("/")[1];
  for (
    const path of [
      "/",
      "/1/part.m3u8",
      `/${secret}/999/part`,
      `/${secret}/0/x`,
      `/${secret}x/1/part`,
      `/${secret}/../1`,
    ]
  ) {
    assert.equal((await test.read(`${origin}${path}`)).status, 404, path);
  }
  const posted = await fetch(test.relay.url, { method: "POST" });
  assert.deepEqual([posted.status, await posted.text()], [404, ""]);
});

Deno.test("a source that is opened again has what was not read, and is refused where there is nothing else", async () => {
  const list = { text: "", parts: [0, 1, 2], tail: "", query: "" };
  const written = () =>
    [
      `${LIST}#EXT-X-MEDIA-SEQUENCE:${list.parts[0]}`,
      ...['#EXT-X-MAP:URI="init.mp4"', "#EXT-X-KEY:METHOD=NONE"],
      ...list.parts.flatMap((part) => [
        ...(part % 2 === 1 ? ["#EXT-X-DISCONTINUITY"] : []),
        ...["#EXTINF:1,", `part${part}.ts${list.query}`],
      ]),
      list.tail,
    ].join("\n");
  const media = Uint8Array.from({ length: 188 * 8 }, (_, at) => at % 188 === 0 ? 0x47 : 0);
  await using server: LoopbackServer = serve(
    (request) => new Response(request.url.includes(".m3u8") ? written() : media),
    { isPlain: true },
  );
  const world = realWorld(quietLog());
  const numbers = (text: string) => text.match(/\/part\.ts$/gm)?.length ?? 0;
  let progress: HlsProgress | null = null;
  const readTo = async (count: number) => {
    await using test = await opened(server.port, world, { before: progress });
    const { text } = await test.read();
    for (const [address] of [...text.matchAll(/^http:.*$/gm)].slice(0, count)) {
      assert.equal((await test.read(address)).status, 200);
    }
    progress = test.relay.progress;
    return text;
  };
  const refused = async () => {
    const error = await opened(server.port, world, { before: progress }).then(
      () => assert.fail("opened"),
      (it) => it,
    );
    assert.match(reasonOf(error), /nothing new since it was read last/);
  };
  assert.equal(numbers(await readTo(2)), 3);
  // As a login that changes with each playlist.
  list.query = "?key=2";
  const rest = await readTo(1);
  assert.equal(numbers(rest), 1);
  assert.match(rest, /#EXT-X-MAP.*\n#EXT-X-KEY.*\n#EXT-X-MEDIA-SEQUENCE:2\n#EXTINF:1,\nhttp/);
  await refused();
  list.tail = "#EXT-X-ENDLIST";
  await refused();
  list.tail = "";
  list.parts = [1, 2, 3, 4];
  const more = await readTo(2);
  assert.match(more, /#EXT-X-MEDIA-SEQUENCE:3\n#EXT-X-DISCONTINUITY\n#EXTINF:1,\nhttp/);
  assert.equal(numbers(more), 2);
  // The window has gone on beyond what was read, and an encoder that starts again counts from 0.
  list.parts = [7, 8, 9];
  assert.equal(numbers(await readTo(3)), 3);
  await refused();
  list.parts = [0, 1];
  assert.equal(numbers(await readTo(2)), 2);
  await refused();
});

Deno.test("a playlist that stands still is given its end, unless it is watched, and one of a film at once", async () => {
  let [nowMs, parts, head] = [0, 3, "#EXTM3U\n#EXT-X-TARGETDURATION:5\n"];
  const world = { ...realWorld(quietLog()), monotonicMs: () => nowMs };
  await using server = serve(
    () =>
      new Response(`${head}${Array.from({ length: parts }, (_, at) => `#EXTINF:5,\n${at}.ts\n`).join("")}`),
    { isPlain: true },
  );
  {
    await using test = await opened(server.port, world, { endsStill: true });
    const hasEnded = async () => (await test.read()).text.includes("#EXT-X-ENDLIST");
    assert.equal(await hasEnded(), false);
    nowMs = 14_000;
    assert.equal(await hasEnded(), false);
    parts = 4;
    assert.equal(await hasEnded(), false);
    nowMs = 28_000;
    assert.equal(await hasEnded(), false);
    assert.equal(test.relay.fault, undefined);
    nowMs = 29_000;
    assert.equal(await hasEnded(), true, "three parts long");
    assert.match(reasonOf(test.relay.fault), /had nothing new for 15 s/);
  }
  await using watched = await opened(server.port, world);
  nowMs = 600_000;
  assert.ok(!(await watched.read()).text.includes("#EXT-X-ENDLIST"));
  head += "#EXT-X-PLAYLIST-TYPE:VOD\n";
  assert.match((await watched.read()).text, /\n#EXT-X-ENDLIST\n$/);
  assert.equal(watched.relay.fault, undefined);
});

Deno.test("a reader that leaves a part which does not end is no fault of the source", async () => {
  let left = false;
  const hanging = () =>
    new Response(
      new ReadableStream({
        start: (controller) =>
          controller.enqueue(new Uint8Array(188 * 64).map((_, at) => at % 188 ? 0 : 0x47)),
        cancel: () => void (left = true),
      }),
    );
  await using server: LoopbackServer = serve(
    (request) => request.url.endsWith(".m3u8") ? new Response(`${LIST}#EXTINF:1,\npart.ts\n`) : hanging(),
    { isPlain: true },
  );
  await using test = await opened(server.port);
  const { text: playlist } = await test.read();
  const leaving = new AbortController();
  const response = await fetch(addressOf(playlist), { signal: leaving.signal });
  assert.equal(response.status, 200);
  leaving.abort();
  await response.body!.cancel().catch(() => {/* aborted */});
  await until("the relay has left the server, too", () => left);
  // What the relay did about it is over when it answers again.
  assert.equal((await test.read(`${test.relay.url}/x`)).status, 200);
  assert.equal(test.relay.fault, undefined);
});

Deno.test("a relay says why no more comes as long as its server gives nothing, and no longer", async () => {
  let status = 200;
  await using server = serve(({ url }) => {
    if (status !== 200) return new Response(null, { status });
    const segment = new Uint8Array(188 * 20).map((_, at) => at % 188 === 0 ? 0x47 : 0);
    return new Response(url.endsWith(".m3u8") ? `${LIST}#EXTINF:1,\na.ts\n` : segment);
  }, { isPlain: true });
  await using test = await opened(server.port);
  const { text } = await test.read();
  const part = addressOf(text);
  assert.equal(test.relay.end, undefined);
  status = 404;
  await test.read(part);
  assert.equal(test.relay.end, "something that its playlist names: its server answered HTTP 404");
  await test.read();
  status = 200;
  await test.read(part);
  assert.equal(test.relay.end, "its server answered HTTP 404");
  await test.read();
  assert.equal(test.relay.end, undefined);
  assert.match(test.relay.fault!.details[0]!.message, /HTTP 404/);
});
