/** Reads single places of a media file, whose containers say where things are. */

/** Bytes of a file, at any place. */
export class FileBytes {
  readonly #file: Deno.FsFile;

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Up to `length` bytes from `at` on: fewer where the file ends. */
  async at(at: number, length: number): Promise<DataView<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    await this.#file.seek(at, Deno.SeekMode.Start);
    let filled = 0;
    while (filled < length) {
      const got = await this.#file.read(bytes.subarray(filled));
      if (got === null) break;
      filled += got;
    }
    return new DataView(bytes.buffer, 0, filled);
  }
}
