/** What checks and backups do with a folder: list all files below it, and sync its names to the disk. */

import { join } from "node:path";

/** Paths of what is no folder; none where `folder` is not there. */
export function* filesBelow(root: string, folder: string): Iterable<string> {
  const names: Deno.DirEntry[] = [];
  try {
    names.push(...Deno.readDirSync(join(root, folder)));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  names.sort((left, right) => left.name < right.name ? -1 : 1);
  for (const { name, isDirectory } of names) {
    const path = folder === "" ? name : `${folder}/${name}`;
    if (isDirectory) yield* filesBelow(root, path);
    else yield path;
  }
}

/** Makes new names in the folder survive a power failure. */
export function syncFolder(path: string): void {
  using folder = Deno.openSync(path, { read: true });
  folder.syncSync();
}
