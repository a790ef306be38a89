/**
 * Fits the detector of gradual transitions: `./scripts/deno run -A lab/fit_gradual.ts [--measure FOLDER...]`.
 * Without options it reads `fixtures/quality/gradual_rows.bin.gz`, writes `weights/gradual.json` and prints
 * what the trees find of the videos that they were fitted on, and of sources that took no part. See
 * docs/detection.md#gradual-transitions.
 */

import { parseArgs } from "node:util";
import { readRows, writeRows } from "./cuts/rows.ts";
import { fitRows, oddsApart, oddsOf } from "./cuts/validate.ts";
import { rowsOf, writeWeights } from "./cuts/weights_file.ts";
import { measureStretches, type StretchRows } from "./gradual/stretch_rows.ts";
import { judgeStretches, TRANSITIONS } from "./gradual/validate.ts";
import { fittedTable } from "./scores/fitted_table.ts";
import { findVideos } from "./scores/videos.ts";

const ROWS = rowsOf("gradual");
const FOLDS = 5;

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: { measure: { type: "boolean", default: false } },
});

if (values.measure) await writeRows(ROWS, await measureStretches(await findVideos(positionals)));
const rows = await readRows<StretchRows>(ROWS);
const trees = fitRows(rows, undefined, TRANSITIONS);
writeWeights("gradual", { trees: { transition: trees } });
const inSample = judgeStretches(rows, oddsOf(rows, trees));
const apart = judgeStretches(rows, oddsApart(rows, rows, FOLDS, TRANSITIONS));
console.log(fittedTable(inSample, apart));
