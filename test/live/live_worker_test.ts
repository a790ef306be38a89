/** Sessions in a real live Worker, without the rest of the service. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import type { SessionReport } from "../../src/live/messages/messages.ts";
import type { SessionCounter } from "../../src/live/messages/session_counts.ts";
import { fileInput } from "../../src/media/input.ts";
import { probeMedia } from "../../src/media/files/probe.ts";
import { readOffer } from "../../src/model/live/offer.ts";
import { offerText } from "../support/live/fake_live_workers.ts";
import { PublisherMedia, testVideo } from "../support/live/live_publisher.ts";
import { pulled, SETTINGS, TOOLS, Workers, WORLD } from "../support/live/live_workers.ts";
import { localRunner } from "../support/local_runner.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { frameHashes, frameTimesMs, make, TempFolder } from "../support/media.ts";
import { childProcesses } from "../support/own_process.ts";
import { until } from "../support/until.ts";

const media = new PublisherMedia();
addEventListener("unload", () => media[Symbol.dispose]());
const CLIP = media.vp8("clip", testVideo("320x180", 2));

/** Kinds of reports that come at any time, and are left out of the order. */
const UNTIMED: readonly string[] = ["counts", "samples", "loop_detected"];

function kinds(reports: readonly SessionReport[]): string {
  return reports.map(({ kind }) => kind).filter((kind) => !UNTIMED.includes(kind)).join(" ");
}

Deno.test("an offer is answered, and a session without a publisher closes when it is ordered to", async () => {
  await using workers = new Workers();
  const { port, reports, waitFor } = workers.open({
    kind: "offer",
    offer: readOffer(offerText(), new Set()),
    isOnLoopback: true,
  });
  const { answer, video, audioTracks } = await waitFor("answered");
  assert.match(answer, /^v=0\r\n/);
  assert.deepEqual([video, audioTracks], [{ codec: "vp8" }, 1]);
  port.send({ kind: "candidate", fragment: "no candidate at all", isOnLoopback: true });
  port.send({ kind: "restart_ice", fragment: "", isOnLoopback: true, orderId: 7 });
  const restarted = await waitFor("ice_restarted");
  assert.deepEqual([restarted.orderId, restarted.fragment], [7, null]);
  await Promise.all([port.close(), port.close()]);
  assert.equal(kinds(reports), "answered ice_restarted closed");
});

Deno.test("an offer that cannot be answered is refused, and no other report follows", async () => {
  await using workers = new Workers();
  const broken = { ...readOffer(offerText(), new Set()), fingerprints: null as never };
  const { port, reports, waitFor } = workers.open({ kind: "offer", offer: broken, isOnLoopback: true });
  await waitFor("refused");
  await port.close();
  assert.equal(kinds(reports), "refused");
});

Deno.test("a session that is closed while it opens closes when it has opened", async () => {
  await using workers = new Workers();
  const { port, reports } = workers.open({
    kind: "offer",
    offer: readOffer(offerText(), new Set()),
    isOnLoopback: true,
  });
  await port.close();
  assert.match(kinds(reports), /^(answered )?closed$/);
});

Deno.test("a source of known length is decoded to its end, and then the session ends", async () => {
  await using workers = new Workers();
  const { port, reports, waitFor } = workers.open(await pulled(CLIP));
  port.send({ kind: "snapshot" });
  port.send({ kind: "snapshot" });
  await waitFor("closed");
  assert.match(kinds(reports), /^picture_size (picture )*snapshot (picture )*ended closed$/);
  const { snapshot: { jpeg, ptsMs } } = await waitFor("snapshot");
  assert.deepEqual([...jpeg.subarray(0, 2), ...jpeg.subarray(-2)], [0xff, 0xd8, 0xff, 0xd9]);
  assert.ok(ptsMs >= 0 && ptsMs < 2_000, `of ${ptsMs} ms`);
  assert.equal((await waitFor("ended")).cause, "source_ended");
  assert.equal(sum(reports, "framesDecoded"), 60);
  assert.equal(sum(reports, "gateFramesAnalyzed"), 60);
  const samples = reports.flatMap((report) => report.kind === "samples" ? report.samples : []);
  assert.ok(samples.length > 10, `${samples.length} samples`);
  assert.equal(samples[0]!.ptsMs, 0);
  assert.ok(samples.every(({ motion, novelty }) => motion >= 0 && motion <= 1 && novelty >= 0));
  assert.ok(samples.some(({ motion }) => motion > 0));
});

