/** The repository is its own reference: no file cites a document that is not in it, and the README stays
 * short.
 */

import assert from "node:assert/strict";
import { join, relative } from "node:path";

const ROOT = join(import.meta.dirname!, "../..");
const FOLDERS = [
  "src",
  "test",
  "scripts",
  "lab",
  "bench",
  "assembly",
  "docs",
  "fixtures/contract",
  "README.md",
];
const README_LINES_MAX = 150;

/** What a reader of this repository cannot look up. The first group of a pattern is the citation. */
const CITATIONS: readonly RegExp[] = [
  /\b((?:interface|contract|spec|specification|supplement) (?:parts? |sections? |§ ?)?\d+(?:\.\d+)*)\b/i,
  /\b(decisions? [A-Z]?\d+)\b/i,
  // The number of a decision, or of a row of a table, that is not here.
  /(?<![\w#.&:/"'`$%-])([CD]\d{1,2})(?![\w"'`:/-])/,
  /((?:\.\.\/)+shared\/(?:spec|design)\b)/,
  /(\binterface specification\b|\bcontract supplement\b|\bseed spec\b)/i,
];

Deno.test("no file cites a document outside of the repository", () => {
  const faults: string[] = [];
  for (const path of FOLDERS.flatMap((name) => [...filesUnder(join(ROOT, name))])) {
    if (path.endsWith("citations_test.ts")) continue;
    Deno.readTextFileSync(path).split("\n").forEach((line, index) => {
      const cited = CITATIONS.map((pattern) => pattern.exec(line)?.[1]).find((found) => found !== undefined);
      if (cited !== undefined) faults.push(`${relative(ROOT, path)}:${index + 1}: ${cited}`);
    });
  }
  assert.deepEqual(faults, []);
});

Deno.test(`README.md has at most ${README_LINES_MAX} lines`, () => {
  const lines = Deno.readTextFileSync(join(ROOT, "README.md")).trimEnd().split("\n").length;
  assert.ok(lines <= README_LINES_MAX, `it has ${lines}`);
});

function* filesUnder(path: string): Iterable<string> {
  if (Deno.statSync(path).isFile) return yield path;
  for (const entry of Deno.readDirSync(path)) {
    if (entry.isDirectory) yield* filesUnder(join(path, entry.name));
    else if (/(^[^.]*|\.(md|ts|sh|json))$/.test(entry.name)) yield join(path, entry.name);
  }
}
