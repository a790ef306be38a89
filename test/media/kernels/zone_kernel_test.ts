import assert from "node:assert/strict";
import { ZoneKernel, type ZoneThresholds } from "../../../src/media/kernels/zone_kernel.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { referenceZone } from "../../support/kernels/zone_reference.ts";

const zone = await ZoneKernel.load();

const DOCK: ZoneThresholds = { enterScore: 0.6, exitScore: 0.2, enterAfterFrames: 2, exitAfterFrames: 3 };

/** The intervals of the whole sequence, compared with the same frames one at a time. */
function intervals(
  scores: readonly number[],
  change: Partial<ZoneThresholds> = {},
): [number, number | null][] {
  const thresholds = { ...DOCK, ...change };
  const found = zone.run(thresholds, Float64Array.from(scores));
  zone.begin(thresholds);
  const steps = scores.map((score) => zone.step(score));
  const expected = scores.map((_, frame) => {
    if (found.some(({ enteredAt }) => enteredAt === frame)) return "entered";
    return found.some(({ leftAt }) => leftAt === frame) ? "left" : "none";
  });
  assert.deepEqual(steps, expected, "one at a time");
  return found.map(({ enteredAt, leftAt }) => [enteredAt, leftAt]);
}

Deno.test("a zone is entered and left after as many frames in a row as its policy says", () => {
  const check = (scores: number[], expected: [number, number | null][], change?: Partial<ZoneThresholds>) =>
    assert.deepEqual(intervals(scores, change), expected, JSON.stringify(scores));
  check([], []);
  check([0.9], []);
  check([0.6, 0.6], [[1, null]]);
  check([0.6, 0.5999, 0.6], []);
  check([0.9, 0.9, 0.9, 0.9], [[1, null]]);
  check([1, 1, 0.2, 0.2, 0.2], [[1, 4]]);
  check([1, 1, 0.2, 0.2, 0.2001, 0.2, 0.2], [[1, null]]);
  check([1, 1, 0, 0, 0, 1, 1, 0, 0, 0], [[1, 4], [6, 9]]);
  // Between the thresholds there is no transition.
  check([1, 1, 0.4, 0.4, 0.4, 0.4], [[1, null]]);
  check([0.4, 0.4, 0.4], []);
  // The frames that entered do not count for leaving, nor the other way round.
  check([1, 0], [[0, 1]], { enterAfterFrames: 1, exitAfterFrames: 1 });
  check([1, 0, 1, 0], [[0, 1], [2, 3]], { enterAfterFrames: 1, exitAfterFrames: 1 });
  // A frame without a score interrupts the row.
  check([1, NaN, 1], []);
  check([1, 1, 0, 0, NaN, 0, 0, 0], [[1, 7]]);
  check([Infinity, 1, -Infinity, -1, 0], [[1, 4]]);
  check([1, 1], [], { enterAfterFrames: 300 });
});

Deno.test("the zone kernel and its reference implementation agree on 2,000 random sequences", () => {
  const random = seededRandom(33);
  let entered = 0;
  for (let sequence = 0; sequence < 2_000; sequence++) {
    const exitScore = Math.floor(random() * 60) / 64;
    const thresholds = {
      exitScore,
      enterScore: exitScore + (1 + Math.floor(random() * 8)) / 64,
      enterAfterFrames: 1 + Math.floor(random() * 4),
      exitAfterFrames: 1 + Math.floor(random() * 4),
    };
    let score = random();
    const scores = Array.from({ length: Math.floor(random() * 120) }, () => {
      score = random() < 0.3 ? random() : score;
      return random() < 0.02 ? NaN : Math.floor(score * 64) / 64;
    });
    const expected = referenceZone(thresholds, scores);
    assert.deepEqual(zone.run(thresholds, Float64Array.from(scores)), expected, `sequence ${sequence}`);
    entered += expected.length;
  }
  assert.ok(entered > 2_000, `${entered} intervals`);
});

Deno.test("more frames than a block holds come out as if there were no blocks", () => {
  const scores = Array.from({ length: 20_000 }, (_, frame) => Math.floor(frame / 8191) % 2 === 0 ? 1 : 0);
  assert.deepEqual(intervals(scores), [[1, 8193], [16383, null]]);
});

Deno.test("thresholds that no policy may have are refused", () => {
  const check = (change: Partial<ZoneThresholds>) =>
    assert.throws(() => zone.begin({ ...DOCK, ...change }), /^RangeError: Cannot watch a zone/);
  check({ exitScore: 0.6 });
  check({ exitScore: NaN });
  check({ enterScore: NaN });
  check({ enterAfterFrames: 0 });
  check({ enterAfterFrames: 1.5 });
  check({ exitAfterFrames: -1 });
  check({ exitAfterFrames: Infinity });
});
