/** Makes a backup of a data directory while a service may run on it: consistent, and only of what the place
 * does not have yet.
 */

import { createHash } from "node:crypto";
import type { World } from "../../base/world.ts";
import { BACKUP_FORMAT, type BackupHead, type BackupPart } from "../../model/backup_head.ts";
import { BACKUP_PART_BYTES, type BackupStorage } from "../../model/backup_storage.ts";
import type { CheckedPlaces } from "../checks/directory_check.ts";
import { knownFormat } from "../files/data_format.ts";
import {
  type BackupFile,
  backupIds,
  headName,
  idAt,
  newestOf,
  nextId,
  objectName,
  readHead,
  readList,
  sha256Hex,
  UnreadableHead,
} from "./backup_list.ts";
import { planBackup, type PlannedFile, removedSince } from "./backup_plan.ts";

export interface BackupResult {
  readonly head: BackupHead;
  /**
   * The backup that seems to be of a later time, behind which this one is named so that it is the newest;
   * null as a rule.
   */
  readonly namedBehind: string | null;
  /** Objects that the place did not have, and their bytes. */
  readonly newObjects: number;
  readonly newBytes: number;
  /** Blobs whose bytes are not those that their names say; they were copied as they are. */
  readonly damagedBlobs: readonly string[];
}

/**
 * How often a backup is planned. A file that is needed may go while it is copied, when events are removed:
 * then the rest is planned anew.
 */
const ROUNDS_MAX = 5;
/** The path of a blob, whose bytes never change. */
const BLOB = /(?:^|\/)blobs\/[0-9a-f]{2}\/([0-9a-f]{64})\.\w+$/;
/** A file that grew in more steps than this is stored in large parts again. */
const GROWN_PARTS_MAX = 64;

/**
 * Makes a backup. Errors: a needed file cannot be read, or the place does not take or give an object. Then
 * there is no new backup.
 */
export async function makeBackup(
  places: CheckedPlaces,
  storage: BackupStorage,
  world: World,
): Promise<BackupResult> {
  const begunMs = world.now();
  const backup = await Backup.begin(storage, begunMs);
  for (let round = 1;; round++) {
    try {
      const dataFormat = knownFormat(places.dataDir) ?? 1;
      const plan = planBackup(places);
      const copied: BackupFile[] = [];
      for (const file of plan.files) {
        const one = await backup.copy(file);
        if (one !== null) copied.push(one);
      }
      if (round < ROUNDS_MAX && removedSince(places.dataDir, plan)) continue;
      return await backup.finish({ copied, lastSeq: plan.lastSeq, dataFormat, madeMs: world.now() });
    } catch (error) {
      const isGone = error instanceof Deno.errors.NotFound;
      if (!isGone || round === ROUNDS_MAX) throw error;
    }
  }
}

class Backup {
  readonly #storage: BackupStorage;
  readonly #begunMs: number;
  /** The name that the backup is to have; whether it is still free is looked at when the head is written. */
  readonly #id: string;
  readonly #namedBehind: string | null;
  /** Objects that the place has, with their sizes. */
  readonly #stored: Map<string, number>;
  /** The files of the last backup. */
  readonly #before: ReadonlyMap<string, BackupFile>;
  readonly #damagedBlobs = new Set<string>();
  #newObjects = 0;
  #newBytes = 0;

  static async begin(storage: BackupStorage, begunMs: number): Promise<Backup> {
    const stored = new Map<string, number>();
    for await (const { name, bytes } of storage.list("objects/")) stored.set(name, bytes);
    const ids = await backupIds(storage);
    return new Backup(storage, { ids, begunMs, stored, before: await lastFiles(storage, ids) });
  }

  private constructor(
    storage: BackupStorage,
    { ids, begunMs, stored, before }: {
      readonly ids: readonly string[];
      readonly begunMs: number;
      readonly stored: Map<string, number>;
      readonly before: ReadonlyMap<string, BackupFile>;
    },
  ) {
    this.#storage = storage;
    this.#begunMs = begunMs;
    this.#id = nextId(ids, begunMs);
    this.#namedBehind = this.#id === idAt(begunMs) ? null : newestOf(ids)!;
    this.#stored = stored;
    this.#before = before;
  }

