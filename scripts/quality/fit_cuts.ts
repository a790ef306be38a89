/**
 * Fits the cut detector: `./scripts/deno run -A scripts/quality/fit_cuts.ts [--measure FOLDER...]`. Without
 * options it reads `fixtures/quality/cut_rows.bin.gz`, writes `assembly/cut/weights.ts` and prints what the trees find of
 * the videos that they were fitted on, and of sources that took no part. See docs/detection.md#cuts.
 */

import { parseArgs } from "node:util";
import { drawnFilms } from "./cuts/drawn_films.ts";
import { measureRows } from "./cuts/measure_rows.ts";
import { readRows, writeRows } from "./cuts/rows.ts";
import { fitRows, judge, oddsApart, oddsOf } from "./cuts/validate.ts";
import { weightsText } from "./cuts/weights_file.ts";
import { addCounts, type Counts, rates } from "./scores/score.ts";
import { findVideos } from "./scores/videos.ts";

const ROWS = new URL("../../fixtures/quality/cut_rows.bin.gz", import.meta.url);
const WEIGHTS = new URL("../../assembly/cut/weights.ts", import.meta.url);

/** Added to the videos that are measured. */
const DRAWN_FILMS = 60;
const DRAWN_SEED = 3;
const FOLDS = 5;

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: { measure: { type: "boolean", default: false } },
});

if (values.measure) {
  const measured = await measureRows(
    await findVideos(positionals),
    undefined,
    drawnFilms(DRAWN_FILMS, DRAWN_SEED),
  );
  await writeRows(ROWS, measured);
}
const rows = await readRows(ROWS);
const weights = fitRows(rows);
await Deno.writeTextFile(WEIGHTS, weightsText(weights));
const inSample = judge(rows, oddsOf(rows, weights));
const apart = judge(rows, oddsApart(rows, rows, FOLDS));
const total = (counts: Map<string, Counts>) => [...counts.values()].reduce(addCounts);
console.log(`${"kind".padEnd(24)} fitted  other sources   hits false missed`);
for (const kind of [...apart.keys()].sort()) print(kind, inSample.get(kind)!, apart.get(kind)!);
print("all", total(inSample), total(apart));
console.log("Build the kernel now: ./scripts/deno task wasm");

function print(name: string, fitted: Counts, other: Counts): void {
  const { hits, falseAlarms, misses } = other;
  console.log(
    `${name.padEnd(24)} ${rates(fitted).f1.toFixed(3)}  ${rates(other).f1.toFixed(3).padEnd(14)}` +
      `${[hits, falseAlarms, misses].map((n) => `${n}`.padStart(6)).join("")}`,
  );
}
