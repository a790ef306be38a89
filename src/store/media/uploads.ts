/** The upload root: an upload has a hidden name until its content was checked, and then gets its own name. */

import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import type { World } from "../../base/world.ts";
import { distinctName, type UploadName } from "../../model/files/file_name.ts";
import { PUBLIC_PRINCIPAL } from "../../model/identifiers.ts";
import { type GrowingBytes, onDisk, PartialFile, removeLeftovers } from "../files/partial_file.ts";
import { UploadNames } from "./upload_names.ts";

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
  readonly #names: UploadNames;
  /** Uploads are published one after the other, so that two of one name do not take the same place. */
  #published: Promise<unknown> = Promise.resolve();

  private constructor(root: string, world: World, stored: UploadAccount | undefined) {
    this.#root = root;
    this.#world = world;
    this.#stored = stored;
    this.#names = UploadNames.open(root);
  }

  /**
   * Opens the upload root, and removes the unfinished uploads of a killed process. `root` is the real path of
   * an existing folder. Uploads count for nobody without `stored`.
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
   * Begins an upload. Refuses with `storage_unavailable` when the disk takes no file, and with
   * `storage_quota`. The caller disposes the upload in every case.
   */
  async create(principalKey: string = PUBLIC_PRINCIPAL): Promise<Upload> {
    const file = await PartialFile.create(this.#root, this.#world, this.#stored?.growing(principalKey));
    return new Upload(file, (sha256, name) => {
      const place = this.#published.then(() => onDisk(this.#world, () => this.#publish(file, sha256, name)));
      this.#published = place.catch(() => {});
      return place.then(({ path, bytes }) => {
        this.#stored?.addUpload(principalKey, bytes);
        return path;
      });
    });
  }

  /** The name that the upload at a path had; null for a file that is no upload. */
  labelOf(path: string): string | null {
    return dirname(path) === this.#root ? this.#names.labelOf(basename(path)) : null;
  }

  /**
   * Gives the file its place: its name, or another one where an upload of other bytes has that. Bytes that
   * are there already stay one file, under a second name where that is another one. `bytes` is by how much
   * the disk has more.
   */
  async #publish(
    file: PartialFile,
    sha256: string,
    { name: wanted, label }: UploadName,
  ): Promise<{ path: string; bytes: number }> {
    let place = await this.#look(wanted, file, sha256);
    if (place.there !== null && !place.isSame) {
      place = await this.#look(distinctName(wanted, sha256), file, sha256);
    }
    const { name, path, there, isSame } = place;
    const twin = this.#names.withBytes(name, sha256);
    // first, so that a disk that has no room for it refuses the upload as a whole
    this.#names.add({ name, label, sha256 });
    if (isSame) {
      const now = new Date(this.#world.now());
      await Deno.utime(path, now, now); // it counts as new for retention
      return { path, bytes: 0 };
    }
    if (there === null && twin !== undefined && await this.#linked(join(this.#root, twin), path)) {
      return { path, bytes: 0 };
    }
    try {
      await file.publish(path);
    } catch (error) {
      this.#names.remove(name);
      throw error;
    }
    return { path, bytes: file.sizeBytes - (there?.size ?? 0) };
  }

  /**
   * What is under a name: `there` is null for nothing, and for what is no file; `isSame`: it has the bytes of
   * `file`.
   */
  async #look(name: string, { sizeBytes }: PartialFile, sha256: string) {
    const path = join(this.#root, name);
    const there = await regularFile(path);
    const isSame = there?.size === sizeBytes && await sha256Of(path) === sha256;
    return { name, path, there, isSame };
  }

  /** Gives a file a second name; false where the file system does not allow it, or the file is gone. */
  async #linked(from: string, to: string): Promise<boolean> {
    if (await regularFile(from) === null) return false;
    try {
      await Deno.link(from, to);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Removes an upload; false where there is no such file. Who has it open reads it to its end. Refuses with
   * `storage_unavailable`.
   */
  remove(name: string, principalKey: string): Promise<boolean> {
    const path = join(this.#root, name);
    return onDisk(this.#world, async () => {
      try {
        const { isFile, size, nlink } = await Deno.lstat(path);
        if (!isFile) return false;
        await Deno.remove(path);
        this.#names.remove(name);
        if ((nlink ?? 1) === 1) this.#stored?.addUpload(principalKey, -size);
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
  readonly #file: PartialFile;
  readonly #hash = createHash("sha256");
  readonly #publish: (sha256: string, name: UploadName) => Promise<string>;

  constructor(file: PartialFile, publish: (sha256: string, name: UploadName) => Promise<string>) {
    this.#file = file;
    this.#publish = publish;
  }

  /** Where the bytes of the upload are now. No answer to a client may contain this path. */
  get path(): string {
    return this.#file.path;
  }

  /** Writes more bytes. Refuses with `storage_quota` what would go beyond the quota of the owner. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#file.write(bytes);
    this.#hash.update(bytes);
  }

  /**
   * Makes the upload visible, and returns its absolute path. No other upload is replaced. See
   * docs/api/files.md#uploads-and-files.
   */
  publish(name: UploadName): Promise<string> {
    return this.#publish(this.#hash.copy().digest("hex"), name);
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}

/** A regular file at a path; null where there is none, or something else such as a link. */
async function regularFile(path: string): Promise<Deno.FileInfo | null> {
  try {
    const info = await Deno.lstat(path);
    return info.isFile ? info : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  using file = await Deno.open(path, { read: true });
  const buffer = new Uint8Array(HASHED_BYTES);
  for (let read = await file.read(buffer); read !== null; read = await file.read(buffer)) {
    hash.update(buffer.subarray(0, read));
  }
  return hash.digest("hex");
}

/** Bytes that are read at once for a hash, so that other requests get their turn in between. */
const HASHED_BYTES = 1 << 20;
