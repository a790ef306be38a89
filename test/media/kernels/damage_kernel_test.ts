/** The numbers that damage is decided on are those of their definition, whatever came before and behind. */

import assert from "node:assert/strict";
import { CODE_STRIDE, DamageKernel } from "../../../src/media/kernels/damage_kernel.ts";
import { seededRandom } from "../../support/seeded_random.ts";

/**
 * The slow twin of assembly/damage.ts: the eight numbers of one measure, whose codes are `codes`, of the
 * frames that have come.
 */
function numbersOf(codes: readonly number[], frame: number, first: number): number[] {
  const at = (place: number) => codes[Math.max(0, Math.min(place, codes.length - 1))]!;
  const usual = Array.from({ length: 9 }, (_, n) => at(Math.max(first, frame - 6 - 3 * n))).sort((a, b) =>
    a - b
  );
  const median = usual[4]!, now = at(frame), just = at(Math.max(first, frame - 1));
  const before = [1, 2, 3].map((back) => at(Math.max(first, frame - back)));
  const behind = [1, 2, 3].map((ahead) => at(frame + ahead));
  const beside = (code: number, other: number) => Math.max(0, Math.min(255, 128 + code - other));
  return [
    beside(now, median),
    beside(now, usual[8]!),
    beside(now, Math.min(...behind)),
    beside(Math.max(...before), median),
    beside(Math.max(...behind), median),
    beside(just, median),
    now,
    median,
  ];
}

Deno.test("the numbers of random codes are those of their definition, in long and short shots, with and without frames behind", () => {
  const kernel = new DamageKernel();
  const random = seededRandom(31);
  const draw = (most: number) => Math.floor((most + 1) * random());
  const frames: number[][] = [];
  for (let newest = 0; newest < 300; newest++) {
    // All codes, few of them so that many are alike, and the least and the largest.
    const one = [255, 3, 1][Math.floor(newest / 40) % 3]!;
    frames.push(Array.from({ length: CODE_STRIDE }, () => one === 1 ? 255 * draw(1) : draw(one)));
    kernel.codes.set(frames[newest]!, newest % kernel.kept * CODE_STRIDE);
    const frame = Math.max(0, newest - draw(5)), first = Math.max(0, frame - draw(newest % 2 === 0 ? 5 : 50));
    kernel.measureFeatures(frame, first, frames.length);
    const expected = Array.from({ length: CODE_STRIDE }, (_, measure) => {
      return numbersOf(frames.map((codes) => codes[measure]!), frame, first);
    });
    assert.deepEqual([...kernel.features], expected.flat(), `frame ${frame} from ${first} of ${newest}`);
  }
});
