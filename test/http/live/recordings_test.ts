/** The recording of a camera for real: an RTSP server, a Worker, segments on the disk, and what callers read
 * of them.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { principalKeyOf } from "../../../src/model/identifiers.ts";
import { metric } from "../../support/live/live.ts";
import { RECORDED_MS, recordSource } from "../../support/live/recorded_source.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { frameHashes, make, makeClip, TempFolder } from "../../support/media.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { eventsOf, payloads, startReason } from "../../support/models/reason.ts";
import { KEY_A, KEY_B, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const HASH_A = principalKeyOf(KEY_A).slice("api-key:".length);
const CUT_FRAME = 137;

function camera(path: string): string {
  const scene = (
    name: string,
    frames: number,
  ) => ["-f", "lavfi", "-i", `${name}=s=160x120:r=25,trim=end_frame=${frames}`];
  return make(
    path,
    ...scene("testsrc2", CUT_FRAME),
    ...scene("mandelbrot", 300 - CUT_FRAME),
    ...["-f", "lavfi", "-i", "sine=duration=12", "-filter_complex", "[0:v][1:v]concat=n=2,format=yuv420p"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "50", "-sc_threshold", "0"],
    ...["-x264-params", "open-gop=0", "-c:a", "aac", "-map", "2:a"],
  );
}

function source(name: string, port: number, more = ""): string {
  return `[[sources]]\nname = "${name}"\nuri = "rtsp://camera.test:${port}/dock"\nprincipals = ["${HASH_A}"]\nlive = true\n${more}\n`;
}

async function saved(test: TestService, path: string, to: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A, ...headers } });
  Deno.writeFileSync(to, new Uint8Array(await answer.arrayBuffer()));
  return answer;
}

Deno.test("a camera is recorded all day, and a moment of its run leads to the frame in the recording", async () => {
  using folder = new TempFolder();
  const film = camera(join(folder.path, "camera.ts"));
  const old = makeClip(join(folder.path, "old.ts"), { size: "160x120", frames: 25 });
  await using cameras = new AsyncDisposableStack();
  const dock = cameras.use(serveRtsp(Deno.readFileSync(film), { isEndless: true }));
  await using other = serveRtsp(Deno.readFileSync(old));
  const recording = "recording = { hours = 48 }";
  await using live = await startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    sourcesFile: source("dock", dock.port, recording) + source("old", other.port, recording),
  });
  const { test } = live;
  const list = async (query = "", key = KEY_A) =>
    await test.call("GET", `/v1/sources/dock/recordings${query}`, undefined, key);
  // deno-lint-ignore no-explicit-any -- as the answers of tests are
  let segments: any[] = [];
  await until("two segments are recorded", async () => {
    segments = (await list()).json.segments;
    return segments.length >= 2;
  });
  const [first, second] = segments;
  assert.deepEqual(
    [second.start_at_ms, second.start_pts_ms],
    [first.end_at_ms, first.end_pts_ms],
    "they touch",
  );
  assert.equal(first.end_pts_ms - first.start_pts_ms, 10_000);
  assert.deepEqual([first.sound, first.video_format], ["included", second.video_format]);
  const looks = (await test.call("GET", "/v1/sources")).json.sources;
  assert.deepEqual([looks[0].recording.hours, looks[0].recording.bytes], [48, null]);
  assert.ok(looks[0].recording.newest_end_at_ms >= second.end_at_ms);
  await until(
    "the other one is refused",
    async () => (await test.call("GET", "/v1/sources")).json.sources[1].state === "failed",
  );
  assert.match(
    (await test.call("GET", "/v1/sources")).json.sources[1].reason,
    /^recording needs video as H\.264 or H\.265/,
  );

  // The cut is a marker of the run; its picture is the frame in the segment.
  let cut: { pts_ms: number } | undefined;
  await until("the picture of the cut is described", async () => {
    cut = payloads(await eventsOf(test, first.run_id), "keyframe_stored")
      .find(({ event_type }: { event_type: string }) => event_type === "scene_cut");
    return cut !== undefined;
  });
  const { pts_ms } = cut!;
  const segment = segments.find(({ start_pts_ms, end_pts_ms }) =>
    start_pts_ms <= pts_ms && pts_ms < end_pts_ms
  );
  const path = join(folder.path, "segment.mp4");
  const whole = await saved(test, `/v1/sources/dock/recordings/${segment.segment_id}`, path);
  assert.deepEqual([whole.status, whole.headers.get("content-type")], [200, "video/mp4"]);
  assert.equal(Number(whole.headers.get("content-length")), segment.bytes);
  const hashes = frameHashes(film);
  const frame = (pts_ms - segment.start_pts_ms) / 40;
  assert.deepEqual(frameHashes(path)[frame], hashes[CUT_FRAME]);
  const part = await fetch(`${test.url}/v1/sources/dock/recordings/${segment.segment_id}`, {
    headers: { "x-api-key": KEY_A, range: "bytes=4-7" },
  });
  assert.deepEqual([part.status, await part.text()], [206, "ftyp"]);

  const range = `from=${first.start_at_ms + 3_000}&to=${first.end_at_ms}`;
  const exported = await saved(test, `/v1/sources/dock/recordings/export?${range}`, path);
  assert.equal(exported.status, 200);
  assert.match(
    exported.headers.get("content-disposition")!,
    /^attachment; filename="dock-\d{8}T\d{9}Z\.mp4"$/,
  );
  assert.deepEqual(frameHashes(path), hashes.slice(50, 250), "from the key frame before its begin");

  const paged = await list("?limit=1");
  assert.deepEqual([paged.json.segments, paged.json.next_cursor], [[first], first.segment_id]);
  const next = await list(
    `?limit=1&cursor=${paged.json.next_cursor}&from=${new Date(first.start_at_ms).toISOString()}`,
  );
  assert.deepEqual(next.json.segments, [second]);
  assert.deepEqual((await list(`?from=${first.end_at_ms}&to=${first.end_at_ms + 1}`)).json.segments, [
    second,
  ]);
  const foreign = await list("", KEY_B);
  const unknown = await test.call("GET", "/v1/sources/nothing/recordings");
  assert.deepEqual([foreign.status, foreign.json.error.details], [404, unknown.json.error.details]);
  for (
    const [query, status, field] of [
      ["?from=5&to=5", 422, "to"],
      ["?from=yesterday", 422, "from"],
      ["?from=2026-02-31T00:00:00Z", 422, "from"],
      ["?cursor=x", 422, "cursor"],
      ["?limit=0", 422, "limit"],
      ["/export?from=1", 422, "to"],
      ["/export?from=1&to=1700000000000", 422, "to"],
      ["/export?from=1&to=2", 404, "from"],
      ["/20261124T101500000Z", 404, "segment"],
      ["/..%2f..%2fx", 404, "segment"],
    ] as const
  ) {
    const answer = await list(query);
    assert.deepEqual([answer.status, answer.json.error?.details[0].field], [status, field], answer.text);
  }
  assert.ok(await metric(test, "service_recording_segments_stored_total", "") >= 2);
  assert.ok(await metric(test, "service_recording_bytes_total", "") >= first.bytes);

  // What a run is, and whether it is there, has nothing to do with the recording.
  await test.call("DELETE", `/v1/runs/${first.run_id}`);
  await test.restart(() => cameras.disposeAsync());
  const after = (await list()).json.segments;
  assert.deepEqual(after.slice(0, 2).map(({ segment_id }: { segment_id: string }) => segment_id), [
    first.segment_id,
    second.segment_id,
  ]);
  // The camera is gone. What it sent until the service was stopped is the last segment, and ends there.
  const last = after.at(-1);
  assert.ok(last.end_at_ms > second.end_at_ms, `${last.end_at_ms}`);
  await saved(test, `/v1/sources/dock/recordings/${last.segment_id}`, path);
  const { videoMs, errors } = playedFile(path);
  const mediaMs = last.end_pts_ms - last.start_pts_ms;
  assert.deepEqual([videoMs, errors], [mediaMs, ""]);
  assert.ok(Math.abs(last.end_at_ms - last.start_at_ms - mediaMs) <= mediaMs / 100 + 1);
  const [look] = (await test.call("GET", "/v1/sources")).json.sources;
  assert.ok(["connecting", "failed"].includes(look.state) && look.run_id === null, look.state);
  assert.equal(look.recording.newest_end_at_ms, last.end_at_ms);
});

Deno.test("an export of which a segment goes or is damaged meanwhile does not end as if it were whole", async () => {
  const sourcesFile = `[[sources]]\nname = "dock"\nuri = "/film.mp4"\nprincipals = ["${HASH_A}"]\n`;
  await using test = await startService({}, { sourcesFile });
  const begins = [0, 1, 2].map((second) => RECORDED_MS + second * 1_000);
  await recordSource(test.dataDir, "dock", begins);
  const local = await test.call("GET", "/v1/sources/dock/recordings?from=2026-11-24T11:15:01+01:00");
  assert.equal(local.json.segments?.length, 2, "a time zone whose + is not encoded");
  const exported = async () => {
    const path = `/v1/sources/dock/recordings/export?from=${RECORDED_MS}&to=${RECORDED_MS + 3_000}`;
    const answer = await fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
    assert.equal(answer.status, 200);
    return (await answer.arrayBuffer()).byteLength;
  };
  const whole = await exported();
  assert.ok(whole > 3_000, String(whole));
  const folder = join(test.dataDir, "recordings", "dock", "20261124");
  const last = join(folder, [...Deno.readDirSync(folder)].map(({ name }) => name).sort()[2]!);
  const bytes = Deno.readFileSync(last);
  Deno.writeFileSync(last, bytes.subarray(0, bytes.length - 100));
  await assert.rejects(exported(), "it is shorter than its tables say");
  Deno.writeFileSync(last, bytes.map((byte) => byte ^ 1));
  await assert.rejects(exported(), "it is no MP4");
  Deno.removeSync(last);
  await assert.rejects(exported(), "it is gone");
  Deno.writeFileSync(last, bytes);
  assert.equal(await exported(), whole);
});
