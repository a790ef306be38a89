import assert from "node:assert/strict";
import { DAMAGE_LOOKAHEAD, DamagedParts } from "../../../../src/media/detection/faults/damaged_parts.ts";
import type { FittedTrees } from "../../../../src/base/fitted_trees.ts";
import { DAMAGE_CODES } from "../../../../src/media/detection/faults/damage_features.ts";

const ONE = 4096;
const FRAMES = 12;

/** Trees that say the same of every frame. */
function constant(odds: number): FittedTrees {
  const none = { features: new Uint8Array(), thresholds: new Uint8Array(), low: new Int16Array() };
  return {
    bias: odds * ONE,
    roots: new Int16Array(),
    high: new Int16Array(),
    leaves: new Int16Array(),
    ...none,
  };
}

/**
 * The frame with which damage of these odds begins in a shot with one key frame; null where none is found.
 */
function beginOf(odds: number, keyFrame: number | null): number | null {
  const parts = new DamagedParts({ damage: constant(odds), healing: constant(-9) });
  for (let frame = 0; frame < FRAMES + DAMAGE_LOOKAHEAD; frame++) {
    parts.pushCodes(new Uint8Array(DAMAGE_CODES), 0);
  }
  for (let frame = 0; frame < FRAMES; frame++) {
    parts.step(frame, frame === 0, false, frame === keyFrame);
    if (parts.strength > 0) return frame;
  }
  return null;
}

Deno.test("damage begins with the first frame that is likely enough", () => {
  assert.deepEqual([2.7, 2.9].map((odds) => beginOf(odds, null)), [null, 1]);
});

Deno.test("where the whole picture is drawn anew, damage must be much likelier", () => {
  assert.deepEqual([2.9, 4.7, 4.9].map((odds) => beginOf(odds, 1)), [2, 2, 1]);
});

/** Where damage of these odds begins behind a cut at frame 6, with damage of other odds before the cut. */
function secondBeginOf(odds: number, before: number, isReset = false): number | null {
  const parts = new DamagedParts({
    damage: constant(before),
    silent: constant(odds),
    healing: constant(-9),
  });
  const push = () => {
    for (let frame = 0; frame < FRAMES + DAMAGE_LOOKAHEAD; frame++) {
      parts.pushCodes(new Uint8Array(DAMAGE_CODES), 0);
    }
  };
  push();
  for (let frame = 0; frame < 6; frame++) parts.step(frame, frame === 0, false);
  if (isReset) {
    parts.reset();
    push();
  }
  for (let frame = isReset ? 0 : 6; frame < FRAMES; frame++) {
    parts.step(frame, frame === 0 || frame === 6, true);
    if (parts.strength > 0) return frame;
  }
  return null;
}

Deno.test("damage comes again: behind clear damage less is enough, until a new stream", () => {
  assert.deepEqual([0.2, 0.4, 2.7].map((odds) => secondBeginOf(odds, 2.9)), [null, 7, 7]);
  assert.deepEqual([0.4, 2.7, 2.9].map((odds) => secondBeginOf(odds, 2.7)), [null, null, 7]);
  assert.equal(secondBeginOf(0.4, 2.9, true), null);
});
