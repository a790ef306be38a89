/** The edges and the novelty of frames are those of their definitions. */

import assert from "node:assert/strict";
import { MEASURES } from "../../../src/media/detection/faults/artifact_measures.ts";
import { MEASURE_COUNT } from "../../../src/media/kernels/frame_filter.ts";
import { call, loadKernel } from "../../../src/media/kernels/load_kernel.ts";
import { referenceCombing, referenceCounts } from "../../support/kernels/artifact_reference.ts";
import { LINES_BYTES } from "../../../src/media/kernels/picture_lines.ts";
import { landscape, noisy, type Picture, withBox } from "../../support/kernels/drawn_film.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const kernel = await loadKernel("frame_filter", {
  STAGING: "global",
  ARTIFACT_MEASURES: "global",
  reset: call<() => void>(),
  setPictureSize: call<(width: number, height: number) => void>(),
  push: call<(offset: number, ptsMs: number, isRow: number, hasLines?: number) => void>(),
});
const memory = kernel.memory.buffer;
const staging = new Uint8Array(memory, kernel.STAGING.value as number);
const measures = new Float32Array(memory, kernel.ARTIFACT_MEASURES.value as number, MEASURE_COUNT);
const FIRST = MEASURES.edgesAcross, LAST = MEASURES.returned;
/** Places in all: stretches, columns of bands, and fine cells. */
const PLACES = [1800, 1800, 1800, 2880, 2880, 2880, ...new Array(7).fill(3600)];

/** How many places each measure finds in a frame. */
function measured(frame: Picture): number[] {
  staging.set(frame);
  kernel.push(0, 0, 1);
  return [...measures.subarray(FIRST, LAST + 1)].map((share, at) => Math.round(share * PLACES[at]! / 1000));
}

/** Blocks at any place, of any level, which come and go and stand for some frames. */
function blocky(picture: Picture, seed: number): Picture {
  const random = seededRandom(seed);
  let result = picture;
  for (let n = 0; n < 30; n++) {
    const [x, y] = [Math.floor(random() * 300), Math.floor(random() * 170)];
    const size = { width: 4 + Math.floor(random() * 60), height: 2 + Math.floor(random() * 9) };
    result = withBox(result, { x, y, ...size }, Math.floor(random() * 256));
  }
  return result;
}

Deno.test("each count is that of its definition: blocks, motion, noise and frames that return", () => {
  kernel.reset();
  const seen = new Array(PLACES.length).fill(0);
  const frames: Picture[] = [];
  for (let n = 0; n < 24; n++) {
    const moving = landscape(1 + (n >> 4), 2 * n);
    const clear = n % 3 === 0 ? moving : blocky(moving, n >> 1);
    frames.push(n === 14 ? frames[11]! : n === 15 ? frames[13]! : n > 18 ? noisy(clear, 40, n) : clear);
    const found = measured(frames.at(-1)!);
    assert.deepEqual(found, referenceCounts(frames), `frame ${n}`);
    found.forEach((count, at) => seen[at] += count);
  }
  assert.ok(seen.every((count) => count > 20), `${seen}`);
});

Deno.test("the first frame of a stream has edges of its own, and none that is new or gone", () => {
  measured(landscape(3));
  kernel.reset();
  const [across, ...others] = measured(blocky(landscape(1), 4));
  assert.ok(across! > 20);
  assert.deepEqual(others.filter((_, at) => at !== 2), new Array(11).fill(0));
});

/** Twelve blocks of 8x6 samples, which are 16x16 of a picture of 640x480, `shift` samples off their grid. */
function withBlocks(picture: Picture, shift: number): Picture {
  const random = seededRandom(3);
  let result = picture;
  for (let n = 0; n < 12; n++) {
    const x = 8 * Math.floor(2 + random() * 35) + shift, y = 6 * Math.floor(2 + random() * 25) + shift;
    result = withBox(result, { x, y, width: 8, height: 6 }, n % 2 === 0 ? 250 : 5);
  }
  return result;
}

interface Borders {
  readonly borders: number;
  readonly borderGrid: number;
  readonly heldBorders: number;
  readonly heldGrid: number;
  readonly lostBorders: number;
}

/**
 * The borders in frames of a picture that stands still, with blocks in those from the fourth to the seventh.
 */