Deno.test("black of a pulled source is reported when it ends, also at the end of the source, before the session closes", async () => {
  using folder = new TempFolder();
  const pictures = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=1"];
  const black = ["-f", "lavfi", "-i", "color=black:s=320x180:r=25:d=1"];
  const graph = "[0:v][1:v][0:v][1:v]concat=n=4,format=yuv420p";
  const clip = make(
    join(folder.path, "black.mp4"),
    ...pictures,
    ...black,
    "-filter_complex",
    graph,
    "-c:v",
    "mpeg4",
  );
  await using workers = new Workers();
  const { reports, waitFor } = workers.open(await pulled(clip));
  await waitFor("closed");
  const ranges = reports.flatMap((report) =>
    report.kind === "range" && report.range.type === "black" ? [report.range] : []
  );
  assert.deepEqual(
    ranges.map((
      { startFrame, endFrame, startPtsMs, endPtsMs },
    ) => [startFrame, endFrame, startPtsMs, endPtsMs]),
    [
      [25, 49, 1000, 1960],
      [75, 99, 3000, 3960],
    ],
  );
});

Deno.test("a live source that ends leaves a gap, and its times continue after it", async () => {
  await using workers = new Workers();
  const live = await pulled(CLIP, { durationMs: null });
  const { port, reports, waitFor } = workers.open(live);
  const { lastPtsMs } = await waitFor("gap");
  assert.ok(Math.abs(lastPtsMs! - 1_967) <= 1, `the last frame was at ${lastPtsMs} ms`);
  const before = reports.length;
  port.send({ ...live, settings: { ...SETTINGS, sessionId: reports[0]!.sessionId } });
  await until("there is another gap", () => reports.slice(before).some(({ kind }) => kind === "gap"));
  await port.close();
  // The JPEG of a frame from before the gap may still be in the making.
  const after = reports.slice(reports.findIndex(({ kind }) => kind === "resumed"));
  assert.match(kinds(after), /^resumed (picture )*gap (picture )*closed$/);
  const frames = after.flatMap((report) => report.kind === "picture" ? [report.picture.frame] : []);
  assert.ok(frames.every(({ ptsMs, frameIndex }) => (ptsMs > lastPtsMs!) === (frameIndex >= 60)));
  assert.ok(frames.some(({ frameIndex }) => frameIndex >= 60));
  assert.equal(sum(reports, "framesDecoded"), 120);
});

Deno.test("a source that never gives a frame ends, and one that has given frames may be away", async () => {
  await using workers = new Workers();
  const live = await pulled(CLIP, { durationMs: null });
  // A source that goes on and on, and of which no picture is ever passed on.
  const silent = {
    ...live,
    input: { ...live.input, args: ["-f", "lavfi"], url: "nullsrc=r=1/1000,select=0" },
  };
  const never = workers.open(silent, { mediaIdleMs: 6_000 });
  const before = workers.open(live, { mediaIdleMs: 6_000 });
  const { cause, message } = await never.waitFor("ended");
  assert.deepEqual([cause, message], ["media_idle", "the source has never given a frame"]);
  await never.waitFor("closed");
  await before.waitFor("gap");
  await before.port.close();
  assert.ok(!kinds(before.reports).includes("ended"), kinds(before.reports));
});

Deno.test("without credits no pictures are reported", async () => {
  await using workers = new Workers();
  const everyFrame = { ...SETTINGS.gateThresholds, keepaliveEveryFrames: 1 };
  // Every frame is different, so that none is part of a loop.
  const jumping = media.vp8("jumping", [
    "-f",
    "lavfi",
    "-i",
    "mandelbrot=s=320x180:r=30:end_scale=0.001:maxiter=50",
    "-t",
    "2",
  ]);
  const { port, reports, waitFor } = workers.open(
    await pulled(jumping, { durationMs: null }),
    { gateThresholds: everyFrame },
  );
  await waitFor("gap");
  const pictures = () => reports.filter(({ kind }) => kind === "picture").length;
  assert.ok(pictures() <= 32, `${pictures()} pictures`);
  await port.close();
  const lost = ["keyframesWithoutCredit", "keyframesLooping", "keyframesNotEncoded"] as const;
  const dropped = lost.reduce((all, counter) => all + sum(reports, counter), 0);
  assert.equal(sum(reports, "gateKeyframesSelected"), pictures() + dropped);
  assert.ok(dropped > 0);
});

