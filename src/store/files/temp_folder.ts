/** The folder for files that are needed only during one request; those of a process that was killed are
 * removed.
 */

import { join } from "node:path";
import type { Log } from "../../base/log.ts";

/**
 * Names of files that the service makes here: pipes, clips, films of trials, sockets, and files that are
 * fetched.
 */
const MADE = /^(?:(?:media|clip|trial)-[0-9a-f]{24}\.(?:fifo|mp4)|m-[0-9a-f]{16}\.s|\.part__[0-9a-f]{32})$/;

/**
 * Removes what the service made in `folder`, and says what else is there: a folder of somebody's own may have
 * been named as the data directory. Call it only as the owner of the data directory, before the first file is
 * put there.
 */
export function emptyTempFolder(folder: string, log: Log): void {
  let foreign = 0;
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (!isDirectory && MADE.test(name)) Deno.removeSync(join(folder, name));
    else foreign++;
  }
  if (foreign > 0) {
    log.warn("the temporary folder has files that the service did not make: they stay", {
      folder,
      files: foreign,
    });
  }
}

/** Makes a new file that only this user may open; whoever made it removes it. */
export async function writeTempFile(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  await Deno.writeFile(path, bytes, { createNew: true, mode: 0o600 });
}
