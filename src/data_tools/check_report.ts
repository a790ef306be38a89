/** The result of a check or a repair as text and as JSON. */

import type { DirectoryCheck } from "../store/checks/directory_check.ts";
import type { Repair } from "../store/checks/repair.ts";
import type { CheckFinding, Findings } from "../store/checks/findings.ts";

/** Findings that are printed of each kind; JSON has more of them. */
const PRINTED_MAX = 20;

export interface ToolTime {
  readonly tookMs: number;
}

/** A check as one JSON object, for programs. See docs/backup.md#verify. */
export function checkJson(check: DirectoryCheck, { tookMs }: ToolTime): Record<string, unknown> {
  const { findings, log, blobs, recordings, uploads } = check;
  return {
    is_sound: findings.isSound,
    data_dir: check.dataDir,
    format: check.format,
    segments: log.segments,
    log_bytes: log.bytes,
    records: log.records,
    runs: log.runs,
    last_seq: log.lastSeq,
    blobs: blobs.blobs,
    blob_bytes: blobs.bytes,
    blob_references: blobs.references,
    delivery_records: check.deliveries,
    kept_answers: check.answers,
    recorded_segments: recordings.segments,
    recording_bytes: recordings.bytes,
    uploads: uploads.files,
    upload_bytes: uploads.bytes,
    damage_count: findings.damageCount,
    counts: findings.counts,
    damage: findings.damage.map(findingJson),
    notes: findings.notes.map(findingJson),
    took_ms: Math.round(tookMs),
  };
}

function findingJson({ kind, path, offset, bytes, seqs, text }: CheckFinding) {
  return {
    ...{ kind, path },
    ...(offset !== undefined && { offset }),
    ...(bytes !== undefined && { bytes }),
    ...(seqs !== undefined && { from_seq: seqs[0], to_seq: seqs[1] }),
    text,
  };
}

/** A check as lines for a person. */
export function checkLines(check: DirectoryCheck, { tookMs }: ToolTime): string[] {
  const { log, blobs, recordings, uploads, findings } = check;
  const readBytes = log.bytes + blobs.bytes + uploads.bytes;
  const seconds = tookMs / 1000;
  return [
    `data directory ${check.dataDir}, format ${check.format}`,
    `  log         ${counted(log.records, "record")} of ${counted(log.runs, "run")} in ` +
    `${counted(log.segments, "segment")}, up to event ${log.lastSeq}; ${megabytes(log.bytes)}`,
    `  blobs       ${counted(blobs.blobs, "blob")}, ${
      megabytes(blobs.bytes)
    }; the log names ${blobs.references}`,
    `  deliveries  ${counted(check.deliveries, "record")}`,
    `  answers     ${counted(check.answers, "kept answer")}`,
    `  recordings  ${counted(recordings.segments, "segment")}, ${
      megabytes(recordings.bytes)
    }; their media were not read`,
    `  uploads     ${counted(uploads.files, "file")}, ${
      megabytes(uploads.bytes)
    }; nothing says which bytes they had`,
    ...findingLines("damage", findings.damage, findings),
    ...findingLines("note", findings.notes, findings),
    `${findings.isSound ? "sound" : `damaged: ${counted(findings.damageCount, "finding")}`}; read ` +
    `${megabytes(readBytes)} in ${seconds.toFixed(1)} s, ${(readBytes / 1e6 / seconds).toFixed(0)} MB/s`,
  ];
}

function findingLines(title: string, list: readonly CheckFinding[], { counts }: Findings): string[] {
  const lines: string[] = [];
  for (const kind of new Set(list.map((finding) => finding.kind))) {
    const own = list.filter((finding) => finding.kind === kind);
    for (const { path, offset, bytes, text } of own.slice(0, PRINTED_MAX)) {
      const place = offset === undefined ? "" : ` at ${offset}${bytes ? `, ${counted(bytes, "byte")}` : ""}`;
      lines.push(`${title}: ${kind}: ${path}${place}: ${text}`);
    }
    const more = counts[kind]! - Math.min(own.length, PRINTED_MAX);
    if (more > 0) lines.push(`${title}: ${kind}: ${more} more`);
  }
  return lines;
}

export function repairJson({ steps, setAside, after }: Repair, time: ToolTime): Record<string, unknown> {
  return { steps, set_aside: setAside, after: checkJson(after, time) };
}

export function repairLines({ steps, setAside, after }: Repair, time: ToolTime): string[] {
  const where = setAside === null ? [] : [`what was damaged lies in ${setAside} of the data directory`];
  return [
    ...(steps.length === 0 ? ["nothing was to be repaired"] : steps),
    ...where,
    ...checkLines(after, time),
  ];
}

/** A number with its word: `1 record`, `12,345 records`. */
export function counted(number: number, what: string): string {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
