/** The format version of a data directory: one that a newer program has written is not opened, so that
 * nothing of it is misread.
 */

import { join } from "node:path";

/**
 * The format that this program writes, and the highest that it reads. It grows with a change after which
 * earlier programs would misread a data directory; files that can be made again (snapshot, search index) have
 * versions of their own. See docs/upgrading.md.
 */
export const DATA_FORMAT = 3;

/**
 * The format from which events may be missing in the log because they were removed: earlier programs would
 * take the gaps for damage.
 */
export const GAPS_FORMAT = 2;

/**
 * The format from which names of principals are sealed: earlier programs would take the owners of runs for
 * strangers. See principal_secret.ts.
 */
export const SEALED_NAMES_FORMAT = 3;

/** The format with which a directory begins: all earlier programs read it. */
const FIRST_FORMAT = 1;

/** The file of the format. A directory without it was written before there was one, in format 1. */
const FILE = "format";
const BYTES_MAX = 16;

/** The file that is in a directory while a backup is restored into it, which is not whole until then. */
export const RESTORING = "restoring";

/**
 * Writes the first version into a directory that has none. Call it with the directory locked, and before
 * anything in it is read. Errors: the directory's version is higher than {@link DATA_FORMAT}, or its file
 * holds none.
 */
export function requireKnownFormat(dataDir: string): void {
  if (knownFormat(dataDir) === null) writeFormat(dataDir, FIRST_FORMAT);
}

/**
 * The version of the directory; null where it has no file of it. Writes nothing. Errors: as {@link
 * requireKnownFormat}.
 */
export function knownFormat(dataDir: string): number | null {
  if (readShort(join(dataDir, RESTORING)) !== null) {
    throw new Error(
      `Cannot open the data directory: the restore of a backup into ${dataDir} was broken off; remove what is in it, ` +
        "and restore again",
    );
  }
  const path = join(dataDir, FILE);
  const text = readShort(path);
  if (text === null) return null;
  if (!/^[1-9]\d{0,8}\n?$/.test(text)) {
    throw new Error(
      `Cannot open the data directory: ${path} must hold its format version, a number, got ${
        JSON.stringify(text)
      }`,
    );
  }
  const format = Number(text);
  if (format <= DATA_FORMAT) return format;
  throw new Error(
    `Cannot open the data directory: ${dataDir} has format ${format}, and this version of the service reads up to ` +
      `${DATA_FORMAT}; start the version that wrote it, or one that is newer, or restore a backup of before the upgrade`,
  );
}

/**
 * Raises the format of a directory; a higher one stays. Call it before something is written that programs of
 * an earlier format would misread.
 */
export async function raiseFormat(dataDir: string, format: number): Promise<void> {
  const path = join(dataDir, FILE);
  if (Number(readShort(path)) >= format) return;
  {
    using file = await Deno.open(`${path}.new`, { create: true, truncate: true, write: true, mode: 0o600 });
    await file.write(new TextEncoder().encode(`${format}\n`));
    await file.sync(); // not in this thread: it may take as long as the disk has to write
  }
  await Deno.rename(`${path}.new`, path);
}

/** The text of a short file; null where there is no such file. */
function readShort(path: string): string | null {
  try {
    using file = Deno.openSync(path);
    const bytes = new Uint8Array(BYTES_MAX);
    return new TextDecoder().decode(bytes.subarray(0, file.readSync(bytes) ?? 0));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Writes the format under another name first, so that a crash leaves the whole file or none. */
function writeFormat(dataDir: string, format: number): void {
  const path = join(dataDir, FILE);
  Deno.writeTextFileSync(`${path}.new`, `${format}\n`, { mode: 0o600 });
  Deno.renameSync(`${path}.new`, path);
}
