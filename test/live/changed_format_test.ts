/** A source whose pictures become others, in the stream or behind a gap: no clip and no segment has both. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import type {
  MadeSegment,
  RecordedClip,
  SessionReport,
  SessionSettings,
} from "../../src/live/messages/messages.ts";
import type { SessionPort } from "../../src/live/worker_pool.ts";
import { pulled, SETTINGS, Workers } from "../support/live/live_workers.ts";
import { playedFile } from "../support/live/played_file.ts";
import { make, TempFolder } from "../support/media.ts";
import { until } from "../support/until.ts";

const H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-sc_threshold", "0"];
const H265 = [
  "-c:v",
  "libx265",
  "-preset",
  "ultrafast",
  "-x265-params",
  "log-level=none:bframes=0:scenecut=0",
];

/**
 * The first picture, and then one of so many, causes a clip. What is kept is enough for a machine that
 * decodes seconds later.
 */
function recording(keepaliveEveryFrames: number): Partial<SessionSettings> {
  return {
    gateThresholds: { ...SETTINGS.gateThresholds, keepaliveEveryFrames, sceneCutHammingThreshold: 64 },
    record: { preRollMs: 10_000, postRollMs: 400, on: ["keyframe"], bytesMax: 2 ** 20 },
    recording: { segmentMs: 10_000, bytesMax: 2 ** 20 },
  };
}

/** Takes each clip and segment at once. */
function takeAll({ kind }: SessionReport, port: SessionPort): void {
  if (kind === "recorded") port.send({ kind: "acknowledge", credit: "recordings", count: 1 });
  if (kind === "segment") port.send({ kind: "acknowledge", credit: "segments", count: 1 });
}

/** Bare pictures of 1.6 s with a key frame every 0.4 s. */
function pictures(folder: TempFolder, size: string, encoder: readonly string[]): Uint8Array<ArrayBuffer> {
  const input = ["-f", "lavfi", "-i", `testsrc2=s=${size}:r=25`, "-frames:v", "40", "-pix_fmt", "yuv420p"];
  const path = join(folder.path, `pictures-${size}.bin`);
  return Deno.readFileSync(make(path, ...input, ...encoder, "-g", "10", "-f", formatOf(encoder)));
}

function formatOf(encoder: readonly string[]): string {
  return encoder.includes("libx265") ? "hevc" : "h264";
}

/**
 * Pictures one after the other with a tone, as a camera sends them: nothing but the parameter sets tells
 * where they change.
 */
function camera(
  folder: TempFolder,
  name: string,
  encoder: readonly string[],
  sizes: readonly string[],
): string {
  const video = folder.file(
    `${name}.bin`,
    joinedBytes(...sizes.map((size) => pictures(folder, size, encoder))),
  );
  return make(
    join(folder.path, `${name}.ts`),
    ...[
      "-r",
      "25",
      "-f",
      formatOf(encoder),
      "-i",
      video,
      "-f",
      "lavfi",
      "-i",
      `sine=d=${1.6 * sizes.length}`,
    ],
    ...["-c:v", "copy", "-c:a", "aac"],
  );
}

function made(reports: readonly SessionReport[]) {
  const clips = reports.flatMap((report) => report.kind === "recorded" ? [report.clip] : []);
  const segments = reports.flatMap((report) => report.kind === "segment" ? [report.segment] : []);
  const all: readonly (RecordedClip | MadeSegment)[] = [...clips, ...segments];
  return { clips, segments, all };
}

/** Plays each file, which must be whole, with the sound of all its pictures. */
function played(folder: TempFolder, files: readonly { readonly mp4: Uint8Array }[]) {
  return files.map(({ mp4 }, at) => {
    const { codecs, sizes, pictures, videoMs, soundMs, soundFromMs, errors } = playedFile(
      folder.file(`played-${at}.mp4`, mp4),
    );
    assert.equal(errors, "");
    assert.deepEqual([codecs[1], videoMs], ["aac", pictures * 40]);
    const soundEndMs = soundFromMs + soundMs;
    assert.ok(Math.abs(soundEndMs - videoMs) < 250, `${videoMs} ms with sound until ${soundEndMs} ms`);
    return [codecs[0], sizes.join(", "), pictures];
  });
}

