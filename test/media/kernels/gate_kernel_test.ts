import assert from "node:assert/strict";
import { GateKernel } from "../../../src/media/kernels/gate_kernel.ts";
import type { GateRunOptions } from "../../../src/media/kernels/gate_kernel.ts";
import { GATE_REASONS } from "../../../src/model/frames/signals.ts";
import type {
  GateColumns,
  GateReason,
  GateThresholds,
  SignalColumns,
} from "../../../src/model/frames/signals.ts";
import { parseExactJson } from "../../../src/model/exact_json.ts";
import { columnsOf } from "../../../src/model/frames/signals_json.ts";
import type { SignalRow } from "../../../src/model/frames/signals_json.ts";
import { ReferenceGate } from "../../support/kernels/gate_reference.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const gate = await GateKernel.load();

const DEFAULTS: GateThresholds = {
  keepaliveEveryFrames: 30,
  sceneCutHammingThreshold: 18,
  lumaShiftThreshold: 0.15,
  flickerThreshold: 0.55,
  ghostingThreshold: 0.55,
  noiseVarianceThreshold: 0.55,
};

/** The differences from a frame without any event. The artifact score is absent unless given. */
type Change = Partial<SignalRow> & { readonly artifactScore?: number };

function columns(changes: Change[]) {
  const { signals, frameIndex } = columnsOf(changes.map(({ artifactScore: _, ...change }, index) => ({
    frame_index: index,
    pts_ms: index * 40,
    perceptual_hash: 0n,
    luma_mean: 0.5,
    flicker_score: 0,
    ghosting_score: 0,
    noise_variance_score: 0,
    ...change,
  })));
  const artifactScore = Float32Array.from(changes, (change) => change.artifactScore ?? NaN);
  return { signals: { ...signals, artifactScore }, frameIndex };
}

function decide(changes: Change[], windowSize = 16, options?: GateRunOptions): GateColumns {
  const { signals, frameIndex } = columns(changes);
  return gate.run(signals, frameIndex, DEFAULTS, windowSize, options);
}

function reasons({ reason }: GateColumns): GateReason[] {
  return Array.from(reason, (code) => GATE_REASONS[code]!);
}

Deno.test("the worked vector gives its documented rows", async () => {
  const text = await Deno.readTextFile(new URL("../../../fixtures/replay_vector.json", import.meta.url));
  const vector = parseExactJson(text) as {
    parameters: { window_size: number; thresholds: GateThresholds };
    frames: SignalRow[];
    rows: { reason: string; novelty: number; stability: number; motion: number; confidence: number }[];
  };
  const { signals, frameIndex } = columnsOf(vector.frames);
  const { window_size: windowSize, thresholds } = vector.parameters;
  const result = gate.run(signals, frameIndex, thresholds, windowSize);
  assert.deepEqual(reasons(result), vector.rows.map((row) => row.reason));
  vector.rows.forEach((row, index) => {
    const near = (actual: number, expected: number, what: string) =>
      assert.ok(Math.abs(actual - expected) <= 1e-6, `${what} of frame ${index}: ${actual}, not ${expected}`);
    near(result.novelty[index]!, row.novelty, "novelty");
    near(result.temporalStability[index]!, row.stability, "stability");
    near(result.motion[index]!, row.motion, "motion");
    near(result.confidence[index]!, row.confidence, "confidence");
  });
  const gateConfidences = [1, 0.61, 0.71, 56 / 64, 0.67].map(Math.fround);
  assert.deepEqual(result.gateConfidence, Float64Array.from(gateConfidences));
});

