/**
 * Fits the detector of gradual transitions: `./scripts/deno run -A lab/fit_gradual.ts [--measure FOLDER...]`.
 * Without options it reads `fixtures/quality/gradual_rows.bin.gz`, writes
 * `src/media/detection/gradual/weights.ts` and prints what the trees find of the videos that they were fitted
 * on, and of sources that took no part. See docs/detection.md#gradual-transitions.
 */

import { parseArgs } from "node:util";
import { readRows, writeRows } from "./cuts/rows.ts";
import { fitRows, oddsApart, oddsOf } from "./cuts/validate.ts";
import { transitionTreesText } from "./cuts/weights_file.ts";
import { measureStretches, type StretchRows } from "./gradual/stretch_rows.ts";
import { judgeStretches, STRETCH_ROWS, TRANSITIONS } from "./gradual/validate.ts";
import { fittedTable } from "./scores/fitted_table.ts";
import { findVideos } from "./scores/videos.ts";

const WEIGHTS = new URL("../src/media/detection/gradual/weights.ts", import.meta.url);
const FOLDS = 5;

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: { measure: { type: "boolean", default: false } },
});

if (values.measure) await writeRows(STRETCH_ROWS, await measureStretches(await findVideos(positionals)));
const rows = await readRows<StretchRows>(STRETCH_ROWS);
const trees = fitRows(rows, undefined, TRANSITIONS);
await Deno.writeTextFile(WEIGHTS, transitionTreesText(trees));
const inSample = judgeStretches(rows, oddsOf(rows, trees));
const apart = judgeStretches(rows, oddsApart(rows, rows, FOLDS, TRANSITIONS));
console.log(fittedTable(inSample, apart));
