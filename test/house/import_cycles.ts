/** Finds imports that lead back to where they started. */

import type { SourceFile } from "./source_tree.ts";

/**
 * Every cycle once, as "a.ts > b.ts > a.ts". A Worker that is started by its URL is no import: it has a
 * module graph of its own.
 */
export function importCycles(files: readonly SourceFile[]): string[] {
  const imports = new Map(files.map((file) => [file.path, ours(file)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  for (const file of files) visit(file.path, []);
  return cycles;

  function visit(path: string, trail: readonly string[]): void {
    const start = trail.indexOf(path);
    if (start >= 0) cycles.push([...trail.slice(start), path].join(" > "));
    if (start >= 0 || done.has(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  }
}

function ours(file: SourceFile): string[] {
  return file.imports.filter(({ isOurs, isStarted }) => isOurs && !isStarted).map(({ target }) => target);
}
