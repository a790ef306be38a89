/** The folder of uploads at start: made or checked, and filled with the uploads of its former place. */

import { join } from "node:path";

/** Owner and group bits that let anybody else look into a folder. */
const OTHERS = 0o077;

/** What is wrong with the upload root, in words that complete "… must be"; with the way out. */
export class UploadRootFault extends Error {
  override readonly name = "UploadRootFault";
}

/**
 * Makes `path` with mode 0700, or checks that the folder there is ours alone: a folder that somebody else made, or may
 * write into, could be replaced under the service. Returns its real path. Errors: {@link UploadRootFault}, and those of the
 * operating system.
 */
export function claimUploadRoot(path: string): string {
  const found = infoOf(path);
  if (found === null) {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
    return Deno.realPathSync(path);
  }
  if (found.isSymlink) {
    throw new UploadRootFault(
      "a folder and not a link; remove the link, or set SERVICE_UPLOAD_ROOT to the folder that it leads to",
    );
  }
  if (!found.isDirectory) {
    throw new UploadRootFault("a folder; move the file away, or set SERVICE_UPLOAD_ROOT to another folder");
  }
  if (!isOurs(found)) {
    throw new UploadRootFault(
      `a folder of the user who runs the service (${Deno.uid()}), not of user ${found.uid}; ` +
        `run chown ${Deno.uid()} on it, or set SERVICE_UPLOAD_ROOT to a folder of your own`,
    );
  }
  if (((found.mode ?? 0) & OTHERS) !== 0) {
    const mode = (found.mode! & 0o777).toString(8).padStart(4, "0");
    throw new UploadRootFault(
      `closed to other users, its mode is ${mode}; run chmod 700 on it, or set SERVICE_UPLOAD_ROOT to another folder`,
    );
  }
  return Deno.realPathSync(path);
}

/**
 * Moves the uploads in `former`, where earlier versions kept them, into the empty folder `uploadRoot`, and returns how
 * many there were. A folder that is a link or another user's is left alone, and so is every file in it that is not a
 * regular file of ours with a single name.
 */
export function adoptFormerUploads(former: string, uploadRoot: string): number {
  const folder = infoOf(former);
  if (folder === null || !folder.isDirectory || !isOurs(folder)) return 0;
  if (
    Deno.realPathSync(former) === uploadRoot || !Deno.readDirSync(uploadRoot)[Symbol.iterator]().next().done
  ) {
    return 0;
  }
  let moved = 0;
  for (const { name } of Deno.readDirSync(former)) {
    const from = join(former, name);
    const info = infoOf(from);
    if (info === null || !info.isFile || !isOurs(info) || info.nlink !== 1) continue;
    if (name.startsWith(".")) continue; // not complete: its writer removes it
    move(from, uploadRoot, name);
    moved += 1;
  }
  if (Deno.readDirSync(former)[Symbol.iterator]().next().done) Deno.removeSync(former);
  return moved;
}

/** To another file system it is copied under a hidden name first, so that its own name always shows the whole file. */
function move(from: string, folder: string, name: string): void {
  const to = join(folder, name);
  try {
    Deno.renameSync(from, to);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EXDEV") throw error;
    const hidden = Deno.makeTempFileSync({ dir: folder, prefix: ".part__" });
    Deno.copyFileSync(from, hidden);
    Deno.renameSync(hidden, to);
    Deno.removeSync(from);
  }
  Deno.chmodSync(to, 0o600);
}

function isOurs({ uid }: Deno.FileInfo): boolean {
  return Deno.uid() === null || uid === Deno.uid();
}

/** Of the link itself; null where nothing is. */
function infoOf(path: string): Deno.FileInfo | null {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
