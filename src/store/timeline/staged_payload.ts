/** A payload of any length before its commit: a long one lies in a file without a name, and not in memory. */

import { join } from "node:path";
import { refuse } from "../../contract/refusal.ts";
import type { Log } from "../../base/log.ts";
import { PreparedPayload } from "../../model/runs/run.ts";
import { writeAll } from "./segment.ts";

/** The longest text that stays in memory, in bytes; a longer one is written to a file. */
const IN_MEMORY_BYTES = 1024 * 1024;
const READ_BYTES = 256 * 1024;
const FILE_NAME = ".payload";

/**
 * ```
 *   add ──▶ in memory, up to 1 MiB ──▶ a file of which only this process knows ──commit──▶ the log
 * ```
 *
 * The file is removed as soon as it is open: whatever becomes of the process, nothing of it is left behind.
 * What the disk refuses is refused with `storage_unavailable`. The pieces that are added belong to the
 * payload.
 */
export class StagedPayload extends PreparedPayload {
  readonly #directory: string;
  readonly #log: Log;
  #file: Deno.FsFile | null = null;

  constructor(directory: string, log: Log) {
    super();
    this.#directory = directory;
    this.#log = log;
  }

  override get pieces(): Iterable<Uint8Array> {
    return this.#file ? readPieces(this.#file) : super.pieces;
  }

  protected override keep(piece: Uint8Array): void {
    super.keep(piece);
    if (this.sizeBytes > IN_MEMORY_BYTES) this.#moveToFile();
  }

  override [Symbol.dispose](): void {
    super[Symbol.dispose]();
    this.#file?.close();
    this.#file = null;
  }

  #moveToFile(): void {
    try {
      this.#file ??= openUnnamed(join(this.#directory, FILE_NAME));
      for (const piece of super.pieces) writeAll(this.#file, piece);
      this.release();
    } catch (error) {
      this.#log.error("cannot keep a payload until its commit", { error: String(error) });
      throw refuse.because("storage_unavailable", "The timeline cannot take the event: the disk refused it");
    }
  }
}

/**
 * Opens a file that has no name any more. One process owns the directory, and nothing comes between the two
 * calls: one name is enough for all files.
 */
function openUnnamed(path: string): Deno.FsFile {
  const file = Deno.openSync(path, { create: true, truncate: true, read: true, write: true, mode: 0o600 });
  Deno.removeSync(path);
  return file;
}

/** Reads all of the file, into one buffer that each piece fills anew. */
function* readPieces(file: Deno.FsFile): Iterable<Uint8Array> {
  const buffer = new Uint8Array(READ_BYTES);
  file.seekSync(0, Deno.SeekMode.Start);
  for (let got = file.readSync(buffer); got !== null; got = file.readSync(buffer)) {
    yield buffer.subarray(0, got);
  }
}
