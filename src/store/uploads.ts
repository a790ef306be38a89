/** The upload root: files arrive under a hidden name, and get their own when they were found to be what they claim. */

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

  /** Removes what a killed process left behind; `root` is a real path of an existing folder. */
  static open(root: string, world: World): Uploads {
    removeLeftovers(root);
    return new Uploads(root, world);
  }

  /** Refuses with `storage_unavailable` when the disk takes no file. Dispose it whatever becomes of it. */
  async create(): Promise<Upload> {
    return new Upload(this.#root, await PartialFile.create(this.#root, this.#world));
  }
}

/** One upload on its way. Disposing it removes it unless it was published. */
export class Upload implements Disposable {
  readonly #root: string;
  readonly #file: PartialFile;

  constructor(root: string, file: PartialFile) {
    this.#root = root;
    this.#file = file;
  }

  /** Where its bytes are now; nobody may be told. */
  get path(): string {
    return this.#file.path;
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#file.write(bytes);
  }

  /** Makes it visible as `name`, replacing what had that name; the absolute path. */
  async publish(name: string): Promise<string> {
    const path = join(this.#root, name);
    await this.#file.publish(path);
    return path;
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}
