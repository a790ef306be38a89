/** A file that is open for a response, with the facts for its headers. */

/** Its owner closes it, or passes it to the body of a response, which closes it. */
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

/** The facts that the caller of {@link describeOpenFile} knows; the others are read from the open file. */
export interface FileTerms {
  readonly mediaType: string;
  /**
   * The version of content that is named by its hash; for other files size, time and inode are the version.
   */
  readonly sha256?: string;
  readonly cacheControl: string;
}

/**
 * Size and version are those of the open file, even if its name refers to another file by now. Null when it
 * is no file.
 */
export async function describeOpenFile(file: Deno.FsFile, terms: FileTerms): Promise<OpenFile | null> {
  const { mediaType, sha256, cacheControl } = terms;
  try {
    const { isFile, size, mtime, ino } = await file.stat();
    if (isFile) {
      const modifiedMs = sha256 === undefined ? mtime?.getTime() ?? 0 : null;
      const etag = sha256 ?? [size, modifiedMs ?? 0, ino ?? 0].map((number) => number.toString(16)).join("-");
      return {
        file,
        mediaType,
        cacheControl,
        modifiedMs,
        sizeBytes: size,
        etag: `"${etag}"`,
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
