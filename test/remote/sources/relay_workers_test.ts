/** Sources that are read in Workers: what comes of them, what is said of them, and that nothing stays. */

import assert from "node:assert/strict";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { ipNetwork } from "../../../src/base/ip_address.ts";
import { quietLog } from "../../../src/base/log.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { realWorld } from "../../../src/base/world.ts";
import { HlsProgress } from "../../../src/remote/sources/hls_progress.ts";
import { RelayWorkers } from "../../../src/remote/sources/relay_workers.ts";
import type { RelayedSource, RelayedStream } from "../../../src/remote/sources/relays.ts";
import { serve, serveRaw } from "../../support/http/tls_server.ts";
import { TempFolder } from "../../support/media.ts";
import { until } from "../../support/until.ts";

/** Relays of one Worker, whose sources may be on loopback. */
function opened(): RelayWorkers & AsyncDisposable {
  return new RelayWorkers({
    ...{ world: realWorld(quietLog()), allowInsecureTls: false, workersMax: 1, countDatagrams: () => {} },
    ...{ allowedNetworks: [ipNetwork("127.0.0.0/8")!], socketDir: Deno.realPathSync(folder.path) },
  });
}

const folder = new TempFolder();
addEventListener("unload", () => folder[Symbol.dispose]());

const STREAM: RelayedStream = { socket: null, before: null, endsStill: true };

function source(kind: RelayedSource["remote"]["kind"], port: number, path = "/x"): RelayedSource {
  const scheme = kind === "rtsp" ? "rtsp" : "http";
  return { remote: { kind, url: new URL(`${scheme}://127.0.0.1:${port}${path}`) } };
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(() => assert.fail("it did not fail"), (error) => error);
  assert.ok(error instanceof Refusal, String(error?.stack));
  return error.details[0]!.message;
}

Deno.test("a file comes whole and in order, and its refusals, the signal and failures of the sink end it", async () => {
  await using relays = opened();
  const film = Uint8Array.from({ length: 3_000_000 }, (_, at) => at % 251);
  await using server = serve(
    (request) =>
      new URL(request.url).pathname === "/film" ? new Response(film) : new Response("", { status: 404 }),
    { isPlain: true },
  );
  const pieces: Uint8Array[] = [];
  const sink = (bytes: Uint8Array) => Promise.resolve(void pieces.push(bytes.slice()));
  await relays.fetchFile(source("file", server.port, "/film"), sink, NEVER_ABORTED);
  assert.deepEqual(joinedBytes(...pieces), film);
  assert.ok(pieces.length < 20, `${pieces.length} messages`);
  const fetched = (path: string, to = sink, signal = NEVER_ABORTED) =>
    relays.fetchFile(source("file", server.port, path), to, signal);
  assert.equal(await reasonOf(fetched("/none")), "its server answered HTTP 404");
  await assert.rejects(
    fetched("/film", () => Promise.reject(new Error("the disk is full"))),
    /the disk is full/,
  );
  const leaving = new AbortController();
  const left = fetched("/film", () => {
    leaving.abort(new Error("the caller has gone"));
    return new Promise(() => {});
  }, leaving.signal);
  await assert.rejects(left, /the caller has gone/);
  await assert.rejects(fetched("/film", sink, leaving.signal), /the caller has gone/);
  assert.equal(
    await reasonOf(
      relays.fetchFile({ remote: { kind: "file", url: new URL("http://10.0.0.1/x") } }, sink, NEVER_ABORTED),
    ),
    "10.0.0.1 is not a public address",
  );
});

