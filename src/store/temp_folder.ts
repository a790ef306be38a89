/** The folder for files that are needed only during one request; those of a process that was killed are removed. */

import { join } from "node:path";

/**
 * Removes everything in `folder`. Call it only as the owner of the data directory, before the first file is put there.
 */
export function emptyTempFolder(folder: string): void {
  for (const { name } of Deno.readDirSync(folder)) Deno.removeSync(join(folder, name), { recursive: true });
}

/** Makes a new file that only this user may open; whoever made it removes it. */
export async function writeTempFile(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  await Deno.writeFile(path, bytes, { createNew: true, mode: 0o600 });
}
