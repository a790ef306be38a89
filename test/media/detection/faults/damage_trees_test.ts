/** Trees of damage that are asked all at once give what a walk from node to node gives. */

import assert from "node:assert/strict";
import { LEAF_ONE, oddsByTrees } from "../../../../src/base/fitted_trees.ts";
import { DAMAGE_FEATURES } from "../../../../src/media/detection/faults/damage_features.ts";
import { DamageTrees } from "../../../../src/media/detection/faults/damage_trees.ts";
import { DAMAGE_WEIGHTS } from "../../../../src/media/detection/faults/damaged_parts.ts";
import { DamageKernel } from "../../../../src/media/kernels/damage_kernel.ts";
import { seededRandom } from "../../../support/seeded_random.ts";

Deno.test("the odds are the sum of the leaves that a walk through each tree comes to", () => {
  const kernel = new DamageKernel();
  const random = seededRandom(3);
  for (const weights of Object.values(DAMAGE_WEIGHTS)) {
    const trees = new DamageTrees(kernel, weights);
    const seen = new Set<number>();
    for (let n = 0; n < 1000; n++) {
      const row = Uint8Array.from({ length: DAMAGE_FEATURES }, () => Math.floor(256 * random()));
      kernel.features.set(row);
      assert.equal(trees.odds(), oddsByTrees(weights, row) * LEAF_ONE);
      seen.add(trees.odds());
    }
    assert.ok(seen.size > 900, `${seen.size} different odds`);
  }
});

Deno.test("a tree may be a single leaf, and may not have more nodes than there is room for", () => {
  const list = (...numbers: number[]) => Int16Array.from(numbers);
  const leaf = {
    bias: 5,
    features: new Uint8Array(),
    thresholds: new Uint8Array(),
    low: list(),
    high: list(),
  };
  const kernel = new DamageKernel();
  const trees = new DamageTrees(kernel, { ...leaf, roots: list(-1), leaves: list(4091) });
  assert.equal(trees.odds(), LEAF_ONE);
  const chain = { low: list(1, 2, 3, 4, 5, 6, 7, -1), high: list(-2, -3, -4, -5, -6, -7, -8, -9) };
  const large = { bias: 0, roots: list(0), features: new Uint8Array(8), thresholds: new Uint8Array(8) };
  assert.throws(() => new DamageTrees(kernel, { ...large, ...chain, leaves: new Int16Array(9) }), /8 nodes/);
});
