/** Drops the oldest backups of a place, and the objects that none of those that are kept names. */

import type { BackupStorage } from "../../model/backup_storage.ts";
import { headName, objectName, readHeads, readList, type UnreadableHead } from "./backup_list.ts";

export interface PrunedBackups {
  /** The ids of the backups that were dropped, the oldest first. */
  readonly dropped: readonly string[];
  readonly objects: number;
  readonly bytes: number;
  /**
   * Heads that cannot be read. Where there are any, nothing was dropped: which objects they need is not
   * known.
   */
  readonly unreadable: readonly UnreadableHead[];
}

/**
 * ```
 *   lists of the kept ones read ──► heads of the others go, the oldest first ──► objects that no list names go
 * ```
 *
 * Whatever is broken off leaves each backup that has a head whole; objects that are left over then go the
 * next time. No other backup may be made in the place meanwhile: it counts on objects that no head names yet.
 * Errors: a list of a kept backup cannot be read, and nothing was removed; or the place does not remove an
 * object.
 *
 * `made` was made just now, and is kept whatever the names of the others say.
 */
export async function pruneBackups(
  storage: BackupStorage,
  keep: number,
  made: string,
): Promise<PrunedBackups> {
  const { whole, unreadable } = await readHeads(storage);
  if (unreadable.length > 0) return { dropped: [], objects: 0, bytes: 0, unreadable };
  const heads = [...whole.filter(({ id }) => id !== made), ...whole.filter(({ id }) => id === made)];
  const kept = heads.slice(-keep);
  const dropped = heads.slice(0, -keep).map(({ id }) => id);
  const named = new Set<string>();
  for (const head of kept) {
    const files = await readList(storage, head);
    for (const [sha256] of head.list) named.add(objectName(sha256));
    for (const { parts } of files) for (const [sha256] of parts) named.add(objectName(sha256));
  }
  for (const id of dropped) await storage.remove(headName(id));
  let [objects, bytes] = [0, 0];
  const left: { readonly name: string; readonly bytes: number }[] = [];
  for await (const object of storage.list("objects/")) {
    if (OBJECT.test(object.name) && !named.has(object.name)) left.push(object);
  }
  for (const object of left) {
    await storage.remove(object.name);
    objects += 1;
    bytes += object.bytes;
  }
  return { dropped, objects, bytes, unreadable };
}

/** The name of an object; whatever else lies there is not ours. */
const OBJECT = /^objects\/[0-9a-f]{2}\/[0-9a-f]{64}$/;
