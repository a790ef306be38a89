/** A file under a hidden name until it is complete: whoever looks at its final name sees all of it, or nothing. */

import { dirname, join } from "node:path";
import { refuse } from "../base/refusal.ts";
import type { World } from "../base/world.ts";

/**
 * ```
 *   create ─→ .part__<32 hex> ─write…─→ publish ─rename→ final name
 *                    └────────── dispose ──→ gone
 * ```
 *
 * The name has the two underscores of an owned upload and no owner, so no caller sees it. What the disk refuses is 503
 * `storage_unavailable`, and the log says why.
 */
export class PartialFile implements Disposable {
  readonly path: string;
  readonly #world: World;
  #file: Deno.FsFile | undefined;
  #sizeBytes = 0;
  #isPublished = false;

  private constructor(path: string, file: Deno.FsFile, world: World) {
    this.path = path;
    this.#file = file;
    this.#world = world;
  }

  /** An empty file in `folder`, which is made when it is missing; mode 0600, locked as long as it is written. */
  static create(folder: string, world: World): Promise<PartialFile> {
    return onDisk(world, async () => {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const path = join(folder, `${PARTIAL_PREFIX}${world.randomBytes(16).toHex()}`);
      const file = Deno.openSync(path, { createNew: true, write: true, mode: 0o600 });
      // At once, so that there is no moment in which another process would take it for a leftover.
      file.tryLockSync(true);
      return new PartialFile(path, file, world);
    });
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends all of `bytes`. */
  write(bytes: Uint8Array): Promise<void> {
    return onDisk(this.#world, async () => {
      for (let left = bytes; left.length > 0;) {
        const written = await this.#file!.write(left);
        this.#sizeBytes += written;
        left = left.subarray(written);
      }
    });
  }

  /** Brings the bytes to the disk and gives the file its final name, replacing what has it. */
  publish(path: string): Promise<void> {
    return onDisk(this.#world, async () => {
      await this.#file!.sync();
      await Deno.rename(this.path, path);
      this.#isPublished = true;
      using folder = await Deno.open(dirname(path), { read: true });
      await folder.sync(); // else the name could be lost although the bytes are there
    });
  }

  /** Removes the file unless it was published. */
  [Symbol.dispose](): void {
    this.#file?.close();
    this.#file = undefined;
    if (this.#isPublished) return;
    try {
      Deno.removeSync(this.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        this.#world.log.error("cannot remove a partial file", { path: this.path, error: String(error) });
      }
    }
  }
}

/**
 * Removes what a killed process left in `folder`. The lock of a file that another process is writing is held, so its
 * file stays.
 */
export function removeLeftovers(folder: string): void {
  for (const { name, isFile } of Deno.readDirSync(folder)) {
    if (!isFile || !name.startsWith(PARTIAL_PREFIX)) continue;
    const path = join(folder, name);
    try {
      using file = Deno.openSync(path, { write: true });
      if (file.tryLockSync(true)) Deno.removeSync(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error; // else its writer was faster
    }
  }
}

/** What the operating system refuses while `work` is done is a refusal; anything else is a bug and rises. */
export async function onDisk<T>(world: World, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== "string") throw error;
    world.log.error("the disk refused a file", { error: String(error) });
    throw refuse.because("storage_unavailable", "The file cannot be stored: the disk refused it");
  }
}

const PARTIAL_PREFIX = ".part__";
