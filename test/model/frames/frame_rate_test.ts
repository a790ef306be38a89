import assert from "node:assert/strict";
import { frameRate } from "../../../src/model/frames/frame_rate.ts";

/** Milliseconds that are up to `jitterMs` late, of which each 70th is lost. */
function cameraTimes(
  fps: number,
  { frames, seed, jitterMs }: Record<"frames" | "seed" | "jitterMs", number>,
) {
  let state = seed;
  const random = () => (state = state * 48_271 % 2_147_483_647) / 2_147_483_647;
  return Array.from({ length: frames }, (_, at) => Math.floor(at * 1000 / fps + random() * jitterMs) / 1000)
    .filter((_, at) => at % 70 !== 3);
}

Deno.test("the unsteady clock of a camera that loses frames does not hide its rate", () => {
  for (const fps of [12.5, 24, 25, 30]) {
    for (let seed = 1; seed <= 200; seed++) {
      assert.equal(
        frameRate(cameraTimes(fps, { frames: 200, seed, jitterMs: 4 }), 1000),
        fps,
        `${fps}, ${seed}`,
      );
    }
  }
});

Deno.test("a pause is no part of the rate, and equal times are one", () => {
  const times = Array.from({ length: 50 }, (_, at) => at / 25 + (at < 20 ? 0 : 3.21));
  assert.equal(frameRate(times, null), 25);
  assert.equal(frameRate([...times, ...times], null), 25);
  assert.equal(frameRate([0, 0.04], null), 25);
  assert.equal(frameRate([1, 1], 30), 30);
  assert.equal(frameRate([], 90_000), null);
});

Deno.test("times that no film has say nothing of the rate", () => {
  const times = (stepS: number) => Array.from({ length: 100 }, (_, k) => Math.round(k * stepS * 1e6) / 1e6);
  assert.equal(frameRate(times(1 / 12_800), null), null);
  assert.equal(frameRate(times(1 / 12_800), 12_800), null);
  assert.equal(frameRate(times(1 / 12_800), 25), 25);
  // Rounded to milliseconds.
  assert.equal(frameRate(times(1 / 50_000).map((time) => Math.round(time * 1000) / 1000), null), null);
  assert.equal(frameRate(times(1 / 960), null), 960);
});
