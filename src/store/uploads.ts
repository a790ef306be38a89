/** The upload root: an upload has a hidden name until its content was checked, and then gets its own name. */

import { join } from "node:path";
import type { World } from "../base/world.ts";
import { PartialFile, removeLeftovers } from "./partial_file.ts";

export class Uploads {
  readonly #root: string;
  readonly #world: World;

  private constructor(root: string, world: World) {
    this.#root = root;
    this.#world = world;
  }

  /** Removes the unfinished uploads of a killed process. `root` is the real path of an existing folder. */
  static open(root: string, world: World): Uploads {
    removeLeftovers(root);
    return new Uploads(root, world);
  }

  /** Refuses with `storage_unavailable` when the disk takes no file. The caller disposes the upload in every case. */
  async create(): Promise<Upload> {
    return new Upload(this.#root, await PartialFile.create(this.#root, this.#world));
  }
}

/** One unfinished upload. Disposing it removes its file unless it was published. */
export class Upload implements Disposable {
  readonly #root: string;
  readonly #file: PartialFile;

  constructor(root: string, file: PartialFile) {
    this.#root = root;
    this.#file = file;
  }

  /** Where its bytes are now. No answer to a client may contain it. */
  get path(): string {
    return this.#file.path;
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#file.write(bytes);
  }

  /** Makes it visible as `name` and replaces a file of that name; returns the absolute path. */
  async publish(name: string): Promise<string> {
    const path = join(this.#root, name);
    await this.#file.publish(path);
    return path;
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}
