/** The upload root: an upload has a hidden name until its content was checked, and then gets its own name. */

import { join } from "node:path";
import type { World } from "../base/world.ts";
import { PUBLIC_PRINCIPAL } from "../model/identifiers.ts";
import { type GrowingBytes, onDisk, PartialFile, removeLeftovers } from "./partial_file.ts";

/** Who counts what principals upload, and refuses what is too much. */
export interface UploadAccount {
  requireRoom(principalKey: string): void;
  growing(principalKey: string): GrowingBytes;
  addUpload(principalKey: string, bytes: number): void;
}

export class Uploads {
  readonly #root: string;
  readonly #world: World;
  readonly #stored: UploadAccount | undefined;

  private constructor(root: string, world: World, stored: UploadAccount | undefined) {
    this.#root = root;
    this.#world = world;
    this.#stored = stored;
  }

  /**
   * Removes the unfinished uploads of a killed process. `root` is the real path of an existing folder. Uploads count for
   * nobody without `stored`.
   */
  static open(root: string, world: World, stored?: UploadAccount): Uploads {
    removeLeftovers(root);
    return new Uploads(root, world, stored);
  }

  /** Refuses with `storage_quota` a principal that may store nothing more. */
  requireRoom(principalKey: string): void {
    this.#stored?.requireRoom(principalKey);
  }

  /**
   * Refuses with `storage_unavailable` when the disk takes no file, and with `storage_quota`. The caller disposes the
   * upload in every case.
   */
  async create(principalKey: string = PUBLIC_PRINCIPAL): Promise<Upload> {
    const file = await PartialFile.create(this.#root, this.#world, this.#stored?.growing(principalKey));
    return new Upload(this.#root, file, (bytes) => this.#stored?.addUpload(principalKey, bytes));
  }

  /** False where there is no such file. Who has it open reads it to its end. Refuses with `storage_unavailable`. */
  remove(name: string, principalKey: string): Promise<boolean> {
    const path = join(this.#root, name);
    return onDisk(this.#world, async () => {
      try {
        const { isFile, size } = await Deno.lstat(path);
        if (!isFile) return false;
        await Deno.remove(path);
        this.#stored?.addUpload(principalKey, -size);
        return true;
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return false;
        throw error;
      }
    });
  }
}

/** One unfinished upload. Disposing it removes its file unless it was published. */
export class Upload implements Disposable {
  readonly #root: string;
  readonly #file: PartialFile;
  readonly #onPublished: (bytes: number) => void;

  /** `onPublished` is called with its size, less that of the file that it replaced. */
  constructor(root: string, file: PartialFile, onPublished: (bytes: number) => void) {
    this.#root = root;
    this.#file = file;
    this.#onPublished = onPublished;
  }

  /** Where its bytes are now. No answer to a client may contain it. */
  get path(): string {
    return this.#file.path;
  }

  /** Refuses with `storage_quota` what would go beyond the quota of the owner. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#file.write(bytes);
  }

  /** Makes it visible as `name` and replaces a file of that name; returns the absolute path. */
  async publish(name: string): Promise<string> {
    const path = join(this.#root, name);
    const replaced = await sizeOf(path);
    await this.#file.publish(path);
    this.#onPublished(this.#file.sizeBytes - replaced);
    return path;
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}

/** 0 where there is no such file. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await Deno.lstat(path)).size;
  } catch {
    return 0;
  }
}
