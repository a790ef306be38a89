/** HLS and RTSP sources of a service whose decoders reach nothing but their relays. */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Cage } from "../../../src/media/broker/cage.ts";
import { BUBBLEWRAP, cageOf, foundCage, NAMESPACES } from "../../support/cages.ts";
import { serve } from "../../support/http/tls_server.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { make, makeClip, TempFolder, tools } from "../../support/media.ts";
import { needing } from "../../support/needs.ts";
import { childProcesses } from "../../support/own_process.ts";
import { newRun, startService } from "../../support/service.ts";

const ENV = {
  SERVICE_ALLOW_INSECURE_HTTP: "true",
  SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  SERVICE_ALLOW_REMOTE_HLS: "true",
  SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.1/32",
  SERVICE_FFMPEG_PATH: "ffmpeg",
};

/** What comes of a film, a playlist and a camera; and what listens on this machine's loopback meanwhile. */
async function ingested(cage: Cage) {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 20 });
  const film = Deno.readFileSync(clip);
  const part = Deno.readFileSync(
    make(join(folder.path, "a.ts"), "-i", clip, "-c:v", "mpeg2video", "-f", "mpegts"),
  );
  const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.8,\na.ts\n#EXT-X-ENDLIST\n";
  const answers: Record<string, BodyInit> = { "/film.mp4": film, "/list.m3u8": playlist, "/a.ts": part };
  await using server = serve((request) => new Response(answers[new URL(request.url).pathname]), {
    isPlain: true,
  });
  await using camera = serveRtsp(part);
  await using test = await startService(ENV, { cage });
  const results: Record<string, string> = {};
  const web = `127.0.0.1:${server.port}`;
  const sources = [
    `http://${web}/film.mp4`,
    `http://${web}/list.m3u8`,
    `rtsp://127.0.0.1:${camera.port}/camera`,
  ];
  for (const uri of sources) {
    const { status, json } = await test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, {
      source_uri: uri,
      max_frames: 5,
    });
    const name = uri.split("/").at(-1)!;
    results[name] = status === 200 ? `${json.decoded_frames} frames` : json.error.details[0].message;
  }
  const forwarders = childProcesses("process/forwarder_process.ts").length;
  const left = [...Deno.readDirSync(join(test.dataDir, "..", "tmp"))].map(({ name }) => name);
  return { results, forwarders, left };
}

for (const [level, need] of Object.entries({ bubblewrap: BUBBLEWRAP, unshare: NAMESPACES })) {
  Deno.test({
    ...needing(need, `${level}: HLS and RTSP sources are read through one forwarder, and leave no socket`),
    async fn() {
      assert.deepEqual(await ingested(await cageOf(level as "bubblewrap" | "unshare", tools())), {
        results: { "film.mp4": "5 frames", "list.m3u8": "5 frames", camera: "5 frames" },
        forwarders: 1,
        left: [],
      });
    },
  });
}

Deno.test({
  ...needing(
    NAMESPACES,
    "where a cage is required and has no forwarder, HLS and RTSP are refused and files are not",
  ),
  async fn() {
    const { cage } = await foundCage(tools(), { absent: ["nsenter"], mode: "required" });
    const refusal =
      "HLS and RTSP sources are not admitted by this service: SERVICE_DECODER_CAGE requires that its " +
      "decoders have no network, and this machine has no forwarder for them";
    assert.deepEqual(await ingested(cage), {
      results: { "film.mp4": "5 frames", "list.m3u8": refusal, camera: refusal },
      forwarders: 0,
      left: [],
    });
  },
});
