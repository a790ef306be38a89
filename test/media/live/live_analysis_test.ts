import assert from "node:assert/strict";
import { FrameAnalyser } from "../../../src/media/detection/frame_analyser.ts";
import { PLANE_BYTES, PLANE_HEIGHT, PLANE_WIDTH } from "../../../src/media/kernels/frame_planes.ts";
import { GateKernel } from "../../../src/media/kernels/gate_kernel.ts";
import {
  type FrameDecision,
  LiveAnalysis,
  type LiveAnalysisOptions,
} from "../../../src/media/live/live_analysis.ts";
import type { DecodedFrame } from "../../../src/media/live/live_decoder.ts";
import { PlaneReducer } from "../../../src/media/kernels/plane_reducer.ts";
import type { FramePixels } from "../../../src/media/live/frame_ring.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import type { DetectedRange } from "../../../src/model/frames/detected_range.ts";
import { CUT_SCORE_THRESHOLD, GATE_REASONS, type GateThresholds } from "../../../src/model/frames/signals.ts";
import { TEST_SCENES } from "../../support/kernels/test_scenes.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { framePixels, stream, TestDecoder } from "../../support/live/live_units.ts";
import { world } from "../../support/media.ts";
import { until } from "../../support/until.ts";

const THRESHOLDS: GateThresholds = {
  keepaliveEveryFrames: 30,
  sceneCutHammingThreshold: 18,
  lumaShiftThreshold: 0.15,
  flickerThreshold: 0.55,
  ghostingThreshold: 0.55,
  noiseVarianceThreshold: 0.9,
};

const SIZE = { width: 320, height: 180 };

/** An analysis whose kept frames become the reference at once, unless `keeps` decides otherwise. */
class TestAnalysis implements Disposable {
  readonly decisions: FrameDecision[] = [];
  analysis!: LiveAnalysis;
  #frames = 0;

  static async load(
    options: Partial<LiveAnalysisOptions> & { keeps?: (index: number) => boolean | "later" } = {},
  ): Promise<TestAnalysis> {
    const test = new TestAnalysis();
    const keeps = options.keeps ?? (() => true);
    test.analysis = await LiveAnalysis.load({
      world: world(),
      gateThresholds: THRESHOLDS,
      windowSize: 16,
      crop: null,
      zone: null,
      trigger: null,
      onDecision: (decision) => {
        test.decisions.push(decision);
        const { frameIndex } = decision.frame;
        const kept = decision.isKept ? keeps(frameIndex) : "later";
        if (kept === true) test.analysis.keep(frameIndex);
        if (kept === false) test.analysis.discard(frameIndex);
      },
      ...options,
    });
    return test;
  }

  push(pixels: FramePixels, frameIndex = this.#frames): DecodedFrame {
    const ptsMs = this.#frames++ * 33;
    const frame = { frameIndex, rtpTimestamp: ptsMs * 90, ptsMs, arrivedMs: 0, report: 0, pixels };
    this.analysis.push(frame);
    return frame;
  }

  get keptFrames(): number[] {
    return this.decisions.filter(({ isKept }) => isKept).map(({ frame }) => frame.frameIndex);
  }

  get reasons(): string {
    return this.decisions.map(({ frame, gateReason }) => `${frame.frameIndex} ${gateReason}`).join(", ");
  }

  [Symbol.dispose](): void {
    this.analysis[Symbol.dispose]();
  }
}

/** Eight different scenes without motion. */
const scenes = Array.from({ length: 8 }, (_, scene) => {
  const random = seededRandom(scene + 1);
  const blocks = Float64Array.from({ length: 16 * 9 }, () => 40 + random() * 180);
  return framePixels(SIZE, (x, y) => blocks[Math.floor(y / 20) * 16 + Math.floor(x / 20)]!);
});

