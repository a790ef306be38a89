import assert from "node:assert/strict";
import { join } from "node:path";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Outbound } from "../../../src/remote/guard/outbound.ts";
import { make, makeClip, TempFolder } from "../../support/media.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { CLIPS, newRun, startService, type TestService } from "../../support/service.ts";
import { type LoopbackServer, serve, serveRaw, TEST_ROOT } from "../../support/http/tls_server.ts";
import { until } from "../../support/until.ts";
import { childProcesses } from "../../support/own_process.ts";

/**
 * Names of media.test resolve to a public address, which the guard accepts; connections to it go to loopback.
 */
const REROUTED: Outbound = {
  resolve: (host) =>
    host.endsWith("media.test") ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  roots: [TEST_ROOT],
  reroute: () => "127.0.0.1",
};

const INSECURE = { SERVICE_ALLOW_INSECURE_HTTP: "true" };

function tempNames(test: TestService): string[] {
  return [...Deno.readDirSync(join(test.dataDir, "..", "tmp"))].map(({ name }) => name);
}

async function ingest(test: TestService, runId: string, sourceUri: string, rest: object = {}) {
  return await test.call("POST", `/v1/runs/${runId}/ingest`, {
    source_uri: sourceUri,
    max_frames: 5,
    ...rest,
  });
}

/** The reason of a 422 on `source_uri`; nothing is left behind, and the run can still be used. */
async function refused(test: TestService, runId: string, sourceUri: string): Promise<string> {
  const { status, json } = await ingest(test, runId, sourceUri);
  assert.equal(status, 422, `${sourceUri}: ${JSON.stringify(json)}`);
  assert.equal(json.error.code, "validation_error");
  assert.deepEqual(json.error.details.map(({ field }: { field: string }) => field), ["source_uri"]);
  assert.deepEqual(tempNames(test), [], sourceUri);
  const { json: run } = await test.call("GET", `/v1/runs/${runId}`);
  assert.equal(run.source_uri, "", "nothing was ingested");
  return json.error.details[0].message;
}

Deno.test("a film behind https is ingested like a local one, under the URL that the caller gave", async () => {
  const film = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
  await using server = serve((request) =>
    new URL(request.url).pathname === "/moved"
      ? new Response(null, { status: 307, headers: { location: "/film" } })
      : new Response(film)
  );
  await using test = await startService({}, { outbound: REROUTED });
  const local = await ingest(test, await newRun(test), join(CLIPS, "intel_bottle.mp4"));
  for (
    const uri of [
      `https://media.test:${server.port}/moved?a=b#c`,
      `  HTTPS://Media.Test:${server.port}/film `,
    ]
  ) {
    const runId = await newRun(test);
    const { status, json, text } = await ingest(test, runId, uri);
    assert.equal(status, 200, text);
    assert.equal(json.source_uri, uri.trim());
    assert.equal(json.decoded_frames, 5);
    assert.deepEqual([json.source_fps, json.sample_fps], [local.json.source_fps, local.json.sample_fps]);
    const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
    const [received, decoded] = events.filter(({ kind }: { kind: string }) => /^(ingest|frames)_/.test(kind));
    assert.equal(received.payload.source_uri, uri.trim());
    assert.equal(received.payload.ingest.source_uri, uri);
    assert.equal(decoded.payload.source_uri, uri.trim());
    assert.equal(decoded.payload.signals.length, 5);
  }
  assert.deepEqual(tempNames(test), []);
});

