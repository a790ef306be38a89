/** The tools of the house test find what they are there to find. */

import assert from "node:assert/strict";
import { FORBIDDEN, TOUCHES } from "./house.ts";
import { namesDeclaredTwice } from "./declared_names.ts";
import { folderCircles } from "./folder_circles.ts";
import { importCycles } from "./import_cycles.ts";
import { lineAt, sourceFile } from "./source_tree.ts";

Deno.test("imports are found in every form, and not in comments", () => {
  const file = sourceFile(
    "flow/runs.ts",
    [
      "/** Says nothing. */",
      'import { a } from "../model/run.ts";',
      'import type { B } from "./caller.ts";',
      '// import { c } from "../http/app.ts";',
      '/** import { d } from "../http/app.ts"; */',
      'const worker = new URL("./run_worker.ts", import.meta.url); // see "https://example.org"',
      'const { z } = await import("zod");',
    ].join("\n"),
  );
  assert.deepEqual(file.imports.map(({ target, isOurs }) => [target, isOurs]), [
    ["model/run.ts", true],
    ["flow/caller.ts", true],
    ["flow/run_worker.ts", true],
    ["zod", false],
  ]);
  assert.deepEqual(file.imports.map(({ index }) => lineAt(file.text, index)), [2, 3, 6, 7]);
});

Deno.test("a circle of imports is found, a Worker does not close one", () => {
  const file = (path: string, ...lines: string[]) => sourceFile(path, lines.join("\n"));
  const a = file("flow/a.ts", 'import "./b.ts";');
  assert.deepEqual(importCycles([a, file("flow/b.ts", 'import "./a.ts";')]), [
    "flow/a.ts > flow/b.ts > flow/a.ts",
  ]);
  assert.deepEqual(importCycles([a, file("flow/b.ts", 'new URL("./a.ts", import.meta.url);')]), []);
});

Deno.test("folders of a room that lead back to each other are found, over others too, and rooms may", () => {
  const file = (path: string, ...lines: string[]) => sourceFile(path, lines.join("\n"));
  const down = [file("flow/a/x.ts", 'import "../b/y.ts";'), file("flow/b/y.ts", 'import "../c/z.ts";')];
  assert.deepEqual(folderCircles([...down, file("flow/c/z.ts", 'import "../../base/x.ts";')]), []);
  assert.deepEqual(folderCircles([...down, file("flow/c/z.ts", 'import "../a/w.ts";')]), [
    ["flow/a", "flow/b", "flow/c"],
  ]);
  assert.deepEqual(
    folderCircles([file("flow/x.ts", 'import "./a/y.ts";'), file("flow/a/z.ts", 'import "../w.ts";')]),
    [["flow", "flow/a"]],
  );
  assert.deepEqual(
    folderCircles([...down, file("flow/c/z.ts", 'new URL("../a/w.ts", import.meta.url);')]),
    [],
  );
});

Deno.test("a name that two files declare is found, one that a file keeps to itself is not", () => {
  const twice = (one: string, other: string) =>
    namesDeclaredTwice([sourceFile("flow/a.ts", one), sourceFile("flow/b.ts", other)]);
  const both = ["flow/a.ts", "flow/b.ts"];
  assert.deepEqual(twice("interface X {}", "export type X = 1;"), [["X", both]]);
  assert.deepEqual(twice("class X {}", "export const X = 1;"), [["X", both]]);
  assert.deepEqual(twice("export function x() {}", "export async function x() {}"), [["x", both]]);
  assert.deepEqual(twice("const X = 1;", "export const X = 1;"), []);
  assert.deepEqual(twice("function x() {}", "function x() {}"), []);
  assert.deepEqual(twice("export const x = 1;\n  type X = 1;", "type X = 1;"), []);
  assert.deepEqual(twice("/** type X */ export const y = 1;", "type X = 1;"), []);
});

Deno.test("what a room must not touch is recognised, and what only looks like it is not", () => {
  const rules = [...TOUCHES, ...FORBIDDEN];
  const check = (code: string, ...expected: string[]) =>
    assert.deepEqual(
      rules.filter(({ pattern }) => pattern.test(code)).map(({ what }) => what),
      expected,
      code,
    );

  check('new Deno.Command("x")', "starts a program", "touches Deno, although model is pure");
  check("fetch(url)", "calls out");
  check("app.fetch(request)");
  check("fetch(request: Request): Response;");
  check("Date.now()", "reads a clock");
  check("new Date(ms)");
  check("setTimeout(f, 10)", "sets a timer");
  check("await using stack = 1", "awaits, although model is pure");
  check("crypto.randomUUID()", "draws a random number");
  check(
    "Deno.openSync(path, { read: true, append: true })",
    "writes to disk",
    "touches Deno, although model is pure",
  );
  check("Deno.openSync(path, { read: true })", "touches Deno, although model is pure");
  check('console.log("x")', "prints");
  check("let count = 0;", "keeps state in a module");
  check("  let count = 0;");
  for (const what of ["*", "* as x", "{ x }", "type { X }", "type *", "{\n  x,\n}"]) {
    check(`export ${what} from "../support/x.ts";`, "exports what another file has");
  }
});