Deno.test("hard cuts are decided at their frame, at most five frames late, and nothing else is a cut", async () => {
  using test = await TestAnalysis.load();
  const late: number[] = [];
  for (let index = 0; index < 120; index++) {
    test.push(scenes[Math.floor(index / 20)]!);
    late.push(index + 1 - test.decisions.length);
  }
  const cuts = test.decisions.filter(({ gateReason }) => gateReason === "scene_cut");
  assert.deepEqual(cuts.map(({ frame }) => frame.frameIndex), [20, 40, 60, 80, 100]);
  assert.ok(cuts.every(({ gateConfidence }) => gateConfidence >= CUT_SCORE_THRESHOLD));
  assert.equal(Math.max(...late), 5);
  assert.equal(late.filter((frames) => frames === 0).length, 120 - 5 * 5, "most are decided at once");
  assert.deepEqual(
    test.decisions.map(({ frame }) => frame.frameIndex),
    Array.from({ length: 120 }, (_, at) => at),
  );
});

Deno.test("a flash is no cut, and later frames wait at most five frames", async () => {
  using test = await TestAnalysis.load();
  const white = framePixels(SIZE, () => 235);
  for (let index = 0; index < 30; index++) test.push(index === 10 ? white : scenes[0]!);
  assert.ok(!test.reasons.includes("scene_cut"), test.reasons);
  assert.equal(test.decisions.length, 30);
});

Deno.test("a foreign frame is a fault and not kept, and contrast, a lasting light and a brighter scene are none", async () => {
  using test = await TestAnalysis.load();
  const brighter = framePixels(SIZE, (x, y) => Math.min(235, scenes[0]!.bytes[y * 320 + x]! + 50));
  for (let index = 0; index < 40; index++) {
    test.push(index === 12 ? scenes[1]! : index < 25 ? scenes[0]! : brighter);
  }
  const others = test.decisions.filter(({ gateReason }) => gateReason !== "no_trigger");
  assert.deepEqual(others.map(({ frame, gateReason }) => `${frame.frameIndex} ${gateReason}`), [
    "0 initial_frame",
    "12 temporal_fault",
    "30 periodic_keepalive",
  ]);
});

Deno.test("scenes of generators of test pictures have no cut and no fault", async () => {
  for (const [name, draw] of Object.entries(TEST_SCENES)) {
    using test = await TestAnalysis.load();
    for (let n = 0; n < 80; n++) {
      const picture = draw(n);
      test.push(framePixels(SIZE, (x, y) => picture[y * SIZE.width + x]!));
    }
    assert.ok(test.decisions.length >= 75, "all but the newest frames are decided");
    assert.doesNotMatch(test.reasons, /scene_cut|temporal_fault/, name);
  }
});

Deno.test("decisions are equal to those of recorded media", async () => {
  const random = seededRandom(5);
  const decodedFrames: FramePixels[] = [];
  while (decodedFrames.length < 400) {
    const scene = scenes[Math.floor(random() * scenes.length)]!;
    const gain = 0.6 + random() * 0.4;
    const shift = Math.floor(random() * 30);
    const length = 1 + Math.floor(random() * 25);
    for (let frame = 0; frame < length; frame++) {
      const offset = frame * Math.floor(random() * 3);
      decodedFrames.push(
        framePixels(SIZE, (x, y) => scene.bytes[y * 320 + (x + offset) % 320]! * gain + shift + random() * 4),
      );
    }
  }
  const filter = await FrameAnalyser.load();
  for (const [at, { bytes }] of decodedFrames.entries()) {
    filter.staging.set(bytes);
    filter.push(0, at * 33);
  }
  filter.finish();
  const columns = filter.columns();
  const indices = Float64Array.from(decodedFrames, (_, at) => at);
  const expected = (await GateKernel.load()).run(columns, indices, THRESHOLDS, 16);
  using test = await TestAnalysis.load();
  for (const one of decodedFrames) test.push(one);
  assert.ok(test.decisions.length >= 395);
  for (const [at, decision] of test.decisions.entries()) {
    const { gateReason, novelty, motion, stability, confidence } = decision;
    assert.deepEqual({ gateReason, novelty, motion, stability, confidence }, {
      gateReason: GATE_REASONS[expected.reason[at]!],
      novelty: expected.novelty[at],
      motion: expected.motion[at],
      stability: expected.temporalStability[at],
      confidence: expected.confidence[at],
    }, `frame ${at}`);
  }
  const cuts = test.decisions.filter(({ gateReason }) => gateReason === "scene_cut").length;
  assert.ok(cuts >= 10, `${cuts} cuts`);
});

