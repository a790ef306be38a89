/** A folder as the place of backups. */

import { dirname, join } from "node:path";
import type { World } from "../../base/world.ts";
import type { BackupObject, BackupStorage } from "../../model/backup_storage.ts";
import { HEADS_FOLDER } from "./backup_list.ts";
import { filesBelow, syncFolder } from "../files/folder.ts";

/** The end of the name of a file that is being written, or whose writer was killed. */
const PARTIAL_END = ".part";
/** An unfinished file this old has no writer any more. */
const LEFTOVER_MS = 24 * 60 * 60_000;

export class FolderStorage implements BackupStorage {
  readonly name: string;
  readonly #root: string;
  readonly #world: World;

  constructor(root: string, world: World) {
    this.name = root;
    this.#root = root;
    this.#world = world;
  }

  async *list(prefix: string): AsyncIterable<BackupObject> {
    for (const name of filesBelow(this.#root, prefix.replace(/\/$/, ""))) {
      const { size, isFile, mtime } = Deno.lstatSync(join(this.#root, name));
      if (!isFile) continue;
      if (!name.endsWith(PARTIAL_END)) yield { name, bytes: size };
      else if (this.#world.now() - (mtime?.getTime() ?? 0) > LEFTOVER_MS) {
        Deno.removeSync(join(this.#root, name));
      }
    }
  }

  async get(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      return await Deno.readFile(join(this.#root, name));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  async remove(name: string): Promise<void> {
    const path = join(this.#root, name);
    try {
      await Deno.remove(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      throw error;
    }
    // A head must not come back after a power failure when objects that it names are gone.
    if (dirname(name) === HEADS_FOLDER) syncFolder(dirname(path));
  }

  /** Under another name until it is on the disk, so that its name always shows the whole file. */
  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const path = join(this.#root, name);
    const partial = `${path}.${this.#world.randomBytes(8).toHex()}${PARTIAL_END}`;
    await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      using file = await Deno.open(partial, { createNew: true, write: true, mode: 0o600 });
      for (let left = bytes; left.length > 0;) left = left.subarray(await file.write(left));
      await file.sync();
      await Deno.rename(partial, path);
    } catch (error) {
      await Deno.remove(partial).catch(() => {});
      throw error;
    }
    syncFolder(dirname(path));
  }
}
