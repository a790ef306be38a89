/** SERVICE_MEDIA_ALLOWED_NETWORKS: media sources in the operator's own network, and what stays closed all the
 * same.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { make, makeClip, TempFolder } from "../../support/media.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { newRun, startService, type TestService } from "../../support/service.ts";
import { serve } from "../../support/http/tls_server.ts";

const ALL_KINDS = {
  SERVICE_ALLOW_INSECURE_HTTP: "true",
  SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  SERVICE_ALLOW_REMOTE_HLS: "true",
  SERVICE_ACTIVE_STREAM_LIMIT: "100",
};

async function check(test: TestService, uri: string, expected: "decoded" | RegExp): Promise<void> {
  const runId = await newRun(test);
  const { status, json } = await test.call("POST", `/v1/runs/${runId}/ingest`, {
    source_uri: uri,
    max_frames: 5,
  });
  if (expected === "decoded") return assert.equal(status, 200, `${uri}: ${JSON.stringify(json)}`);
  assert.equal(status, 422, uri);
  assert.equal(json.error.details[0].field, "source_uri");
  assert.match(json.error.details[0].message, expected, uri);
}

Deno.test("a source in an allowed network is read over http, HLS and RTSP, and each hop is checked", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 20 });
  const film = Deno.readFileSync(clip);
  const ts = make(join(folder.path, "a.ts"), "-i", clip, "-c:v", "mpeg2video", "-f", "mpegts");
  const parts = (prefix: string) =>
    new Response(`#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.8,\n${prefix}a.ts\n#EXT-X-ENDLIST\n`);
  const moved = (location: string) => new Response(null, { status: 302, headers: { location } });
  const answers: Record<string, () => Response> = {
    "/film.mp4": () => new Response(film),
    "/a.ts": () => new Response(Deno.readFileSync(ts)),
    "/list.m3u8": () => parts(""),
    "/moved": () => moved("/film.mp4"),
    "/moved-outside": () => moved(`http://127.0.0.2:${server.port}/film.mp4`),
    "/moved-metadata": () => moved("http://169.254.169.254/"),
    "/outside.m3u8": () => parts(`http://127.0.0.2:${server.port}/`),
    "/metadata.m3u8": () => parts("http://168.63.129.16/"),
  };
  const answer = (request: Request) =>
    answers[new URL(request.url).pathname]?.() ?? new Response("no", { status: 404 });
  await using server = serve(answer, { isPlain: true });
  await using camera = serveRtsp(Deno.readFileSync(ts));
  const web = `127.0.0.1:${server.port}`;
  {
    await using test = await startService(ALL_KINDS);
    await check(test, `http://${web}/film.mp4`, /not a public address/);
    await check(test, `rtsp://127.0.0.1:${camera.port}/camera`, /not a public address/);
    assert.equal(server.requests.length + camera.requests.length, 0);
  }
  const networks = "127.0.0.1/32, 10.0.0.0/8,169.254.0.0/16,168.63.129.0/24,100.64.0.0/10,fd00::/8";
  await using test = await startService({
    ...ALL_KINDS,
    SERVICE_MEDIA_ALLOWED_NETWORKS: networks,
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
  });
  await check(test, `http://${web}/film.mp4`, "decoded");
  await check(test, `http://${web}/moved`, "decoded");
  await check(test, `http://${web}/list.m3u8`, "decoded");
  await check(test, `rtsp://127.0.0.1:${camera.port}/camera`, "decoded");
  await check(test, `http://[::ffff:127.0.0.1]:${server.port}/film.mp4`, "decoded");

  const closed = /not a public address/;
  const seen = server.requests.length;
  await check(test, `http://127.0.0.2:${server.port}/film.mp4`, closed);
  await check(test, `rtsp://127.0.0.2:${camera.port}/camera`, closed);
  await check(test, `http://${web}/moved-outside`, closed);
  await check(test, `http://${web}/moved-metadata`, closed);
  await check(test, `http://${web}/outside.m3u8`, /something that its playlist names.*not a public address/);
  await check(test, `http://${web}/metadata.m3u8`, /something that its playlist names.*not a public address/);
  await check(test, `http://user:pass@${web}/film.mp4`, /user name or password/);
  for (const host of ["169.254.169.254", "168.63.129.16", "100.100.100.200", "[fd00:ec2::254]"]) {
    await check(test, `http://${host}/film.mp4`, closed);
    await check(test, `rtsp://${host}/camera`, closed);
  }
  const asked = server.requests.slice(seen).map(({ url }) => new URL(url));
  assert.ok(asked.every(({ hostname }) => hostname === "127.0.0.1"), asked.join());

  const hooks = `/v1/runs/${await newRun(test)}/webhooks`;
  const hook = await test.call("POST", hooks, { url: `https://${web}/hook` });
  assert.equal(hook.status, 422, "webhooks are not media sources");
  assert.equal(hook.json.error.details[0].field, "url");
});
