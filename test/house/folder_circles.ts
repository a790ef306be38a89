/** Finds folders of a room that lead back to themselves: each imports from the next one, and the last one
 * from the first.
 */

import { dirname } from "node:path";
import type { SourceFile } from "./source_tree.ts";

/**
 * Every group of folders that reach each other by imports, each sorted; a Worker that is started by its URL
 * is no import.
 */
export function folderCircles(files: readonly SourceFile[]): string[][] {
  const imports = new Map<string, Set<string>>();
  for (const { path, room, imports: all } of files) {
    const folder = dirname(path);
    const targets = imports.get(folder) ?? new Set();
    imports.set(folder, targets);
    for (const { target, isOurs, isStarted } of all) {
      const other = dirname(target);
      if (isOurs && !isStarted && other !== folder && isWithin(other, room)) targets.add(other);
    }
  }
  const reached = new Map([...imports.keys()].map((folder) => [folder, reachedFrom(folder, imports)]));
  const circles = new Set<string>();
  for (const [folder, others] of reached) {
    const circle = [...others].filter((other) => reached.get(other)?.has(folder));
    if (circle.length > 0) circles.add([...new Set([folder, ...circle])].sort().join(" "));
  }
  return [...circles].map((circle) => circle.split(" "));
}

function isWithin(folder: string, room: string): boolean {
  return folder === room || folder.startsWith(`${room}/`);
}

/** The folders to which imports lead in any number of steps. */
function reachedFrom(start: string, imports: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const reached = new Set<string>();
  const open = [start];
  while (open.length > 0) {
    for (const next of imports.get(open.pop()!) ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return reached;
}
