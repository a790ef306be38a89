/** What each principal stores, in log records, blobs, uploads and kept answers, and the quota on it. See
 * docs/security/load.md#storage-quota.
 */

import { ownerPrefix, ownerPrefixIn } from "../../model/identifiers.ts";
import { join } from "node:path";
import { refuse } from "../../contract/refusal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import { findEvent, grantedBlobs } from "../../model/events/event_table.ts";
import type { PrincipalNames } from "../../model/principal_names.ts";
import { blobBytes } from "../media/blobs.ts";
import type { Timeline } from "../timeline/timeline.ts";
import type { GrowingBytes } from "../files/partial_file.ts";

export interface StoredBytesOptions {
  readonly dataDir: string;
  readonly uploadRoot: string;
  readonly timeline: Pick<Timeline, "view" | "readAll" | "names">;
  /** SERVICE_STORAGE_QUOTA_BYTES; without it nothing is counted. */
  readonly quotaBytes: number | undefined;
  readonly world: World;
  readonly metrics: Metrics;
}

/**
 * Who stored a blob cannot be seen from its file, so this file in the data directory has a line for each:
 * bytes, principal.
 */
const LEDGER = "stored-blobs";
/**
 * The least time between two counts of the uploads, where a principal has met its quota: an operator may have
 * removed some.
 */
const RECOUNT_MS = 60_000;

/**
 * What each principal stores. It is counted at the start from what there is:
 *
 *     log records   the fold of the log knows the bytes of each run
 *     blobs         the ledger, which is written again with one line for each principal; without it, the blobs that events name,
 *                   each counted for the run that named it first
 *     uploads       the files in the upload root
 *     answers       the files of idempotency keys, counted by their owner, KeptAnswers
 *
 * and from then on as it is written. A crash between a blob and its line loses that count, nothing else does.
 */
export class StoredBytes implements Disposable {
  readonly #options: StoredBytesOptions;
  readonly #quotaBytes: number;
  readonly #blobs: Map<string, number>;
  /** Bytes of uploads, by the prefix of the owner. */
  #uploads: Map<string, number>;
  readonly #answers = new Map<string, number>();
  readonly #growing = new Map<string, number>();
  readonly #ledger: Deno.FsFile | undefined;
  #countedMs: number;

  static open(options: StoredBytesOptions): StoredBytes {
    const path = join(options.dataDir, LEDGER);
    if (options.quotaBytes === undefined) {
      removeIfThere(path); // it would miss what is stored from now on
      return new StoredBytes(options, new Map(), undefined);
    }
    const blobs = readLedger(path, options.timeline.names) ?? countBlobs(options);
    return new StoredBytes(options, blobs, writeLedger(path, blobs));
  }

  private constructor(
    options: StoredBytesOptions,
    blobs: Map<string, number>,
    ledger: Deno.FsFile | undefined,
  ) {
    this.#options = options;
    this.#quotaBytes = options.quotaBytes ?? Infinity;
    this.#blobs = blobs;
    this.#ledger = ledger;
    this.#countedMs = options.world.monotonicMs();
    this.#uploads = ledger === undefined ? new Map() : countUploads(options);
  }

