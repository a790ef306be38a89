/** Comments of all programs can be read where they stand. */

import assert from "node:assert/strict";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { commentFaults } from "./comments.ts";
import { tsFiles } from "./source_tree.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = ["src", "test", "scripts", "lab", "bench"];
/** The text of a program that is written into evidence bundles as it is. */
const EXCEPT = "src/store/bundle/bundle_verifier.ts";

Deno.test("comments have a subject, and are no wider than the code", () => {
  const faults = FOLDERS.flatMap((folder) => [...tsFiles(`${ROOT}${folder}`)]).flatMap((path) => {
    const name = relative(ROOT, path);
    if (name === EXCEPT) return [];
    return commentFaults(Deno.readTextFileSync(path)).map((fault) => `${name}:${fault}`);
  });
  assert.deepEqual(faults, []);
});

Deno.test("comments without a subject and wide ones are found, drawings are not", () => {
  const wide = "word ".repeat(25).trim();
  assert.deepEqual(commentFaults("/** Of one request. */"), ["1: a comment without its subject"]);
  assert.deepEqual(commentFaults("\n  /**\n   * The same for sounds.\n   */"), [
    "2: a comment without its subject",
  ]);
  assert.deepEqual(commentFaults("/** Offers of publishers. */\n/** Itself. */"), []);
  for (const line of [`/** ${wide}. */`, ` * ${wide}`, `  // ${wide}`]) {
    assert.deepEqual(commentFaults(line), ["1: a comment wider than 110 columns"], line);
  }
  for (const line of [` *   ${wide}`, ` * | ${wide} |`, ` * a    ${wide}`, `const a = "// ${wide}";`]) {
    assert.deepEqual(commentFaults(line), [], line);
  }
});
