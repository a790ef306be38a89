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
    kernel.seek(frame, 8, 300, most);
    for (let lag = 8; lag <= 300; lag++) {
      const sum = expected(lag);
      assert.equal(kernel.difference(frame, frame - lag), sum, `frame ${frame}, lag ${lag}`);
      assert.equal(kernel.fits[lag], sum > most ? FAR : sum);
    }
  }
});

Deno.test("blocks that are as far apart as can be do not overflow", () => {
  const kernel = new RepeatKernel();
  kernel.blocks.fill(65_535, 0, BLOCKS);
  assert.equal(kernel.difference(0, 1), BLOCKS * 65_535);
  assert.equal(kernel.difference(1, 0), BLOCKS * 65_535);
});
