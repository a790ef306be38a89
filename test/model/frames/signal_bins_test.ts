/** Signals in bins: what a bin has, which are left out, and the ends of a range. */

import assert from "node:assert/strict";
import { signalBins } from "../../../src/model/frames/signal_bins.ts";
import { emptyColumns } from "../../../src/model/frames/signals_json.ts";
import type { SignalColumns } from "../../../src/model/frames/signals.ts";

/** Frames at these media times; the luma of frame n is n / 10. */
function decoded(ptsMs: readonly number[]): SignalColumns {
  const { signals } = emptyColumns(ptsMs.length, { cutScore: true, artifactScore: false });
  ptsMs.forEach((ms, frame) => {
    signals.ptsMs[frame] = ms;
    signals.lumaMean[frame] = frame / 10;
  });
  return signals;
}

const ALL = { fromMs: 0, toMs: 1e9 };

Deno.test("a bin has the least, the greatest and the mean of its frames", () => {
  const bins = signalBins(decoded([0, 100, 200, 300, 400, 500]), { ...ALL, points: 2 });
  assert.equal(bins.frames, 6);
  assert.deepEqual(bins.ptsMs, [0, 300]);
  assert.deepEqual(bins.counts, [3, 3]);
  assert.deepEqual(bins.signals.luma_mean, { min: [0, .3], max: [.2, .5], mean: [.1, .4] });
});

Deno.test("where frames are fewer than bins each has its own, and both ends of the range are inside", () => {
  const bins = signalBins(decoded([0, 100, 200, 300, 400]), { fromMs: 100, toMs: 300, points: 10 });
  assert.deepEqual(bins.ptsMs, [100, 200, 300]);
  assert.deepEqual(bins.signals.luma_mean!.min, bins.signals.luma_mean!.max);
});

Deno.test("a bin without frames is left out, and a score that no frame of a bin has is null", () => {
  const signals = decoded([0, 10, 20, 990, 1000]);
  signals.cutScore![4] = .5; // NaN elsewhere
  const bins = signalBins(signals, { ...ALL, points: 4 });
  assert.deepEqual(bins.ptsMs, [0, 990]);
  assert.deepEqual(bins.counts, [3, 2]);
  assert.deepEqual(bins.signals.cut_score, { min: [null, .5], max: [null, .5], mean: [null, .5] });
  assert.equal(bins.signals.artifact_score, undefined);
});

Deno.test("frames of one time are one bin, and a range without frames has none", () => {
  assert.deepEqual(signalBins(decoded([7, 7, 7]), { ...ALL, points: 2 }).counts, [3]);
  const none = signalBins(decoded([0, 100]), { fromMs: 20, toMs: 30, points: 4 });
  assert.deepEqual([none.frames, none.ptsMs, none.signals.luma_mean], [0, [], {
    min: [],
    max: [],
    mean: [],
  }]);
  assert.equal(signalBins(decoded([]), { ...ALL, points: 4 }).frames, 0);
});

Deno.test("half a million frames have as many bins as were asked for, and lose none", () => {
  const bins = signalBins(decoded(Array.from({ length: 500_000 }, (_, frame) => frame * 40)), {
    ...ALL,
    points: 512,
  });
  assert.equal(bins.counts.length, 512);
  assert.equal(bins.counts.reduce((sum, count) => sum + count), 500_000);
});