Deno.test("the first matching reason decides, and only a kept frame becomes the reference", () => {
  const check = (last: Change[], expected: string) =>
    assert.equal(reasons(decide([{}, ...last])).slice(1).join(" "), expected, JSON.stringify(last, text));
  const text = (_key: string, value: unknown) => typeof value === "bigint" ? value.toString(16) : value;
  const bits = (count: number) => (1n << BigInt(count)) - 1n;

  check([{}], "no_trigger");
  // Hamming rule.
  check([{ perceptual_hash: bits(17) }], "no_trigger");
  check([{ perceptual_hash: bits(18) }], "scene_cut");
  check([{ perceptual_hash: bits(18) }, {}], "scene_cut scene_cut");
  check([{ perceptual_hash: bits(10) }, { perceptual_hash: bits(17) }], "no_trigger no_trigger");
  check([{ perceptual_hash: 2n ** 64n - 1n, frame_index: 30, luma_mean: 1 }], "scene_cut");
  // A cut score decides alone.
  check([{ cut_score: 0.5 }], "scene_cut");
  check([{ cut_score: 0.49 }], "no_trigger");
  check([{ cut_score: 0, perceptual_hash: bits(64) }], "no_trigger");
  check([{ cut_score: 0, perceptual_hash: bits(64) }, { perceptual_hash: bits(64) }], "no_trigger scene_cut");
  check(
    [{ cut_score: 1 }, { perceptual_hash: bits(17) }, { cut_score: 0.2 }],
    "scene_cut no_trigger no_trigger",
  );
  // Keepalive counts the caller's numbers.
  check([{ frame_index: 29 }], "no_trigger");
  check([{ frame_index: 30 }], "periodic_keepalive");
  check([{ frame_index: 30, luma_mean: 0.9 }], "periodic_keepalive");
  check(
    [{ frame_index: 30 }, { frame_index: 59 }, { frame_index: 61 }],
    "periodic_keepalive no_trigger periodic_keepalive",
  );
  check([{ frame_index: 1000 }, { frame_index: 5 }], "periodic_keepalive no_trigger");
  // Artifacts, each at its threshold and just below it, in their order.
  check([{ luma_mean: 0.66, flicker_score: 1 }], "exposure_shift");
  check([{ luma_mean: 0.36 }], "no_trigger");
  check([{ luma_mean: 0.34 }], "exposure_shift");
  check([{ flicker_score: 0.55, ghosting_score: 1 }], "flicker_suspected");
  check([{ flicker_score: 0.5499 }], "no_trigger");
  check([{ ghosting_score: 0.55, noise_variance_score: 1 }], "ghosting_suspected");
  check([{ ghosting_score: 0.5499 }], "no_trigger");
  check([{ noise_variance_score: 0.55 }], "noise_variance_spike");
  check([{ noise_variance_score: 0.5499 }], "no_trigger");
  // An artifact never becomes the reference, so a lasting shift stays an artifact until a keep.
  check([{ luma_mean: 0.9 }, { luma_mean: 0.9 }], "exposure_shift exposure_shift");
  check(
    [{ luma_mean: 0.9, frame_index: 30 }, { luma_mean: 0.9, frame_index: 31 }],
    "periodic_keepalive no_trigger",
  );
});

Deno.test("a frame with an artifact score is judged by it alone, and a faulty frame is not kept", () => {
  const check = (last: Change[], expected: string) =>
    assert.equal(reasons(decide([{}, ...last])).slice(1).join(" "), expected, JSON.stringify(last));
  const loud: Change = { luma_mean: 1, flicker_score: 1, ghosting_score: 1, noise_variance_score: 1 };

  check([{ ...loud, artifactScore: 0.49 }], "no_trigger");
  check([{ artifactScore: 0.5 }], "temporal_fault");
  check([{ ...loud, artifactScore: 0 }, loud], "no_trigger exposure_shift");
  check([{ cut_score: 0.5, artifactScore: 1 }], "scene_cut");
  check([{ artifactScore: 0, frame_index: 30 }], "periodic_keepalive");
  check(
    [{ artifactScore: 0.5, frame_index: 30 }, { artifactScore: 0, frame_index: 31 }],
    "temporal_fault periodic_keepalive",
  );
  assert.deepEqual([...decide([{}, { artifactScore: 0.75 }]).gateConfidence], [1, 0.75]);
});

Deno.test("the initial frame is kept whatever its signals say", () => {
  const loud: Change = {
    cut_score: 1,
    luma_mean: 1,
    flicker_score: 1,
    noise_variance_score: 1,
    frame_index: 900,
  };
  assert.deepEqual(reasons(decide([loud])), ["initial_frame"]);
  assert.deepEqual([...decide([loud]).gateConfidence], [1]);
});

