/** Small files of the data directory that are replaced as a whole: a crash leaves the old text or the new
 * one.
 */

import { join } from "node:path";

/** The text of a file; undefined where there is no such file. Errors: those of the operating system. */
export function readSmallFile(folder: string, name: string): string | undefined {
  try {
    return Deno.readTextFileSync(join(folder, name));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * Replaces the text of a file. With `isSynced` the new text also survives a power cut. Errors: the disk is
 * full or fails; then the file is as it was.
 */
export function replaceSmallFile(
  folder: string,
  name: string,
  { text, isSynced }: { readonly text: string; readonly isSynced: boolean },
): void {
  const temporary = join(folder, `${name}.new`);
  {
    using file = Deno.openSync(temporary, { create: true, truncate: true, write: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(text);
    let written = 0;
    while (written < bytes.length) written += file.writeSync(bytes.subarray(written));
    if (isSynced) file.syncDataSync();
  }
  Deno.renameSync(temporary, join(folder, name));
  if (!isSynced) return;
  using directory = Deno.openSync(folder, { read: true });
  directory.syncSync();
}
