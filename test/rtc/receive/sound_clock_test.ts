/** Sound of a publisher on the clock of its video. */

import assert from "node:assert/strict";
import { SoundClock } from "../../../src/rtc/receive/sound_clock.ts";

const NO_MARKS = { video: null, sound: null };

Deno.test("sound is placed by its arrival, then by the publisher's clock, and stays continuous", () => {
  const clock = new SoundClock();
  assert.equal(clock.onSound(48_000, 4_010, NO_MARKS), null);
  // Both began at 5000 ms; the video took 30 ms at least, the sound 10 ms.
  clock.onVideo(900_000, 5_030);
  clock.onVideo(903_000, 5_100);
  assert.equal(clock.onSound(96_000, 5_010, NO_MARKS), 2_000 + (5_010 - 2_000) - (5_030 - 10_000));
  const before = clock.onSound(96_960, 5_090, NO_MARKS)!;
  assert.equal(before - 20, 9_980);
  // The publisher says that the two are 20 ms apart from that: too little to move the sound.
  const video = { rtpTimestamp: 900_000, ntpMs: 70_000 };
  const near = { rtpTimestamp: 96_000, ntpMs: 70_000 };
  assert.equal(clock.onSound(97_920, 5_110, { video, sound: near }), before + 20);
  // 200 ms are followed; its times wrap at 32 bits, ours do not.
  const far = { rtpTimestamp: 96_000, ntpMs: 70_200 };
  const heard = clock.onSound(98_880 + 2 ** 32, 5_130, { video, sound: far })!;
  assert.ok(Math.abs(heard - 10_260) < 0.001, `${heard} ms`);
});