Deno.test("what no toggle admits is refused before anyone is asked", async () => {
  await using server = serve(() => new Response("never"), { isPlain: true });
  const all = {
    SERVICE_ALLOW_INSECURE_HTTP: "1",
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "TRUE",
    SERVICE_ALLOW_REMOTE_HLS: "true",
    SERVICE_ALLOW_INSECURE_TLS: "true",
  };
  const check = async (env: Record<string, string>, rows: readonly (readonly [string, RegExp])[]) => {
    await using test = await startService(env, { outbound: REROUTED });
    const runId = await newRun(test);
    for (const [uri, expected] of rows) assert.match(await refused(test, runId, uri), expected, uri);
  };
  const host = `media.test:${server.port}`;
  const always = [
    ["", /empty/],
    [`ftp://${host}/a.mp4`, /unsupported scheme ftp/],
    [`gopher://${host}/a.mp4`, /unsupported scheme/],
    ["data://text/plain,abc", /unsupported scheme/],
    ["concat://a|b", /unsupported scheme/],
    ["pipe://0", /unsupported scheme/],
    ["https://", /not a valid URL/],
    ["https://[::1/a.mp4", /not a valid URL/],
    [`https://user:pass@${host}/a.mp4`, /user name or password/],
    [`https://user@${host}/a.mp4`, /user name or password/],
    ["https://localhost/a.mp4", /names this machine/],
    ["https://127.0.0.1/a.mp4", /not a public address/],
    ["https://0x7f.1/a.mp4", /not a public address/],
    ["https://[::ffff:169.254.169.254]/a.mp4", /not a public address/],
    ["https://unknown.example/a.mp4", /cannot be resolved/],
    [`https://media.test/${"a".repeat(4096)}`, /at most 4096 bytes/],
    ["rtsps://localhost/camera", /names this machine/],
    ["rtsps://0x7f.1/camera", /not a public address/],
    ["rtsps://user:pass@media.test/camera", /user name or password/],
  ] as const;
  await check({}, [
    ...always,
    [`http://${host}/a.mp4`, /http sources are not admitted/],
    [`http://${host}/a.m3u8`, /http sources are not admitted/],
    [`https://${host}/a.m3u8`, /HLS sources are not admitted/],
    [`https://${host}/a.M3U8?b`, /HLS sources are not admitted/],
    [`hls://${host}/a.m3u8`, /HLS sources are not admitted/],
    [`hls://${host}/a`, /HLS sources are not admitted/],
    [`rtsp://${host}/camera`, /rtsp sources are not admitted/],
  ]);
  await check(INSECURE, [
    [`http://${host}/a.m3u8`, /HLS sources are not admitted/],
    [`rtsp://${host}/camera`, /rtsp sources are not admitted/],
  ]);
  await check({ SERVICE_ALLOW_REMOTE_HLS: "true" }, [
    [`http://${host}/a.m3u8`, /http sources are not admitted/],
    ["hls://10.0.0.1/a", /not a public address/],
    ["https://localhost/a.m3u8", /names this machine/],
  ]);
  await check(all, [
    ...always,
    ["http://127.0.0.1/a.mp4", /not a public address/],
    ["hls://localhost/a", /names this machine/],
    ["hls://user@media.test/a", /user name or password/],
    ["rtsp://127.0.0.1/camera", /not a public address/],
    ["rtsp://2130706433/camera", /not a public address/],
    ["rtsp:///camera", /valid host/],
  ]);
  assert.equal(server.requests.length, 0);
});

