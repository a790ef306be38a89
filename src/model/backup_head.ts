/** The head of a backup, which is written last and shows that the backup is whole. See docs/backup.md#format.
 */

import * as z from "zod";
import { errorText } from "../base/log.ts";
import { shapeMessage } from "./shape_message.ts";
import { BACKUP_PART_BYTES } from "./backup_storage.ts";

export const BACKUP_FORMAT = 1;

/**
 * ```
 *   objects/<first 2 digits>/<sha256>   parts of files, and of lists of files; named by the hash of their bytes
 *   backups/<id>.json                   the head of a backup; it comes last, so a backup that was broken off has none
 * ```
 *
 * `id` is the time at which it began, so that names sort by age, or right behind the newest one where the
 * clock has not passed that.
 */
export interface BackupHead {
  readonly format: typeof BACKUP_FORMAT;
  readonly id: string;
  readonly begun_at: string;
  readonly made_at: string;
  /** Format version of the data directory. */
  readonly data_format: number;
  /** The sequence number of the last event in the backup. */
  readonly last_seq: number;
  readonly files: number;
  readonly bytes: number;
  /** The list of files: one JSON object a line. */
  readonly list: readonly BackupPart[];
}

export type BackupPart = readonly [sha256: string, bytes: number];

const COUNT = z.int().min(0);
const TIME = z.iso.datetime("must be a time");
const PART = z.tuple([
  z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256"),
  COUNT.max(BACKUP_PART_BYTES),
]);
const HEAD = z.object({
  ...{ format: z.literal(BACKUP_FORMAT), id: z.string(), begun_at: TIME, made_at: TIME },
  ...{ data_format: COUNT.min(1), last_seq: COUNT, files: COUNT, bytes: COUNT, list: z.array(PART) },
});
const ANY_HEAD = z.object({ format: COUNT });

/** Reads a head, or says what is wrong with it. */
export function parseHead(text: string): ParsedHead {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { head: null, fault: `it is no JSON: ${errorText(error)}` };
  }
  const format = ANY_HEAD.safeParse(value).data?.format ?? BACKUP_FORMAT;
  if (format !== BACKUP_FORMAT) {
    return { head: null, fault: `it has format ${format}, and this version reads ${BACKUP_FORMAT}` };
  }
  const { data: head, error } = HEAD.safeParse(value, { error: shapeMessage });
  if (head !== undefined) return { head, fault: null };
  const { path, message } = error!.issues[0]!;
  return { head: null, fault: `${path.length === 0 ? "it" : path.join(".")} ${message}` };
}

export type ParsedHead =
  | { readonly head: BackupHead; readonly fault: null }
  | { readonly head: null; readonly fault: string };
