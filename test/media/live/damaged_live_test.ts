/** Damage of live streams: frames that the decoder conceals, and those behind lost units, are temporal faults
 * at once.
 */

import { freeRoom } from "../../support/live/free_room.ts";
import assert from "node:assert/strict";
import { LiveAnalysis } from "../../../src/media/live/live_analysis.ts";
import { LiveDecoder } from "../../../src/media/live/live_decoder.ts";
import { PulledDecoder } from "../../../src/media/live/pulled_decoder.ts";
import { fileInput } from "../../../src/media/input.ts";
import { REPORT } from "../../../src/media/frame_reports.ts";
import { localRunner } from "../../support/local_runner.ts";
import { stream, type TestUnit } from "../../support/live/live_units.ts";
import { make, TempFolder, tools, world } from "../../support/media.ts";
import { TestBroker } from "../../support/test_broker.ts";
import { until } from "../../support/until.ts";

const FRAMES = 60;
/** Key frames are 0, 20 and 40. */
const film = stream("h264", { frames: FRAMES, width: 320, height: 240, keyframeEvery: 20 });

/** Changes bytes behind the headers. */
function damaged({ data, ...unit }: TestUnit): TestUnit {
  const bytes = data.slice();
  for (let at = 60; at < bytes.length; at += 17) bytes[at] = bytes[at]! ^ 0x5a;
  return { ...unit, data: bytes };
}

/**
 * The frames of a publisher that are temporal faults; `changed` gives what comes of a unit, null for nothing.
 */
async function faultsOf(
  changed: (unit: TestUnit, frame: number) => TestUnit | null,
  runner = localRunner(tools()),
): Promise<number[]> {
  const faults: number[] = [];
  let decided = 0;
  using analysis = await analysed((frame, isFault) => {
    decided++;
    if (isFault) faults.push(frame);
  });
  await using decoder = new LiveDecoder({
    runner,
    world: world(),
    codec: "h264",
    room: freeRoom(),
    onFrame: (frame) => void analysis.push(frame),
    onKeyframeNeeded: () => {},
    onRestarted: () => {},
    onFault: (message) => assert.fail(message),
  });
  let pushed = 0;
  for (const [frame, whole] of film.units.entries()) {
    const unit = changed(whole, frame);
    if (!unit) continue;
    const { data, isKeyframe, width, height } = unit;
    decoder.push({ data, isKeyframe, width, height, rtpTimestamp: frame * 3000, arrivedMs: frame });
    pushed++;
    await until(() => decoder.counts.decoded === pushed);
  }
  await until(() => decided === pushed);
  return faults;
}

/** An analysis that tells of each decision; `frame` is the number of the frame by its time. */
function analysed(onDecision: (frame: number, isFault: boolean) => void): Promise<LiveAnalysis> {
  return LiveAnalysis.load({
    world: world(),
    gateThresholds: {
      keepaliveEveryFrames: 1000,
      sceneCutHammingThreshold: 18,
      lumaShiftThreshold: 0.15,
      flickerThreshold: 0.55,
      ghostingThreshold: 0.55,
      noiseVarianceThreshold: 0.9,
    },
    windowSize: 16,
    crop: null,
    zone: null,
    trigger: null,
    onDecision: ({ frame, gateReason, isKept }) => {
      onDecision(frame.rtpTimestamp / 3000, gateReason === "temporal_fault");
      assert.equal(isKept && gateReason === "temporal_fault", false);
    },
  });
}

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

Deno.test("damaged and lost units of a publisher damage all frames up to the next key frame", async () => {
  assert.deepEqual(await faultsOf((unit) => unit), []);
  assert.deepEqual(await faultsOf((unit, frame) => frame === 8 ? damaged(unit) : unit), range(8, 19));
  assert.deepEqual(
    await faultsOf((unit, frame) => frame === 32 || frame === 33 ? null : unit),
    range(34, 39),
  );
});

Deno.test("reports of a live decode come through the broker", async () => {
  using folder = new TempFolder();
  const places = { tempDir: folder.path, uploadRoot: folder.path, ingestRoots: [] };
  await using broker = new TestBroker(tools(), places);
  assert.deepEqual(
    await faultsOf((unit, frame) => frame === 8 ? damaged(unit) : unit, broker.client),
    range(8, 19),
  );
});

Deno.test("an ffmpeg that says nothing of its frames gives them as well", async () => {
  using folder = new TempFolder();
  const ffmpeg = folder.script("ffmpeg", `exec ${tools().ffmpeg} "$@" 2>/dev/null`);
  assert.deepEqual(
    await faultsOf((unit, frame) => frame === 8 ? damaged(unit) : unit, localRunner({ ...tools(), ffmpeg })),
    [],
  );
});

Deno.test("a pulled source tells what its decoder says of each frame", async () => {
  using folder = new TempFolder();
  const path = make(
    `${folder.path}/film.mp4`,
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-frames:v", "40"],
    ...["-c:v", "libx264", "-bf", "2", "-g", "10", "-sc_threshold", "0"],
  );
  const reports: number[] = [];
  const ended = Promise.withResolvers<string>();
  await using _pulled = PulledDecoder.start({
    runner: localRunner(tools()),
    world: world(),
    input: fileInput(path),
    room: freeRoom(),
    onFrame: ({ report }) => reports.push(report),
    onEnded: ended.resolve,
  });
  assert.equal(await ended.promise, "it has ended");
  assert.equal(reports.length, 40);
  assert.ok(reports.every((report) => (report & REPORT.isReported) !== 0));
  const keys = reports.flatMap((report, frame) => (report & REPORT.isKey) !== 0 ? [frame] : []);
  assert.deepEqual(keys, [0, 10, 20, 30]);
  assert.ok(reports.some((report) => (report & REPORT.isBidirectional) !== 0));
});
