/** How much the files of the service take, by what they are for: counted in the background, and again after a
 * while.
 */

import { join, resolve } from "node:path";
import { hasEndedWithin } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";

export interface DiskUseOptions {
  readonly dataDir: string;
  readonly uploadRoot: string;
  readonly world: World;
}

/** Bytes of the files, without what a file system needs for itself. */
export interface UsedBytes {
  readonly timeline_bytes: number;
  readonly keyframe_bytes: number;
  readonly media_bytes: number;
  readonly recording_bytes: number;
  readonly upload_bytes: number;
  readonly other_bytes: number;
  /** When the files were counted, epoch milliseconds. */
  readonly counted_at_ms: number;
  /** Whether all files were counted; false where there are too many. */
  readonly is_complete: boolean;
}

type Purpose = "timeline" | "keyframe" | "media" | "recording" | "upload" | "other";

/** Purposes by the first part of a path in the data directory; everything else is other. */
const PURPOSES: Readonly<Record<string, Purpose>> = {
  timeline: "timeline",
  keyframes: "keyframe",
  media: "media",
  recordings: "recording",
};

export class DiskUse implements AsyncDisposable {
  readonly #options: DiskUseOptions;
  readonly #ending = new AbortController();
  #last: UsedBytes | null = null;
  #lastMs = 0;
  #counting: Promise<void> | null = null;

  constructor(options: DiskUseOptions) {
    this.#options = options;
  }

  /**
   * The last count, which may be a minute old; null where the first one takes longer than a caller should
   * wait.
   */
  async look(): Promise<UsedBytes | null> {
    const { world } = this.#options;
    const isOld = this.#last === null || world.monotonicMs() - this.#lastMs >= LIMITS.diskUse.recountMs;
    if (isOld && !this.#ending.signal.aborted) {
      this.#counting ??= this.#count()
        .catch((error) => world.log.warn("cannot count the use of the disk", { error: String(error) }))
        .finally(() => this.#counting = null);
    }
    if (this.#last === null && this.#counting !== null) {
      await hasEndedWithin(world, LIMITS.diskUse.waitMs, this.#counting);
    }
    return this.#last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#counting;
  }

  async #count(): Promise<void> {
    const { dataDir, uploadRoot, world } = this.#options;
    const bytes: Record<Purpose, number> = {
      timeline: 0,
      keyframe: 0,
      media: 0,
      recording: 0,
      upload: 0,
      other: 0,
    };
    let left: number = LIMITS.diskUse.filesMax;
    const uploads = resolve(uploadRoot);
    const add = async (folder: string, purpose: Purpose | null): Promise<void> => {
      for await (const { name, isDirectory, isFile } of entriesOf(folder)) {
        if (this.#ending.signal.aborted || left === 0) return;
        const path = join(folder, name);
        if (path === uploads && purpose !== "upload") continue; // counted by itself
        const of = purpose ?? PURPOSES[name] ?? "other";
        if (isDirectory) await add(path, of);
        if (!isFile) continue;
        left -= 1;
        bytes[of] += await sizeOf(path);
      }
    };
    await add(resolve(dataDir), null);
    await add(uploads, "upload");
    if (this.#ending.signal.aborted) return;
    this.#lastMs = world.monotonicMs();
    this.#last = {
      timeline_bytes: bytes.timeline,
      keyframe_bytes: bytes.keyframe,
      media_bytes: bytes.media,
      recording_bytes: bytes.recording,
      upload_bytes: bytes.upload,
      other_bytes: bytes.other,
      counted_at_ms: Math.floor(world.now()),
      is_complete: left > 0,
    };
  }
}

/** The entries of a folder; none of one that is not there, or that cannot be read. */
async function* entriesOf(folder: string): AsyncGenerator<Deno.DirEntry> {
  try {
    yield* Deno.readDir(folder);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/** The size of a file; 0 for one that has just been removed. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await Deno.lstat(path)).size;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied ||
    error instanceof Deno.errors.NotCapable;
}
