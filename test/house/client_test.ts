/** The client stands alone: it imports only itself, and uses nothing that one runtime has and another has
 * not.
 */

import assert from "node:assert/strict";
import { namesDeclaredTwice } from "./declared_names.ts";
import { FIRST_LINE } from "./house.ts";
import { importCycles } from "./import_cycles.ts";
import { foldersOf, lineAt, sourceFiles } from "./source_tree.ts";

const FILES = sourceFiles(new URL("../../client/", import.meta.url).pathname);
/**
 * What some runtime has not, or what a library should not do. `code` is the text of a file without its
 * comments.
 */
const FOREIGN: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  { what: "uses Deno", pattern: /\bDeno\./ },
  { what: "uses Node.js", pattern: /\bprocess\.|\bBuffer\b/ },
  { what: "prints", pattern: /\bconsole\.\w+\(/ },
  { what: "keeps state in a module", pattern: /^(export )?(let|var) /m },
  {
    what: "uses what Node.js 18 has not",
    pattern:
      /\bAbortSignal\.any\b|\.(toSorted|toReversed|toSpliced)\(|\bwithResolvers\b|\bawait using\b|\busing \w+ =|\bnew File\(/,
  },
];

Deno.test("the client imports its own files alone", () => {
  assert.ok(FILES.length > 10);
  const paths = FILES.map(({ path }) => path);
  const strangers = FILES.flatMap(({ path, imports }) =>
    imports.filter(({ target, isOurs }) => !isOurs || !paths.includes(target)).map((
      { target },
    ) => [path, target])
  );
  assert.deepEqual(strangers, []);
  assert.deepEqual(importCycles(FILES), []);
});

Deno.test("the client uses what every runtime has", () => {
  const faults = FILES.flatMap(({ path, code, text }) =>
    FOREIGN.flatMap(({ what, pattern }) => {
      const match = pattern.exec(code);
      return match ? [`client/${path}:${lineAt(text, match.index)}: ${what}: ${match[0]}`] : [];
    })
  );
  assert.deepEqual(faults, []);
});

Deno.test("the files of the client say what they own, and no name is declared twice", () => {
  assert.deepEqual(
    FILES.filter(({ text }) => !FIRST_LINE.test(text.split("\n")[0]!)).map(({ path }) => path),
    [],
  );
  assert.deepEqual(namesDeclaredTwice(FILES.filter(({ path }) => path !== "src/api_types.ts")), []);
  const faults = foldersOf(FILES).filter(({ folder, files, folders }) =>
    folder !== "." && (files + folders < 3 || files > 25)
  );
  assert.deepEqual(faults, []);
});