  /** What the principal stores, and what is being written for it. */
  of(principalKey: string): number {
    return this.#options.timeline.view.logBytes(principalKey) +
      (this.#blobs.get(principalKey) ?? 0) +
      (this.#uploads.get(ownerPrefix(principalKey)) ?? 0) +
      (this.#answers.get(principalKey) ?? 0) +
      (this.#growing.get(principalKey) ?? 0);
  }

  /** Refuses with 507 `storage_quota` where the principal has no room for `bytes`, or for anything at all. */
  requireRoom(principalKey: string, bytes = 0): void {
    if (this.#hasRoom(principalKey, bytes)) return;
    this.#recountUploads();
    if (this.#hasRoom(principalKey, bytes)) return;
    this.#options.metrics.add("service_storage_quota_refusals_total");
    throw refuse.because(
      "storage_quota",
      `Cannot store more: ${this.of(principalKey)} of the ${this.#quotaBytes} bytes of your quota are used` +
        (bytes > 0 ? ` and this needs ${bytes}` : ""),
    );
  }

  /**
   * Counts a file whose size is known only at its end. Refuses at once where the principal has no room, and
   * later each piece.
   */
  growing(principalKey: string): GrowingBytes {
    this.requireRoom(principalKey);
    let written = 0;
    return {
      add: (bytes) => {
        this.requireRoom(principalKey, bytes);
        written += bytes;
        addTo(this.#growing, principalKey, bytes);
      },
      [Symbol.dispose]: () => {
        addTo(this.#growing, principalKey, -written);
        written = 0;
      },
    };
  }

  /** Counts a blob; `bytes` is negative where blobs were removed. */
  addBlob(principalKey: string, bytes: number): void {
    if (this.#ledger === undefined) return;
    addTo(this.#blobs, principalKey, bytes);
    try {
      this.#ledger.writeSync(ledgerLine(principalKey, bytes));
    } catch (error) {
      this.#options.world.log.error("cannot write the ledger of blobs", { error: String(error) });
    }
  }

  /**
   * Counts the blobs again, after some were removed: those that events name, each for the run that named it
   * first, and what is stored meanwhile. Rejects with the reason of `signal`.
   */
  async recountBlobs(signal: AbortSignal): Promise<void> {
    if (this.#ledger === undefined) return;
    const before = new Map(this.#blobs);
    const counts = new Map<string, number>();
    for (const batch of blobsByRun(this.#options)) {
      for (const { principalKey, bytes } of batch) addTo(counts, principalKey, bytes);
      await yieldToEventLoop();
      signal.throwIfAborted();
    }
    for (const principalKey of new Set([...this.#blobs.keys(), ...counts.keys()])) {
      // Without what was there before; the ledger gets the difference.
      const since = (this.#blobs.get(principalKey) ?? 0) - (before.get(principalKey) ?? 0);
      const sum = (counts.get(principalKey) ?? 0) + since;
      const change = sum - (this.#blobs.get(principalKey) ?? 0);
      if (change !== 0) this.addBlob(principalKey, change);
    }
  }

  /**
   * The bytes of the blobs of each run that has any: those that it named first. Rejects with the reason of
   * `signal`.
   */
  async blobBytesOfRuns(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const batch of blobsByRun(this.#options)) {
      for (const { runId, bytes } of batch) addTo(counts, runId, bytes);
      await yieldToEventLoop();
      signal.throwIfAborted();
    }
    return counts;
  }

  /** Counts an upload; `bytes` is negative where a smaller file replaced a larger one. */
  addUpload(principalKey: string, bytes: number): void {
    if (this.#ledger !== undefined) addTo(this.#uploads, ownerPrefix(principalKey), bytes);
  }

  /** Counts an idempotency key and its answer; `bytes` is negative when they are removed. */
  addAnswer(principalKey: string, bytes: number): void {
    if (this.#ledger !== undefined) addTo(this.#answers, principalKey, bytes);
  }

  [Symbol.dispose](): void {
    this.#ledger?.close();
  }

  #hasRoom(principalKey: string, bytes: number): boolean {
    if (this.#quotaBytes === Infinity) return true;
    const used = this.of(principalKey);
    return used < this.#quotaBytes && used + bytes <= this.#quotaBytes;
  }

  #recountUploads(): void {
    const nowMs = this.#options.world.monotonicMs();
    if (nowMs - this.#countedMs < RECOUNT_MS) return;
    this.#countedMs = nowMs;
    this.#uploads = countUploads(this.#options);
  }
}

function addTo(counts: Map<string, number>, key: string, bytes: number): void {
  const sum = (counts.get(key) ?? 0) + bytes;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}

/** Counts the uploads, by the prefix that names their owner now. */
function countUploads({ uploadRoot, timeline: { names } }: StoredBytesOptions): Map<string, number> {
  const counts = new Map<string, number>();
  const seen = new Set<number>();
  for (const { name, isFile } of Deno.readDirSync(uploadRoot)) {
    const prefix = ownerPrefixIn(name);
    if (!isFile || prefix === null) continue;
    const { size, ino } = statOf(join(uploadRoot, name));
    if (ino !== null && seen.has(ino)) continue; // bytes that have two names, both of one owner
    if (ino !== null) seen.add(ino);
    addTo(counts, names.current(prefix), size);
  }
  return counts;
}

/** Reads the ledger; null where there is none. A line that a crash cut off is left out. */
function readLedger(path: string, names: PrincipalNames): Map<string, number> | null {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  const counts = new Map<string, number>();
  for (const [, bytes, principalKey] of text.matchAll(/^(-?\d{1,15}) (\S+)\n/gm)) {
    addTo(counts, names.current(principalKey!), Number(bytes));
  }
  return counts;
}

/** Writes the ledger anew, with one line for each principal; returns the file, open for more. */
function writeLedger(path: string, counts: ReadonlyMap<string, number>): Deno.FsFile {
  const draft = `${path}.new`;
  {
    using file = Deno.openSync(draft, { create: true, truncate: true, write: true, mode: 0o600 });
    for (const [principalKey, bytes] of counts) file.writeSync(ledgerLine(principalKey, bytes));
    file.syncSync();
  }
  Deno.renameSync(draft, path);
  return Deno.openSync(path, { append: true });
}

function ledgerLine(principalKey: string, bytes: number): Uint8Array {
  return new TextEncoder().encode(`${bytes} ${principalKey}\n`);
}

function countBlobs(options: StoredBytesOptions): Map<string, number> {
  const counts = new Map<string, number>();
  for (const batch of blobsByRun(options)) {
    for (const { principalKey, bytes } of batch) addTo(counts, principalKey, bytes);
  }
  return counts;
}

interface BlobOfRun {
  readonly runId: string;
  readonly principalKey: string;
  readonly bytes: number;
}

/**
 * The size of every blob that an event names, once, with the run that named it first; an array for each batch
 * of events.
 */
function* blobsByRun({ dataDir, timeline }: StoredBytesOptions): Iterable<BlobOfRun[]> {
  const seen = new Set<string>();
  const kinds = (kind: string) => (findEvent(kind)?.blobs.length ?? 0) > 0;
  for (const batch of timeline.readAll({ kinds })) {
    const found: BlobOfRun[] = [];
    for (const { kind, runId, payload } of batch) {
      const principalKey = timeline.view.run(runId)?.principalKey;
      if (principalKey === undefined) continue;
      for (const { mediaType, sha256 } of grantedBlobs(kind, JSON.parse(payload))) {
        if (seen.has(sha256)) continue;
        seen.add(sha256);
        found.push({ runId, principalKey, bytes: blobBytes(dataDir, mediaType, sha256) });
      }
    }
    yield found;
  }
}

/** The size of a file and its number on the disk; a size of 0 for one that has just been removed. */
function statOf(path: string): Pick<Deno.FileInfo, "size" | "ino"> {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { size: 0, ino: null };
    throw error;
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
