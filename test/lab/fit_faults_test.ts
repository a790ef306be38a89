import assert from "node:assert/strict";
import { DAMAGE_WEIGHTS, type DamageWeights } from "../../src/media/detection/faults/damaged_parts.ts";
import { readRows } from "../../lab/cuts/rows.ts";
import { committedWeights, rowsOf, weightsText } from "../../lab/cuts/weights_file.ts";
import { FAULT_TREES, fitFaults, judgeDamage } from "../../lab/faults/fit_damage.ts";
import { FaultKernel, faultKernelSum } from "../../lab/faults/measure_faults.ts";
import type { FaultRows } from "../../lab/faults/rows.ts";
import { addCounts, rates } from "../../lab/scores/score.ts";

const rows = await readRows<FaultRows>(rowsOf("damage"));

const name = "the trees of damaged parts are those that the committed rows give";
/**
 * Share of the trees that are fitted. Each tree follows from those before it, so the first ones tell whether
 * rows and procedure are those of all.
 */
const SHARE = 0.2;
Deno.test({ name, timeout: 300_000 }, () => {
  const committed = DAMAGE_WEIGHTS;
  assert.equal(weightsText("damage", { trees: { ...committed } }), committedWeights("damage"));
  const fitted = fitFaults(rows, undefined, SHARE);
  for (const of of Object.keys(committed) as (keyof DamageWeights)[]) {
    const { bias, ...lists } = fitted[of];
    assert.equal(bias, committed[of].bias, of);
    assert.equal(committed[of].roots.length, FAULT_TREES[of], of);
    assert.equal(lists.roots.length, FAULT_TREES[of] * SHARE, of);
    for (const [list, numbers] of Object.entries(lists) as [keyof typeof lists, Uint8Array][]) {
      const first = committed[of][list].slice(0, numbers.length);
      assert.equal(`${numbers}` === `${first}`, true, `${list} of ${of}: run lab/fit_faults.ts`);
    }
  }
  const judged = judgeDamage(rows, () => committed);
  const total = rates([...judged.values()].map(({ counts }) => counts).reduce(addCounts));
  assert.ok(total.precision > 0.9, `${total.precision}`);
  assert.ok(rates(judged.get("blocks")!.counts).recall > 0.4);
});

Deno.test("the kernel measures faults as it did when the rows were measured", async () => {
  const sum = faultKernelSum(await FaultKernel.load());
  assert.equal(
    sum,
    rows.kernelSum,
    "run lab/fit_faults.ts --measure FOLDER on the labelled videos",
  );
});