Deno.test("what a server sends instead of a film is refused, and nothing is left of it", async () => {
  const film = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
  const answers: Record<string, () => Response> = {
    "/film": () => new Response(film),
    "/404": () => new Response("no", { status: 404 }),
    "/empty": () => new Response(""),
    "/words": () => new Response("just some words\n".repeat(100)),
    "/cut": () => new Response(film.subarray(0, 4000)),
    "/playlist.mp4": () => new Response("\n \t#extm3u\n#EXTINF:1,\nfile:///etc/passwd\n"),
    "/concat.mp4": () => new Response("ffconcat version 1.0\nfile '/etc/passwd'\n"),
    "/private": () => new Response(null, { status: 302, headers: { location: "https://10.0.0.1/" } }),
    "/downgrade": () =>
      new Response(null, { status: 302, headers: { location: `http://media.test:${plain.port}/film` } }),
    "/declared": () => new Response(null, { status: 302, headers: { location: "/declared" } }),
  };
  await using server = serve((request) => answers[new URL(request.url).pathname]!());
  await using plain = serve(() => new Response(film), { isPlain: true });
  await using large = serveRaw("HTTP/1.1 200 OK\r\ncontent-length: 268435457\r\n\r\nabc");
  await using cut = serveRaw("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc");
  await using slow = serveRaw(
    "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc",
    () => new Promise(() => {}),
  );
  const check = async (test: TestService, uri: string, expected: RegExp | "ingested") => {
    const runId = await newRun(test);
    if (expected !== "ingested") return assert.match(await refused(test, runId, uri), expected);
    const { status, text } = await ingest(test, runId, uri);
    assert.equal(status, 200, text);
    await test.call("POST", `/v1/runs/${runId}/stop`);
  };
  const https = `https://media.test:${server.port}`;
  {
    await using test = await startService({ ...INSECURE, SERVICE_ACTIVE_STREAM_LIMIT: "50" }, {
      outbound: REROUTED,
    });
    await check(test, `${https}/film`, "ingested");
    await check(test, `http://media.test:${plain.port}/film`, "ingested");
    await check(test, `https://other.test:${server.port}/film`, /cannot be resolved/);
    await check(test, `${https}/404`, /HTTP 404/);
    await check(test, `${https}/empty`, /empty/);
    await check(test, `${https}/words`, /not a media file/);
    await check(test, `${https}/cut`, /cut off|not a media file|cannot be decoded/);
    await check(test, `${https}/playlist.mp4`, /playlist/);
    await check(test, `${https}/concat.mp4`, /concat list/);
    await check(test, `${https}/private`, /not a public address/);
    await check(test, `${https}/downgrade`, /from https to http/);
    await check(test, `${https}/declared`, /more than 5 times/);
    await check(test, `http://media.test:${large.port}/`, /larger than 256 MiB/);
    await check(test, `http://media.test:${cut.port}/`, /connection was cut/);
  }
  const timerMs = (ms: number) => ms === LIMITS.ingest.prefetchTimeoutMs ? 300 : ms;
  const slowly = { outbound: REROUTED, timerMs };
  await using test = await startService({ ...INSECURE, SERVICE_ACTIVE_STREAM_LIMIT: "50" }, slowly);
  await check(test, `http://media.test:${slow.port}/`, /longer than 30 s/);
});

Deno.test("certificates are verified unless the operator says otherwise", async () => {
  const film = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
  await using server = serve(() => new Response(film));
  const outbound = { ...REROUTED, resolve: () => Promise.resolve(["93.184.216.34"]) };
  const check = async (
    env: Record<string, string>,
    host: string,
    roots: string[],
    expected: RegExp | 200,
  ) => {
    await using test = await startService(env, { outbound: { ...outbound, roots } });
    const runId = await newRun(test);
    const uri = `https://${host}:${server.port}/film`;
    if (expected === 200) assert.equal((await ingest(test, runId, uri)).status, 200, host);
    else assert.match(await refused(test, runId, uri), expected, host);
  };
  await check({}, "media.test", [TEST_ROOT], 200);
  await check({}, "media.test", [], /certificate is not trusted/);
  await check({}, "other.test", [TEST_ROOT], /certificate is for another host/);
  await check({ SERVICE_ALLOW_INSECURE_TLS: "true" }, "other.test", [], 200);
});

Deno.test("a stop, a delete and a caller who disconnects end a fetch that is under way", async () => {
  const asked = Promise.withResolvers<void>();
  let requests = 0;
  await using slow = serveRaw("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc", () => {
    requests++;
    asked.resolve();
    return new Promise(() => {});
  });
  await using test = await startService(INSECURE, { outbound: REROUTED });
  const uri = `http://media.test:${slow.port}/film`;
  const check = async (
    end: (runId: string, deleteSession: AbortController) => unknown,
    expected: number | "disconnected",
  ) => {
    const runId = await newRun(test);
    const deleteSession = new AbortController();
    const before = requests;
    const answer = test.send(`/v1/runs/${runId}/ingest`, {
      method: "POST",
      headers: { "x-api-key": "key-of-a", "content-type": "application/json" },
      body: JSON.stringify({ source_uri: uri }),
      signal: deleteSession.signal,
    }).then(({ status }) => status, () => "disconnected");
    await until(() => requests > before && tempNames(test).length === 1);
    await end(runId, deleteSession);
    assert.equal(await answer, expected);
    await until(() => tempNames(test).length === 0);
  };
  await check((runId) => test.call("POST", `/v1/runs/${runId}/stop`), 409);
  await check((runId) => test.call("DELETE", `/v1/runs/${runId}`), 404);
  await check((_, deleteSession) => deleteSession.abort(), "disconnected");
});

