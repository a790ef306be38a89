import { deepEqual, ok } from "node:assert/strict";
import { CLOCK_LOOK_AHEAD, FrameClock } from "../../../src/model/frames/frame_clock.ts";

const FRAMES = 240;
const FPS = 24;
/** Whole milliseconds, as Matroska has them. */
const RIGHT = Array.from({ length: FRAMES }, (_, k) => Math.round(k * 1000 / FPS));

function timesOf(
  source: readonly number[],
  fps: number | null,
  gapMaxS?: number,
): { times: number[]; isSteady: boolean } {
  const clock = new FrameClock();
  clock.reset({ ticksPerSecond: 1000, fps, gapMaxS });
  const times: number[] = [];
  const drain = () => {
    for (let time = clock.take(); !Number.isNaN(time); time = clock.take()) times.push(time);
  };
  for (const time of source) {
    clock.push(time);
    drain();
    ok(clock.waiting < CLOCK_LOOK_AHEAD, "few frames wait");
  }
  clock.finish();
  drain();
  return { times, isSteady: clock.isSteady };
}

const WRONG: Readonly<Record<string, (t: number, k: number) => number>> = {
  "one far away": (t, k) => k === 49 ? t + 100_000 : t,
  "two that share a wild time": (t, k) => k === 49 || k === 50 ? 28_713_504 : t,
  "one a little late": (t, k) => k === 49 ? t + 2000 : t,
  "one early": (t, k) => k === 49 ? t - 1500 : t,
  "the first": (t, k) => k === 0 ? t + 3_600_000 : t,
  "each twentieth": (t, k) => k % 20 === 7 ? t + 3_600_000 : t,
  "ten in a row": (t, k) => k >= 50 && k < 60 ? t + 3_600_000 : t,
  "the time of the next": (t, k) => k % 25 === 24 ? RIGHT[k + 1] ?? t : t,
  "the time of the one before": (t, k) => k % 25 === 24 ? RIGHT[k - 1]! : t,
  "one late, and steps of a tick up to it": (t, k) => k >= 30 && k < 40 ? RIGHT[30]! + 400 + k - 30 : t,
  "two in the wrong order": (t, k) => k % 10 === 4 ? RIGHT[k + 1]! : k % 10 === 5 ? RIGHT[k - 1]! : t,
  "one far away, and then a clock that is set back": (t, k) =>
    k === 79 ? t + 100_000 : k >= 80 ? t - 10_000 : t,
  "a clock that is set back, and two last frames of another one": (t, k) =>
    k >= 238 ? t + 7_000 : k >= 80 ? t - 3_000 : t,
  "a second clock in the middle": (t, k) => k >= 80 && k < 238 ? t - 10_000 : t,
  "a clock that is set back": (t, k) => k >= 80 ? t - 3000 : t,
  "a clock that is set back a little": (t, k) => k >= 80 ? t - 300 : t,
  "a clock that is set back at the end": (t, k) => k >= 235 ? t - 3000 : t,
  "a clock that begins anew": (_t, k) => RIGHT[k % 50]!,
};

for (const [name, change] of Object.entries(WRONG)) {
  Deno.test(`times are where the frames are: ${name}`, () => {
    for (const fps of [FPS, null]) {
      const { times, isSteady } = timesOf(RIGHT.map(change), fps);
      deepEqual(times.length, FRAMES);
      ok(times.every((time, k) => k === 0 || time > times[k - 1]!), "they rise");
      const worst = Math.max(...times.map((time, k) => Math.abs(time - times[0]! - RIGHT[k]!)));
      ok(worst <= 3, `the worst is ${worst} ms away`);
      ok(!isSteady);
    }
  });
}

Deno.test("times that rise are never changed", () => {
  let [sum, slowSum] = [0, 0];
  const kinds = {
    steady: RIGHT,
    "a long gap": RIGHT.map((t, k) => k >= 100 ? t + 60_000 : t),
    slides: RIGHT.map((_, k) => k * 1000),
    "a screen recording": RIGHT.map((_, k) => sum += (k * 7919) % 13 === 0 ? 3000 : 10 + (k * 31) % 90),
    "a slow screen recording": RIGHT.map((_, k) => slowSum += k % 7 === 0 ? 5 : 300),
    "a long last frame": RIGHT.map((t, k) => k === FRAMES - 1 ? t + 30_000 : t),
  };
  for (const [name, times] of Object.entries(kinds)) {
    for (const fps of [FPS, null]) deepEqual(timesOf(times, fps), { times, isSteady: true }, name);
  }
});

Deno.test("frames that all share one time are spread at the rate of the source", () => {
  const { times } = timesOf(RIGHT.map(() => 0), FPS);
  deepEqual(times.map((time) => Math.round(time - times[0]!)), RIGHT);
});

Deno.test("a gap that is longer than is believed is closed, and a shorter one stays", () => {
  for (const [gapMs, isClosed] of [[9_000, false], [11_000, true], [95_000_000, true]] as const) {
    const set = RIGHT.map((t, k) => k >= 100 ? t + gapMs : t);
    const { times, isSteady } = timesOf(set, FPS, 10);
    const expected = isClosed ? RIGHT : set;
    ok(times.every((time, k) => Math.abs(time - expected[k]!) <= 2), `a gap of ${gapMs} ms`);
    deepEqual(isSteady, !isClosed);
  }
});
