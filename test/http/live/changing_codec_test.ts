/** HLS cameras that change between H.264 and H.265 in the middle of the stream: what their recording, their
 * clips and their run have.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LONG_TEST } from "../../support/long_tests.ts";
import { hlsSource, watchHls } from "../../support/live/hls_cameras.ts";
import { serveHls } from "../../support/live/hls_server.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { make, TempFolder } from "../../support/media.ts";
import { eventsOf, payloads } from "../../support/models/reason.ts";
import { KEY_A, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-sc_threshold", "0"];
const H265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:scenecut=0"];
const NAMES = { h264: "avc1", hevc: "hvc1" } as const;

function filmOf(folder: TempFolder, name: string, encoder: readonly string[], seconds: number): string {
  return make(
    join(folder.path, name),
    ...["-f", "lavfi", "-i", `testsrc2=s=160x120:r=25:d=${seconds}`],
    ...["-f", "lavfi", "-i", `sine=d=${seconds}`],
    ...["-pix_fmt", "yuv420p", "-g", "25", ...encoder, "-c:a", "aac", "-t", String(seconds)],
  );
}

// A busy machine may need several seconds to connect.
const [BEFORE_SECONDS, AFTER_SECONDS] = [16, 80];

const CAMERAS = [
  { name: "ts-to-h265", format: "ts", codecs: ["h264", "hevc"] },
  { name: "ts-to-h264", format: "ts", codecs: ["hevc", "h264"] },
  { name: "mp4-to-h265", format: "m4s", codecs: ["h264", "hevc"] },
  { name: "mp4-to-h264", format: "m4s", codecs: ["hevc", "h264"] },
] as const;

async function checkCamera(test: TestService, folder: TempFolder, { name, codecs }: typeof CAMERAS[number]) {
  const play = async (path: string, file: string) => {
    const answer = await fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
    assert.equal(answer.status, 200, path);
    const { codecs: [video], pictures, errors } = playedFile(
      folder.file(`${name}-${file}.mp4`, new Uint8Array(await answer.arrayBuffer())),
    );
    assert.equal(errors, "", path);
    return { video: NAMES[video as keyof typeof NAMES], pictures };
  };
  // deno-lint-ignore no-explicit-any -- as the answers of tests are
  let segments: any[] = [];
  for (const codec of codecs) {
    await until(`segments of ${codec} of ${name} are recorded`, async () => {
      segments = (await test.call("GET", `/v1/sources/${name}/recordings`)).json.segments;
      return segments.some((segment) => segment.codec.startsWith(NAMES[codec]));
    });
  }
  const first = segments.filter(({ codec }) => codec.startsWith(NAMES[codecs[0]]));
  assert.deepEqual(segments.slice(0, first.length), first, "it has changed once");
  let pictures = 0;
  for (const [at, { segment_id, codec, start_pts_ms, start_at_ms }] of segments.entries()) {
    const played = await play(`/v1/sources/${name}/recordings/${segment_id}`, segment_id);
    assert.ok(codec.startsWith(played.video), `${codec}: ${played.video}`);
    if (at < first.length) pictures += played.pictures;
    const before = segments[at - 1];
    if (!before) continue;
    assert.ok(start_pts_ms >= before.end_pts_ms && start_at_ms >= before.end_at_ms, "no two overlap");
  }
  assert.ok(pictures > 25 && pictures <= 25 * BEFORE_SECONDS, `${pictures} pictures before the change`);
  const change = segments[first.length];
  const across = `from=${first[0].start_at_ms}&to=${change.end_at_ms}`;
  assert.equal((await test.call("GET", `/v1/sources/${name}/recordings/export?${across}`)).status, 422);

  const events = await eventsOf(test, change.run_id);
  const gaps = payloads(events, "source_gap").filter(({ pts_ms }) => pts_ms < change.start_pts_ms);
  assert.deepEqual(gaps.map(({ reason }) => reason), ["it sends another codec"]);
  const { gap_ms: gapMs } = payloads(events, "source_resumed")[0]!;
  assert.ok(gapMs < 15_000, `a gap of ${gapMs} ms`);
  const clips = payloads(events, "clip_stored");
  assert.ok(clips.length > 0);
  for (const { sha256, codec } of clips) {
    const { video } = await play(`/v1/runs/${change.run_id}/media/${sha256}`, sha256);
    assert.ok(codec.startsWith(video), `${codec}: ${video}`);
  }
}

for (const [title, format] of [["MPEG-TS", "ts"], ["MP4", "m4s"]] as const) {
  const name =
    `HLS cameras of ${title} that change their codec are connected anew at once, and no segment or clip has both`;
  Deno.test({ name, ...LONG_TEST }, async () => {
    using folder = new TempFolder();
    const cameras = CAMERAS.filter((camera) => camera.format === format);
    await using served = new AsyncDisposableStack();
    const sources = cameras.map(({ name, codecs }) => {
      const films = codecs.map((codec, at) => {
        const seconds = at === 0 ? BEFORE_SECONDS : AFTER_SECONDS;
        return filmOf(folder, `${name}-${codec}.ts`, codec === "h264" ? H264 : H265, seconds);
      });
      return hlsSource(name, served.use(serveHls(films, { format })).port);
    });
    await using live = await watchHls(sources);
    for (const camera of cameras) await checkCamera(live.test, folder, camera);
  });
}
