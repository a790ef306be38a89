/** Folders in which the service writes and deletes: nobody else may be able to put something in their place.
 */

import { join } from "node:path";

/** The bits of a mode that are rights of the group and of everybody. */
const OTHERS = 0o077;
const WRITTEN_BY_EVERYBODY = 0o002;
/** The bit of folders that all users share, such as /tmp. */
const STICKY = 0o1000;
const ROOT = 0;

/** What is wrong with a folder, in words that complete "… must be"; with the way out. */
export class FolderFault extends Error {
  override readonly name = "FolderFault";
}

/**
 * Makes `path` with mode 0700, or checks that the folder there is ours alone: a folder that somebody else
 * made, or may write into, could be replaced under the service. `setting` names another folder. Returns its
 * real path. Errors: {@link FolderFault}, and those of the operating system.
 */
export function claimFolder(path: string, setting: string): string {
  const elsewhere = `set ${setting} to`;
  const found = madeOrFound(path, `${elsewhere} the folder that it leads to`);
  if (!found.isDirectory) {
    throw new FolderFault(`a folder; move the file away, or ${elsewhere} another folder`);
  }
  if (!isOurs(found)) throw ofAnother(found, `${elsewhere} a folder of your own`);
  if (hasRights(found, OTHERS)) throw tooOpen(found, `${elsewhere} another folder`);
  return Deno.realPathSync(path);
}

/**
 * Makes the data directory, or checks the one there, which may be a link. It may belong to root and be open
 * to a group, as volumes of containers are: what is made in it has mode 0700. Returns its real path. Errors:
 * as above.
 */
export function claimDataDir(path: string): string {
  Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = Deno.statSync(path);
  if (!isOurs(found) && found.uid !== ROOT) {
    throw ofAnother(found, "set SERVICE_DATA_DIR to a folder of your own");
  }
  if (hasRights(found, WRITTEN_BY_EVERYBODY)) {
    throw tooOpen(found, "set SERVICE_DATA_DIR to another folder");
  }
  return Deno.realPathSync(path);
}

/**
 * Makes the folder for temporary files, or takes the one there and closes it to others. The service empties
 * it. Errors: as above.
 */
export function claimTempFolder(dataDir: string): string {
  const path = join(dataDir, "tmp");
  const elsewhere = "set SERVICE_DATA_DIR to another folder";
  const found = madeOrFound(path, elsewhere);
  if (!found.isDirectory) throw new FolderFault(`a folder; move the file away, or ${elsewhere}`);
  if (!isOurs(found)) throw ofAnother(found, elsewhere);
  if (hasRights(found, OTHERS)) Deno.chmodSync(path, 0o700);
  return path;
}

export function isOurs({ uid }: Deno.FileInfo): boolean {
  return Deno.uid() === null || uid === Deno.uid();
}

/** What is at a path, for a link the link itself; null where nothing is. */
export function lookAt(path: string): Deno.FileInfo | null {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function madeOrFound(path: string, elsewhere: string): Deno.FileInfo {
  const found = lookAt(path);
  if (found?.isSymlink) {
    throw new FolderFault(`a folder and not a link; remove the link, or ${elsewhere}`);
  }
  if (found === null) Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  return found ?? Deno.lstatSync(path);
}

function hasRights({ mode }: Deno.FileInfo, rights: number): boolean {
  return ((mode ?? 0) & rights) !== 0;
}

function ofAnother({ uid }: Deno.FileInfo, elsewhere: string): FolderFault {
  return new FolderFault(
    `a folder of the user who runs the service (${Deno.uid()}), not of user ${uid}; ` +
      `run chown ${Deno.uid()} on it, or ${elsewhere}`,
  );
}

function tooOpen(found: Deno.FileInfo, elsewhere: string): FolderFault {
  const shown = (found.mode! & 0o7777).toString(8).padStart(4, "0");
  const way = hasRights(found, STICKY) ? elsewhere : `run chmod 700 on it, or ${elsewhere}`;
  return new FolderFault(`closed to other users, its mode is ${shown}; ${way}`);
}