Deno.test("the sound of a pulled source comes in windows of samples, at its times", async () => {
  using folder = new TempFolder();
  const tone = ["-f", "lavfi", "-i", "sine=frequency=440:duration=4.5", "-ac", "2", "-c:a", "aac"];
  const path = make(`${folder.path}/tone.mkv`, "-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=5", ...tone);
  await using workers = new Workers();
  const source = await pulled(path, { durationMs: null });
  const { reports, waitFor, port } = workers.open(source, { wantsAudio: true });
  await waitFor("gap");
  await port.close();
  const windows = reports.flatMap((report) => report.kind === "audio_window" ? [report.window] : []);
  assert.deepEqual(
    windows.map(({ format, trackId, chunkIndex, startPtsMs }) => [
      ...[format, trackId, chunkIndex, startPtsMs],
    ]),
    [["pcm", 0, 0, 0], ["pcm", 0, 1, 4_000]],
  );
  const samples = new Int16Array(joinedBytes(...windows[0]!.units).buffer);
  assert.equal(samples.length, 64_000);
  const crossings = samples.filter((sample, at) => sample >= 0 && samples[at - 1]! < 0).length;
  assert.ok(Math.abs(crossings - 4 * 440) < 20, `${crossings} periods`);
});

Deno.test("an evidence clip has the packets as they came, from the key frame before its pre-roll to the end of its post-roll", async () => {
  using folder = new TempFolder();
  const path = make(
    join(folder.path, "camera.mkv"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=3.4", "-f", "lavfi", "-i", "sine=duration=3.4"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-sc_threshold", "0"],
    ...["-pix_fmt", "yuv420p", "-c:a", "aac"],
  );
  await using workers = new Workers();
  const { port, reports, waitFor } = workers.open(await pulled(path), {
    gateThresholds: { ...SETTINGS.gateThresholds, keepaliveEveryFrames: 40, sceneCutHammingThreshold: 64 },
    record: { preRollMs: 300, postRollMs: 400, on: ["keyframe"], bytesMax: 2 ** 20 },
  });
  await until("two clips have come", () => reports.filter(({ kind }) => kind === "recorded").length === 2);
  port.send({ kind: "acknowledge", credit: "recordings", count: 2 });
  await waitFor("closed");
  const clips = reports.flatMap((report) => report.kind === "recorded" ? [report.clip] : []);
  // Its sound begins with what the encoder put before, and the first picture is not at 0.
  const firstMs = clips[0]!.startPtsMs;
  assert.ok(firstMs < 40, `the first picture is at ${firstMs} ms`);
  assert.deepEqual(
    clips.map(({ cause, causePtsMs, startPtsMs, endPtsMs, sound }) => [
      ...[cause, causePtsMs - firstMs, startPtsMs - firstMs, endPtsMs - firstMs, sound],
    ]),
    [
      ["keyframe", 0, 0, 400, "included"],
      ["keyframe", 1_600, 1_000, 2_000, "included"],
      // The source ends within the post-roll.
      ["keyframe", 3_200, 2_000, 3_400, "included"],
    ],
  );
  const source = frameHashes(path);
  for (const { mp4, jpeg, startPtsMs, endPtsMs, codec } of clips) {
    assert.match(codec, /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/);
    assert.deepEqual([...jpeg.subarray(0, 2)], [0xff, 0xd8]);
    const clip = join(folder.path, `${startPtsMs}.mp4`);
    Deno.writeFileSync(clip, mp4);
    const [from, to] = [(startPtsMs - firstMs) / 40, (endPtsMs - firstMs) / 40];
    assert.deepEqual(frameHashes(clip), source.slice(from, to));
    const times = frameTimesMs(clip, 0);
    assert.deepEqual(times, times.map((_, frame) => frame * 40));
    const info = await probeMedia(fileInput(clip), {
      runner: localRunner(TOOLS),
      world: WORLD,
      signal: new AbortController().signal,
    });
    assert.deepEqual([info.audioCodec, info.audioStreams], ["aac", 1]);
    assert.ok(Math.abs(info.durationMs! - (endPtsMs - startPtsMs)) < 60, `${info.durationMs} ms`);
  }
});

