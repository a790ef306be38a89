/** The folder for files that are needed only during one request; those of a process that was killed are removed. */

import { join } from "node:path";

/**
 * Removes everything in `folder`. Call it only as the owner of the data directory, before the first file is put there.
 */
export function emptyTempFolder(folder: string): void {
  for (const { name } of Deno.readDirSync(folder)) Deno.removeSync(join(folder, name), { recursive: true });
}