Deno.test("closing the service ends a fetch that is under way", async () => {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<number | null>();
  await using slow = serveRaw("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc", async (connection) => {
    begun.resolve();
    ended.resolve(await connection.read(new Uint8Array(1)).catch(() => null)); // it may be reset as well
  });
  const test = await startService(INSECURE, { outbound: REROUTED });
  const answer = ingest(test, await newRun(test), `http://media.test:${slow.port}/film`);
  await begun.promise;
  await test[Symbol.asyncDispose]();
  const { status, json } = await answer;
  assert.deepEqual([status, json.error.message], [500, "the service is closing"]);
  assert.equal(await ended.promise, null, "the connection to the server of the film is closed too");
});

Deno.test("a remote HLS source is decoded as it comes, and everything that it names passes the guard", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 50 });
  const segments = ["-f", "hls", "-hls_time", "1", "-hls_playlist_type", "vod", "-hls_segment_filename"];
  const list = make(
    join(folder.path, "a.m3u8"),
    ...["-i", clip, "-c:v", "mpeg2video", ...segments, join(folder.path, "s%d.ts")],
  );
  const fragmented = [...segments.slice(0, -1), "-hls_segment_type", "fmp4"];
  make(join(folder.path, "m.m3u8"), "-i", clip, ...[
    "-c:v",
    "mpeg4",
    ...fragmented,
    "-hls_flags",
    "single_file",
  ]);
  const text = Deno.readTextFileSync(list);
  const naming = (prefix: string) => () => new Response(text.replaceAll(/^s/gm, `${prefix}s`));
  const redirect = (target: string) => () =>
    new Response(null, { status: 302, headers: { location: target } });
  const variant = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=320x240\n";
  const key = (uri: string) => () =>
    new Response(text.replace("#EXTINF", `#EXT-X-KEY:METHOD=AES-128,URI=${uri}\n#EXTINF`));
  const answers: Record<string, () => Response> = {
    "/variants.m3u8": () => new Response(`${variant}a.m3u8?variant\n`),
    "/deep.m3u8": () => naming(`https://deep.media.test:${server.port}/`)(),
    "/moved.m3u8": redirect("/a.m3u8"),
    "/words.m3u8": () => new Response("just some words"),
    "/key.m3u8": key("https://10.0.0.1/key.bin"),
    "/private.m3u8": naming("https://10.0.0.1/"),
    "/metadata.m3u8": naming("https://169.254.169.254/"),
    "/file.m3u8": naming(`file://${folder.path}/`),
    "/http.m3u8": () => naming(`http://media.test:${plain.port}/`)(),
    "/untrusted.m3u8": () => naming(`https://untrusted.test:${server.port}/`)(),
    "/redirected.m3u8": naming("/redirected/"),
    "/redirected/s0.ts": redirect("https://10.0.0.1/"),
    "/privatevariant.m3u8": () => new Response(`${variant}https://10.0.0.1/a.m3u8\n`),
  };
  const answer = (request: Request) => {
    const { pathname } = new URL(request.url);
    if (answers[pathname]) return answers[pathname]();
    try {
      const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "") ?? [];
      const whole = Deno.readFileSync(join(folder.path, pathname));
      if (from === undefined) return new Response(whole);
      const end = to ? Number(to) + 1 : whole.length;
      const headers = { "content-range": `bytes ${from}-${end - 1}/${whole.length}` };
      return new Response(whole.subarray(Number(from), end), { status: 206, headers });
    } catch {
      return new Response("no", { status: 404 });
    }
  };
  await using server: LoopbackServer = serve(answer);
  await using plain: LoopbackServer = serve(answer, { isPlain: true });
  const outbound: Outbound = {
    ...REROUTED,
    resolve: (host) =>
      host.endsWith(".test") ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  };
  const hls = { SERVICE_ALLOW_REMOTE_HLS: "true", SERVICE_ACTIVE_STREAM_LIMIT: "50" };
  const check = async (test: TestService, uri: string, expected: RegExp | number) => {
    const runId = await newRun(test);
    if (typeof expected !== "number") return assert.match(await refused(test, runId, uri), expected);
    const { status, json, text } = await ingest(test, runId, uri, { max_frames: 500 });
    assert.equal(status, 200, `${uri}: ${text}`);
    assert.deepEqual([json.decoded_frames, json.source_uri, json.source_fps], [expected, uri, 25]);
  };
  const https = `https://media.test:${server.port}`;
  {
    await using test = await startService({ ...hls, ...INSECURE }, { outbound });
    await check(test, `http://media.test:${plain.port}/a.m3u8`, 50);
    await check(test, `hls://media.test:${plain.port}/a.m3u8`, 50);
  }
  await using test = await startService(hls, { outbound });
  await check(test, `${https}/a.m3u8?b=c`, 50);
  await check(test, `hls://media.test:${server.port}/variants.m3u8`, 50);
  await check(test, `${https}/deep.m3u8`, 50);
  await check(test, `${https}/m.m3u8`, 50);
  await check(test, `${https}/moved.m3u8`, 50);
  await check(test, `${https}/404.m3u8`, /answered HTTP 404/);
  await check(test, `${https}/words.m3u8`, /not an HLS playlist/);
  await check(test, `https://untrusted.test:${server.port}/a.m3u8`, /certificate is for another host/);
  await check(test, "https://media.test:1/a.m3u8", /refuses connections/);
  const seen = server.requests.length;
  const named = (reason: string) => new RegExp(`something that its playlist names: .*${reason}`);
  await check(test, `${https}/private.m3u8`, named("not a public address"));
  await check(test, `${https}/metadata.m3u8`, named("not a public address"));
  await check(test, `${https}/key.m3u8`, /its media are encrypted/);
  await check(test, `${https}/file.m3u8`, named("another scheme"));
  await check(test, `${https}/http.m3u8`, named("another scheme"));
  await check(test, `${https}/untrusted.m3u8`, named("certificate is for another host"));
  await check(test, `${https}/redirected.m3u8`, named("not a public address"));
  await check(test, `${https}/privatevariant.m3u8`, named("not a public address"));
  const asked = server.requests.slice(seen).map(({ url }) => new URL(url).pathname);
  assert.deepEqual(asked.filter((path) => /^\/s\d/.test(path)), [], "no part came by a way that is closed");
  assert.deepEqual(plain.requests.filter(({ url }) => url.includes("https")), []);
  assert.deepEqual(childProcesses(".m3u8"), []);
});

