/** The documentation is true about itself: citations and links resolve, generated sections equal a fresh
 * build.
 */

import assert from "node:assert/strict";
import { dirname, join, relative } from "node:path";
import { builtPages } from "../../scripts/build_docs.ts";
import { GENERATED } from "../../scripts/docs/tables.ts";
import { type Page, readPage, slugOf } from "./markdown_page.ts";

const ROOT = join(import.meta.dirname!, "../..");
const PAGE_BYTES_MAX = 40_000;
const pages = new Map<string, Page>();

Deno.test("the anchor of a heading is the one that GitHub gives it", () => {
  const examples: [string, string][] = [
    ["CORS", "cors"],
    ["Uploads and files", "uploads-and-files"],
    ["`trigger.*`", "trigger"],
    ["A [link](page.md) and *more*: 2,3", "a-link-and-more-23"],
    ["run_created", "run_created"],
  ];
  for (const [heading, slug] of examples) assert.equal(slugOf(heading), slug);
  const { anchors, links } = readPage("# A\n## A\n```sh\n# B\n[x](y)\n```\n`[x](z)` [w](v.md#a)\n");
  assert.deepEqual([...anchors], ["a", "a-1"]);
  assert.deepEqual(links.map(({ target }) => target), ["v.md#a"]);
});

Deno.test("every page and anchor of docs that a file cites is there", () => {
  const faults: string[] = [];
  const folders = [
    ...["src", "test", "scripts", "lab", "bench", "assembly", "cli", "client", "console", "deploy"],
    ...["Dockerfile", "docs", "README.md"],
  ];
  for (const path of folders.flatMap((name) => [...filesUnder(join(ROOT, name))])) {
    Deno.readTextFileSync(path).split("\n").forEach((line, index) => {
      for (const [cited, page, anchor] of line.matchAll(/\bdocs\/((?:[\w-]+\/)*[\w-]+\.md)(?:#([\w-]+))?/g)) {
        if (!resolves(join(ROOT, "docs", page!), anchor)) {
          faults.push(`${relative(ROOT, path)}:${index + 1}: ${cited}`);
        }
      }
    });
  }
  assert.deepEqual(faults, []);
});

Deno.test("every relative link of README.md and of docs leads to a file, and its anchor to a heading", () => {
  const faults: string[] = [];
  for (const path of [join(ROOT, "README.md"), ...filesUnder(join(ROOT, "docs"))]) {
    if (!path.endsWith(".md")) continue;
    for (const { line, target } of pageAt(path)!.links) {
      if (/^[a-z]+:/i.test(target)) continue;
      const [file, anchor] = target.split("#") as [string, string?];
      const to = file === "" ? path : join(dirname(path), decodeURIComponent(file));
      if (!resolves(to, anchor)) faults.push(`${relative(ROOT, path)}:${line}: ${target}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("a page is short enough to be read, unless it is a reference", () => {
  const long = [...filesUnder(join(ROOT, "docs"))].map((path) => relative(ROOT, path))
    .filter((path) => path.endsWith(".md") && !path.startsWith("docs/reference/"))
    .filter((path) => Deno.statSync(join(ROOT, path)).size > PAGE_BYTES_MAX);
  assert.deepEqual(long, []);
});

Deno.test("the index names every page", () => {
  const index = pageAt(join(ROOT, "docs/README.md"))!.links.map(({ target }) => join("docs", target));
  const pages = [...filesUnder(join(ROOT, "docs"))].map((path) => relative(ROOT, path));
  const missing = pages.filter((path) => path.endsWith(".md") && !index.includes(path));
  assert.deepEqual(missing, ["docs/README.md"]);
});

Deno.test("the generated sections of docs equal a fresh build", () => {
  const built = builtPages(new URL("../../docs/", import.meta.url));
  const stale = built.filter(({ text, built }) => text !== built).map(({ name }) => name);
  assert.deepEqual(stale, [], "run `./scripts/deno run -A scripts/build_docs.ts`");
  const text = built.map((page) => page.built).join();
  const unused = Object.keys(GENERATED).filter((name) => !text.includes(`<!-- generated: ${name} -->`));
  assert.deepEqual(unused, [], "no page has these sections");
});

/** Whether `path` is there, and has the heading where an anchor names one. */
function resolves(path: string, anchor: string | undefined): boolean {
  if (anchor === undefined || !path.endsWith(".md")) return exists(path);
  return pageAt(path)?.anchors.has(anchor) ?? false;
}

function pageAt(path: string): Page | undefined {
  let page = pages.get(path);
  if (page === undefined && exists(path)) pages.set(path, page = readPage(Deno.readTextFileSync(path)));
  return page;
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

/** The text files of a folder, or the file itself. */
function* filesUnder(path: string): Iterable<string> {
  if (Deno.statSync(path).isFile) return yield path;
  for (const entry of Deno.readDirSync(path)) {
    if (entry.isDirectory) yield* filesUnder(join(path, entry.name));
    else if (/(^[^.]*|\.(md|ts|sh|json|yaml|conf|service))$/.test(entry.name)) yield join(path, entry.name);
  }
}
