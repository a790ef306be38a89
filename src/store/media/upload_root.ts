/** The folder of uploads at start: filled with the uploads of its former place. */

import { join } from "node:path";
import { isOurs, lookAt } from "../files/own_folder.ts";

/**
 * Moves the uploads in `former`, where earlier versions kept them, into the empty folder `uploadRoot`, and
 * returns how many there were. A folder that is a link or another user's is left alone, and so is every file
 * in it that is not a regular file of ours with a single name.
 */
export function adoptFormerUploads(former: string, uploadRoot: string): number {
  const folder = lookAt(former);
  if (folder === null || !folder.isDirectory || !isOurs(folder)) return 0;
  if (
    Deno.realPathSync(former) === uploadRoot || !Deno.readDirSync(uploadRoot)[Symbol.iterator]().next().done
  ) {
    return 0;
  }
  let moved = 0;
  for (const { name } of Deno.readDirSync(former)) {
    const from = join(former, name);
    const info = lookAt(from);
    if (info === null || !info.isFile || !isOurs(info) || info.nlink !== 1) continue;
    if (name.startsWith(".")) continue; // not complete: its writer removes it
    move(from, uploadRoot, name);
    moved += 1;
  }
  if (Deno.readDirSync(former)[Symbol.iterator]().next().done) Deno.removeSync(former);
  return moved;
}

/**
 * Moves a file into the folder. To another file system it is copied under a hidden name first, so that its
 * own name always shows the whole file.
 */
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
