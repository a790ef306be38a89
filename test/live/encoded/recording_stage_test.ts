/** Continuous recording: segments that touch and lose no picture, and one file made of many. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { RecordingStage, type RecordingStageOptions } from "../../../src/live/encoded/recording_stage.ts";
import type { MadeSegment, SessionReport } from "../../../src/live/messages/messages.ts";
import { Outbox } from "../../../src/live/messages/outbox.ts";
import { SessionCounts } from "../../../src/live/messages/session_counts.ts";
import { RecordingExport } from "../../../src/flow/recordings/recording_export.ts";
import { SegmentClock } from "../../../src/model/live/recording/segment_clock.ts";
import type { RecordedSegment } from "../../../src/model/sources/recorded_segment.ts";
import { type RecordedRange, Recordings } from "../../../src/store/recordings/recordings.ts";
import { unitsOf } from "../../support/live/copied_units.ts";
import { frameHashes, frameTimesMs, make, TempFolder, world } from "../../support/media.ts";

const WORLD = world();
const STARTED_MS = Date.parse("2026-11-24T23:59:58.500Z");
const SESSION_MS = 60_000;

/** Four seconds with a key frame each half second; the pictures before a key frame refer to it. */
function source(folder: TempFolder) {
  const path = make(
    join(folder.path, "source.nut"),
    ...["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=4", "-f", "lavfi", "-i", "sine=duration=4"],
    ...["-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "12"],
    ...["-x264-params", "open-gop=1:b-adapt=0:scenecut=0", "-c:a", "aac", "-f", "nut"],
  );
  return { path, ...unitsOf(Deno.readFileSync(path)) };
}

/** Feeds the units to a stage at the time of each, and gives what it reports. */
async function recorded(
  { units, streams }: ReturnType<typeof source>,
  { plan = {}, credits = 100 }: { plan?: Partial<RecordingStageOptions["plan"]>; credits?: number } = {},
) {
  const segments: MadeSegment[] = [];
  const post = (report: SessionReport) => {
    if (report.kind === "segment") segments.push(report.segment);
    if (--credits > 0) outbox.giveBack("segments");
  };
  const outbox = new Outbox("sess-1", post, { hasClips: false });
  const counts = new SessionCounts();
  let nowMs = STARTED_MS;
  const stage = new RecordingStage({
    plan: { segmentMs: 900, bytesMax: 2 ** 20, ...plan },
    world: { ...WORLD, now: () => nowMs },
    outbox,
    counts,
  });
  const sound = streams.find(({ isVideo }) => !isVideo)!;
  const { codecData } = streams.find(({ isVideo }) => isVideo)!;
  stage.begin({
    codec: "h264",
    codecData,
    sound: { ...sound, codec: "aac" },
    hasOtherSound: false,
    reorderDepth: 2,
  });
  const firstMs = units.find(({ isVideo }) => isVideo)!.ptsMs;
  stage.setOffset(SESSION_MS - firstMs);
  for (const unit of units) {
    nowMs = STARTED_MS + unit.ptsMs - firstMs;
    stage.push(unit);
    // The file of a segment is made before the next one ends, as it is in a session.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  await stage[Symbol.asyncDispose]();
  return { segments, lost: counts.take()?.segmentsLost ?? 0 };
}

/** Times of the pictures of a file, in ascending order, milliseconds. */
function packetTimesMs(path: string): number[] {
  const args = [
    "-v",
    "error",
    "-select_streams",
    "v",
    "-show_entries",
    "packet=pts_time",
    "-of",
    "csv=p=0",
    path,
  ];
  const { stdout } = new Deno.Command("ffprobe", { args }).outputSync();
  const times = new TextDecoder().decode(stdout).trim().split("\n").map((text) =>
    Math.round(Number.parseFloat(text) * 1_000)
  );
  return times.sort((one, other) => one - other);
}

/** Writes the segments to a store of the folder, and gives an export of them. */
async function stored(folder: TempFolder, segments: readonly MadeSegment[]) {
  const recordings = Recordings.open(folder.path, WORLD);
  for (const { mp4, ...facts } of segments) {
    const runId = `run-${"1".repeat(32)}`;
    await recordings.write("dock", { ...facts, runId, hours: 48, sizeBytes: mp4.length }, mp4);
  }
  const list = async (range: RecordedRange) => await Array.fromAsync(recordings.segments("dock", range));
  const exported = async (range: RecordedRange) => {
    const found = await list(range);
    const [first, last] = [found[0]!, found.at(-1)!];
    const from = {
      segments: () => recordings.segments("dock", range),
      open: async (segment: RecordedSegment) => (await recordings.open("dock", segment))!,
    };
    const made = await RecordingExport.open(from, { ...range, first, last, firstHeard: first });
    const path = join(folder.path, "export.mp4");
    using file = Deno.openSync(path, { create: true, write: true, truncate: true });
    for await (const bytes of made.bytes()) file.writeSync(bytes);
    return { path, startMs: made.startMs };
  };
  return { recordings, list, exported };
}

const EVER: RecordedRange = { fromMs: 0, toMs: Infinity };

Deno.test("segments touch in both times, and together they are the stream, picture by picture", async () => {
  using folder = new TempFolder();
  const film = source(folder);
  const { segments, lost } = await recorded(film);
  assert.deepEqual([lost, segments.length], [0, 5]);
  const hashes = frameHashes(film.path);
  assert.equal(hashes.length, 100);
  const [first] = segments;
  assert.deepEqual([first!.startTicks, first!.startMs], [SESSION_MS * 90, STARTED_MS]);
  for (const [at, { startMs, endMs, startTicks, endTicks, codec, sound, formats }] of segments.entries()) {
    const next = segments[at + 1];
    if (next) assert.deepEqual([endMs, endTicks], [next.startMs, next.startTicks]);
    assert.equal(endMs - startMs, Math.round((endTicks - startTicks) / 90));
    assert.match(codec, /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/);
    assert.deepEqual([sound, formats], ["included", first!.formats]);
  }
  assert.equal(segments.at(-1)!.endTicks, (SESSION_MS + 4_000) * 90);

  const { exported } = await stored(folder, segments);
  const whole = await exported(EVER);
  assert.deepEqual(frameHashes(whole.path), hashes);
  const times = frameTimesMs(whole.path, 0);
  assert.deepEqual(times.map(Math.round), times.map((_, frame) => frame * 40));
  // The first picture is shown where the pictures behind it, which are decoded later, leave room.
  assert.deepEqual([whole.startMs, packetTimesMs(whole.path)[0]], [STARTED_MS - 40, 40]);

  // From the key frame at or before 1.7 s (frame 42) to before 2.5 s (frame 62), and to the frames behind it.
  for (const [toMs, last] of [[2_500, 62], [2_540, 63], [2_580, 64]] as const) {
    const part = await exported({ fromMs: STARTED_MS + 1_700, toMs: STARTED_MS + toMs });
    const times = packetTimesMs(part.path);
    const key = Math.round((part.startMs + times[0]! - STARTED_MS) / 40);
    const partHashes = frameHashes(part.path);
    assert.ok(key <= 42 && key > 42 - 13, `frame ${key}`);
    // A picture that others need may be shown later; then none is missing before it.
    assert.ok(partHashes.length > last - key && partHashes.length <= last - key + 3, `${partHashes.length}`);
    assert.deepEqual(partHashes, hashes.slice(key, key + partHashes.length), `to ${toMs} ms`);
    assert.deepEqual(times, times.map((_, frame) => times[0]! + frame * 40), `to ${toMs} ms`);
  }
});

Deno.test("a segment that cannot be kept is lost and counted, and the gap is there in the export", async () => {
  using folder = new TempFolder();
  const film = source(folder);
  const none = await recorded(film, { credits: 0 });
  assert.deepEqual([none.segments.length, none.lost], [2, 3]);
  const small = await recorded(film, { plan: { bytesMax: 3_000 } });
  assert.ok(small.lost > 0);

  const { segments } = await recorded(film);
  const { exported, list } = await stored(folder, [segments[0]!, segments[3]!]);
  const { path } = await exported(EVER);
  const kept = await list(EVER);
  assert.deepEqual(kept.map(({ startMs }) => startMs), [segments[0]!.startMs, segments[3]!.startMs]);
  // Pictures that are shown before the first key frame behind a gap, here two, cannot be decoded and are left
  // out.
  const times = packetTimesMs(path);
  const gap = times.findIndex((ms, at) => at > 0 && ms - times[at - 1]! > 1_000);
  assert.equal(times[gap]! - times[0]!, segments[3]!.startMs - segments[0]!.startMs + 80);
  assert.equal(gap, Math.round((segments[0]!.endMs - segments[0]!.startMs) / 40));
});

Deno.test("what came behind the last cut is a segment, also where it is two pictures", async () => {
  using folder = new TempFolder();
  const film = source(folder);
  const keys = film.units.flatMap((unit, at) => unit.isVideo && unit.isKeyframe ? [at] : []);
  let cut = 0;
  // The cut waits for sound and pictures, and what it waits for may be the last that comes.
  for (let end = keys[2]! + 1; end < keys[2]! + 12; end++) {
    const { segments, lost } = await recorded({ ...film, units: film.units.slice(0, end) });
    assert.equal(lost, 0);
    const [first, second] = segments;
    if (!second) continue;
    cut++;
    assert.deepEqual([first!.endMs, first!.endTicks], [second.startMs, second.startTicks]);
    assert.ok(second.endMs > second.startMs && second.endMs < STARTED_MS + 4_000, `${end}: ${second.endMs}`);
  }
  assert.ok(cut > 0);
});

Deno.test("the clock of segments follows that of the machine slowly, and a step of it is a gap", () => {
  const clock = new SegmentClock();
  const place = (startMs: number, lagMs: number) => clock.place({ startMs, endMs: startMs + 10_000, lagMs });
  assert.deepEqual(place(0, 1_000), { startMs: 1_000, endMs: 11_000 });
  assert.deepEqual(place(10_000, 1_030), { startMs: 11_000, endMs: 21_030 });
  assert.deepEqual(place(20_000, 900), { startMs: 21_030, endMs: 30_930 });
  // A network that was late by so much, and one that cannot be: an encoder that started again counts its
  // times from where it was.
  assert.deepEqual(place(30_000, 20_900), { startMs: 30_930, endMs: 41_030 });
  assert.deepEqual(place(40_000, 21_100), { startMs: 61_100, endMs: 71_100 });
  assert.deepEqual(place(60_000, 21_100), { startMs: 81_100, endMs: 91_100 });
  // Behind a gap no segment overlaps the one before, unless the clock was set back by more than that.
  assert.deepEqual(place(71_000, 19_100), { startMs: 91_100, endMs: 101_000 });
  assert.deepEqual(place(81_000, 20_000), { startMs: 101_000, endMs: 111_000 });
  assert.deepEqual(place(100_000, -10_000), { startMs: 90_000, endMs: 100_000 });
});
