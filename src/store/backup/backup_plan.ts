/** Which files of a data directory belong into a backup, in which order, and how much of each. */

import { join, relative } from "node:path";
import { filesBelow, filesBelowLinks } from "../files/folder.ts";
import type { CheckedPlaces } from "../checks/directory_check.ts";
import { SET_ASIDE } from "../checks/set_aside.ts";
import { EVENTS_REMOVED, MEDIA_REMOVED } from "../../model/runs/run.ts";
import { columnText } from "../timeline/record.ts";
import { findSegments } from "../timeline/segment.ts";
import { scanSegment } from "../timeline/segment_scan.ts";
import { gapEnd } from "../timeline/gap_record.ts";
import { PARTIAL_PREFIX } from "../files/partial_file.ts";

export interface PlannedFile {
  readonly path: string;
  /** Where the file is now. */
  readonly from: string;
  /** How many bytes of the file belong to the backup; null for all that it has when it is read. */
  readonly bytes: number | null;
  /** Whether the file only grows: what was in it before stays as it was. */
  readonly grows: boolean;
  /**
   * Whether the backup would not be whole without the file. Others may go while the backup is made, such as
   * an upload.
   */
  readonly isNeeded: boolean;
}

export interface BackupPlan {
  readonly files: readonly PlannedFile[];
  readonly lastSeq: number;
  /** Where the log ends: what comes later is not in the backup. */
  readonly logEnd: { readonly segment: string; readonly offset: number } | null;
}

/**
 * What is left out: files that are made again, that are of no use elsewhere, or that are far more than a
 * backup is for. Everything else is kept, also what a later version adds.
 */
const LEFT_OUT =
  /^(lock|reserve|tmp\/.*|recordings\/.*|search-index.*|timeline\/snapshot.*|timeline\/damaged\/.*|damaged\/.*|.*\.(new|repaired|part|rewrite))$/;

/**
 * Plans a backup. The log ends with a whole commit, and everything that its events name was on the disk
 * before. Keys of requests come first, so that no answer is kept whose events are not.
 */
export function planBackup({ dataDir, uploadRoot }: CheckedPlaces): BackupPlan {
  const answers = [...filesBelowLinks(dataDir, "idempotency")];
  const { segments, lastSeq, logEnd } = planLog(dataDir);
  const others = [...filesBelowLinks(dataDir, "")].filter((path) => belongs(path, { dataDir, uploadRoot }));
  const plain = (path: string, isNeeded: boolean): PlannedFile => ({
    ...{ path, from: join(dataDir, path), bytes: null, isNeeded },
    grows: path.endsWith(".wal"),
  });
  const uploads = [...filesBelow(uploadRoot, "")].filter((path) =>
    !path.split("/").at(-1)!.startsWith(PARTIAL_PREFIX)
  );
  return {
    files: [
      ...answers.map((path) => plain(path, false)),
      ...segments,
      ...others.map((path) => plain(path, /(^|\/)blobs\//.test(path))),
      ...uploads.map((path) => ({ ...plain(`uploads/${path}`, false), from: join(uploadRoot, path) })),
    ],
    lastSeq,
    logEnd,
  };
}

function belongs(path: string, { dataDir, uploadRoot }: CheckedPlaces): boolean {
  if (LEFT_OUT.test(path) || path.startsWith(`${SET_ASIDE}/`)) return false;
  if (path.startsWith("idempotency/") || path.endsWith(".wal") && path.startsWith("timeline/")) return false;
  const fromUploads = relative(uploadRoot, join(dataDir, path));
  if (!fromUploads.startsWith("../") || path.startsWith("uploads/")) return false;
  return !path.split("/").at(-1)!.startsWith(PARTIAL_PREFIX);
}

function planLog(
  dataDir: string,
): Pick<BackupPlan, "lastSeq" | "logEnd"> & { readonly segments: PlannedFile[] } {
  const directory = join(dataDir, "timeline");
  const found = findSegments(directory);
  const unreadable = found.find((segment) => segment.unreadable !== "");
  if (unreadable) Deno.statSync(join(directory, unreadable.name)); // NotFound: it was taken away meanwhile
  if (unreadable) throw new Error(`timeline/${unreadable.name} cannot be read: ${unreadable.unreadable}`);
  const segments: PlannedFile[] = [];
  let [lastSeq, logEnd]: [number, BackupPlan["logEnd"]] = [0, null];
  found.forEach(({ name, sizeBytes }, number) => {
    const from = join(directory, name);
    let bytes = sizeBytes;
    if (number >= found.length - 2) { // the last one may have no record yet
      const end = wholeCommits(from, sizeBytes);
      lastSeq = Math.max(lastSeq, end.seq);
      if (number === found.length - 1) bytes = end.bytes;
    }
    logEnd = { segment: name, offset: bytes };
    segments.push({ path: `timeline/${name}`, from, bytes, grows: true, isNeeded: true });
  });
  return { segments, lastSeq, logEnd };
}

/**
 * Whether events or media were removed after the log ends in the backup. Then blobs may be gone that its
 * events name, although they were there when it was planned.
 */
export function removedSince(dataDir: string, { logEnd }: BackupPlan): boolean {
  const directory = join(dataDir, "timeline");
  const decoder = new TextDecoder();
  let isBehind = logEnd === null;
  let isRemoved = false;
  for (const { name, sizeBytes, unreadable } of findSegments(directory)) {
    const isEnd = name === logEnd?.segment;
    isBehind ||= isEnd;
    if (!isBehind || unreadable !== "") continue;
    using file = Deno.openSync(join(directory, name), { read: true });
    scanSegment(file, sizeBytes, isEnd ? Math.min(sizeBytes, logEnd!.offset) : 0, 0, {
      record: (bytes, { kindStart, kindEnd }) => {
        isRemoved ||= REMOVAL_KINDS.has(columnText(decoder, bytes, kindStart, kindEnd));
      },
      damage: () => {},
    });
  }
  return isRemoved || !isBehind;
}

const REMOVAL_KINDS: ReadonlySet<string> = new Set([EVENTS_REMOVED, MEDIA_REMOVED]);

/**
 * Where the last whole commit ends, and the number of its last event. Damage before it belongs to the copy.
 */
function wholeCommits(path: string, sizeBytes: number): { readonly bytes: number; readonly seq: number } {
  using file = Deno.openSync(path, { read: true });
  let end = { bytes: 0, seq: 0 };
  scanSegment(file, sizeBytes, 0, 0, {
    record: (bytes, record, offset) => {
      const seq = Math.max(record.seq, gapEnd(bytes, record));
      if (record.left === 0) end = { bytes: Math.min(sizeBytes, offset + record.sizeBytes), seq };
    },
    damage: () => {},
  });
  return end;
}
