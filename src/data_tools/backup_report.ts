/** The results of backup, restore and the list of backups, as text and as JSON. */

import type { BackupHead } from "../model/backup_head.ts";
import type { BackupResult } from "../store/backup/backup.ts";
import { idAt, isAhead, type ReadHeads, type UnreadableHead } from "../store/backup/backup_list.ts";
import type { PrunedBackups } from "../store/backup/prune.ts";
import { counted, megabytes, type ToolTime } from "./check_report.ts";

/** A result in both forms: as JSON and as lines of text. */
export interface Report {
  readonly json: unknown;
  readonly lines: readonly string[];
}

export function backupReport(
  result: BackupResult,
  pruned: PrunedBackups | null,
  place: string,
  { tookMs }: ToolTime,
): Report {
  const { head, namedBehind, newObjects, newBytes, damagedBlobs } = result;
  return {
    json: {
      ...headJson(head),
      place,
      ...(namedBehind !== null && { named_behind: namedBehind }),
      new_objects: newObjects,
      new_bytes: newBytes,
      ...(pruned && {
        dropped_backups: pruned.dropped,
        removed_objects: pruned.objects,
        removed_bytes: pruned.bytes,
        unreadable_heads: pruned.unreadable.map(unreadableJson),
      }),
      damaged_blobs: damagedBlobs,
      took_ms: Math.round(tookMs),
    },
    lines: [
      headLine(head),
      ...(namedBehind === null ? [] : [
        `note: it is named right behind ${namedBehind}, whose time the clock has not passed, so that it counts as the newest`,
      ]),
      `new in ${place}: ${counted(newObjects, "object")}, ${megabytes(newBytes)}; took ${
        (tookMs / 1000).toFixed(1)
      } s`,
      ...(pruned === null ? [] : [
        `dropped ${counted(pruned.dropped.length, "backup")}: ${counted(pruned.objects, "object")}, ${
          megabytes(pruned.bytes)
        }`,
        ...pruned.unreadable.map(unreadableLine),
        ...(pruned.unreadable.length === 0 ? [] : [
          "nothing is dropped while a head cannot be read, as its backup may need any object: put the file in order, or move it away",
        ]),
      ]),
      ...damagedBlobs.map((path) =>
        `damage: damaged_blob: ${path}: copied as it is, its bytes have another hash`
      ),
    ],
  };
}

export function backupsReport({ whole, unreadable }: ReadHeads, place: string, nowMs: number): Report {
  const ahead = whole.filter((head) => isAhead(head, nowMs));
  return {
    json: {
      place,
      backups: whole.map(headJson),
      ahead_of_clock: ahead.map(({ id }) => id),
      unreadable_heads: unreadable.map(unreadableJson),
    },
    lines: [
      ...(whole.length === 0 ? [`${place} has no whole backup`] : whole.map(headLine)),
      ...unreadable.map(unreadableLine),
      ...ahead.map(({ id, begun_at }) =>
        `note: backup ${id} began at ${begun_at}, which the clock has not reached: it may be older than others`
      ),
    ],
  };
}

export function restoreReport(head: BackupHead, dataDir: string, { tookMs }: ToolTime): Report {
  return {
    json: { ...headJson(head), data_dir: dataDir, took_ms: Math.round(tookMs) },
    lines: [
      headLine(head),
      `restored into ${dataDir}, every byte compared with its hash; took ${(tookMs / 1000).toFixed(1)} s`,
    ],
  };
}

function unreadableJson({ object, fault }: UnreadableHead) {
  return { name: object, fault };
}

function unreadableLine({ object, fault }: UnreadableHead): string {
  return `damage: unreadable_head: ${object}: ${fault}`;
}

function headJson({ id, begun_at, made_at, last_seq, files, bytes }: BackupHead) {
  return { backup: id, begun_at, made_at, last_seq, files, bytes };
}

function headLine({ id, begun_at, last_seq, files, bytes }: BackupHead): string {
  const begun = id === idAt(Date.parse(begun_at)) ? "" : ` (begun ${begun_at})`;
  return `backup ${id}${begun}: events up to ${last_seq}, ${counted(files, "file")}, ${megabytes(bytes)}`;
}
