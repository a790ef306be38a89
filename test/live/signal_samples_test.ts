import assert from "node:assert/strict";
import { SignalSamples } from "../../src/live/signal_samples.ts";

Deno.test("a sample has the largest values of the frames of 100 ms, and a time that goes back starts another one", () => {
  const samples = new SignalSamples();
  samples.observe({ ptsMs: 1000, motion: 0.1, novelty: 0.9 });
  samples.observe({ ptsMs: 1040, motion: 0.7, novelty: 0.2 });
  samples.observe({ ptsMs: 1099, motion: 0.2, novelty: 0.3 });
  samples.observe({ ptsMs: 1100, motion: 0, novelty: 0 });
  samples.observe({ ptsMs: 40, motion: 0.5, novelty: 0.5 });
  assert.deepEqual(samples.take(), [
    { ptsMs: 1000, motion: 0.7, novelty: 0.9 },
    { ptsMs: 1100, motion: 0, novelty: 0 },
    { ptsMs: 40, motion: 0.5, novelty: 0.5 },
  ]);
  assert.deepEqual(samples.take(), []);
});

Deno.test("samples that nobody takes are bounded", () => {
  const samples = new SignalSamples();
  for (let at = 0; at < 1000; at++) samples.observe({ ptsMs: at * 100, motion: 0, novelty: 0 });
  assert.equal(samples.take().length, 600);
});