Deno.test("of a master playlist that says little the largest picture is decoded, and of a film without its end all", async () => {
  using folder = new TempFolder();
  const made = (name: string, ...args: string[]) =>
    make(
      join(folder.path, `${name}.m3u8`),
      ...[...args, "-f", "hls", "-hls_time", "1", "-hls_list_size", "0"],
      ...["-hls_segment_filename", join(folder.path, `${name}%d.ts`)],
    );
  for (const size of ["160x90", "320x180"]) {
    const picture = `testsrc2=s=${size}:r=25:d=4`;
    made(`p${size}`, "-f", "lavfi", "-i", picture, "-c:v", "libx264", "-g", "25");
  }
  made("sound", "-f", "lavfi", "-i", "sine=d=4", "-c:a", "aac");
  const film = Deno.readTextFileSync(join(folder.path, "p320x180.m3u8"));
  const noEnd = film.replace(/#EXT-X-ENDLIST\s*/, "");
  const texts: Record<string, string> = {
    "/bare.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900\nsound.m3u8\n" +
      "#EXT-X-STREAM-INF:BANDWIDTH=800\np320x180.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=700\np160x90.m3u8\n",
    "/pictures.m3u8": "#EXTM3U\n#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=v,NAME=low,DEFAULT=YES,URI=p160x90.m3u8\n" +
      "#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=v,NAME=high,URI=p320x180.m3u8\n" +
      "#EXT-X-STREAM-INF:BANDWIDTH=800,VIDEO=v\np160x90.m3u8\n",
    "/open.m3u8": noEnd.replace("#EXTM3U", "#EXTM3U\n#EXT-X-PLAYLIST-TYPE:VOD"),
  };
  await using server = serve((request) => {
    const { pathname } = new URL(request.url);
    const text = texts[pathname];
    return new Response(text ?? Deno.readFileSync(join(folder.path, pathname)));
  }, { isPlain: true });
  await using test = await startService({ SERVICE_ALLOW_REMOTE_HLS: "true", ...INSECURE }, {
    outbound: REROUTED,
  });
  for (const name of Object.keys(texts)) {
    const runId = await newRun(test);
    const { json, text } = await ingest(test, runId, `http://media.test:${server.port}${name}`, {
      max_frames: 500,
    });
    assert.deepEqual([json.decoded_frames, json.source_warning], [100, undefined], `${name}: ${text}`);
    const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
    const { payload } = events.find(({ kind }: { kind: string }) => kind === "frames_decoded");
    assert.deepEqual([payload.width, payload.height], [320, 180], name);
  }
});

Deno.test("a camera is decoded as it comes, verified, and cannot send the service elsewhere", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 50 });
  const stream = Deno.readFileSync(
    make(join(folder.path, "a.ts"), "-i", clip, "-c:v", "mpeg2video", "-f", "mpegts"),
  );
  await using elsewhere = serveRtsp(stream);
  await using plain = serveRtsp(stream);
  await using secure = serveRtsp(stream, { isSecure: true });
  await using endless = serveRtsp(stream, { isSecure: true, isEndless: true });
  const location = `Location: rtsp://127.0.0.1:${elsewhere.port}/camera\r\n`;
  await using noTls = serveRaw("RTSP/1.0 400 Bad Request\r\n\r\n");
  await using redirecting = serveRtsp(stream, { isSecure: true, describe: location });
  const outbound: Outbound = {
    ...REROUTED,
    resolve: (host) =>
      host.endsWith(".test") ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  };
  const ALL = 49; // a stream that breaks off leaves its last picture open
  const rtsp = { SERVICE_ALLOW_UNENCRYPTED_RTSP: "true", SERVICE_ACTIVE_STREAM_LIMIT: "50" };
  const check = async (test: TestService, uri: string, expected: RegExp | number, maxFrames = 500) => {
    const runId = await newRun(test);
    if (typeof expected !== "number") return assert.match(await refused(test, runId, uri), expected);
    const { status, json, text } = await ingest(test, runId, uri, { max_frames: maxFrames });
    assert.equal(status, 200, `${uri}: ${text}`);
    assert.deepEqual([json.decoded_frames, json.source_uri], [expected, uri]);
  };
  {
    await using test = await startService(rtsp, { outbound });
    await check(test, `rtsp://media.test:${plain.port}/camera?a=b`, ALL);
    await check(test, `rtsps://Media.Test:${secure.port}/camera`, ALL);
    await check(test, `rtsps://media.test:${endless.port}/camera`, 20, 20);
    await check(test, `rtsps://other.test:${secure.port}/camera`, /certificate is for another host/);
    await check(test, "rtsps://media.test:1/camera", /refuses connections/);
    await check(test, `rtsps://media.test:${redirecting.port}/camera`, /redirects to another place/);
    await check(test, `rtsps://media.test:${noTls.port}/camera`, /no secure connection/);
  }
  assert.equal(elsewhere.requests.length, 0);
  const names = (requests: string[]) =>
    new Set(requests.map((line) => line.split(" ")[1]!.replace(/\/track1$/, "/")));
  assert.deepEqual([...names(plain.requests)][0], `rtsp://media.test:${plain.port}/camera?a=b`);
  assert.deepEqual([...names(secure.requests)][0], `rtsps://media.test:${secure.port}/camera`);
  assert.ok([...plain.requests, ...secure.requests].every((line) => !line.includes("127.0.0.1")));
  {
    await using test = await startService({ SERVICE_ALLOW_INSECURE_TLS: "true" }, { outbound });
    await check(test, `rtsps://other.test:${secure.port}/camera`, ALL);
  }
  assert.deepEqual(childProcesses("rtsp://"), []);
});