Deno.test("an evidence clip without a pre-roll and a post-roll ends with the picture of its cause, also where that is a key frame", async () => {
  using folder = new TempFolder();
  const path = make(
    join(folder.path, "camera.mkv"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=3.4", "-c:v", "libx264", "-preset", "ultrafast"],
    ...["-bf", "0", "-g", "40", "-sc_threshold", "0", "-pix_fmt", "yuv420p"],
  );
  await using workers = new Workers();
  const { reports, waitFor } = workers.open(await pulled(path), {
    gateThresholds: { ...SETTINGS.gateThresholds, keepaliveEveryFrames: 50, sceneCutHammingThreshold: 64 },
    record: { preRollMs: 0, postRollMs: 0, on: ["keyframe"], bytesMax: 2 ** 20 },
  });
  await waitFor("closed");
  const clips = reports.flatMap((report) => report.kind === "recorded" ? [report.clip] : []);
  const firstMs = clips[0]!.startPtsMs;
  assert.deepEqual(
    clips.map(({ causePtsMs, startPtsMs, endPtsMs }) =>
      [causePtsMs, startPtsMs, endPtsMs].map((ms) => ms - firstMs)
    ),
    [[0, 0, 40], [2_000, 1_600, 2_040]],
  );
});

Deno.test("a watched session gives fragments from its last key frame on, also after a gap, and none when nobody watches", async () => {
  using folder = new TempFolder();
  const path = make(
    join(folder.path, "camera.mkv"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=2", "-f", "lavfi", "-i", "sine=duration=2"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-sc_threshold", "0"],
    ...["-pix_fmt", "yuv420p", "-c:a", "aac"],
  );
  await using workers = new Workers();
  const camera = await pulled(path, { durationMs: null });
  const { port, reports, waitFor } = workers.open(camera);
  port.send({ kind: "watch", viewId: 7 });
  const { lastPtsMs } = await waitFor("gap");
  const views = () => reports.flatMap((report) => report.kind === "view" ? [report.view] : []);
  const before = reports.length;
  port.send({ kind: "acknowledge", credit: "fragments", count: 16 });
  port.send({ ...camera, settings: { ...SETTINGS, sessionId: reports[0]!.sessionId } });
  await until("there is another gap", () => reports.slice(before).some(({ kind }) => kind === "gap"));
  port.send({ kind: "watch", viewId: null });
  const seen = views();
  port.send({ ...camera, settings: { ...SETTINGS, sessionId: reports[0]!.sessionId } });
  const third = reports.length;
  await until("there is a third gap", () => reports.slice(third).some(({ kind }) => kind === "gap"));
  assert.equal(views().length, seen.length, "nobody watches");
  await port.close();

  const [began, ...rest] = seen;
  assert.ok(began?.kind === "began" && began.viewId === 7);
  assert.match(began.codecs, /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/);
  const fragments = rest.map((view) => view.kind === "fragment" ? view : assert.fail(view.kind));
  const view = join(folder.path, "view.mp4");
  Deno.writeFileSync(view, joinedBytes(began.init, ...fragments.map(({ bytes }) => bytes)));
  assert.deepEqual(frameHashes(view), [...frameHashes(path), ...frameHashes(path)]);
  const times = frameTimesMs(view, 0);
  assert.ok(times.every((ms, at) => at === 0 || ms > times[at - 1]!));
  assert.ok(times[50]! > lastPtsMs! && times[50]! < lastPtsMs! + 5_000, "the times are those of the session");
  assert.equal(sum(reports, "viewFragments"), fragments.length);
});

Deno.test("a session whose trigger cannot run is ended, and another session is not", async () => {
  await using workers = new Workers();
  const healthy = workers.open({
    kind: "offer",
    offer: readOffer(offerText(), new Set()),
    isOnLoopback: true,
  });
  await healthy.waitFor("answered");
  const program = { isa_version: 1, program_id: "bad", version: 1, instructions: [] };
  const broken = workers.open(await pulled(CLIP), { trigger: program as never });
  const { cause, fault } = await broken.waitFor("ended");
  assert.deepEqual([cause, fault], ["worker_fault", { stage: "analysis", reason: "spawn_failure" }]);
  await broken.waitFor("closed");
  healthy.port.send({ kind: "restart_ice", fragment: "", isOnLoopback: true, orderId: 1 });
  await healthy.waitFor("ice_restarted");
});

Deno.test("a Worker without a session for a minute ends, and the next session starts another", async () => {
  const clock = new ManualClock();
  await using workers = new Workers({ ...WORLD, sleep: (ms, signal) => clock.sleep(ms, signal) });
  const once = async () => {
    const { port, waitFor } = workers.open({
      kind: "offer",
      offer: readOffer(offerText(), new Set()),
      isOnLoopback: true,
    });
    await waitFor("answered");
    await clock.advance(120_000); // with a session it stays
    await port.close();
    return workers.started;
  };
  assert.equal(await once(), 1);
  await clock.advance(59_999);
  assert.equal(await once(), 1);
  await clock.advance(59_999);
  assert.equal(await once(), 1);
  await clock.advance(60_000);
  assert.equal(await once(), 2);
});

Deno.test("no program is left when the Workers are closed with open sessions", async () => {
  {
    await using workers = new Workers();
    const live = workers.open(await pulled(CLIP, { durationMs: null }));
    await live.waitFor("picture");
    workers.open({ kind: "offer", offer: readOffer(offerText(), new Set()), isOnLoopback: true });
  }
  await until("no program is left", () => childProcesses("unix:").length === 0);
});

function sum(reports: readonly SessionReport[], counter: SessionCounter): number {
  return reports.reduce((all, report) => report.kind === "counts" ? all + report.counts[counter] : all, 0);
}
