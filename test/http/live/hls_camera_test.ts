/** A camera that sends HLS with MPEG-TS, whose AAC has a header before each frame: its clips and its recording play whole, with their sound. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { serveHls } from "../../support/live/hls_server.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { make, TempFolder } from "../../support/media.ts";
import { eventsOf, payloads, startReason } from "../../support/models/reason.ts";
import { KEY_A, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

/** Of a sound whose frames do not begin with the pictures. */
const SOUND_FRAME_MS = 1024 / 44.1;

async function saved(test: TestService, path: string, to: string): Promise<string> {
  const answer = await fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
  assert.equal(answer.status, 200, path);
  Deno.writeFileSync(to, new Uint8Array(await answer.arrayBuffer()));
  return to;
}

/** With sound from the first to the last picture. */
function checkWhole(path: string, lengthMs: number): void {
  const { codecs, sizes, pictures, videoMs, soundMs, soundFromMs, errors } = playedFile(path);
  assert.equal(errors, "");
  assert.deepEqual([codecs, sizes], [["h264", "aac"], ["160x120"]]);
  assert.ok(
    Math.abs(videoMs - pictures * 40) <= 1 && Math.abs(videoMs - lengthMs) <= 1,
    `${videoMs} of ${lengthMs} ms`,
  );
  assert.ok(soundFromMs >= 0 && soundFromMs <= SOUND_FRAME_MS, `sound from ${soundFromMs} ms on`);
  assert.ok(
    Math.abs(soundFromMs + soundMs - videoMs) < 250,
    `${soundMs} ms of sound, ${videoMs} ms of video`,
  );
}

Deno.test("clips and segments of an HLS camera play whole, with their sound", async () => {
  using folder = new TempFolder();
  const film = make(
    join(folder.path, "film.ts"),
    ...[
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=160x120:r=25:d=12",
      "-f",
      "lavfi",
      "-i",
      "sine=sample_rate=44100:d=12",
    ],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "2", "-g", "25"],
    ...["-sc_threshold", "0", "-c:a", "aac", "-ac", "2"],
  );
  await using camera = serveHls(film);
  await using live = await startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_INSECURE_HTTP: "true",
    SERVICE_ALLOW_REMOTE_HLS: "true",
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    sourcesFile:
      `[[sources]]\nname = "dock"\nuri = "http://camera.test:${camera.port}/list.m3u8"\nprincipals = ["*"]\nlive = true\n` +
      `recording = { hours = 1 }\nrecord = { pre_roll_ms = 500, post_roll_ms = 1000, on = ["keyframe"] }\n`,
  });
  const { test } = live;
  // deno-lint-ignore no-explicit-any -- as the answers of tests are
  let segments: any[] = [];
  await until("a segment is recorded", async () => {
    segments = (await test.call("GET", "/v1/sources/dock/recordings")).json.segments;
    return segments.length > 0;
  });
  const [segment] = segments;
  assert.match(segment.codec, /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/);
  assert.equal(segment.sound, "included");
  const recorded = join(folder.path, "segment.mp4");
  checkWhole(
    await saved(test, `/v1/sources/dock/recordings/${segment.segment_id}`, recorded),
    segment.end_pts_ms - segment.start_pts_ms,
  );
  const range = `from=${segment.start_at_ms}&to=${segment.end_at_ms}`;
  const exported = join(folder.path, "export.mp4");
  const { errors, codecs } = playedFile(
    await saved(test, `/v1/sources/dock/recordings/export?${range}`, exported),
  );
  assert.deepEqual([errors, codecs], ["", ["h264", "aac"]]);

  const clips = payloads(await eventsOf(test, segment.run_id), "clip_stored");
  assert.ok(clips.length > 0);
  for (const { sha256, start_pts_ms, end_pts_ms, sound } of clips) {
    assert.equal(sound, "included");
    const clip = join(folder.path, `${sha256}.mp4`);
    checkWhole(
      await saved(test, `/v1/runs/${segment.run_id}/media/${sha256}`, clip),
      end_pts_ms - start_pts_ms,
    );
  }
});