Deno.test("whatever an RTSP server answers, ffmpeg connects to nothing but the tunnel", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 20 });
  const stream = Deno.readFileSync(
    make(join(folder.path, "a.ts"), "-i", clip, "-c:v", "mpeg2video", "-f", "mpegts"),
  );
  let trapped = 0;
  await using trap = serveRaw("RTSP/1.0 200 OK\r\n\r\n", (connection) => {
    trapped++;
    connection.close();
  });
  await using test = await startService({
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_ACTIVE_STREAM_LIMIT: "100",
  }, { outbound: REROUTED });
  const elsewhere = `rtsp://127.0.0.1:${trap.port}/camera`;
  const location = `Location: ${elsewhere}\r\n`;
  const invalid = /does not answer in RTSP|redirects to another place/;
  const lines = [
    ...[
      "RTSP/1.0 302 Moved\r\n",
      "RTSP/1.0\t302 Moved\r\n",
      "RTSP/10.0 302 Moved\r\n",
      "RTSP/1.0 0302 Moved\r\n",
    ],
    ...[
      "RTSP/ 302 Moved\r\n",
      "RTSP/1.0 302 Moved\n",
      "\r\nRTSP/1.0 302 Moved\r\n",
      "$\0\0\0RTSP/1.0  302 Moved\r\n",
    ],
    ...[
      "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\nRTSP/1.0\t302 Moved\r\n",
      "REDIRECT rtsp://127.0.0.1/ RTSP/1.0\r\n",
    ],
  ];
  for (const [i, line] of lines.entries()) {
    const method = ["OPTIONS", "DESCRIBE", "SETUP"][i % 3]!;
    await using server = serveRtsp(stream, { statusLines: { [method]: line }, extraHeaders: location });
    const reason = await refused(test, await newRun(test), `rtsp://media.test:${server.port}/camera`);
    assert.match(reason, invalid, JSON.stringify(line));
  }
  const answers: readonly (readonly [string, string, RegExp])[] = [
    ["SETUP", "RTSP/1.0 461 Unsupported transport\r\n", /neither over TCP nor over UDP/],
    ["DESCRIBE", "RTSP/1.0 401 Unauthorized\r\n", /asks for a user name and a password/],
    [
      "DESCRIBE",
      "RTSP/1.0 404 Not Found\r\n",
      /does not give it out: it answers DESCRIBE with 404 \(Not Found\)/,
    ],
  ];
  for (const [method, line, expected] of answers) {
    await using server = serveRtsp(stream, {
      statusLines: { [method]: line },
      extraHeaders: "WWW-Authenticate: Basic realm=a\r\n",
    });
    assert.match(
      await refused(test, await newRun(test), `rtsp://media.test:${server.port}/camera`),
      expected,
      line,
    );
  }
  // Addresses of other hosts in the headers and in the description are names for the same connection.
  const named = [
    { extraHeaders: `Content-Base: ${elsewhere}/\r\n${location}` },
    { control: `${elsewhere}/track1` },
    { control: `rtsps://127.0.0.1:${trap.port}/track1`, extraHeaders: "Server: WMServer/9\r\n" },
    { control: `http://127.0.0.1:${trap.port}/track1`, extraHeaders: "RealChallenge1: abc\r\n" },
  ];
  for (const options of named) {
    await using server = serveRtsp(stream, options);
    const runId = await newRun(test);
    const { status, text } = await ingest(test, runId, `rtsp://media.test:${server.port}/camera`);
    assert.equal(status, 200, `${JSON.stringify(options)}: ${text}`);
    assert.ok(server.requests.some((line) => line.startsWith("SETUP ")));
  }
  assert.equal(trapped, 0);
  assert.deepEqual(childProcesses("rtsp://"), []);
});
