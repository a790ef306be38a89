/** Cameras that change: the size of the pictures in the middle of the stream, and one that has nothing to
 * send when it is first asked.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { recordTrack } from "../../support/live/camera_tracks.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { make, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads, startReason } from "../../support/models/reason.ts";
import { KEY_A } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const SIZES = ["160x120", "240x180"] as const;
const SECONDS = 2;

/** Two seconds of each size, again and again. */
function changingTrack(folder: TempFolder) {
  const parts = SIZES.map((size) =>
    Deno.readFileSync(make(
      join(folder.path, `${size}.h264`),
      ...["-f", "lavfi", "-i", `testsrc2=s=${size}:r=25`, "-frames:v", String(25 * SECONDS)],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "0", "-g", "25"],
    ))
  );
  const joined = folder.file("joined.h264", joinedBytes(...parts));
  const seconds = SECONDS * SIZES.length;
  return recordTrack(["-r", "25", "-f", "h264", "-i", joined, "-c:v", "copy"], { seconds });
}

Deno.test("a camera that changes its picture size goes on, and each segment, clip and live view has one size", async () => {
  using folder = new TempFolder();
  await using camera = serveRtsp(new Uint8Array(), { tracks: [changingTrack(folder)] });
  await using live = await startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    sourcesFile:
      `[[sources]]\nname = "dock"\nuri = "rtsp://camera.test:${camera.port}/1"\nprincipals = ["*"]\nlive = true\n` +
      `recording = { hours = 1 }\nrecord = { pre_roll_ms = 1000, post_roll_ms = 500, on = ["keyframe"] }\n`,
  });
  const { test } = live;
  const get = (path: string) => fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
  const save = async (path: string, name: string) => {
    const answer = await get(path);
    assert.equal(answer.status, 200, path);
    return folder.file(name, new Uint8Array(await answer.arrayBuffer()));
  };
  const sizeOf = (path: string) => {
    const { sizes, errors } = playedFile(path);
    assert.deepEqual([errors, sizes.length], ["", 1], sizes.join());
    return sizes[0];
  };
  await until(
    "it is seen",
    async () => (await test.call("GET", "/v1/sources")).json.sources[0].state === "live",
  );
  const viewed = sizeOf(await save("/v1/sources/dock/live.mp4", "view.mp4"));
  assert.ok(SIZES.some((size) => size === viewed), "the view ends where the size changes");

  // deno-lint-ignore no-explicit-any -- as the answers of tests are
  let segments: any[] = [];
  await until("three segments", async () => {
    segments = (await test.call("GET", "/v1/sources/dock/recordings")).json.segments;
    return segments.length >= 3;
  });
  for (const [at, segment] of segments.entries()) {
    const path = await save(`/v1/sources/dock/recordings/${segment.segment_id}`, `segment-${at}.mp4`);
    assert.equal(sizeOf(path), SIZES[at % 2], `segment ${at}`);
    const next = segments[at + 1];
    if (!next) continue;
    assert.deepEqual([next.start_at_ms, next.start_pts_ms], [segment.end_at_ms, segment.end_pts_ms]);
    assert.notEqual(next.video_format, segment.video_format);
  }
  const [first, second] = segments;
  const exported = (from: number, to: number) => `/v1/sources/dock/recordings/export?from=${from}&to=${to}`;
  const across = await test.call("GET", exported(first.start_at_ms, second.end_at_ms));
  assert.equal(across.status, 422);
  assert.match(across.json.error.details[0].message, new RegExp(new Date(second.start_at_ms).toISOString()));
  assert.equal(sizeOf(await save(exported(second.start_at_ms, second.end_at_ms), "export.mp4")), SIZES[1]);

  const events = await eventsOf(test, first.run_id);
  assert.ok(!kindsOf(events).includes("source_gap"));
  const clips = payloads(events, "clip_stored");
  assert.ok(clips.length > 1);
  const ofClips = [];
  for (const { sha256 } of clips) {
    ofClips.push(sizeOf(await save(`/v1/runs/${first.run_id}/media/${sha256}`, `${sha256}.mp4`)));
  }
  assert.deepEqual([...new Set(ofClips)].sort(), [...SIZES]);
});

Deno.test("a camera that takes every request and sends nothing is told so, and is live as soon as it sends", async () => {
  using folder = new TempFolder();
  const track = changingTrack(folder);
  // As one that is starting does: no parameter sets in its description, a packet that is no picture, and the
  // end.
  const starting = { ...track, packets: track.packets.slice(-1) };
  const first = serveRtsp(new Uint8Array(), { tracks: [starting], replay: () => ({ packetsMax: 1 }) });
  await using live = await startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    sourcesFile:
      `[[sources]]\nname = "dock"\nuri = "rtsp://camera.test:${first.port}/1"\nprincipals = ["*"]\nlive = true\n`,
  });
  const look = async () => (await live.test.call("GET", "/v1/sources")).json.sources[0];
  await until(
    "it is told",
    async () => /sent no picture while it was looked into/.test((await look()).reason ?? ""),
  );
  assert.notEqual((await look()).state, "gap", "it has never been live");
  await first[Symbol.asyncDispose]();
  await using _second = serveRtsp(new Uint8Array(), { tracks: [track], port: first.port });
  await until("it is live", async () => (await look()).state === "live");
});
