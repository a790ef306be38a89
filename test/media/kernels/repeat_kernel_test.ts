/** The differences that repeats are found by are those of their definition. */

import assert from "node:assert/strict";
import { BLOCK_STRIDE, FAR, RepeatKernel } from "../../../src/media/kernels/repeat_kernel.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const BLOCKS = 60;

Deno.test("differences and fits of random blocks are the sums of the differences of 60 blocks, in any turn of the ring", () => {
  const kernel = new RepeatKernel();
  const random = seededRandom(5);
  const frames: number[][] = [];
  for (let frame = 0; frame < 1100; frame++) {
    const near = frame > 3 && frame % 3 === 0 ? frames[frame - 3]! : null;
    const blocks = Array.from(
      { length: BLOCKS },
      (_, n) => frame % 50 === 0 ? 65_535 * (n & 1) : near ? near[n]! : Math.floor(65_536 * random()),
    );
    frames.push(blocks);
    kernel.blocks.set(blocks, frame % kernel.ring * BLOCK_STRIDE);
    if (frame < 310 || frame % 61 !== 0) continue;
    const expected = (lag: number) =>
      blocks.reduce((sum, value, n) => sum + Math.abs(value - frames[frame - lag]![n]!), 0);
    const most = 900_000;
    const count = kernel.seek(frame, 8, 300, most);
    const found = (lag: number) => expected(lag) > most || lag < 8 || lag > 300 ? FAR : expected(lag);
    const isMinimum = (lag: number) =>
      found(lag) < FAR && found(lag) <= found(lag - 1) && found(lag) <= found(lag + 1);
    const lags = Array.from({ length: 293 }, (_, n) => 8 + n);
    assert.deepEqual([...kernel.minima.subarray(0, count)], lags.filter(isMinimum));
    for (let lag = 8; lag <= 300; lag++) {
      const sum = expected(lag);
      assert.equal(kernel.step(frame, lag, -1, 0, 0), sum, `frame ${frame}, lag ${lag}`);
      assert.equal(kernel.fits[lag], sum > most ? FAR : sum);
    }
  }
});

Deno.test("blocks that are as far apart as can be do not overflow", () => {
  const kernel = new RepeatKernel();
  kernel.blocks.fill(65_535, 0, BLOCKS);
  assert.equal(kernel.step(1, 1, -1, 0, 0), BLOCKS * 65_535);
  assert.equal(kernel.step(512, 511, -1, 0, 0), BLOCKS * 65_535);
});

Deno.test("a run of frames is counted and traced by its definition", () => {
  const kernel = new RepeatKernel();
  const random = seededRandom(6);
  const frames: number[][] = [];
  for (let frame = 0; frame < 260; frame++) {
    // Noise on a film that plays every 23 frames again, from frame 150 on.
    const before = frame >= 150 ? frames[frame - 23]! : null;
    const values = Array.from(
      { length: BLOCKS },
      (_, n) => Math.floor(before ? before[n]! + 300 * random() : 20_000 + 9000 * random()),
    );
    frames.push(values);
    kernel.blocks.set(values, frame % kernel.ring * BLOCK_STRIDE);
  }
  const apart = (one: number, other: number) =>
    frames[one]!.reduce((sum, value, n) => sum + Math.abs(value - frames[other]![n]!), 0);
  for (const lag of [22, 23, 24, 25, 46]) {
    const counts = [0, 0, 0, 0];
    for (let frame = 140; frame <= 200; frame++) {
      const own = apart(frame, frame - lag);
      const between = [1, 2, 3].map((part) => apart(frame, frame - Math.round(lag * part / 4)));
      const [least, middle] = between.toSorted((a, b) => a - b);
      assert.equal(kernel.least(frame, lag), least);
      const added = [own, middle!, least!, middle! >= 150_000 && own <= 0.3 * middle! ? 1 : 0];
      added.forEach((value, at) => counts[at]! += value);
    }
    assert.equal(kernel.trace(200, lag, 2 ** 30, 140, 150_000, 0.3), 140);
    assert.deepEqual([...kernel.counts], counts, `lag ${lag}`);
    const own = apart(171, 171 - lag);
    kernel.trace(171, lag, -1, 140, 150_000, 0.3);
    const ofOne = [...kernel.counts];
    assert.equal(ofOne[0], own);
    kernel.counts.fill(-1);
    assert.equal(kernel.step(171, lag, own - 1, 150_000, 0.3), own);
    assert.deepEqual([...kernel.counts], [-1, -1, -1, -1], "a frame that differs by more is not counted");
    assert.equal(kernel.step(171, lag, own, 150_000, 0.3), own);
    assert.deepEqual([...kernel.counts], ofOne);
    if (lag === 23) assert.ok(counts[3]! >= 40, `${counts[3]} tell it`);
  }
  assert.equal(kernel.trace(200, 23, 20_000, 100, 0, 0), 150);
  assert.equal(kernel.trace(200, 23, 20_000, 171, 0, 0), 171);
  assert.equal(kernel.trace(200, 24, 20_000, 100, 0, 0), 200);
});