function bordersOf(size: readonly [width: number, height: number], shift: number): Borders[] {
  kernel.setPictureSize(...size);
  kernel.reset();
  const found: Borders[] = [];
  for (let n = 0; n < 10; n++) {
    const still = noisy(landscape(1), 4, n);
    measured(n >= 4 && n < 8 ? withBlocks(still, shift) : still);
    const at = (measure: keyof Borders) => measures[MEASURES[measure]]!;
    found.push({
      ...{ borders: at("borders"), borderGrid: at("borderGrid"), heldBorders: at("heldBorders") },
      ...{ heldGrid: at("heldGrid"), lostBorders: at("lostBorders") },
    });
  }
  kernel.setPictureSize(0, 0);
  return found;
}

Deno.test("borders of new blocks lie on the grid of their picture, and are held while they are there", () => {
  const found = bordersOf([640, 480], 0);
  assert.ok(found.slice(0, 4).every(({ borderGrid, heldBorders }) => borderGrid < 1 && heldBorders === 0));
  assert.ok(found[4]!.borders > 20 && found[4]!.borderGrid > 3, JSON.stringify(found[4]));
  for (const { heldBorders, heldGrid } of found.slice(5, 8)) {
    assert.ok(heldBorders > 0.9 * found[4]!.borders && heldGrid > 3);
  }
  assert.ok(found[8]!.lostBorders > 0.8 * found[4]!.borders);
  assert.ok(found[9]!.heldBorders < 0.2 * found[4]!.borders);
});

Deno.test("borders that lie on no grid are not held, nor any where the size of the picture is not known", () => {
  for (const found of [bordersOf([640, 480], 3), bordersOf([500, 300], 0), bordersOf([0, 0], 0)]) {
    assert.ok(found[4]!.borders > 20);
    assert.ok(
      found.every(({ borderGrid, heldBorders }) => borderGrid < 2.4 && heldBorders === 0),
      JSON.stringify(found),
    );
  }
});

Deno.test("combing is that of its definition, on lines that move, stand, and are of two moments", () => {
  kernel.reset();
  const frames: Uint8Array[] = [];
  let compared = 0;
  for (let n = 0; n < 40; n++) {
    const own = landscape(2, 3 * n), moved = landscape(2, 3 * n - (n % 5) * 2);
    const other = n % 7 === 3 ? noisy(moved, 30, n) : moved;
    const lines = n === 22 ? frames[21]! : woven(own, n > 30 ? own : other);
    frames.push(lines);
    staging.set(lines);
    staging.set(own, LINES_BYTES);
    kernel.push(LINES_BYTES, 40 * n, 1, 1);
    const { alternation, apart, before } = referenceCombing(frames.slice(-4));
    const found = [
      measures[MEASURES.alternation],
      measures[MEASURES.fieldsApart],
      measures[MEASURES.fieldsBefore],
    ];
    assert.deepEqual(found, [alternation, apart, before].map(Math.fround), `frame ${n}`);
    if (apart !== 0) compared++;
  }
  assert.ok(compared > 15, `${compared}`);
});

/**
 * The upper lines of two pictures in turn, in groups of four: the first ones of eight groups, the second
 * ones, and so on.
 */
function woven(even: Picture, odd: Picture): Uint8Array {
  return Uint8Array.from({ length: LINES_BYTES }, (_, at) => {
    const line = Math.floor(at / 2560), group = Math.floor(at / 320) % 8;
    return (line % 2 === 0 ? even : odd)[(4 * group + line) * 320 + at % 320]!;
  });
}

Deno.test("a frame without lines is not combed, and nothing is compared across it", () => {
  kernel.reset();
  const pan = (n: number) => woven(landscape(2, 9 * n), landscape(2, 9 * n + 4));
  const push = (lines: Uint8Array | null) => {
    if (lines) staging.set(lines);
    staging.set(landscape(2), LINES_BYTES);
    kernel.push(LINES_BYTES, 0, 1, lines ? 1 : 0);
    return [measures[MEASURES.alternation]!, measures[MEASURES.fieldsApart]!];
  };
  push(pan(0));
  const [alternation, apart] = push(pan(1));
  assert.ok(alternation! > 1 && apart !== 0, `${alternation} ${apart}`);
  assert.deepEqual(push(null), [0, 0]);
  const [again, alone] = push(pan(1));
  assert.deepEqual([again, alone], [alternation, 0]);
});