Deno.test("a frame that can no longer be a cut never becomes one", async () => {
  const random = seededRandom(11);
  const filter = await FrameAnalyser.load();
  const closed = new Set<number>();
  for (let frame = 0; frame < 600; frame++) {
    const scene = scenes[Math.floor(frame / (3 + (frame % 7))) % scenes.length]!;
    const gain = random() < 0.1 ? random() : 1;
    filter.staging.set(scene.bytes.subarray(0, PLANE_BYTES).map((sample) => sample * gain + random() * 30));
    filter.push(0, frame);
    for (let index = Math.max(0, frame - 4); index <= frame; index++) {
      if (!filter.isCutOpen(index)) closed.add(index);
      else assert.ok(!closed.has(index), `frame ${index} was closed before ${frame}`);
      assert.ok(filter.cutScoreSoFar(index) < CUT_SCORE_THRESHOLD || filter.isCutOpen(index));
    }
  }
  filter.finish();
  const { cutScore } = filter.columns();
  for (const index of closed) assert.ok(cutScore[index]! < CUT_SCORE_THRESHOLD, `frame ${index}`);
  for (let index = 0; index < 600; index++) {
    assert.equal(filter.isCutOpen(index), cutScore[index]! >= CUT_SCORE_THRESHOLD);
    assert.equal(filter.cutScoreSoFar(index), cutScore[index]);
  }
  assert.throws(() => filter.isCutOpen(600), RangeError);
});

Deno.test("where no frames follow, a cut is decided after 200 ms by the score so far", async () => {
  const wakes: { ms: number; resolve: () => void }[] = [];
  let nowMs = 0;
  using test = await TestAnalysis.load({
    world: {
      ...world(),
      monotonicMs: () => nowMs,
      sleep: (ms) => new Promise((resolve) => wakes.push({ ms, resolve })),
    },
  });
  for (let index = 0; index < 10; index++) test.push(scenes[0]!);
  assert.equal(wakes.length, 0, "nothing is waited for");
  test.push(scenes[1]!);
  nowMs += 50;
  test.push(scenes[1]!);
  assert.equal(test.decisions.length, 10);
  assert.deepEqual(wakes.map(({ ms }) => ms), [200]);
  nowMs += 150;
  wakes[0]!.resolve();
  await until(() => test.decisions.length === 12);
  assert.equal(test.decisions[10]!.gateReason, "scene_cut");
});

Deno.test("the reference advances only with a JPEG, and frames wait to be compared with it", async () => {
  using test = await TestAnalysis.load({ keeps: () => "later" });
  test.push(scenes[0]!);
  test.push(scenes[0]!);
  test.push(scenes[0]!);
  assert.equal(test.reasons, "0 initial_frame");
  // Without a JPEG the next frame is the first one again.
  test.analysis.discard(0);
  assert.equal(test.reasons, "0 initial_frame, 1 initial_frame");
  test.analysis.keep(0);
  test.analysis.keep(7);
  assert.equal(test.decisions.length, 2, "calls for other frames are ignored");
  test.analysis.keep(1);
  assert.equal(test.reasons, "0 initial_frame, 1 initial_frame, 2 no_trigger");
});

Deno.test("frames that come faster than the first JPEG is made are compared with its frame and give no false loop", async () => {
  using test = await TestAnalysis.load({ keeps: () => "later" });
  for (let index = 0; index < 9; index++) test.push(scenes[0]!);
  assert.equal(test.reasons, "0 initial_frame");
  for (let index = 9; index < 28; index++) test.push(scenes[0]!);
  assert.deepEqual(test.keptFrames, [0]);
  assert.equal(test.decisions.length, 28, "nothing waits any longer");
  test.analysis.keep(0);
  for (let index = 28; index < 31; index++) test.push(scenes[0]!);
  assert.deepEqual(test.keptFrames, [0, 30]);
  assert.ok(test.decisions.every(({ hasEnteredLoop }) => !hasEnteredLoop));
});

