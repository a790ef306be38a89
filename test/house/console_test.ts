/** The console stands on the client: it imports that, its own files and its packages, and nothing of the
 * server.
 */

import assert from "node:assert/strict";
import { namesDeclaredTwice } from "./declared_names.ts";
import { EMPTY_NAMES, FIRST_LINE } from "./house.ts";
import { importCycles } from "./import_cycles.ts";
import { foldersOf, sourceFiles } from "./source_tree.ts";

const FILES = sourceFiles(new URL("../../console/", import.meta.url).pathname);
const PACKAGES = ["preact", "preact/hooks", "@preact/signals", "diff"];
/** Files outside of console/ that it may import. */
const CLIENT = /^(\.\.\/)+client\/mod\.ts$/;
/** Parts from the bottom up: each imports those before it. `shell` is the frame, which knows the pages. */
const LAYERS = ["text", "service", "ui", "timeline", "shell", "pages"];
/** What pages use of the frame around them. */
const FRAME_OF_PAGES = ["shell/place.ts", "shell/keys.tsx"];

Deno.test("the console imports its own files, the client and its packages alone", () => {
  assert.ok(FILES.length > 20);
  const paths = FILES.map(({ path }) => path);
  const isAllowed = (target: string, isOurs: boolean) =>
    isOurs
      ? paths.includes(target) || CLIENT.test(target) || target.endsWith(".css")
      : PACKAGES.includes(target);
  const strangers = FILES.flatMap(({ path, imports }) =>
    imports.filter(({ target, isOurs }) => !isAllowed(target, isOurs)).map(({ target }) => [path, target])
  );
  assert.deepEqual(strangers, []);
  assert.deepEqual(importCycles(FILES), []);
});

Deno.test("a part of the console imports only parts below it", () => {
  const levelOf = (path: string) => LAYERS.indexOf(path.split("/")[0]!);
  const upward = FILES.filter(({ path }) => path.includes("/") && path !== "shell/pages.ts").flatMap((
    { path, imports },
  ) =>
    imports.filter(({ target, isOurs }) =>
      isOurs && levelOf(target) > levelOf(path) && !FRAME_OF_PAGES.includes(target)
    ).map(({ target }) => [path, target])
  );
  assert.deepEqual(upward, []);
});

Deno.test("every file of the console is imported, has a telling name and says what it owns", () => {
  const imported = new Set(FILES.flatMap(({ imports }) => imports.map(({ target }) => target)));
  const faults = FILES.flatMap(({ path, text, code }) => [
    ...(imported.has(path) || path === "main.tsx" ? [] : [`${path}: nobody imports this`]),
    ...(EMPTY_NAMES.test(path) ? [`${path}: the name says nothing`] : []),
    ...(FIRST_LINE.test(text.split("\n")[0]!) ? [] : [`${path}: the first line is no sentence`]),
    ...(/dangerouslySetInnerHTML|innerHTML|\beval\(|localStorage/.test(code) ? [`${path}: unsafe`] : []),
  ]);
  assert.deepEqual(faults, []);
  assert.deepEqual(namesDeclaredTwice(FILES), []);
  const folders = foldersOf(FILES).filter(({ files, folders }) => files + folders < 2 || files > 25);
  assert.deepEqual(folders.filter(({ folder }) => !folder.startsWith("pages/")), []);
});
