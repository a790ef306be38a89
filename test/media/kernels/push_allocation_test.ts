/** What a frame leaves on the engine's heap: nothing, also where the picture changes and rules run that
 * seldom do.
 */

import assert from "node:assert/strict";
import v8 from "node:v8";
import { FrameAnalyser } from "../../../src/media/detection/frame_analyser.ts";
import { FRAME_BYTES, PLANE_BYTES, PLANE_WIDTH } from "../../../src/media/kernels/frame_planes.ts";
import { seededRandom } from "../../support/seeded_random.ts";

/** Frames until the picture is another one. */
const SHOT = 20;
const COUNTED = 400;
/**
 * Rounds of which the one that leaves least counts. By then code that seldom runs is compiled: the engine's
 * interpreter makes an object of each number with a fraction.
 */
const ROUNDS = 300;
/**
 * Most bytes that a push may leave, where one object for each is 16: reading the size of the heap, and the
 * compilers, leave some.
 */
const BYTES_MAX = 2;

const filter = await FrameAnalyser.load();
const random = seededRandom(5);
filter.staging.set(
  Uint8Array.from({ length: FRAME_BYTES + 1000 }, (_, at) => {
    if (at >= PLANE_BYTES) return 110 + 20 * Math.sin(at / 40);
    const x = at % PLANE_WIDTH, y = Math.floor(at / PLANE_WIDTH);
    return 120 + 50 * Math.sin(x / 9 + y / 31) + 40 * Math.sin(y / 7) + 12 * random();
  }),
);

/** Pushes the picture as it moves along, in two places in turn. */
function push(): void {
  for (let frame = 0; frame < COUNTED; frame++) {
    const turn = frame % (2 * SHOT);
    filter.push(turn < SHOT ? turn : 960 + turn, frame);
  }
}

function pushAndKeep(kept: unknown[]): void {
  for (let frame = 0; frame < COUNTED; frame++) {
    const turn = frame % (2 * SHOT);
    filter.push(turn < SHOT ? turn : 960 + turn, frame);
    kept[frame % kept.length] = { frame };
  }
}

/** The least bytes that a push leaves in any of the rounds. */
function leastLeft(pushes: () => void, rounds = ROUNDS): number {
  let least = Infinity;
  for (let round = 0; round < rounds && least > BYTES_MAX; round++) {
    filter.reset();
    const first = v8.getHeapStatistics().used_heap_size, second = v8.getHeapStatistics().used_heap_size;
    pushes();
    const third = v8.getHeapStatistics().used_heap_size;
    least = Math.min(least, Math.abs(third - second - (second - first)) / COUNTED);
  }
  return least;
}

Deno.test("a frame leaves no object on the heap, whatever rules it is judged by; one object a push would be seen", () => {
  const least = leastLeft(push);
  assert.ok(least <= BYTES_MAX, `${least} bytes a push`);
  const kept: unknown[] = new Array(16).fill(undefined);
  assert.ok(leastLeft(() => pushAndKeep(kept), 10) >= 16);
});
