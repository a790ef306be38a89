/**
 * Fits the cut detector: `./scripts/deno run -A lab/fit_cuts.ts [--measure | --add FOLDER...]`. Without
 * options it reads `fixtures/quality/cut_rows.bin.gz`, writes `weights/cut.json` and prints what the trees
 * find of the videos that they were fitted on, and of sources that took no part. See docs/detection.md#cuts.
 */

import { basename } from "node:path";
import { parseArgs } from "node:util";
import { drawnFilms, windowFilms } from "./cuts/drawn_films.ts";
import { measureRows } from "./cuts/measure_rows.ts";
import { joinedRows, readRows, writeRows } from "./cuts/rows.ts";
import { fitRows, judge, oddsApart, oddsOf } from "./cuts/validate.ts";
import { rowsOf, writeWeights } from "./cuts/weights_file.ts";
import { fittedTable } from "./scores/fitted_table.ts";
import { findVideos } from "./scores/videos.ts";

const ROWS = rowsOf("cut");

/** Drawn films that are added to the videos that are measured. */
const DRAWN_FILMS = 60;
const WINDOW_FILMS = 16;
const DRAWN_SEED = 3;
const FOLDS = 5;

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: { measure: { type: "boolean", default: false }, add: { type: "boolean", default: false } },
});

if (values.measure) {
  const measured = await measureRows(
    await findVideos(positionals),
    undefined,
    [...drawnFilms(DRAWN_FILMS, DRAWN_SEED), ...windowFilms(WINDOW_FILMS, DRAWN_SEED)],
  );
  await writeRows(ROWS, measured);
}
for (const folder of values.add ? positionals : []) {
  const named = (await findVideos([folder])).map(({ path, truth }) => ({
    path,
    truth: { ...truth, name: `${basename(folder)}_${truth.name}` },
  }));
  await writeRows(ROWS, joinedRows(await readRows(ROWS), await measureRows(named)));
}
const rows = await readRows(ROWS);
const weights = fitRows(rows);
writeWeights("cut", { trees: { cut: weights } });
const inSample = judge(rows, oddsOf(rows, weights));
const apart = judge(rows, oddsApart(rows, rows, FOLDS));
console.log(fittedTable(inSample, apart));
console.log("Build the kernel now: ./scripts/deno task wasm");