Deno.test("a slow JPEG that fails takes its frame back as the reference, whatever later ones do", async () => {
  using test = await TestAnalysis.load({ keeps: () => "later" });
  const burst = (scene: FramePixels) => {
    for (let index = 0; index < 20; index++) test.push(scene);
  };
  burst(scenes[0]!);
  test.analysis.discard(0);
  assert.deepEqual(test.keptFrames, [0]);
  test.push(scenes[0]!);
  assert.equal(test.decisions.at(-1)!.gateReason, "initial_frame", "without any JPEG there is no reference");
  test.analysis.keep(20);
  burst(scenes[1]!);
  assert.deepEqual(test.keptFrames, [0, 20, 21]);
  // Frame 21 is assumed; its failure makes frame 20 the reference again, and the keepalive counts from there.
  test.analysis.discard(21);
  for (let index = 41; index <= 50; index++) test.push(scenes[1]!);
  assert.deepEqual(test.keptFrames, [0, 20, 21, 50]);
  test.analysis.keep(50);
  test.analysis.keep(21);
  test.analysis.discard(20);
  test.push(scenes[1]!);
  assert.equal(test.decisions.at(-1)!.gateReason, "no_trigger", "late calls change nothing");
});

Deno.test("periodic keepalives count access units, not decoded frames", async () => {
  using test = await TestAnalysis.load();
  for (const index of [0, 29, 30, 31, 59, 60, 200, 201]) test.push(scenes[0]!, index);
  assert.equal(
    test.reasons,
    "0 initial_frame, 29 no_trigger, 30 periodic_keepalive, 31 no_trigger, 59 no_trigger, 60 periodic_keepalive, " +
      "200 periodic_keepalive, 201 no_trigger",
  );
});

Deno.test("the crop is analysed, and a frame that is too small for it is skipped", async () => {
  const reducer = await PlaneReducer.load({ width: PLANE_WIDTH, height: PLANE_HEIGHT });
  using test = await TestAnalysis.load({ crop: { x: 0.5, y: 0.25, width: 0.25, height: 0.5 } });
  const check = (width: number, height: number, region: [number, number, number, number]) => {
    const one = framePixels({ width, height }, (x, y) => (x * 7 + y * 13) % 256);
    const { decisions } = test;
    const before = decisions.length;
    const frame = test.push(one);
    const row = test.analysis.push({ ...frame, frameIndex: frame.frameIndex + 1000 })!;
    const [x, y, w, h] = region;
    assert.deepEqual(decisions[before]!.coordinates.resolved_region, { x, y, width: w, height: h });
    assert.deepEqual(decisions[before]!.coordinates.source_extent, { width, height });
    const plane = new Uint8Array(PLANE_BYTES);
    reducer.reduce(one.bytes, width, { x, y, width: w, height: h }, plane);
    const mean = plane.reduce((sum, sample) => sum + sample, 0) / PLANE_BYTES / 255;
    assert.equal(row.lumaMean, Math.fround(mean));
  };
  check(640, 480, [320, 120, 160, 240]);
  check(641, 481, [320, 120, 160, 240]);
  assert.equal(
    test.analysis.push({ ...test.push(scenes[0]!), pixels: framePixels({ width: 6, height: 4 }, () => 1) }),
    null,
  );
  assert.equal(test.analysis.framesTooSmall, 1);
});

Deno.test("the coordinates of a frame that was scaled down are those of the decoded picture", async () => {
  using test = await TestAnalysis.load({ crop: { x: 0.5, y: 0.25, width: 0.25, height: 0.5 } });
  const scaled = (width: number, height: number) =>
    framePixels(SIZE, () => 100, { sourceExtent: { width, height } });
  test.push(scaled(3840, 2160));
  test.push(scaled(5120, 2880));
  const places = test.decisions.map(({ coordinates, region }) => ({ ...coordinates, region }));
  assert.deepEqual(places.map(({ source_extent: { width, height } }) => [width, height]), [
    [3840, 2160],
    [5120, 2880],
  ]);
  assert.deepEqual(places[0]!.resolved_region, { x: 1920, y: 540, width: 960, height: 1080 });
  assert.deepEqual(places[0]!.analysis_extent, { width: 80, height: 90 });
  assert.deepEqual(
    places.map(({ region }) => region),
    Array(2).fill({ x: 160, y: 44, width: 80, height: 90 }),
  );
});