Deno.test("what relays say of cameras and playlists is known outside of the Worker, and what was read is not read again", async () => {
  await using relays = opened();
  const part = Uint8Array.from({ length: 188 * 4 }, (_, at) => at % 188 === 0 ? 0x47 : 0);
  let isThere = true;
  await using server = serve(({ url }) => {
    if (new URL(url).pathname === "/x") {
      return new Response("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n/a.ts\n#EXTINF:1,\n/b.ts\n");
    }
    return isThere ? new Response(part) : new Response("", { status: 410 });
  }, { isPlain: true });
  const list = source("hls", server.port);
  let progress: HlsProgress;
  {
    await using relay = await relays.openStream(list, STREAM, NEVER_ABORTED);
    const [one, other] = (await (await fetch(relay.url)).text()).match(/^http:.*$/gm)!;
    assert.deepEqual(new Uint8Array(await (await fetch(one!)).arrayBuffer()), part);
    assert.deepEqual([relay.fault, relay.end], [undefined, undefined]);
    isThere = false;
    assert.equal((await fetch(other!).then((response) => (response.body?.cancel(), response))).status, 502);
    await relay.told!();
    assert.match(relay.fault!.details[0]!.message, /answered HTTP 410/);
    assert.match(relay.end!, /answered HTTP 410/);
    progress = relay.progress!;
  }
  assert.equal(progress.parts[0]!.sequence, 0);
  {
    await using again = await relays.openStream(list, { ...STREAM, before: progress }, NEVER_ABORTED);
    const left = await (await fetch(again.url)).text();
    assert.equal(left.match(/^http:/gm)!.length, 1);
  }
  const all = HlsProgress.of([{
    ...progress.parts[0]!,
    sequence: 1,
    address: progress.parts[0]!.address.replace("a.ts", "b.ts"),
  }]);
  assert.match(
    await reasonOf(relays.openStream(list, { ...STREAM, before: all }, NEVER_ABORTED)),
    /nothing new since it was read last/,
  );

  await using camera = serveRaw(
    "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=b\r\n\r\n" +
      "--b\r\n\r\n\xff\xd8\r\n".repeat(20),
  );
  await using pictures = await relays.openStream(source("mjpeg", camera.port), STREAM, NEVER_ABORTED);
  await fetch(pictures.url).then((response) => response.arrayBuffer()).catch(() => {/* cut */});
  await pictures.told!();
  assert.equal(pictures.end, "its server sends parts that are no JPEGs");

  await using wrong = serveRaw("HTTP/1.1 400 Bad Request\r\n\r\n");
  await using tunnel = await relays.openStream(source("rtsp", wrong.port), STREAM, NEVER_ABORTED);
  using ffmpeg = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(tunnel.url).port) });
  await ffmpeg.write(new TextEncoder().encode(`OPTIONS ${tunnel.url} RTSP/1.0\r\nCSeq: 1\r\n\r\n`));
  await until("the tunnel says what is wrong", () => tunnel.end === "its server does not answer in RTSP");
});

Deno.test("a relay listens on its Unix socket until it is closed or its signal aborts; one that cannot be opened leaves nothing", async () => {
  await using relays = opened();
  const held = Promise.withResolvers<void>();
  let connections = 0;
  await using camera = serveRaw("", async (connection) => {
    connections++;
    await held.promise;
    connection.close();
  });
  const leaving = new AbortController();
  const opening = relays.openStream(source("mjpeg", camera.port), STREAM, leaving.signal);
  await until("the camera is asked", () => connections === 1);
  leaving.abort(new Error("the run has ended"));
  await assert.rejects(opening, /the run has ended/);
  held.resolve();

  await using list = serve(() => new Response("#EXTM3U\n#EXTINF:1,\n/a.ts\n#EXT-X-ENDLIST\n"), {
    isPlain: true,
  });
  const socket = `${Deno.realPathSync(folder.path)}/relay`;
  const life = new AbortController();
  const relay = await relays.openStream(source("hls", list.port), { ...STREAM, socket }, life.signal);
  (await Deno.connect({ transport: "unix", path: socket })).close();
  life.abort(new Error("the run has ended"));
  await relay[Symbol.asyncDispose]();
  await assert.rejects(Deno.connect({ transport: "unix", path: socket }));
});

Deno.test("what is read when the Workers end has no more media", async () => {
  await using list = serve(() => new Response("#EXTM3U\n#EXTINF:1,\n/a.ts\n#EXT-X-ENDLIST\n"), {
    isPlain: true,
  });
  const relays = opened();
  const relay = await relays.openStream(source("hls", list.port), STREAM, NEVER_ABORTED);
  await relays[Symbol.asyncDispose]();
  assert.equal(relay.end, "its relay has failed");
  await relay[Symbol.asyncDispose]();
  await assert.rejects(relays.openStream(source("hls", list.port), STREAM, NEVER_ABORTED), /is closing/);
});