Deno.test("gate confidence is the cut score where it decided, the distance where the Hamming rule did", () => {
  const { gateConfidence } = decide([
    {},
    { cut_score: 0.75 },
    { perceptual_hash: 2n ** 32n - 1n },
    {
      perceptual_hash: 2n ** 32n - 1n,
      luma_mean: 0.25,
    },
    { perceptual_hash: 2n ** 32n - 1n, frame_index: 90 },
    { perceptual_hash: 2n ** 32n - 1n },
  ]);
  assert.deepEqual([...gateConfidence], [1, 0.75, 0.5, 0.25, 1, 0]);
});

Deno.test("the window forgets frames older than its size", () => {
  const all = 2n ** 64n - 1n;
  const { novelty, motion, temporalStability } = decide(
    [{ perceptual_hash: all, luma_mean: 1 }, {}, {}, { perceptual_hash: all, luma_mean: 1 }],
    2,
  );
  assert.deepEqual([...novelty], [1, 1, 0.5, 1]);
  assert.deepEqual([...motion], [0, 1, 0, 1]);
  assert.deepEqual([...temporalStability], [1, 0.5, 0.75, 0.5]);
});

Deno.test("with deferred keeps, a frame becomes the reference only when the caller keeps it", () => {
  const step = (change: Change, resume: boolean) =>
    reasons(decide([change], 16, { keepsAtOnce: false, resume }))[0];
  assert.equal(step({}, false), "initial_frame");
  assert.equal(step({}, true), "initial_frame");
  gate.keep(0, 0n, 0.5);
  assert.equal(step({ frame_index: 29 }, true), "no_trigger");
  assert.equal(step({ frame_index: 30 }, true), "periodic_keepalive");
  assert.equal(step({ frame_index: 31 }, true), "periodic_keepalive");
  gate.keep(31, 2n ** 64n - 1n, 0.5);
  assert.equal(step({ frame_index: 32 }, true), "scene_cut");
  assert.equal(step({ frame_index: 33, perceptual_hash: 2n ** 64n - 1n }, true), "no_trigger");
});

Deno.test("the gate and its reference implementation agree exactly on random sequences, in one call and in chunks", () => {
  const random = seededRandom(99);
  const seen = new Set<string>();
  for (let sequence = 0; sequence < 600; sequence++) {
    const { signals, frameIndex } = randomSequence(random, Math.floor(random() * 200));
    const thresholds = random() < 0.5 ? DEFAULTS : randomThresholds(random);
    const windowSize = 2 + Math.floor(random() * (random() < 0.2 ? 255 : 20));
    const expected = new ReferenceGate(thresholds, windowSize).run(signals, frameIndex);
    assert.deepEqual(gate.run(signals, frameIndex, thresholds, windowSize), expected, `sequence ${sequence}`);
    assert.deepEqual(
      inChunks(signals, frameIndex, thresholds, windowSize, random),
      expected,
      `chunks ${sequence}`,
    );
    reasons(expected).forEach((reason) => seen.add(reason));
  }
  assert.deepEqual([...GATE_REASONS].filter((reason) => !seen.has(reason)), []);
});

Deno.test("more rows than a block holds come out as if there were no blocks", () => {
  const { signals, frameIndex } = randomSequence(seededRandom(5), 20_000);
  const expected = new ReferenceGate(DEFAULTS, 16).run(signals, frameIndex);
  assert.deepEqual(gate.run(signals, frameIndex, DEFAULTS, 16), expected);
});

Deno.test("no frames give no rows", () => {
  assert.equal(decide([]).confidence.length, 0);
});

Deno.test("a window outside 2 to 256 and columns that are too short are refused", () => {
  for (const windowSize of [1, 0, -1, 257, 2.5, NaN]) {
    assert.throws(() => decide([{}], windowSize), RangeError, `window ${windowSize}`);
  }
  const { signals } = columns([{}, {}]);
  assert.throws(() => gate.run(signals, new Float64Array(1), DEFAULTS, 16), /only 1 rows/);
  const short = { ...signals, cutScore: new Float32Array(1) };
  assert.throws(() => gate.run(short, new Float64Array(2), DEFAULTS, 16), /only 1 rows/);
});

