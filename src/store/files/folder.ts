/** What checks and backups do with a folder: list all files below it, and sync its names to the disk. */

import { join } from "node:path";

/** The paths of all files below a folder; none where `folder` is not there. Links are not followed. */
export function filesBelow(root: string, folder: string): Iterable<string> {
  return below(root, folder, null);
}

/**
 * Like `filesBelow`, with the files below links to folders: the service writes through these, too. A link to
 * a folder around it counts as no folder.
 */
export function filesBelowLinks(root: string, folder: string): Iterable<string> {
  return below(root, folder, []);
}

/**
 * The paths of all files below a folder. `around` are the folders around it, as the disk numbers them; null
 * where no link is followed.
 */
function* below(root: string, folder: string, around: readonly string[] | null): Iterable<string> {
  const names: Deno.DirEntry[] = [];
  try {
    names.push(...Deno.readDirSync(join(root, folder)));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  names.sort((left, right) => left.name < right.name ? -1 : 1);
  const inner = around && [...around, folderNumber(join(root, folder)) ?? ""];
  for (const { name, isDirectory, isSymlink } of names) {
    const path = folder === "" ? name : `${folder}/${name}`;
    const linked = inner && isSymlink ? folderNumber(join(root, path)) : null;
    if (isDirectory || linked !== null && !inner!.includes(linked)) yield* below(root, path, inner);
    else yield path;
  }
}

/** Whether the path is a folder, or a link to one; false for a link that leads nowhere. */
export function isFolder(path: string): boolean {
  return folderNumber(path) !== null;
}

/** A folder's number on the disk; null for what is no folder, also for a link that leads nowhere. */
function folderNumber(path: string): string | null {
  try {
    const { dev, ino, isDirectory } = Deno.statSync(path);
    return isDirectory ? `${dev}:${ino}` : null;
  } catch {
    return null;
  }
}

/** Makes new names in the folder survive a power failure. */
export function syncFolder(path: string): void {
  using folder = Deno.openSync(path, { read: true });
  folder.syncSync();
}

/** The folder in which each source has a folder, relative to the data directory. */
export const RECORDINGS_FOLDER = "recordings";

/**
 * The real paths of the folders of a data directory that are links, such as to a larger disk: those right in
 * it, and those of single sources in its recordings. Deno asks for the right to these, too.
 */
export function linkedFolders(dataDir: string): string[] {
  return ["", RECORDINGS_FOLDER].flatMap((folder) => linksIn(join(dataDir, folder)));
}

function linksIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].filter(({ isSymlink }) => isSymlink)
      .map(({ name }) => join(folder, name)).filter(isFolder)
      .map((path) => Deno.realPathSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
