/** The command line stands on the client: it imports that, its own files and its packages, and nothing of the server. */

import assert from "node:assert/strict";
import { namesDeclaredTwice } from "./declared_names.ts";
import { EMPTY_NAMES, FIRST_LINE, FORBIDDEN } from "./house.ts";
import { importCycles } from "./import_cycles.ts";
import { foldersOf, lineAt, type SourceFile, sourceFiles } from "./source_tree.ts";

const FILES = sourceFiles(new URL("../../cli/", import.meta.url).pathname);
const PACKAGES = ["commander", "string-width", "werift"];
/** Files outside of cli/ that it may import. */
const CLIENT = /^(\.\.\/)+client\/mod\.ts$/;

Deno.test("the command line imports its own files, the client and its packages alone", () => {
  assert.ok(FILES.length > 20);
  const paths = FILES.map(({ path }) => path);
  const isAllowed = (target: string, isOurs: boolean) =>
    isOurs
      ? paths.includes(target) || CLIENT.test(target)
      : target.startsWith("node:") || PACKAGES.includes(target);
  const strangers = FILES.flatMap(({ path, imports }) =>
    imports.filter(({ target, isOurs }) => !isAllowed(target, isOurs)).map(({ target }) => [path, target])
  );
  assert.deepEqual(strangers, []);
  assert.deepEqual(importCycles(FILES), []);
});

Deno.test("packages that only some commands need are loaded when such a command runs", () => {
  const isLazy = (file: SourceFile, name: string) =>
    !new RegExp(`^import (?!type).*"${name}"`, "m").test(file.code);
  const eager = FILES.filter((file) => !file.path.startsWith("commands/live/"))
    .filter((file) => !isLazy(file, "werift") || !isLazy(file, "string-width"));
  assert.deepEqual(eager.map(({ path }) => path), []);
});

Deno.test("every file of the command line is imported, has a telling name and says what it owns", () => {
  const imported = new Set(FILES.flatMap(({ imports }) => imports.map(({ target }) => target)));
  const faults = FILES.flatMap(({ path, text, code }) => [
    ...(imported.has(path) || path === "main.ts" ? [] : [`${path}: nobody imports this`]),
    ...(EMPTY_NAMES.test(path) ? [`${path}: the name says nothing`] : []),
    ...(FIRST_LINE.test(text.split("\n")[0]!) ? [] : [`${path}: the first line is no sentence`]),
    ...FORBIDDEN.filter(({ rooms }) => rooms === undefined).flatMap(({ what, pattern }) => {
      const match = pattern.exec(code);
      return match ? [`${path}:${lineAt(text, match.index)}: ${what}`] : [];
    }),
  ]);
  assert.deepEqual(faults, []);
  assert.deepEqual(namesDeclaredTwice(FILES), []);
  const folders = foldersOf(FILES).filter(({ files, folders }) => files + folders < 2 || files > 15);
  assert.deepEqual(folders, []);
});
