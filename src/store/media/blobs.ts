/** Content-addressed files: the name of each is the SHA-256 of its bytes; it is never changed. */

import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import type { World } from "../../base/world.ts";
import { PUBLIC_PRINCIPAL } from "../../model/identifiers.ts";
import { type GrowingBytes, onDisk, PartialFile, removeLeftovers } from "../files/partial_file.ts";

/**
 * Kinds of blobs: folder under the data directory, extension, media type. See docs/protocols.md#blob-store.
 */
const KINDS = {
  jpeg: { folder: "keyframes/blobs", extension: "jpg", mediaType: "image/jpeg" },
  mp4: { folder: "media/blobs", extension: "mp4", mediaType: "video/mp4" },
  wav: { folder: "media/blobs", extension: "wav", mediaType: "audio/wav" },
} as const;

export type BlobKind = keyof typeof KINDS;

declare const WRITTEN: unique symbol;

/**
 * A blob that is on the disk. Only `Blobs.put` creates one, so an event that takes its reference from here
 * cannot name a blob that was not written.
 */
export interface BlobRef {
  readonly [WRITTEN]: true;
  /** The path relative to the data directory, such as `keyframes/blobs/9f/9f86….jpg`, as it is in events. */
  readonly ref: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
  /** The SHA-256 of the bytes: 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  /** Whether the blob is new: false when one with the same content existed already. */
  readonly created: boolean;
}

/** Who counts the blobs of principals, and refuses what is too much. */
export interface BlobAccount {
  growing(principalKey: string): GrowingBytes;
  addBlob(principalKey: string, bytes: number): void;
}

export class Blobs {
  readonly #dataDir: string;
  readonly #world: World;
  readonly #stored: BlobAccount | undefined;

  private constructor(dataDir: string, world: World, stored: BlobAccount | undefined) {
    this.#dataDir = dataDir;
    this.#world = world;
    this.#stored = stored;
  }

  /**
   * Opens the blobs, and removes the unfinished files of a killed process. Call it only as the owner of the
   * data directory. Blobs count for nobody without `stored`.
   */
  static open(dataDir: string, world: World, stored?: BlobAccount): Blobs {
    for (const { folder } of Object.values(KINDS)) {
      const path = join(dataDir, folder);
      Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
      removeLeftovers(path);
    }
    return new Blobs(dataDir, world, stored);
  }

  /**
   * Stores `content`, which is read only as fast as the disk takes it. A new blob counts for the principal.
   * Refuses with `storage_unavailable` when the disk is full or fails, and with `storage_quota`; then no
   * partial file stays.
   *
   * Exception: where the path of the blob cannot be looked up, for example because a file stands in the place
   * of its folder, the error of the operating system is thrown as it is (`Deno.errors.NotADirectory`). Only
   * somebody who changes the data directory by hand can cause that.
   */
  async put(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    kind: BlobKind,
    principalKey: string = PUBLIC_PRINCIPAL,
  ): Promise<BlobRef> {
    // The hash of bytes in memory is known at once, so nothing is written when the blob exists.
    const known = content instanceof Uint8Array
      ? await this.#existing(sha256Of(content), content, kind)
      : null;
    if (known) return known;
    return await this.#write(content instanceof Uint8Array ? [content] : content, kind, principalKey);
  }

  /** The blob opened for reading, or null when there is none. The caller closes it. */
  async open(mediaType: string, sha256: string): Promise<Deno.FsFile | null> {
    const kind = kindOf(mediaType);
    if (kind === undefined || !/^[0-9a-f]{64}$/.test(sha256)) return null;
    try {
      return await Deno.open(join(this.#dataDir, refOf(kind, sha256)), { read: true });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  async #existing(sha256: string, { length }: Uint8Array, kind: BlobKind): Promise<BlobRef | null> {
    return await this.#has(sha256, length, kind) ? blobRef(kind, sha256, length, false) : null;
  }

  async #write(
    content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    kind: BlobKind,
    principalKey: string,
  ): Promise<BlobRef> {
    const growing = this.#stored?.growing(principalKey);
    using partial = await PartialFile.create(join(this.#dataDir, KINDS[kind].folder), this.#world, growing);
    const hash = createHash("sha256");
    for await (const bytes of content) {
      hash.update(bytes);
      await partial.write(bytes);
    }
    const sha256 = hash.digest("hex");
    const { sizeBytes } = partial;
    const isAvailable = await this.#has(sha256, sizeBytes, kind);
    if (!isAvailable) {
      const path = join(this.#dataDir, refOf(kind, sha256));
      await onDisk(this.#world, () => Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 }));
      await partial.publish(path);
      this.#stored?.addBlob(principalKey, sizeBytes);
    }
    return blobRef(kind, sha256, sizeBytes, !isAvailable);
  }

  /**
   * Whether the blob is there. One that a failing disk has shortened has another size, and is written again.
   * Throws the error of the operating system when the path cannot be looked up: see `put`.
   */
  async #has(sha256: string, sizeBytes: number, kind: BlobKind): Promise<boolean> {
    try {
      const path = join(this.#dataDir, refOf(kind, sha256));
      const { isFile, size } = await Deno.lstat(path);
      if (!isFile || size !== sizeBytes) return false;
      // Young from now on, so that it is not removed as one that no event names before the event that names
      // it.
      const now = new Date(this.#world.now());
      await Deno.utime(path, now, now);
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }
}

/** The size of the file of a blob; 0 where there is none. */
export function blobBytes(dataDir: string, mediaType: string, sha256: string): number {
  const kind = kindOf(mediaType);
  if (kind === undefined) return 0;
  try {
    return Deno.lstatSync(join(dataDir, refOf(kind, sha256))).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}

/** Where a blob of this type lies, relative to the data directory; undefined for a type that no blob has. */
export function blobPath(mediaType: string, sha256: string): string | undefined {
  const kind = kindOf(mediaType);
  return kind && refOf(kind, sha256);
}

/** The folders of blobs, relative to the data directory, and the extensions of the files in each. */
export function blobFolders(): Map<string, string[]> {
  const folders = new Map<string, string[]>();
  for (const { folder, extension } of Object.values(KINDS)) {
    folders.set(folder, [...folders.get(folder) ?? [], extension]);
  }
  return folders;
}

function blobRef(kind: BlobKind, sha256: string, sizeBytes: number, created: boolean): BlobRef {
  const { mediaType } = KINDS[kind];
  return { ref: refOf(kind, sha256), mediaType, sizeBytes, sha256, created } as BlobRef;
}

function refOf(kind: BlobKind, sha256: string): string {
  const { folder, extension } = KINDS[kind];
  return `${folder}/${sha256.slice(0, 2)}/${sha256}.${extension}`;
}

function kindOf(mediaType: string): BlobKind | undefined {
  return (Object.keys(KINDS) as BlobKind[]).find((kind) => KINDS[kind].mediaType === mediaType);
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
