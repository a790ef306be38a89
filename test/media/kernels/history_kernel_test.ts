/** The sums over the cells of frames are those of their definitions. */

import assert from "node:assert/strict";
import {
  CELLS,
  HistoryKernel,
  LUMA_CELLS,
  MIXES,
  PROFILE_VALUES,
  SLIDE,
  WAYS,
} from "../../../src/media/kernels/history_kernel.ts";
import { changed, likeness, mixes, roughness, ways } from "../../support/kernels/cells_reference.ts";
import { SlideReference } from "../../support/kernels/slide_reference.ts";
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
    const slot = frame % kernel.frames;
    frames.push(cells);
    kernel.cells.set(cells, slot * CELLS);
    kernel.moves.set(moves, slot * LUMA_CELLS);
    kernel.measure(frame, Math.max(0, frame - 1));
    const luma = cells.slice(0, LUMA_CELLS);
    const changes = cells.map((cell, at) => Math.abs(cell - (frames[frame - 1] ?? cells)[at]!));
    assert.deepEqual(
      [...kernel.stats],
      [sum(luma), sum(moves), sum(changes), Math.max(...changes), Math.min(...luma), Math.max(...luma)],
      `frame ${frame}`,
    );
    const other = Math.max(0, frame - 1 - Math.floor(200 * random()));
    const apart = sum(cells.map((cell, at) => Math.abs(cell - frames[other]![at]!)));
    assert.equal(kernel.apart(frame, other), apart);
  }
});

/**
 * 300 frames: one picture moves and turns into another now and then, with noise; some have the largest values
 * that there can be.
 */
function drawFrames(kernel: HistoryKernel): void {
  const random = seededRandom(21);
  const draw = (most: number) => Math.floor((most + 1) * random());
  let cells = Array.from({ length: CELLS }, () => draw(61_200));
  let bands = Array.from({ length: PROFILE_VALUES }, () => draw(1912));
  for (let frame = 0; frame < 300; frame++) {
    const slot = frame % kernel.frames;
    if (frame % 50 === 20) cells = cells.map(() => draw(1) * 61_200);
    else cells = cells.map((cell) => draw(9) === 0 ? draw(61_200) : Math.min(61_200, cell + draw(300)));
    if (frame % 60 === 30) bands = bands.map(() => draw(1) * 1912);
    else {bands = bands.map((_, at) =>
        Math.min(1912, bands[Math.min(PROFILE_VALUES - 1, at + 1)]! + draw(20))
      );}
    kernel.cells.set(cells, slot * CELLS);
    kernel.moves.set(cells.slice(0, LUMA_CELLS), slot * LUMA_CELLS);
    kernel.profiles.set(bands, slot * PROFILE_VALUES);
  }
}

Deno.test("ways, mixes and structure of random cells are those of their definitions, to the last bit", () => {
  const kernel = new HistoryKernel();
  drawFrames(kernel);
  const random = seededRandom(22);
  for (let round = 0; round < 200; round++) {
    const one = 60 + Math.floor(180 * random()), other = one + 4 + Math.floor(50 * random());
    const pair = `${one} to ${other}`, most = round % 3 * 1440;
    assert.equal(kernel.changed(one, other, most), changed(kernel, one, other, most), pair);
    kernel.measureWays(one, other, most);
    const places = Object.values(WAYS);
    assert.deepEqual(places.map((at) => kernel.numbers[at]), ways(kernel, one, other, most), pair);
    kernel.measureMixes(one, other);
    assert.deepEqual(
      Object.values(MIXES).map((at) => kernel.numbers[at]),
      mixes(kernel, one, other),
      pair,
    );
    assert.equal(kernel.roughness(one), roughness(kernel, one), pair);
    const across = round % 4, along = round % 3;
    assert.equal(
      kernel.likeness(one, other, across, along),
      likeness(kernel, one, other, across, along),
      pair,
    );
  }
});

Deno.test("the fit of random slides is that of its definition, to the last bit", () => {
  const kernel = new HistoryKernel();
  drawFrames(kernel);
  const reference = new SlideReference();
  const random = seededRandom(23);
  for (let round = 0; round < 60; round++) {
    const one = 60 + Math.floor(180 * random()), other = one + 4 + Math.floor(50 * random());
    kernel.fitSlide(one, other);
    reference.measure(kernel, one, other);
    for (const [name, at] of Object.entries(SLIDE)) {
      assert.equal(
        kernel.numbers[at],
        reference[name as keyof typeof SLIDE],
        `${name} of ${one} to ${other}`,
      );
    }
  }
});
