/** Removes the blobs that no event names any more, or never named: file by file, in small steps. */

import { basename, dirname, join } from "node:path";
import type { Log } from "../../base/log.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { blobNumber, mayNameBlobs, namedBlobs } from "../../model/events/blob_references.ts";
import { isMediaRemoved, MEDIA_KINDS, NONE_REMOVED } from "../../model/files/media_kind.ts";
import { LIMITS } from "../../contract/limits.ts";
import { PreparedPayload } from "../../model/runs/run.ts";
import { blobFolders } from "./blobs.ts";
import { PARTIAL_PREFIX } from "../files/partial_file.ts";
import type { StoredEvent } from "../timeline/event_reader.ts";
import type { Timeline } from "../timeline/timeline.ts";

export interface BlobSweepOptions {
  readonly dataDir: string;
  readonly timeline: Pick<Timeline, "view" | "readAll" | "observe" | "stats">;
  readonly world: Pick<World, "now">;
  readonly log: Log;
  /** Called before each blob goes. */
  readonly onRemoval: (bytes: number) => void;
}

export interface SweptBlobs {
  readonly blobs: number;
  readonly bytes: number;
  /** Files that could not be removed. */
  readonly failed: number;
  /** Files that no event names, but that are too young to go. */
  readonly young: number;
}

const SHA256 = /[0-9a-f]{64}/g;
const BLOB_FILE = /^([0-9a-f]{64})\.\w+$/;
/** Files that are looked at in one turn. */
const FILES_PER_TURN = 64;
/** Events whose kinds are looked up in one turn. */
const EVENTS_PER_TURN = 65_536;

/**
 * ```
 *   names of all files ──► minus each hash that an event has, those that are written meanwhile too ──► the rest, if old enough
 * ```
 *
 * A blob is written before the event that names it, so a young file is left alone, and so is one that is
 * stored again: that makes it young (see Blobs.put). Whether it is young is looked at in the same turn in
 * which it goes.
 *
 * Nothing is removed while the log may have events that cannot be read: they may name any blob.
 */
export class BlobSweep {
  readonly #options: BlobSweepOptions;

  constructor(options: BlobSweepOptions) {
    this.#options = options;
  }

  /** Removes the blobs. Null where the log is damaged. Rejects with the reason of `signal`. */
  async run(signal: AbortSignal): Promise<SweptBlobs | null> {
    const { timeline, log } = this.#options;
    const unnamed = new Hashes();
    for await (const { sha256 } of this.#files(signal)) unnamed.add(sha256);
    if (unnamed.isEmpty) return { blobs: 0, bytes: 0, failed: 0, young: 0 };
    using _ = timeline.observe((_run, _seq, kind, json) => { // of a new event no media are removed
      if (mayNameBlobs(kind)) unnamed.deleteIn(json instanceof PreparedPayload ? json.text : json);
    });
    for (let fromSeq = 1; fromSeq <= timeline.view.lastSeq; fromSeq += EVENTS_PER_TURN) {
      const toSeq = fromSeq + EVENTS_PER_TURN - 1;
      for (const batch of timeline.readAll({ fromSeq, toSeq, kinds: mayNameBlobs })) {
        for (const named of batch) this.#keepNamed(unnamed, named);
        await yieldToEventLoop();
        signal.throwIfAborted();
      }
      await yieldToEventLoop();
    }
    if (timeline.stats.isSound) return await this.#remove(unnamed, signal);
    log.warn("blobs that no event names stay, as the log is damaged and may have named them");
    return null;
  }

  /**
   * Takes what the event names off the list, unless it was removed from its run: what is left on the list
   * goes.
   */
  #keepNamed(unnamed: Hashes, { seq, runId, kind, payload }: StoredEvent): void {
    const removed = this.#options.timeline.view.run(runId)?.removedMedia ?? NONE_REMOVED;
    if (MEDIA_KINDS.every((media) => seq > removed[media])) return unnamed.deleteIn(payload);
    for (const { sha256, mediaType } of namedBlobs(kind, JSON.parse(payload))) {
      if (!isMediaRemoved(removed, mediaType, seq)) unnamed.delete(sha256);
    }
  }

  async #remove(unnamed: Hashes, signal: AbortSignal): Promise<SweptBlobs> {
    const { world, log } = this.#options;
    const swept = { blobs: 0, bytes: 0, failed: 0, young: 0 };
    const youngMs = world.now() - LIMITS.retention.blobGraceMs;
    for await (const { sha256, path } of this.#files(signal)) {
      if (!unnamed.has(sha256)) continue;
      try {
        const size = this.#takeIfOld(path, youngMs);
        if (size === null) {
          swept.young++;
          continue;
        }
        await Deno.remove(goingPath(path)); // not in this thread: a clip takes milliseconds
        swept.blobs++;
        swept.bytes += size;
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) continue;
        swept.failed++;
        log.error("cannot remove a blob that no event names", { sha256, error: String(error) });
      }
    }
    return swept;
  }

  async *#files(signal: AbortSignal): AsyncIterable<{ readonly sha256: string; readonly path: string }> {
    let looked = 0;
    for (const folder of blobFolders().keys()) {
      for await (const shard of entriesOf(join(this.#options.dataDir, folder))) {
        if (!shard.isDirectory) continue;
        const parent = join(this.#options.dataDir, folder, shard.name);
        for await (const { name } of entriesOf(parent)) {
          const sha256 = BLOB_FILE.exec(name)?.[1];
          if (++looked % FILES_PER_TURN === 0) await yieldToEventLoop();
          signal.throwIfAborted();
          if (sha256 !== undefined) yield { sha256, path: join(parent, name) };
        }
      }
    }
  }

  /**
   * Takes a blob out of use, in one turn, so that nobody can store or name it in between: it has no name any
   * more that somebody looks for. Returns the bytes that it has; null where it is young.
   */
  #takeIfOld(path: string, youngMs: number): number | null {
    const { mtime, size, isFile } = Deno.lstatSync(path);
    if (!isFile || mtime === null || mtime.getTime() > youngMs) return null;
    this.#options.onRemoval(size);
    Deno.renameSync(path, goingPath(path));
    return size;
  }
}

/** The numbers of hashes: two hashes with the same one only make that a blob stays. */
class Hashes {
  /** The numbers by the first byte of the hash: one large set would be copied at once when it grows. */
  readonly #sets = Array.from({ length: 256 }, () => new Set<number>());

  add(sha256: string): void {
    this.#setOf(sha256).add(blobNumber(sha256));
  }

  has(sha256: string): boolean {
    return this.#setOf(sha256).has(blobNumber(sha256));
  }

  get isEmpty(): boolean {
    return this.#sets.every(({ size }) => size === 0);
  }

  deleteIn(text: string): void {
    for (const [sha256] of text.matchAll(SHA256)) this.delete(sha256);
  }

  delete(sha256: string): void {
    this.#setOf(sha256).delete(blobNumber(sha256));
  }

  #setOf(sha256: string): Set<number> {
    return this.#sets[parseInt(sha256.slice(0, 2), 16)]!;
  }
}

/**
 * The name of a file that is about to go. A process that is killed before it is gone leaves it to the next
 * start, like an unfinished one.
 */
function goingPath(path: string): string {
  return join(dirname(dirname(path)), `${PARTIAL_PREFIX}${basename(path)}`);
}

async function* entriesOf(folder: string): AsyncIterable<Deno.DirEntry> {
  try {
    yield* Deno.readDir(folder);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