  /** Copies a file; null for one that is gone and not needed. Throws `NotFound` for one that is needed. */
  async copy(planned: PlannedFile): Promise<BackupFile | null> {
    const { path, from, bytes: most, isNeeded } = planned;
    try {
      if (!(await Deno.lstat(from)).isFile) {
        if (!isNeeded) return null;
        if (!(await Deno.stat(from)).isFile) throw new Error(`${path} is no regular file; run repair`);
      }
      using file = await Deno.open(from, { read: true });
      const { size, mtime } = await file.stat();
      const mtimeMs = mtime?.getTime() ?? 0;
      const before = this.#before.get(path);
      const isSame = before?.bytes === (most ?? size) && (before.mtime_ms === mtimeMs || BLOB.test(path));
      if (before !== undefined && isSame && this.#hasAll(before.parts)) {
        return before;
      }
      const lengths = planned.grows ? grownLengths(before?.parts ?? []) : [];
      const parts: BackupPart[] = [];
      const whole = createHash("sha256");
      let bytes = 0;
      while (most === null || bytes < most) {
        const wanted = Math.min(lengths.shift() ?? BACKUP_PART_BYTES, (most ?? Infinity) - bytes);
        const piece = await readPiece(file, wanted);
        if (piece.length === 0) break;
        whole.update(piece);
        bytes += piece.length;
        parts.push(await this.#store(piece));
      }
      // Retention took events out of it: another segment may have lost some, too.
      if (most !== null && bytes < most) {
        throw new Deno.errors.NotFound(`${path} ends at ${bytes}, and had ${most} bytes`);
      }
      this.#compareWithName(path, whole.digest("hex"));
      return { path, bytes, mtime_ms: mtimeMs, parts };
    } catch (error) {
      if (error instanceof Deno.errors.NotFound && !isNeeded) return null;
      if (!(error instanceof Deno.errors.NotCapable)) throw error;
      // A link to a file, not to a folder of another disk: whoever writes here is not to read what the
      // operator may.
      throw new Error(`${path} is a link to a file elsewhere; put the file in its place, or run repair`);
    }
  }

  /** Writes the list and then the head: with the head the backup is whole. */
  async finish(
    { copied, lastSeq, dataFormat, madeMs }: {
      readonly copied: readonly BackupFile[];
      readonly lastSeq: number;
      readonly dataFormat: number;
      readonly madeMs: number;
    },
  ): Promise<BackupResult> {
    const text = new TextEncoder().encode(copied.map((file) => `${JSON.stringify(file)}\n`).join(""));
    const list: BackupPart[] = [];
    for (let at = 0; at < text.length; at += BACKUP_PART_BYTES) {
      list.push(await this.#store(text.slice(at, at + BACKUP_PART_BYTES)));
    }
    const [begun, made] = [this.#begunMs, madeMs].map((ms) => new Date(ms).toISOString());
    let id = this.#id;
    // Another backup that runs meanwhile counts on from the same name where the clock does not lead.
    while (this.#namedBehind !== null && (await this.#storage.get(headName(id))) !== null) {
      id = nextId([id], this.#begunMs);
    }
    const head: BackupHead = {
      ...{ format: BACKUP_FORMAT, id, begun_at: begun!, made_at: made! },
      ...{ data_format: dataFormat, last_seq: lastSeq, files: copied.length },
      bytes: copied.reduce((sum, { bytes }) => sum + bytes, 0),
      list,
    };
    await this.#storage.put(headName(id), new TextEncoder().encode(`${JSON.stringify(head, null, 2)}\n`));
    return {
      head,
      namedBehind: this.#namedBehind,
      newObjects: this.#newObjects,
      newBytes: this.#newBytes,
      damagedBlobs: [...this.#damagedBlobs],
    };
  }

  async #store(piece: Uint8Array<ArrayBuffer>): Promise<BackupPart> {
    const sha256 = sha256Hex(piece);
    const name = objectName(sha256);
    if (this.#stored.get(name) !== piece.length) {
      await this.#storage.put(name, piece);
      this.#stored.set(name, piece.length);
      this.#newObjects += 1;
      this.#newBytes += piece.length;
    }
    return [sha256, piece.length];
  }

  #hasAll(parts: readonly BackupPart[]): boolean {
    return parts.every(([sha256, bytes]) => this.#stored.get(objectName(sha256)) === bytes);
  }

  #compareWithName(path: string, sha256: string): void {
    const named = BLOB.exec(path)?.[1];
    if (named !== undefined && named !== sha256) this.#damagedBlobs.add(path);
  }
}

/**
 * The files of the newest backup whose head can be read. None where there is no backup yet, or where its list
 * is damaged: then everything is compared with the objects anew.
 */
async function lastFiles(
  storage: BackupStorage,
  ids: readonly string[],
): Promise<ReadonlyMap<string, BackupFile>> {
  for (const id of ids.toReversed()) {
    try {
      const files = await readList(storage, await readHead(storage, id));
      return new Map(files.map((file) => [file.path, file]));
    } catch (error) {
      if (!(error instanceof UnreadableHead)) break;
    }
  }
  return new Map();
}

/**
 * The lengths in which a file that only grows is stored: what was stored before comes in the same parts
 * again, so that only the rest is new.
 */
function grownLengths(parts: readonly BackupPart[]): number[] {
  return parts.length > GROWN_PARTS_MAX ? [] : parts.map(([, bytes]) => bytes);
}

/** Reads `bytes` of a file, or fewer at its end. */
async function readPiece(file: Deno.FsFile, bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const piece = new Uint8Array(Math.min(bytes, BACKUP_PART_BYTES));
  let filled = 0;
  while (filled < piece.length) {
    const read = await file.read(piece.subarray(filled));
    if (!read) break;
    filled += read;
  }
  return piece.subarray(0, filled);
}