/** Runs rows in calls of random length, each resuming the one before. */
function inChunks(
  signals: SignalColumns,
  frameIndex: Float64Array,
  thresholds: GateThresholds,
  windowSize: number,
  random: () => number,
): GateColumns {
  const chunks: GateColumns[] = [];
  for (let start = 0; start < signals.count || chunks.length === 0;) {
    const end = Math.min(signals.count, start + 1 + Math.floor(random() * 60));
    const options = { resume: start > 0 };
    chunks.push(
      gate.run(rowsOf(signals, start, end), frameIndex.subarray(start, end), thresholds, windowSize, options),
    );
    start = end;
  }
  const join = (column: (chunk: GateColumns) => Float64Array) =>
    Float64Array.from(chunks.flatMap((chunk) => [...column(chunk)]));
  return {
    count: signals.count,
    reason: Uint8Array.from(chunks.flatMap((chunk) => [...chunk.reason])),
    gateConfidence: join((chunk) => chunk.gateConfidence),
    novelty: join((chunk) => chunk.novelty),
    temporalStability: join((chunk) => chunk.temporalStability),
    motion: join((chunk) => chunk.motion),
    confidence: join((chunk) => chunk.confidence),
  };
}

function rowsOf(signals: SignalColumns, start: number, end: number): SignalColumns {
  return {
    count: end - start,
    ptsMs: signals.ptsMs.subarray(start, end),
    perceptualHash: signals.perceptualHash.subarray(start, end),
    lumaMean: signals.lumaMean.subarray(start, end),
    flickerScore: signals.flickerScore.subarray(start, end),
    ghostingScore: signals.ghostingScore.subarray(start, end),
    noiseVarianceScore: signals.noiseVarianceScore.subarray(start, end),
    ...(signals.cutScore && { cutScore: signals.cutScore.subarray(start, end) }),
    ...(signals.artifactScore && { artifactScore: signals.artifactScore.subarray(start, end) }),
  };
}

/**
 * Mostly constant shots, with random jumps of each signal, gaps in the frame numbers, and cut scores on some
 * frames.
 */
function randomSequence(random: () => number, count: number) {
  const scoredShare = random();
  let hash = 0n;
  let luma = random();
  let frameIndex = Math.floor(random() * 5);
  const spike = () => random() < 0.1 ? random() : 0;
  return columns(Array.from({ length: count }, () => {
    if (random() < 0.05) {
      hash = BigInt(Math.floor(random() * 2 ** 32)) << 32n | BigInt(Math.floor(random() * 2 ** 32));
    }
    if (random() < 0.2) hash ^= 1n << BigInt(Math.floor(random() * 64));
    luma = random() < 0.05 ? random() : Math.min(1, Math.max(0, luma + (random() - 0.5) / 20));
    frameIndex += random() < 0.95 ? 1 : Math.floor(random() * 40);
    const isScored = scoredShare < 0.3 ? false : scoredShare < 0.6 ? random() < 0.5 : true;
    return {
      frame_index: frameIndex,
      perceptual_hash: hash,
      luma_mean: luma,
      flicker_score: spike(),
      ghosting_score: spike(),
      noise_variance_score: spike(),
      ...(isScored && { cut_score: random() < 0.05 ? random() : random() / 3 }),
      ...(random() < scoredShare && { artifactScore: random() < 0.05 ? random() : random() / 3 }),
    };
  }));
}

function randomThresholds(random: () => number): GateThresholds {
  return {
    keepaliveEveryFrames: 1 + Math.floor(random() * 60),
    sceneCutHammingThreshold: 1 + Math.floor(random() * 40),
    lumaShiftThreshold: random() / 2,
    flickerThreshold: random(),
    ghostingThreshold: random(),
    noiseVarianceThreshold: random(),
  };
}
