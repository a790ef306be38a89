/** Opens a file, and reads a stretch of it. */

/**
 * Opens a regular file, or what a link to one leads to. Everything else is an error: a pipe would be waited
 * for, and a device read without an end.
 */
export function openRegular(path: string): Deno.FsFile {
  if (!Deno.statSync(path).isFile) throw new Error("it is no regular file");
  return Deno.openSync(path, { read: true });
}

/** Reads `count` bytes from the offset `from`; fewer at the end of the file. */
export function readAt(file: Deno.FsFile, from: number, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  file.seekSync(from, Deno.SeekMode.Start);
  let filled = 0;
  while (filled < count) {
    const read = file.readSync(bytes.subarray(filled));
    if (!read) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}
