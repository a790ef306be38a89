/** Reads a stretch of an open file. */

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
