/** What one backup consists of: its head, which is written last, and the list of its files, which the head
 * names.
 */

import { createHash } from "node:crypto";
import { type BackupHead, type BackupPart, parseHead } from "../../model/backup_head.ts";
import type { BackupStorage } from "../../model/backup_storage.ts";
import { LIMITS } from "../../contract/limits.ts";

export interface BackupFile {
  /** The path relative to the data directory; uploads are below `uploads/`, wherever they lie. */
  readonly path: string;
  readonly bytes: number;
  /** When the file was changed last, epoch milliseconds. */
  readonly mtime_ms: number;
  readonly parts: readonly BackupPart[];
}

export const HEADS_FOLDER = "backups";
const HEADS = `${HEADS_FOLDER}/`;
const BACKUP_ID = /^[0-9TZ-]+(\.[0-9TZ-]+)*$/;

export function objectName(sha256: string): string {
  return `objects/${sha256.slice(0, 2)}/${sha256}`;
}

export function headName(id: string): string {
  return `${HEADS}${id}.json`;
}

export function sha256Hex(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The ids of the backups that have a head, the oldest first. */
export async function backupIds(storage: BackupStorage): Promise<string[]> {
  const ids: string[] = [];
  for await (const { name } of storage.list(HEADS)) {
    if (!name.endsWith(".json")) continue;
    const id = name.slice(HEADS.length, -".json".length);
    if (BACKUP_ID.test(id)) ids.push(id);
  }
  return ids.sort();
}

/**
 * The id of a backup that begins now. Names have to sort in the order in which backups are made, for each
 * counts on that: which one is dropped, and which one is the newest. A clock that was ahead, or is behind,
 * must not change it. Errors: no time comes after the newest one.
 */
export function nextId(ids: readonly string[], nowMs: number): string {
  const newest = newestOf(ids);
  if (newest === undefined || timeOf(newest)! < nowMs) return idAt(nowMs);
  const next = idAt(timeOf(newest)! + 1);
  if (next > newest) return next;
  throw new Error(`no backup can be named behind ${headName(newest)}; move that file away`);
}

/** The newest of the ids; names that are no time do not count. */
export function newestOf(ids: readonly string[]): string | undefined {
  return ids.findLast((id) => timeOf(id) !== null);
}

/**
 * Whether a backup was made while the clock was ahead, or the clock is behind now. A clock that is set a
 * little back is usual.
 */
export function isAhead({ begun_at }: BackupHead, nowMs: number): boolean {
  return Date.parse(begun_at) > nowMs + LIMITS.backups.clockAheadMs;
}

export function idAt(ms: number): string {
  return new Date(ms).toISOString().replaceAll(":", "-");
}

/** The time in an id; null for a name that is no time. */
function timeOf(id: string): number | null {
  const ms = Date.parse(id.replace(/T(\d\d)-(\d\d)-/, "T$1:$2:"));
  return Number.isNaN(ms) || idAt(ms) !== id ? null : ms;
}

/** Reads the head of a backup. Errors: there is no such backup; `UnreadableHead`. */
export async function readHead(storage: BackupStorage, id: string): Promise<BackupHead> {
  const bytes = BACKUP_ID.test(id) ? await storage.get(headName(id)) : null;
  if (bytes === null) throw new Error(`${storage.name} has no backup ${id}`);
  const { head, fault } = parseHead(new TextDecoder().decode(bytes));
  if (head === null) throw new UnreadableHead(headName(id), fault, storage);
  if (head.id !== id) {
    const own = JSON.stringify(head.id.slice(0, 64));
    throw new UnreadableHead(headName(id), `it is the head of the backup ${own}`, storage);
  }
  if (timeOf(id) === null) throw new UnreadableHead(headName(id), "its name is no time", storage);
  return head;
}

/**
 * The error of a head that is damaged, or that a newer version wrote: what its backup consists of is not
 * known.
 */
export class UnreadableHead extends Error {
  /** `object` is the head's name in the place, `fault` says what is wrong with it. */
  constructor(readonly object: string, readonly fault: string, storage: BackupStorage) {
    super(`${object} in ${storage.name} cannot be read: ${fault}`);
  }
}

export interface ReadHeads {
  /** The heads that can be read, the oldest first. */
  readonly whole: readonly BackupHead[];
  readonly unreadable: readonly UnreadableHead[];
}

/** Reads the heads of all backups: one that is damaged does not hide the others. */
export async function readHeads(storage: BackupStorage): Promise<ReadHeads> {
  const [whole, unreadable]: [BackupHead[], UnreadableHead[]] = [[], []];
  for (const id of await backupIds(storage)) {
    try {
      whole.push(await readHead(storage, id));
    } catch (error) {
      if (!(error instanceof UnreadableHead)) throw error;
      unreadable.push(error);
    }
  }
  return { whole, unreadable };
}

/** The files of a backup. Errors: a part of the list is missing or damaged. */
export async function readList(storage: BackupStorage, { list }: BackupHead): Promise<BackupFile[]> {
  const decoder = new TextDecoder();
  let text = "";
  for (const part of list) text += decoder.decode(await readPart(storage, part), { stream: true });
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as BackupFile);
}

/** Reads a part of a backup. Errors: it is missing, or its bytes are not those that were stored. */
export async function readPart(
  storage: BackupStorage,
  [sha256, bytes]: BackupPart,
): Promise<Uint8Array<ArrayBuffer>> {
  const name = objectName(sha256);
  const content = await storage.get(name);
  if (content === null) throw new Error(`${storage.name} has lost ${name}`);
  if (content.length !== bytes || sha256Hex(content) !== sha256) {
    throw new Error(`${name} in ${storage.name} is damaged: its bytes have another hash`);
  }
  return content;
}
