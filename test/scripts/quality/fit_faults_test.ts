import assert from "node:assert/strict";
import { readRows } from "../../../scripts/quality/cuts/rows.ts";
import { damageWeightsText, fitFaults, judgeDamage } from "../../../scripts/quality/faults/fit_damage.ts";
import { FaultKernel, faultKernelSum } from "../../../scripts/quality/faults/measure_faults.ts";
import type { FaultRows } from "../../../scripts/quality/faults/rows.ts";
import { addCounts, rates } from "../../../scripts/quality/scores/score.ts";

const ROOT = new URL("../../../", import.meta.url);
const rows = await readRows<FaultRows>(new URL("fixtures/quality/fault_rows.bin.gz", ROOT));

const name = "the trees of damaged parts are those that the committed rows give";
// Fitting takes most of a minute, and longer beside other tests.
Deno.test({ name, timeout: 300_000 }, async () => {
  const weights = fitFaults(rows);
  const committed = await Deno.readTextFile(new URL("src/media/damage/damage_weights.ts", ROOT));
  assert.equal(damageWeightsText(weights) === committed, true, "run scripts/quality/fit_faults.ts");
  const judged = judgeDamage(rows, () => weights);
  const total = rates([...judged.values()].map(({ counts }) => counts).reduce(addCounts));
  assert.ok(total.precision > 0.9, `${total.precision}`);
  assert.ok(rates(judged.get("blocks")!.counts).recall > 0.4);
});

Deno.test("the kernel measures faults as it did when the rows were measured", async () => {
  const sum = faultKernelSum(await FaultKernel.load());
  assert.equal(
    sum,
    rows.kernelSum,
    "run scripts/quality/fit_faults.ts --measure FOLDER on the labelled videos",
  );
});
