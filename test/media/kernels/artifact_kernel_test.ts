/** The edges and the novelty of frames are those of their definitions. */

import assert from "node:assert/strict";
import { MEASURE_COUNT, MEASURES } from "../../../src/media/detection/faults/artifact_measures.ts";
import { loadKernel } from "../../../src/media/kernels/load_kernel.ts";
import { referenceCounts } from "../../support/kernels/artifact_reference.ts";
import { landscape, noisy, type Picture, withBox } from "../../support/kernels/drawn_film.ts";
import { seededRandom } from "../../support/seeded_random.ts";

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly STAGING: WebAssembly.Global;
  readonly ARTIFACT_MEASURES: WebAssembly.Global;
  reset(): void;
  push(offset: number, ptsMs: number, isRow: number): void;
}

const kernel = await loadKernel<Exports>("frame_filter", {
  ...{ memory: "memory", STAGING: "global", ARTIFACT_MEASURES: "global" },
  ...{ reset: "function", push: "function" },
});
const memory = kernel.memory.buffer;
const staging = new Uint8Array(memory, kernel.STAGING.value as number);
const measures = new Float32Array(memory, kernel.ARTIFACT_MEASURES.value as number, MEASURE_COUNT);
const FIRST = MEASURES.edgesAcross, LAST = MEASURES.returned3;
/** Places in all: stretches, columns of bands, and fine cells. */
const PLACES = [1800, 1800, 1800, 2880, 2880, 2880, ...new Array(8).fill(3600)];

/** How many places each measure found. */
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
  assert.deepEqual(others.filter((_, at) => at !== 2), new Array(12).fill(0));
});
