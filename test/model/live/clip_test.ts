import assert from "node:assert/strict";
import { type ClipSettings, ClipWindow, framesOf } from "../../../src/model/live/clip.ts";

/** The default settings. */
const HALF_SECOND: ClipSettings = { targetFps: 6, clipSeconds: 0.5, delaySeconds: 0.5 };

/** The clips of frames at these times, each as the times of its frames. */
function clips(times: readonly number[], change: Partial<ClipSettings> = {}): number[][] {
  const window = new ClipWindow<number>({ ...HALF_SECOND, ...change });
  return times.flatMap((ptsMs) => {
    if (!window.wants(ptsMs)) return [];
    window.push(ptsMs, ptsMs);
    const clip = window.take();
    return clip ? [clip] : [];
  });
}

/** Whole milliseconds of `count` frames, `fps` of them a second. */
function frames(fps: number, count: number, startMs = 0): number[] {
  return Array.from({ length: count }, (_, index) => startMs + Math.round(index * 1_000 / fps));
}

Deno.test("a clip has as many frames as the rate gives in its length", () => {
  const check = (fps: number, seconds: number, expected: number) =>
    assert.equal(framesOf(fps, seconds), expected, `${fps} ${seconds}`);
  check(6, 0.5, 3);
  check(30, 0.1, 3);
  check(29.9, 0.1, 2);
  check(10, 0.7, 7);
  check(10, 0.3, 3);
  check(1, 2.99, 2);
  check(30, 60, 1_800);
});

Deno.test("by default clip follows clip without a gap, thinned to the rate that is asked for", () => {
  assert.deepEqual(clips(frames(30, 61)), [
    [0, 167, 333],
    [500, 667, 833],
    [1000, 1167, 1333],
    [1500, 1667, 1833],
  ]);
  // RTP times begin anywhere.
  assert.deepEqual(clips(frames(30, 30, 123_456_789))[1], [123_457_289, 123_457_456, 123_457_622]);
  // A rate that does not divide the stream's own is kept over time.
  const taken = new ClipWindow<number>({ ...HALF_SECOND, targetFps: 7 });
  const wanted = frames(25, 251).filter((ptsMs) => {
    const wants = taken.wants(ptsMs);
    if (wants) taken.push(ptsMs, ptsMs);
    return wants;
  });
  assert.ok(Math.abs(wanted.length - 70) <= 1, `${wanted.length} in 10 s`);
});

Deno.test("clips overlap when the delay is shorter than they are, and leave gaps when it is longer", () => {
  assert.deepEqual(clips(frames(6, 7), { delaySeconds: 0.167 }), [
    [0, 167, 333],
    [167, 333, 500],
    [333, 500, 667],
    [500, 667, 833],
    [667, 833, 1000],
  ]);
  assert.deepEqual(clips(frames(6, 4), { delaySeconds: 0 }), [[0, 167, 333], [167, 333, 500]]);
  assert.deepEqual(clips(frames(6, 20), { delaySeconds: 2 }), [[0, 167, 333], [2000, 2167, 2333]]);
});

Deno.test("a long clip is thinned evenly to 64 frames", () => {
  const found = clips(frames(30, 1_900), { targetFps: 30, clipSeconds: 60, delaySeconds: 60 });
  assert.equal(found.length, 1);
  const [clip] = found;
  assert.equal(clip!.length, 64);
  const steps = clip!.slice(1).map((ptsMs, index) => ptsMs - clip![index]!);
  assert.ok(Math.min(...steps) >= 930 && Math.max(...steps) <= 970, `${steps}`);
});

Deno.test("a stream of fewer frames than asked for has clips of as long a time with fewer frames", () => {
  assert.deepEqual(clips(frames(4, 8)), [[250, 500], [750, 1000], [1250, 1500]]);
  assert.deepEqual(clips(frames(1, 4)), [[1000], [2000], [3000]]);
});

Deno.test("times that go back begin a new clip, and no clip mixes before and after", () => {
  assert.deepEqual(clips([0, 167, 333, 500, 667, 10, 177, 343]), [[0, 167, 333], [10, 177, 343]]);
  assert.deepEqual(clips([500, 667, 0, 167, 333]), [[0, 167, 333]]);
});

Deno.test("a caller that is too busy to take a clip gets a later one, and never the same one twice", () => {
  const window = new ClipWindow<number>(HALF_SECOND);
  assert.equal(window.take(), null);
  for (const ptsMs of frames(6, 10)) if (window.wants(ptsMs)) window.push(ptsMs, ptsMs);
  assert.deepEqual(window.take(), [1167, 1333, 1500]);
  assert.equal(window.take(), null);
  window.clear();
  assert.equal(window.take(), null);
  assert.ok(window.wants(0));
});
