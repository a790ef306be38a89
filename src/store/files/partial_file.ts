/** A file with a hidden name until it is complete, so that its final name always shows a complete file or
 * none.
 */

import { dirname, join } from "node:path";
import { refuse } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";

/** Counts bytes that are being written for somebody, until it is disposed. */
export interface GrowingBytes extends Disposable {
  /** Counts more bytes. Throws what refuses them. */
  add(bytes: number): void;
}

/**
 * ```
 *   create ─→ .part__<32 hex> ─write…─→ publish ─rename→ final name
 *                    └────────── dispose ──→ gone
 * ```
 *
 * The hidden name begins like that of an upload, but with no owner before the two underscores, so no caller
 * can open it. When the disk is full or fails, the refusal is `storage_unavailable` (503), and the reason is
 * logged. See docs/deployment/data-directory.md#durability.
 */
export class PartialFile implements Disposable {
  readonly path: string;
  readonly #world: World;
  readonly #growing: GrowingBytes | undefined;
  #file: Deno.FsFile | undefined;
  #sizeBytes = 0;
  #isPublished = false;

  private constructor(path: string, file: Deno.FsFile, world: World, growing: GrowingBytes | undefined) {
    this.path = path;
    this.#file = file;
    this.#world = world;
    this.#growing = growing;
  }

  /**
   * Creates an empty file in `folder`, and the folder if it is missing; mode 0600, locked while it is
   * written. Its bytes are added to `growing`, which ends with the file.
   */
  static create(folder: string, world: World, growing?: GrowingBytes): Promise<PartialFile> {
    return onDisk(world, async () => {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const path = join(folder, `${PARTIAL_PREFIX}${world.randomBytes(16).toHex()}`);
      const file = Deno.openSync(path, { createNew: true, write: true, mode: 0o600 });
      // Locked in the same step, so that another process cannot take it for the file of a killed process.
      file.tryLockSync(true);
      return new PartialFile(path, file, world, growing);
    });
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends all of `bytes`. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#growing?.add(bytes.length);
    await onDisk(this.#world, async () => {
      for (let left = bytes; left.length > 0;) {
        const written = await this.#file!.write(left);
        this.#sizeBytes += written;
        left = left.subarray(written);
      }
    });
  }

  /** Syncs the bytes to the disk and renames the file to its final name; a file of that name is replaced. */
  publish(path: string): Promise<void> {
    return onDisk(this.#world, async () => {
      await this.#file!.sync();
      await Deno.rename(this.path, path);
      this.#isPublished = true;
      using folder = await Deno.open(dirname(path), { read: true });
      await folder.sync(); // without it a power failure could lose the name
    });
  }

  /** Removes the file unless it was published. */
  [Symbol.dispose](): void {
    this.#file?.close();
    this.#file = undefined;
    this.#growing?.[Symbol.dispose]();
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
 * Removes the partial files of killed processes from `folder`. A file that is being written is locked, and
 * stays.
 */
export function removeLeftovers(folder: string): void {
  for (const { name, isFile } of Deno.readDirSync(folder)) {
    if (!isFile || !name.startsWith(PARTIAL_PREFIX)) continue;
    const path = join(folder, name);
    try {
      using file = Deno.openSync(path, { write: true });
      if (file.tryLockSync(true)) Deno.removeSync(path);
    } catch (error) {
      // NotFound: its writer has published or removed it meanwhile
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

/**
 * Runs `work`. An error of the operating system in it becomes the refusal `storage_unavailable`; other errors
 * are bugs.
 */
export async function onDisk<T>(world: World, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== "string") throw error;
    world.log.error("the disk refused a file", { error: String(error) });
    throw refuse.because("storage_unavailable", "The file cannot be stored or removed: the disk refused it");
  }
}

/** How the name of every unfinished file begins. */
export const PARTIAL_PREFIX = ".part__";
