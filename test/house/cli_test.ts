/** The command line beside the service stands on the client, and on nothing else. */

import assert from "node:assert/strict";
import { namesDeclaredTwice } from "./declared_names.ts";
import { EMPTY_NAMES, FIRST_LINE, FORBIDDEN } from "./house.ts";
import { importCycles } from "./import_cycles.ts";
import { foldersOf, lineAt, type SourceFile, sourceFiles } from "./source_tree.ts";

const FILES = sourceFiles(new URL("../../cli/", import.meta.url).pathname);

const PROGRAMS: Readonly<Record<string, Program>> = {
  "the command line": {
    files: FILES,
    packages: ["commander", "string-width", "werift"],
    outside: /^(\.\.\/)+client\/mod\.ts$/,
  },
};

interface Program {
  readonly files: readonly SourceFile[];
  readonly packages: readonly string[];
  /** Files outside of its folder that it may import. */
  readonly outside: RegExp;
}

for (const [name, { files, packages, outside }] of Object.entries(PROGRAMS)) {
  Deno.test(`${name} imports its own files, its packages and what it may of others`, () => {
    assert.ok(files.length > 15);
    const paths = files.map(({ path }) => path);
    const isAllowed = (target: string, isOurs: boolean) =>
      isOurs
        ? paths.includes(target) || outside.test(target)
        : target.startsWith("node:") || packages.includes(target);
    const strangers = files.flatMap(({ path, imports }) =>
      imports.filter(({ target, isOurs }) => !isAllowed(target, isOurs)).map(({ target }) => [path, target])
    );
    assert.deepEqual(strangers, []);
    assert.deepEqual(importCycles(files), []);
  });

  Deno.test(`every file of ${name} is imported, has a telling name and says what it owns`, () => {
    const imported = new Set(files.flatMap(({ imports }) => imports.map(({ target }) => target)));
    const faults = files.flatMap(({ path, text, code }) => [
      ...(imported.has(path) || path === "main.ts" ? [] : [`${path}: nobody imports this`]),
      ...(EMPTY_NAMES.test(path) ? [`${path}: the name says nothing`] : []),
      ...(FIRST_LINE.test(text.split("\n")[0]!) ? [] : [`${path}: the first line is no sentence`]),
      ...FORBIDDEN.filter(({ rooms }) => rooms === undefined).flatMap(({ what, pattern }) => {
        const match = pattern.exec(code);
        return match ? [`${path}:${lineAt(text, match.index)}: ${what}`] : [];
      }),
    ]);
    assert.deepEqual(faults, []);
    assert.deepEqual(namesDeclaredTwice(files), []);
    const folders = foldersOf(files).filter(({ files, folders }) => files + folders < 2 || files > 25);
    assert.deepEqual(folders, []);
  });
}

Deno.test("packages that only some commands need are loaded when such a command runs", () => {
  const isLazy = (file: SourceFile, name: string) =>
    !new RegExp(`^import (?!type).*"${name}"`, "m").test(file.code);
  const eager = FILES.filter((file) => !file.path.startsWith("commands/live/"))
    .filter((file) => !isLazy(file, "werift") || !isLazy(file, "string-width"));
  assert.deepEqual(eager.map(({ path }) => path), []);
});
