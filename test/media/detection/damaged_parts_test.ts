import assert from "node:assert/strict";
import { DAMAGE_LOOKAHEAD, DamagedParts } from "../../../src/media/damage/damaged_parts.ts";
import type { DamageWeights } from "../../../src/media/damage/damage_trees.ts";
import { DAMAGE_CODES } from "../../../src/media/damage/damage_features.ts";

const ONE = 4096;
const FRAMES = 12;

/** Trees that say the same of every frame. */
function constant(odds: number): DamageWeights {
  const none = { features: new Uint8Array(), thresholds: new Uint8Array(), low: new Int16Array() };
  return {
    bias: odds * ONE,
    roots: new Int16Array(),
    high: new Int16Array(),
    leaves: new Int16Array(),
    ...none,
  };
}

/** The frame with which damage of these odds begins in a shot with one key frame; null where none is found. */
function beginOf(odds: number, keyFrame: number | null): number | null {
  const parts = new DamagedParts({ damage: constant(odds), healing: constant(-9) });
  for (let frame = 0; frame < FRAMES + DAMAGE_LOOKAHEAD; frame++) {
    parts.pushCodes(new Uint8Array(DAMAGE_CODES), 0);
  }
  for (let frame = 0; frame < FRAMES; frame++) {
    if (parts.step(frame, frame === 0, false, frame === keyFrame) > 0) return frame;
  }
  return null;
}

Deno.test("damage begins with the first frame that is likely enough", () => {
  assert.deepEqual([2.1, 2.3].map((odds) => beginOf(odds, null)), [null, 1]);
});

Deno.test("where the whole picture is drawn anew, damage must be much likelier", () => {
  assert.deepEqual([2.3, 4.1, 4.3].map((odds) => beginOf(odds, 1)), [2, 2, 1]);
});