Deno.test("a stream whose kept frames repeat enters a loop once, and leaving it is not reported", async () => {
  using test = await TestAnalysis.load({ gateThresholds: { ...THRESHOLDS, keepaliveEveryFrames: 10 } });
  for (let index = 0; index < 60; index++) test.push(scenes[0]!);
  for (let index = 0; index < 60; index++) test.push(scenes[1 + Math.trunc(index / 5) % 7]!);
  const kept = test.decisions.filter(({ isKept }) => isKept);
  const entered = kept.filter(({ hasEnteredLoop }) => hasEnteredLoop).map(({ frame }) => frame.frameIndex);
  assert.deepEqual(entered.slice(0, 1), [30], "the fourth kept frame looks like the three before it");
  assert.deepEqual(
    kept.slice(0, 7).map(({ frame, isLooping }) => `${frame.frameIndex} ${isLooping}`),
    ["0 false", "10 false", "20 false", "30 true", "40 true", "50 true", "60 false"],
  );
  assert.ok(test.decisions.every(({ isKept, hasEnteredLoop }) => isKept || !hasEnteredLoop));
});

Deno.test("activity enters the zone after enough frames, and the decision has its score", async () => {
  using test = await TestAnalysis.load({
    zone: {
      policy_id: "dock",
      policy_version: 1,
      device_id: "cam-1",
      region: { x: 0, y: 0, width: 1, height: 1 },
      enter_motion_score: 0.2,
      exit_motion_score: 0.1,
      enter_after_frames: 2,
      exit_after_frames: 3,
    },
  });
  for (let index = 0; index < 20; index++) {
    const isMoving = index >= 8 && index < 14;
    test.push(scenes[isMoving ? index % 8 : 0]!);
  }
  const [entered, ...others] = test.decisions.filter(({ zone }) => zone !== null);
  assert.equal(entered!.frame.frameIndex, 10, "frame 8 shows the same scene as before");
  assert.deepEqual(entered!.zone, { score: entered!.motion, threshold: 0.2, consecutiveFrames: 2 });
  assert.deepEqual(others, []);
  // A camera that is armed begins anew: motion that goes on is found once more.
  for (let index = 1; index < 16; index++) test.push(scenes[index % 8]!);
  test.analysis.beginAgain();
  for (let index = 0; index < 16; index++) test.push(scenes[index % 8]!);
  assert.equal(test.decisions.filter(({ zone }) => zone !== null).length, 3);
});

Deno.test("a trigger fires on its frame, with its inputs", async () => {
  using test = await TestAnalysis.load({
    trigger: compileTrigger(
      "trigger moved version 1\nwhen motion_score >= 0.2\nedge rising\nemit moved\ncapture keyframe\nend\n",
    ),
  });
  for (let index = 0; index < 20; index++) test.push(scenes[index < 10 ? 0 : 1]!);
  const fired = test.decisions.filter(({ trigger }) => trigger !== null);
  assert.deepEqual(fired.map(({ frame }) => frame.frameIndex), [10]);
  const { motion, novelty, confidence } = fired[0]!;
  assert.deepEqual(fired[0]!.trigger!.inputs, { motion_score: motion, novelty_score: novelty, confidence });
  assert.ok(test.decisions.every(({ isTriggerSignalMissing }) => !isTriggerSignalMissing));
});

Deno.test("cuts of a real stream are decided within five frames while it is decoded", async () => {
  const sources = ["testsrc2", "mandelbrot", "smptebars"];
  const streams = sources.map((source) => stream("vp8", { frames: 25, width: 320, height: 240, source }));
  const decidedAt = new Map<number, number>();
  let pushed = 0;
  using test = await TestAnalysis.load();
  const { decisions } = test;
  await using decoder = new TestDecoder("vp8", {
    onFrame: (frame) => {
      pushed++;
      const before = decisions.length;
      test.analysis.push(frame);
      for (const { frame } of decisions.slice(before)) decidedAt.set(frame.frameIndex, pushed - 1);
    },
  });
  for (const [at, unit] of streams.flatMap(({ units }) => units).entries()) decoder.push(unit, at * 3000);
  await until(() => decisions.length === 75);
  const cuts = decisions.filter(({ gateReason }) => gateReason === "scene_cut").map(({ frame }) =>
    frame.frameIndex
  );
  assert.deepEqual(cuts, [25, 50]);
  for (const [index, at] of decidedAt) assert.ok(at - index <= 5, `frame ${index} was decided at ${at}`);
});

