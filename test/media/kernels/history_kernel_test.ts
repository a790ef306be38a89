/** The sums over the cells of frames are those of their definitions. */

import assert from "node:assert/strict";
import { CELLS, HistoryKernel, LUMA_CELLS } from "../../../src/media/kernels/history_kernel.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

Deno.test("the statistics of random cells and the differences of two frames are those of their definitions", () => {
  const kernel = new HistoryKernel();
  const random = seededRandom(9);
  const draw = (count: number, most: number) =>
    Array.from({ length: count }, () => Math.floor((most + 1) * random()));
  const frames: number[][] = [];
  for (let frame = 0; frame < 300; frame++) {
    // The largest values that there can be, with both signs of the change.
    const cells = frame % 40 === 7 ? draw(CELLS, 1).map((bit) => bit * 65_535) : draw(CELLS, 61_200);
    const moves = draw(LUMA_CELLS, frame % 3 === 0 ? 65_535 : 900);
    const slot = frame % kernel.frames, before = frame === 0 ? slot : (frame - 1) % kernel.frames;
    frames.push(cells);
    kernel.cells.set(cells, slot * CELLS);
    kernel.moves.set(moves, slot * LUMA_CELLS);
    kernel.measure(slot, before);
    const luma = cells.slice(0, LUMA_CELLS);
    const changes = cells.map((cell, at) => Math.abs(cell - (frames[frame - 1] ?? cells)[at]!));
    assert.deepEqual(
      [...kernel.stats],
      [sum(luma), sum(moves), sum(changes), Math.max(...changes), Math.min(...luma), Math.max(...luma)],
      `frame ${frame}`,
    );
    const other = Math.max(0, frame - 1 - Math.floor(200 * random()));
    const apart = sum(cells.map((cell, at) => Math.abs(cell - frames[other]![at]!)));
    assert.equal(kernel.apart(slot, other % kernel.frames), apart);
  }
});
