/** A file that is open for an answer, with what the answer says of it. */

/** Whoever has it closes it, or hands it to an answer's body, which does. */
export interface OpenFile extends Disposable {
  readonly file: Deno.FsFile;
  readonly mediaType: string;
  readonly sizeBytes: number;
  /** Strong, with its quotes. */
  readonly etag: string;
  /** Epoch milliseconds; null for content that can never change. */
  readonly modifiedMs: number | null;
  readonly cacheControl: string;
}

/** What an answer says of a file that its caller knows; the rest is asked of the open file itself. */
export interface FileTerms {
  readonly mediaType: string;
  /** For content that is known by its hash; otherwise size, time and inode tell versions apart. */
  readonly sha256?: string;
  readonly cacheControl: string;
}

/** Size and version are those of the open file, whatever its name stands for by now. Null when it is no file. */
export async function describeOpenFile(file: Deno.FsFile, terms: FileTerms): Promise<OpenFile | null> {
  const { mediaType, sha256, cacheControl } = terms;
  try {
    const { isFile, size, mtime, ino } = await file.stat();
    if (isFile) {
      const modifiedMs = sha256 === undefined ? mtime?.getTime() ?? 0 : null;
      const etag = sha256 ?? [size, modifiedMs ?? 0, ino ?? 0].map((number) => number.toString(16)).join("-");
      return {
        ...{ file, mediaType, cacheControl, modifiedMs },
        ...{ sizeBytes: size, etag: `"${etag}"` },
        [Symbol.dispose]: () => file.close(),
      };
    }
  } catch (error) {
    file.close();
    throw error;
  }
  file.close();
  return null;
}
