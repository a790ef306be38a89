/** The trees of gradual transitions are those that the committed rows give, and stretches are measured as
 * they were.
 */

import assert from "node:assert/strict";
import { readRows } from "../../lab/cuts/rows.ts";
import { fitRows, oddsOf } from "../../lab/cuts/validate.ts";
import { committedWeights, rowsOf, weightsText } from "../../lab/cuts/weights_file.ts";
import { type StretchRows, stretchSum } from "../../lab/gradual/stretch_rows.ts";
import { judgeStretches, TRANSITIONS } from "../../lab/gradual/validate.ts";
import { addCounts, rates } from "../../lab/scores/score.ts";

const rows = await readRows<StretchRows>(rowsOf("gradual"));

Deno.test("the trees of gradual transitions are those that the committed rows give", () => {
  const trees = fitRows(rows, undefined, TRANSITIONS);
  const text = weightsText("gradual", { trees: { transition: trees } });
  assert.ok(text === committedWeights("gradual"), "run lab/fit_gradual.ts");
  const total = [...judgeStretches(rows, oddsOf(rows, trees)).values()].reduce(addCounts);
  assert.ok(total.hits > 700);
  assert.ok(rates(total).f1 > 0.9);
});

Deno.test("stretches are measured as they were for the committed rows", async () => {
  assert.equal(
    await stretchSum(),
    rows.kernelSum,
    "run lab/fit_gradual.ts --measure FOLDER on the labelled videos",
  );
});
