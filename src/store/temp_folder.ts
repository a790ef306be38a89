/** The folder for files that live as long as one request: what a killed process left in it is of no use to anyone. */

import { join } from "node:path";

/** Removes everything in `folder`. Call it only as the owner of the data directory, before anything is put there. */
export function emptyTempFolder(folder: string): void {
  for (const { name } of Deno.readDirSync(folder)) Deno.removeSync(join(folder, name), { recursive: true });
}
