/** The house keeps its own rules: each fault is named as "file:line: what". */

import assert from "node:assert/strict";
import { namesDeclaredTwice } from "./declared_names.ts";
import { EMPTY_NAMES, ENTRIES, FIRST_LINE, FORBIDDEN, PACKAGES, ROOMS, TOUCHES } from "./house.ts";
import { folderCircles } from "./folder_circles.ts";
import { importCycles } from "./import_cycles.ts";
import { foldersOf, lineAt, roomOf, type SourceFile, sourceFiles } from "./source_tree.ts";
import { TABLES } from "./table_rows.ts";

const FILES = sourceFiles();

Deno.test("every room imports only rooms below it and packages that are its own", () => {
  faultless((file, fault) => {
    const allowed = ROOMS[file.room];
    if (!allowed) return fault(0, `no room is called ${file.room}`);
    for (const { target, isOurs, index } of file.imports) {
      if (target.startsWith("../weights/") && ["media", "sidecar"].includes(file.room)) continue;
      const room = roomOf(target);
      if (isOurs && room !== file.room && !allowed.includes(room)) {
        fault(index, `${file.room} imports ${target}`);
      }
      if (isOurs || target.startsWith("node:")) continue;
      const name = target.split("/").slice(0, target.startsWith("@") ? 2 : 1).join("/");
      if (!PACKAGES[name]?.includes(file.room)) fault(index, `${file.room} imports the package ${name}`);
    }
  });
});

Deno.test("every room touches only what is its own", () => {
  const rules = [
    ...TOUCHES.map((rule) => ({
      ...rule,
      binds: ({ room, path }: SourceFile) => !rule.rooms.includes(room) && !rule.files?.includes(path),
    })),
    ...FORBIDDEN.map((rule) => ({
      ...rule,
      binds: ({ room }: SourceFile) => rule.rooms?.includes(room) ?? true,
    })),
  ];
  faultless((file, fault) => {
    for (const { pattern, what } of rules.filter((rule) => rule.binds(file))) {
      const match = pattern.exec(file.code);
      if (match) fault(match.index, `${file.room} ${what}: ${match[0].trim()}`);
    }
  });
});

Deno.test("no two files declare the same type or export the same name", () => {
  assert.deepEqual(namesDeclaredTwice(FILES), []);
});

Deno.test("no folder has more than 25 files, or fewer than 2 files and folders", () => {
  const faults = foldersOf(FILES).filter(({ files, folders }) => files + folders < 2 || files > 25);
  assert.deepEqual(faults, []);
});

Deno.test("the folders of a room do not lead back to each other", () => {
  assert.deepEqual(folderCircles(FILES), []);
});

Deno.test("no imports go round in a circle", () => {
  assert.deepEqual(importCycles(FILES), []);
});

Deno.test("every file is imported or an entry, has a telling name and says in its first line what it owns", () => {
  const imported = new Set(FILES.flatMap((file) => file.imports.map(({ target }) => target)));
  faultless((file, fault) => {
    const isReached = imported.has(file.path) || ENTRIES.some((entry) => entry.test(file.path));
    if (!isReached) fault(0, "nobody imports this");
    if (EMPTY_NAMES.test(file.path)) fault(0, "the name says nothing");
    const firstLine = file.text.split("\n")[0]!;
    if (!FIRST_LINE.test(firstLine)) fault(0, `the first line is no sentence: ${firstLine}`);
  });
});

for (const [table, { rows, notYet = [], isUsed }] of Object.entries(TABLES)) {
  Deno.test(`every row of the table of ${table} is used, or marked as without effect`, () => {
    const unused = rows.filter((row) => !isUsed(row, FILES));
    assert.deepEqual(unused.filter((row) => !notYet.includes(row)), [], "nothing uses these rows");
    assert.deepEqual(notYet.filter((row) => !unused.includes(row)), [], "used, so the mark is stale");
  });
}

/** Runs `check` over every file, and fails with all that it found. */
function faultless(check: (file: SourceFile, fault: (index: number, what: string) => void) => void): void {
  const faults: string[] = [];
  for (const file of FILES) {
    check(file, (index, what) => faults.push(`src/${file.path}:${lineAt(file.text, index)}: ${what}`));
  }
  assert.equal(faults.length, 0, `\n${faults.join("\n")}\n`);
}
