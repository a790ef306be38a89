/** Cameras that send HLS, with MPEG-TS, whose AAC has a header before each frame, and with MP4: their clips
 * and recordings play whole, with their sound.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LONG_TEST } from "../../support/long_tests.ts";
import { hlsSource, watchHls } from "../../support/live/hls_cameras.ts";
import { serveHls } from "../../support/live/hls_server.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { make, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { KEY_A, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

/** Milliseconds of a frame of sound, at which frames do not begin with the pictures. */
const SOUND_FRAME_MS = 1024 / 44.1;

async function saved(test: TestService, path: string, to: string): Promise<string> {
  const answer = await fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
  assert.equal(answer.status, 200, path);
  Deno.writeFileSync(to, new Uint8Array(await answer.arrayBuffer()));
  return to;
}

/** Checks a file that has sound from the first to the last picture. */
function checkWhole(path: string, lengthMs: number): void {
  const { codecs, sizes, pictures, videoMs, soundMs, soundFromMs, errors } = playedFile(path);
  assert.equal(errors, "");
  assert.deepEqual([codecs, sizes], [["h264", "aac"], ["160x120"]]);
  assert.ok(
    Math.abs(videoMs - pictures * 40) <= 1 && Math.abs(videoMs - lengthMs) <= 1,
    `${pictures} pictures in ${videoMs} of ${lengthMs} ms`,
  );
  assert.ok(soundFromMs >= 0 && soundFromMs <= SOUND_FRAME_MS, `sound from ${soundFromMs} ms on`);
  assert.ok(
    Math.abs(soundFromMs + soundMs - videoMs) < 250,
    `${soundMs} ms of sound, ${videoMs} ms of video`,
  );
}

/** Waits for a segment of the camera, and checks it, an export of it, and the clips until then. */
async function checkCamera(test: TestService, folder: TempFolder, name: string): Promise<void> {
  // deno-lint-ignore no-explicit-any -- as the answers of tests are
  let segments: any[] = [];
  await until(`a segment of ${name} is recorded`, async () => {
    segments = (await test.call("GET", `/v1/sources/${name}/recordings`)).json.segments;
    return segments.length > 0;
  });
  const [segment] = segments;
  assert.match(segment.codec, /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/);
  assert.equal(segment.sound, "included");
  const recorded = join(folder.path, "segment.mp4");
  checkWhole(
    await saved(test, `/v1/sources/${name}/recordings/${segment.segment_id}`, recorded),
    segment.end_pts_ms - segment.start_pts_ms,
  );
  const range = `from=${segment.start_at_ms}&to=${segment.end_at_ms}`;
  const exported = join(folder.path, "export.mp4");
  const { errors, codecs } = playedFile(
    await saved(test, `/v1/sources/${name}/recordings/export?${range}`, exported),
  );
  assert.deepEqual([errors, codecs], ["", ["h264", "aac"]]);

  let clips: ReturnType<typeof payloads> = [];
  await until(`a clip of ${name} is stored`, async () => {
    clips = payloads(await eventsOf(test, segment.run_id), "clip_stored");
    return clips.length > 0;
  });
  for (const { sha256, start_pts_ms, end_pts_ms, sound } of clips) {
    assert.equal(sound, "included");
    const clip = join(folder.path, `${sha256}.mp4`);
    checkWhole(
      await saved(test, `/v1/runs/${segment.run_id}/media/${sha256}`, clip),
      end_pts_ms - start_pts_ms,
    );
  }
}

/** A minute with a key frame each second. */
function madeFilm(folder: TempFolder): string {
  return make(
    join(folder.path, "film.ts"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=60"],
    ...["-f", "lavfi", "-i", "sine=sample_rate=44100:d=60"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "2", "-g", "25"],
    ...["-sc_threshold", "0", "-c:a", "aac", "-ac", "2"],
  );
}

Deno.test("clips and segments of HLS cameras play whole, with their sound, also where it comes seconds behind the pictures", async () => {
  using folder = new TempFolder();
  const film = madeFilm(folder);
  await using together = serveHls(film);
  await using apart = serveHls(film, { format: "m4s", partSeconds: 3 });
  await using live = await watchHls([hlsSource("together", together.port), hlsSource("apart", apart.port)]);
  for (const name of ["together", "apart"]) await checkCamera(live.test, folder, name);
});

Deno.test(
  "an HLS camera whose encoder stops is in a gap until its playlist has new parts, and no part is seen a second time",
  LONG_TEST,
  async () => {
    using folder = new TempFolder();
    await using camera = serveHls(madeFilm(folder));
    await using live = await watchHls([hlsSource("dock", camera.port)]);
    const look = async () => (await live.test.call("GET", "/v1/sources")).json.sources[0];
    await until("it is live", async () => (await look()).state === "live");
    const { run_id: runId } = await look();
    const attempts = async () => (await live.test.call("GET", `/v1/runs/${runId}/live`)).json.gap.attempts;
    const triedAgain = async (what: string) => {
      const before = await attempts();
      await until(`tried again: ${what}`, async () => await attempts() >= before + 2);
      const { state, reason } = await look();
      assert.equal(state, "gap");
      assert.match(reason, /its playlist has nothing new since it was read last/);
    };
    camera.stop("ended");
    await until("its last part was seen", async () => (await look()).state === "gap");
    await triedAgain("the list has ended");
    camera.stop("stalled");
    await triedAgain("the list stays as it is");
    const [last, before] = [Math.max(...camera.asked), camera.asked.length];
    camera.goOn();
    await until("it is back", async () => (await look()).state === "live");
    await until("it goes on", () => Math.max(...camera.asked) > last + 3);
    assert.deepEqual(camera.asked.slice(before).filter((part) => part <= last), []);
    assert.equal((await look()).run_id, runId);
    const events = await eventsOf(live.test, runId);
    const kinds = kindsOf(events).filter((kind) => /^(source_gap|source_resumed|run_completed)$/.test(kind));
    assert.deepEqual(kinds, ["source_gap", "source_resumed"]);
  },
);
