import assert from "node:assert/strict";
import { SignalWindow } from "../../console/pages/live/signal_window.ts";

function signals(...ptsMs: number[]) {
  return { pts_ms: ptsMs, motion: ptsMs.map((ms) => ms / 1e6), novelty: ptsMs.map(() => 0) };
}

Deno.test("signals of many answers are put together, and only the last minute is kept", () => {
  const window = new SignalWindow();
  assert.equal(window.afterMs, null);
  window.add(signals(1_000, 2_000), null);
  assert.equal(window.afterMs, 2_000);
  window.add(signals(3_000), 2_000);
  assert.deepEqual(window.values.ptsMs, [1_000, 2_000, 3_000]);
  window.add(signals(62_500), 3_000);
  assert.deepEqual(window.values.ptsMs, [3_000, 62_500]);
  assert.deepEqual(window.values.motion, [0.003, 0.0625]);
});

Deno.test("a clock that goes back is noticed by answers without signals, and what lies before is dropped", () => {
  const window = new SignalWindow();
  window.add(signals(50_000), null);
  for (let answer = 0; answer < 3; answer++) {
    assert.equal(window.afterMs, 50_000);
    window.add(signals(), 50_000);
  }
  assert.equal(window.afterMs, null);
  window.add(signals(50_000, 100, 200), null);
  assert.deepEqual(window.values.ptsMs, [100, 200]);
  assert.equal(window.afterMs, 200);
});
