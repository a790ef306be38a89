/**
 * Fits the detector of damaged parts: `./scripts/deno run -A lab/fit_faults.ts [--measure|--add FOLDER...]`.
 * Without options it reads `fixtures/quality/fault_rows.bin.gz`, writes `weights/damage.json` and prints
 * which frames the trees find in the videos that they were fitted on, and in those of sources that took no
 * part. See docs/detection/faults.md.
 */

import { parseArgs } from "node:util";
import { appendedRows, readRows, writeRows } from "./cuts/rows.ts";
import { rowsOf, writeWeights } from "./cuts/weights_file.ts";
import { fitFaults, judgeApart, type Judged, judgeDamage } from "./faults/fit_damage.ts";
import { measureFaults } from "./faults/measure_faults.ts";
import type { FaultRows } from "./faults/rows.ts";
import { rates } from "./scores/score.ts";
import { findVideos } from "./scores/videos.ts";

const ROWS = rowsOf("damage");

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: { measure: { type: "boolean", default: false }, add: { type: "boolean", default: false } },
});

if (values.measure || values.add) {
  const measured = await measureFaults(await findVideos(positionals));
  await writeRows(ROWS, values.add ? appendedRows(await readRows<FaultRows>(ROWS), measured) : measured);
}
const rows = await readRows<FaultRows>(ROWS);
const weights = fitFaults(rows);
writeWeights("damage", { trees: { ...weights } });
const fitted = judgeDamage(rows, () => weights), apart = judgeApart(rows);
console.log("kind              fitted P      R   others P      R   false markers: fitted, others, in frames");
for (const kind of [...apart.keys()].sort()) print(kind, fitted.get(kind)!, apart.get(kind)!);

function print(kind: string, own: Judged, other: Judged): void {
  const cells = [own, other].flatMap(({ counts }) => [rates(counts).precision, rates(counts).recall]);
  console.log(
    kind.padEnd(18) + cells.map((cell) => cell.toFixed(3).padStart(9)).join("") +
      `${own.falseMarkers}`.padStart(10) + `${other.falseMarkers}`.padStart(5) +
      `${other.cleanFrames}`.padStart(9),
  );
}
