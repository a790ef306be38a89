import assert from "node:assert/strict";
import { frameAt, timecode, timecodeRate } from "../../../src/model/frames/timecode.ts";

Deno.test("timecodes count at whole rates and at those of NTSC, and at no other", () => {
  const check = (fps: number | null, expected: [nominal: number, secondMs: number] | null) => {
    const rate = timecodeRate(fps);
    assert.deepEqual(rate && [rate.nominal, rate.secondMs], expected, String(fps));
  };
  check(25, [25, 1000]);
  check(24, [24, 1000]);
  check(24_000 / 1001, [24, 1001]);
  check(23.976, [24, 1001]);
  check(29.97, [30, 1001]);
  check(60_000 / 1001, [60, 1001]);
  check(1, [1, 1000]);
  check(100, [100, 1000]);
  check(120, null);
  check(23.42, null);
  check(12.5, null);
  check(0.2, null);
  check(null, null);
});

Deno.test("every frame of a source has the timecode of its number, whichever way its time was rounded", () => {
  for (const fps of [1, 10, 24_000 / 1001, 24, 25, 30_000 / 1001, 30, 50, 60_000 / 1001, 60, 100]) {
    const rate = timecodeRate(fps)!;
    for (const first of [0, 107_892, 2_000_000]) {
      for (let frame = first; frame < first + 500; frame++) {
        const ms = frame * 1000 / fps;
        for (const rounded of [Math.floor(ms + 1e-6), Math.round(ms), Math.ceil(Math.max(0, ms - 1e-6))]) {
          assert.equal(frameAt(rounded, rate), frame, `${fps} ${frame}`);
        }
      }
    }
  }
});

Deno.test("a timecode has hours, minutes, seconds and frames, drops none, and begins again after a day", () => {
  const check = (frame: number, fps: number, expected: string) =>
    assert.equal(timecode(frame, timecodeRate(fps)!), expected);
  check(0, 25, "00:00:00:00");
  check(24, 25, "00:00:00:24");
  check(25, 25, "00:00:01:00");
  check(1799, 29.97, "00:00:59:29");
  check(1800, 29.97, "00:01:00:00");
  check(99, 100, "00:00:00:99");
  check(24 * 3600 * 30 - 1, 30, "23:59:59:29");
  check(24 * 3600 * 30 + 1, 30, "00:00:00:01");
});