Deno.test("nothing is decided after disposing", async () => {
  using test = await TestAnalysis.load({ keeps: () => "later" });
  test.push(scenes[0]!);
  test.push(scenes[0]!);
  test.analysis[Symbol.dispose]();
  test.analysis.keep(0);
  assert.equal(test.decisions.length, 1);
});

/** Blocks that move to the right, four pixels a frame. */
function moving(index: number): FramePixels {
  const random = seededRandom(99);
  const blocks = Float64Array.from({ length: 64 * 9 }, () => 40 + random() * 180);
  return framePixels(
    SIZE,
    (x, y) => blocks[Math.floor(y / 20) * 64 + Math.floor((x + 4 * index) / 20) % 64]!,
  );
}

const black = framePixels(SIZE, () => 16);

Deno.test("freezes, black and flashes of a stream are told when they end, in its own frames and times", async () => {
  const ranges: DetectedRange[] = [];
  using test = await TestAnalysis.load({ onRange: (range) => ranges.push(range) });
  const told = () =>
    ranges.splice(0).map(({ type, startFrame, endFrame }) => `${type} ${startFrame}-${endFrame}`);
  // The session's numbers jump by five where frames were lost.
  const push = (pixels: FramePixels, index: number) => test.push(pixels, index < 20 ? index : index + 5);
  for (let index = 0; index < 30; index++) push(moving(index), index);
  for (let index = 30; index < 50; index++) push(black, index);
  assert.deepEqual(told(), [], "black is still there");
  for (let index = 50; index < 80; index++) push(moving(index), index);
  assert.deepEqual(ranges.map(({ startPtsMs, endPtsMs }) => [startPtsMs, endPtsMs]), [[30 * 33, 49 * 33]]);
  assert.deepEqual(told(), ["black 35-54"]);
  for (let index = 80; index < 100; index++) push(moving(79), index);
  for (let index = 100; index < 130; index++) push(moving(index), index);
  assert.deepEqual(told(), ["freeze 85-104"]);
  for (let index = 130; index < 132; index++) push(framePixels(SIZE, () => 235), index);
  for (let index = 132; index < 160; index++) push(moving(index), index);
  assert.deepEqual(told(), ["flash 135-136"]);
});

Deno.test("what lasts until a stream is interrupted or ends, ends there", async () => {
  const ranges: DetectedRange[] = [];
  const test = await TestAnalysis.load({ onRange: (range) => ranges.push(range) });
  for (let index = 0; index < 20; index++) test.push(black);
  test.analysis.interrupt();
  for (let index = 20; index < 40; index++) test.push(black);
  test[Symbol.dispose]();
  test[Symbol.dispose]();
  assert.deepEqual(ranges.map(({ type, startFrame, endFrame }) => [type, startFrame, endFrame]), [
    ["black", 0, 19],
    ["black", 20, 39],
  ]);
});

Deno.test("combing of live pictures is found, and their plain motion is not", async () => {
  const size = { width: 640, height: 360 };
  const hills = (x: number, y: number) => 120 + 60 * Math.sin(x / 9) + 40 * Math.cos(y / 31 + x / 50);
  const picture = (n: number, isWoven: boolean) =>
    framePixels(size, (x, y) => hills(x + 4 * (isWoven && y % 2 === 1 ? n - 1 : n), y));
  // Its clock stands, as a picture that waits too long is judged without those behind it.
  using test = await TestAnalysis.load({ world: { ...world(), monotonicMs: () => 0 } });
  for (let n = 0; n < 60; n++) test.push(picture(n, n >= 20 && n < 40));
  const faulty = test.decisions.filter(({ gateReason }) => gateReason === "temporal_fault")
    .map(({ frame }) => frame.frameIndex);
  assert.deepEqual(faulty, Array.from({ length: 20 }, (_, n) => 20 + n));
});
