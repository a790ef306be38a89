/** Opens a file, and reads a stretch of it. */

/** A pipe would be waited for, and a device read without an end. Errors: it is no regular file, nor a link to one. */
export function openRegular(path: string): Deno.FsFile {
  if (!Deno.statSync(path).isFile) throw new Error("it is no regular file");
  return Deno.openSync(path, { read: true });
}

/** `count` bytes from the offset `from`; fewer at the end of the file. */
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
