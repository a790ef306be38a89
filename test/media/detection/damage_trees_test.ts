/** Trees of damage that are left early decide as all of them do. */

import assert from "node:assert/strict";
import { DAMAGE_FEATURES } from "../../../src/media/damage/damage_features.ts";
import { DamageTrees } from "../../../src/media/damage/damage_trees.ts";
import { DAMAGE_WEIGHTS } from "../../../src/media/damage/damage_weights.ts";
import { seededRandom } from "../../support/seeded_random.ts";

Deno.test("odds above the least are exact, and others stay below it", () => {
  const trees = new DamageTrees(DAMAGE_WEIGHTS);
  const random = seededRandom(3);
  let above = 0, below = 0;
  for (let n = 0; n < 3000; n++) {
    const row = Uint8Array.from({ length: DAMAGE_FEATURES }, () => Math.floor(256 * random()));
    const exact = trees.odds(row, -Infinity);
    for (const least of [-1, 0.5, 4]) {
      const odds = trees.odds(row, least);
      if (exact >= least) above++;
      else below++;
      assert.ok(exact >= least ? odds === exact : odds < least, `${exact} ${least} ${odds}`);
    }
  }
  assert.ok(above > 300 && below > 300, `${above} above, ${below} below`);
});
