/**
 * Runs the benchmarks of bench on this machine, one after the other, and puts their figures beside their
 * limits:
 *
 *     ./scripts/deno task bench [--only http,ingest] [--quick] [--passes 1]
 *         [--json FILE] [--keep FILE] [--markdown FILE] [--compare FILE]
 *
 * `--quick` runs those that are quick, in fewer rounds. `--json` writes the result, `--markdown` a table of
 * it; with `--keep` the figures of other scripts come from an earlier result. `--compare` compares the ratios
 * with those of an earlier result; a script with a figure that lost a third is run again before that counts.
 * Fails when a script failed or a figure is lost; the other scripts still run. See
 * docs/performance.md#how-to-measure.
 */

import { parseArgs } from "node:util";
import { compared, comparisonLine } from "./run/comparison.ts";
import { type BenchResult, figureResults, machineAtHand, mergedResults } from "./run/result.ts";
import { lostFigures, type RunnerOptions, runScripts } from "./run/runner.ts";
import { chosenScripts, SCRIPTS } from "./run/scripts.ts";
import { markdownOf } from "./run/table.ts";

const SCRIPT_DEADLINE_MS = 15 * 60_000;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    only: { type: "string", default: "" },
    quick: { type: "boolean", default: false },
    passes: { type: "string", default: "1" },
    json: { type: "string" },
    keep: { type: "string" },
    markdown: { type: "string" },
    compare: { type: "string" },
  },
});
const isQuick = values.quick;
const resultIn = (file: string): BenchResult => JSON.parse(Deno.readTextFileSync(file));
const before = values.compare === undefined ? null : resultIn(values.compare);
const kept = values.keep === undefined ? null : resultIn(values.keep);
const only = values.only.split(",").filter((name) => name !== "");
const scripts = chosenScripts(SCRIPTS, { only, isQuick });
const options: RunnerOptions = {
  folder: new URL("./", import.meta.url),
  isQuick,
  passes: Number(values.passes),
  deadlineMs: SCRIPT_DEADLINE_MS,
  say: (line) => console.log(line),
};

const date = new Date().toISOString().replace(/\.\d+Z$/, "Z");
const measured = await runScripts(scripts, options);
const result: BenchResult = {
  date,
  machine: await machineAtHand(),
  isQuick,
  scripts: measured.scripts,
  figures: figureResults(measured.figures),
};
const whole = kept === null ? result : mergedResults(kept, result, SCRIPTS.map(({ path }) => path));
const markdown = markdownOf(whole);
console.log(`\n${markdown}\n`);
if (values.json !== undefined) Deno.writeTextFileSync(values.json, `${JSON.stringify(whole, null, 2)}\n`);
if (values.markdown !== undefined) Deno.writeTextFileSync(values.markdown, `${markdown}\n`);

const faults = measured.scripts.filter(({ fault }) => fault !== null);
for (const { script, fault } of faults) console.error(`${script} failed: ${fault}`);
const isLess = before !== null && await comparesBadly(before);
Deno.exit(faults.length > 0 || isLess ? 1 : 0);

/** Says how every figure compares, and whether some are lost. */
async function comparesBadly(earlier: BenchResult): Promise<boolean> {
  for (const figure of compared(earlier, result)) console.log(comparisonLine(figure));
  const lost = await lostFigures(
    earlier,
    result,
    (names) => runScripts(scripts.filter(({ path }) => names.includes(path)), { ...options, passes: 1 }),
  );
  for (const figure of lost) console.error(`lost: ${comparisonLine(figure)}`);
  if (lost.length === 0) console.log("no figure lost a third");
  return lost.length > 0;
}
