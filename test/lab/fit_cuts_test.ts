import assert from "node:assert/strict";
import { KernelRows, kernelSum } from "../../lab/cuts/kernel_rows.ts";
import { readRows } from "../../lab/cuts/rows.ts";
import { fitRows, judge, oddsOf } from "../../lab/cuts/validate.ts";
import { committedWeights, rowsOf, weightsText } from "../../lab/cuts/weights_file.ts";
import { addCounts, rates } from "../../lab/scores/score.ts";

const rows = await readRows(rowsOf("cut"));

Deno.test("the trees of the kernel are those that the committed rows give", () => {
  const weights = fitRows(rows);
  assert.equal(
    weightsText("cut", { trees: { cut: weights } }) === committedWeights("cut"),
    true,
    "run lab/fit_cuts.ts and build the kernel",
  );
  const total = [...judge(rows, oddsOf(rows, weights)).values()].reduce(addCounts);
  assert.ok(total.hits > 2500);
  assert.ok(rates(total).f1 > 0.99);
});

Deno.test("the kernel measures as it did when the rows were measured", async () => {
  const sum = kernelSum(await KernelRows.load());
  assert.equal(
    sum,
    rows.kernelSum,
    "run lab/fit_cuts.ts --measure FOLDER on the labelled videos",
  );
});