for (
  const [what, encoder, durationMs, causeEvery, expected] of [
    ["H.264", H264, 3_200, 35, [[0, 0, 400], [1_400, 0, 1_600], [2_800, 1_600, 3_200]]],
    ["H.264 that comes at once", H264, null, 55, [[0, 0, 400], [2_200, 1_600, 2_600]]],
    ["H.265", H265, 3_200, 35, [[0, 0, 400], [1_400, 0, 1_600], [2_800, 1_600, 3_200]]],
  ] as const
) {
  Deno.test(`pictures of ${what} that change their size end the clip and the segment, and begin the next ones`, async () => {
    using folder = new TempFolder();
    const path = camera(folder, "camera", encoder, ["160x120", "240x180"]);
    await using workers = new Workers();
    const source = await pulled(path, { durationMs });
    const { port, reports, waitFor } = workers.open(source, recording(causeEvery), takeAll);
    await waitFor(durationMs === null ? "gap" : "ended");
    await port.close();
    const { clips, segments } = made(reports);
    const firstMs = segments[0]!.startTicks / 90;
    const times = clips.map(({ causePtsMs, startPtsMs, endPtsMs }) =>
      [causePtsMs, startPtsMs, endPtsMs].map((ms) => Math.round(ms - firstMs) || 0)
    );
    assert.deepEqual(times, expected);
    const codec = encoder === H265 ? "hevc" : "h264";
    assert.deepEqual(
      played(folder, clips),
      expected.map((
        [, fromMs, toMs],
      ) => [codec, fromMs < 1_600 ? "160x120" : "240x180", (toMs - fromMs) / 40]),
    );
    assert.deepEqual(played(folder, segments), [[codec, "160x120", 40], [codec, "240x180", 40]]);
    const [first, second] = segments;
    assert.deepEqual([first!.endTicks, first!.endMs], [second!.startTicks, second!.startMs], "they touch");
    assert.notEqual(first!.formats.video, second!.formats.video);
    assert.ok(second!.endMs > second!.startMs && Number.isFinite(second!.endMs));
  });
}

Deno.test("a source that comes back after a gap with another codec has clips and segments of each", async () => {
  using folder = new TempFolder();
  const open = async (name: string, encoder: readonly string[], size: string) =>
    await pulled(camera(folder, name, encoder, [size]), { durationMs: null });
  const before = await open("before", H264, "160x120");
  const after = await open("after", H265, "240x180");
  await using workers = new Workers();
  const { port, reports, waitFor } = workers.open(before, recording(35), takeAll);
  const { sessionId } = await waitFor("gap");
  await waitFor("recorded"); // a camera takes longer to come back than a picture to be reported
  const gaps = () => reports.filter(({ kind }) => kind === "gap").length;
  port.send({ ...after, settings: { ...SETTINGS, sessionId } });
  await until("it has ended again", () => gaps() === 2);
  await port.close();
  const { clips, segments } = made(reports);
  assert.deepEqual(played(folder, segments), [["h264", "160x120", 40], ["hevc", "240x180", 40]]);
  assert.deepEqual(segments.map(({ codec }) => codec.slice(0, 4)), ["avc1", "hvc1"]);
  for (const [codec, size] of played(folder, clips)) {
    assert.equal(size, codec === "h264" ? "160x120" : "240x180");
  }
  assert.ok(clips.some(({ codec }) => codec.startsWith("avc1")));
  assert.ok(clips.some(({ codec }) => codec.startsWith("hvc1")), "there are clips of the other codec");
});
