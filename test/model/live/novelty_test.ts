import assert from "node:assert/strict";
import {
  cosineDistance,
  Novelty,
  type NoveltySettings,
  type NoveltyVerdict,
  quantized,
} from "../../../src/model/live/novelty.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const DEFAULTS: NoveltySettings = {
  reuseThreshold: 0.01,
  maxReuseMs: 2_000,
  maxCumulativeDrift: 0.5,
  shadowSampleRate: 0,
};

/** A vector at `degrees` from the first axis. */
function at(degrees: number) {
  const radians = degrees * Math.PI / 180;
  return quantized(Float32Array.of(Math.cos(radians), Math.sin(radians), 0))!;
}

/** Frames as [degrees, pts]; each that asks the model gets a description. The decisions, one letter each. */
function decide(
  frames: readonly (readonly [number, number])[],
  change: Partial<NoveltySettings> = {},
): string {
  const novelty = new Novelty({ ...DEFAULTS, ...change });
  const letters: Record<NoveltyVerdict, string> = { run: "R", forced: "F", reuse: ".", shadow: "s" };
  return frames.map(([degrees, ptsMs]) => {
    const verdict = novelty.decide(at(degrees), ptsMs);
    if (verdict === "run" || verdict === "forced") novelty.commit(at(degrees), ptsMs);
    return letters[verdict];
  }).join("");
}

Deno.test("the distance is one minus the cosine, between 0 and 1, whatever the lengths", () => {
  const check = (one: number[], other: number[], distance: number, tolerance = 1e-3) => {
    const got = cosineDistance(quantized(Float32Array.from(one))!, quantized(Float32Array.from(other))!);
    assert.ok(Math.abs(got - distance) <= tolerance, `${one} ${other}: ${got}`);
  };
  check([1, 0], [1, 0], 0, 0);
  check([1, 0], [250, 0], 0, 0);
  check([1e-38, 0], [1e38, 0], 0, 0);
  check([1, 0], [0, 1], 1, 0);
  check([1, 0], [-1, 0], 1, 0);
  check([1, 1], [1, 0], 1 - Math.SQRT1_2);
  check([3, 4], [4, 3], 1 - 24 / 25);
  check([1, 2, 3], [1, 2], 1, 0);
});

Deno.test("an embedding of zeros, or with a number that is not finite, cannot be compared", () => {
  for (const bad of [[], [0, 0], [NaN, 1], [1, Infinity], [-Infinity]]) {
    assert.equal(quantized(Float32Array.from(bad)), null, String(bad));
  }
});

Deno.test("eight bits a number keep the distances of 768 numbers to a twentieth of the usual threshold", () => {
  const random = seededRandom(36);
  const gauss = () => Array.from({ length: 6 }, random).reduce((sum, value) => sum + value - 0.5, 0);
  for (let round = 0; round < 50; round++) {
    const one = Float32Array.from({ length: 768 }, gauss);
    const other = Float32Array.from(one, (value) => value + gauss() * round / 100);
    const length = (vector: Float32Array) => Math.hypot(...vector);
    const exact = 1 -
      one.reduce((sum, value, index) => sum + value * other[index]!, 0) / length(one) / length(other);
    const got = cosineDistance(quantized(one)!, quantized(other)!);
    assert.ok(Math.abs(got - exact) < 5e-4, `${got} instead of ${exact}`);
    if (round === 0) assert.equal(got, 0);
  }
});

Deno.test("a frame near the last described one reuses its description, any other one asks", () => {
  const check = (frames: [number, number][], expected: string, change: Partial<NoveltySettings> = {}) =>
    assert.equal(decide(frames, change), expected, JSON.stringify({ frames, change }));
  check([[0, 0]], "R");
  check([[0, 0], [0, 100], [4, 200], [8, 300]], "R...");
  check([[0, 0], [9, 100], [9, 200]], "RR.");
  check([[0, 0], [90, 100], [0, 200]], "RRR");
  // Each is near the one before, but it is the described one that counts.
  check([[0, 0], [5, 100], [10, 200], [15, 300]], "R.R.");
  check([[0, 0], [0, 100]], "R.", { reuseThreshold: 0 });
  check([[0, 0], [2, 100]], "RR", { reuseThreshold: 0 });
});

Deno.test("a description that is old, has drifted or is of a later time is refreshed", () => {
  const check = (frames: [number, number][], expected: string, change: Partial<NoveltySettings> = {}) =>
    assert.equal(decide(frames, change), expected, JSON.stringify({ frames, change }));
  check([[0, 0], [0, 1_999], [0, 2_000], [0, 3_999], [0, 4_000]], "R.F.F");
  check([[0, 0], [0, 0], [0, 1]], "RFF", { maxReuseMs: 0 });
  check([[0, 1_000], [0, 1_000], [0, 999], [0, 998], [0, 998]], "R.FF.");
  // It need not go back before the described frame.
  check([[0, 1_000], [0, 1_500], [0, 1_499], [0, 1_600]], "R.F.");
  // 5 degrees are 0.0038 away: the fourth one passes 0.013.
  check([[0, 0], [5, 10], [5, 20], [5, 30], [5, 40], [0, 50]], "R...F.", { maxCumulativeDrift: 0.013 });
  check([[0, 0], [0, 10], [0, 20]], "R..", { maxCumulativeDrift: 1e-9 });
  // What is new anyway is not forced.
  check([[0, 0], [90, 5_000]], "RR");
});

Deno.test("without a description there is nothing to reuse, and what was described before stays", () => {
  const novelty = new Novelty(DEFAULTS);
  assert.equal(novelty.decide(at(0), 0), "run");
  assert.equal(novelty.decide(at(0), 10), "run");
  novelty.commit(at(0), 10);
  assert.equal(novelty.decide(at(90), 20), "run");
  assert.equal(novelty.decide(at(0), 30), "reuse");
  assert.equal(novelty.decide(at(90), 40), "run");
});

Deno.test("exactly the configured share of reuses is sampled, the same ones each time", () => {
  const reuses = (count: number): [number, number][] => Array.from({ length: count + 1 }, (_, i) => [0, i]);
  const check = (rate: number, count: number, sampled: number) => {
    const settings = { shadowSampleRate: rate, maxReuseMs: 1e9 };
    const got = decide(reuses(count), settings);
    assert.equal(got.replaceAll(/[^s]/g, "").length, sampled, `${rate} of ${count}`);
    assert.equal(decide(reuses(count), settings), got);
  };
  check(0, 1_000, 0);
  check(0.01, 99, 0);
  check(0.01, 100, 1);
  check(0.01, 1_000, 10);
  check(0.25, 8, 2);
  check(0.4, 10, 4);
  check(1, 10, 10);
  assert.equal(decide(reuses(8), { shadowSampleRate: 0.25 }), "R...s...s");
});
