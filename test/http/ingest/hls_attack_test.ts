/** Hostile HLS servers, read by the service with its own ffmpeg: nothing else is reached, and nothing is left
 * behind.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Outbound } from "../../../src/remote/guard/outbound.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, makeClip, TempFolder } from "../../support/media.ts";
import { newRun, startService, type TestService } from "../../support/service.ts";
import { type LoopbackServer, serve } from "../../support/http/tls_server.ts";
import { childProcesses } from "../../support/own_process.ts";

const HEAD = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n";
const VARIANT = "#EXT-X-STREAM-INF:BANDWIDTH=1\n";
const SETTINGS = {
  SERVICE_ALLOW_REMOTE_HLS: "true",
  SERVICE_ALLOW_INSECURE_HTTP: "true",
  SERVICE_ACTIVE_STREAM_LIMIT: "50",
};
const OUTBOUND: Outbound = {
  resolve: (host) => host === "media.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
  reroute: () => "127.0.0.1",
};

/** A media playlist of these lines; what begins with `#` is a tag, the rest are parts. */
function list(...lines: string[]): string {
  const parts = lines.map((line) => line.startsWith("#") ? line : `#EXTINF:1,\n${line}`);
  return `${HEAD}${parts.join("\n")}\n#EXT-X-ENDLIST\n`;
}

/**
 * The answers of a path: one for each request, the last one for all further ones; an address instead is a
 * redirect.
 */
type Answers = Record<string, (string | Uint8Array<ArrayBuffer> | URL)[]>;

/** Answers by path, 404 where there is none. */
function serveHostile(answers: Answers): LoopbackServer {
  const turns = new Map<string, number>();
  return serve((request) => {
    const { pathname } = new URL(request.url);
    const turn = turns.get(pathname) ?? 0;
    turns.set(pathname, turn + 1);
    const answer = answers[pathname]?.at(Math.min(turn, answers[pathname].length - 1));
    if (answer === undefined) return new Response("no", { status: 404 });
    if (!(answer instanceof URL)) return new Response(answer);
    return new Response(null, { status: 302, headers: { location: answer.href } });
  }, { isPlain: true });
}

async function ingest(test: TestService, port: number, name: string) {
  const source_uri = `http://media.test:${port}/${name}.m3u8`;
  const answer = await test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, {
    source_uri,
    max_frames: 500,
  });
  assert.deepEqual(childProcesses(".m3u8"), [], name);
  return answer;
}

Deno.test("whatever an HLS server sends, ffmpeg connects to nothing but the relay", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 25 });
  const film = Deno.readFileSync(make(join(folder.path, "film.ts"), "-i", clip, "-c:v", "mpeg2video"));
  await using forbidden = serve(() => new Response(film), { isPlain: true });
  const secret = `http://127.0.0.1:${forbidden.port}/secret.ts`;
  const gif = Deno.readFileSync(make(join(folder.path, "film.gif"), "-i", clip));
  gif[188] = 0x47; // in its colours; the second packet of MPEG-TS would begin so
  const nested = list(secret);
  const tag = "ID3\x03\0\0\0\0\0\x04abcd";
  await using server = serveHostile({
    "/film.ts": [film],
    "/film.m3u8": [list("film.ts")],
    "/gif.m3u8": [list("gif.ts")],
    "/gif.ts": [gif],
    "/tagged.m3u8": [list("tagged.ts")],
    "/tagged.ts": [`${tag}${nested}`],
    "/halves.m3u8": [list("half.ts", "other.ts")],
    "/half.ts": [nested.slice(0, 4)],
    "/other.ts": [nested.slice(4)],
    "/start.m3u8": [list('#EXT-X-MAP:URI="half.ts"', "other.ts")],
    "/late.m3u8": [list("film.ts"), `${tag}${nested}`],
    "/direct.m3u8": [list(secret)],
    "/file.m3u8": [list(`file://${clip}`)],
    "/up.m3u8": [list(`../../../../../..${clip}`)],
    "/map.m3u8": [list(`#EXT-X-MAP:URI="${secret}"`, "film.ts")],
    "/crypto.m3u8": [list(`crypto+${secret}`)],
    "/concat.m3u8": [list(`concat:${secret}|${secret}`)],
    "/data.m3u8": [list(`data:text/plain,${encodeURIComponent(nested)}`)],
    "/moved.m3u8": [list("moved.ts")],
    "/moved.ts": [new URL(secret)],
    "/changing.m3u8": [list("film.ts"), `#EXTM3U\n${VARIANT}${secret}\n`],
    "/key.m3u8": [list(`#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${secret}"`, "film.ts")],
    "/session.m3u8": [
      list(
        `#EXT-X-SESSION-DATA:DATA-ID="a",URI="${secret}"`,
        `#EXT-X-DATERANGE:X-ASSET-URI="${secret}"`,
        "film.ts",
      ),
    ],
    "/media.m3u8": [
      `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="${secret}"\n${VARIANT}film.m3u8\n`,
    ],
    "/gap.m3u8": [list("gap.ts", "film.ts")],
    "/gap.ts": [""],
  });
  await using test = await startService(SETTINGS, { outbound: OUTBOUND });
  const refusals = {
    gif: /not a media file/,
    tagged: /neither media nor a playlist/,
    halves: /neither media nor a playlist/,
    start: /neither media nor a playlist/,
    late: /neither media nor a playlist/,
    direct: /not a public address/,
    file: /another scheme/,
    up: /HTTP 404/,
    map: /not a public address/,
    crypto: /another scheme/,
    concat: /another scheme/,
    data: /another scheme/,
    moved: /not a public address/,
    changing: /not a public address/,
    key: /encrypted/,
  };
  for (const [name, reason] of Object.entries(refusals)) {
    const { status, json, text } = await ingest(test, server.port, name);
    assert.equal(status, 422, `${name}: ${text}`);
    assert.deepEqual(json.error.details.map(({ field }: { field: string }) => field), ["source_uri"], name);
    assert.match(json.error.details[0].message, reason, `${name}: ${json.error.details[0].message}`);
  }
  for (const name of ["session", "media", "gap"]) {
    const { status, json, text } = await ingest(test, server.port, name);
    assert.deepEqual([status, json.decoded_frames], [200, 25], `${name}: ${text}`);
  }
  assert.deepEqual([...forbidden.connections], [], "nobody connected");
});

Deno.test(
  "a source without an end of playlists or parts is given up, and waits between them",
  LONG_TEST,
  async () => {
    const parts = Array.from({ length: 50_000 }, (_, part) => `s${part}.ts`);
    const variants = Array.from({ length: 3000 }, (_, number) => `${VARIANT}parts.m3u8?${number}`);
    await using server = serveHostile({
      "/again.m3u8": [`#EXTM3U\n${VARIANT}again.m3u8?a\n`],
      "/parts.m3u8": [list(...parts)],
      "/variants.m3u8": [`#EXTM3U\n${variants.join("\n")}\n`],
    });
    await using test = await startService(SETTINGS, { outbound: OUTBOUND });
    for (
      const [name, requests, reason] of [
        ["again", 1500, /longer than 10 s/],
        ["variants", 1500, /HTTP 404|longer than 10 s/],
        ["parts", 1500, /HTTP 404/],
      ] as const
    ) {
      const before = server.requests.length;
      const { status, json, text } = await ingest(test, server.port, name);
      assert.equal(status, 422, `${name}: ${text}`);
      assert.match(json.error.details[0].message, reason, `${name}: ${json.error.details[0].message}`);
      const asked = server.requests.length - before;
      assert.ok(asked < requests, `${name}: ${asked} requests in ten seconds`);
    }
  },
);
