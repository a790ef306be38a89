/** Checks what lies beside the log and the blobs: format, snapshot, delivery log, kept answers, uploads. */

import { errorText } from "../../base/log.ts";
import { join } from "node:path";
import { answerPieces, readAnswerFile } from "../answers/answer_file.ts";
import { knownFormat } from "../files/data_format.ts";
import { openRegular, readAt } from "../files/file_bytes.ts";
import { HEADER_BYTES, isTornRecord } from "../timeline/record.ts";
import { linesIn, scanSegment } from "../timeline/segment_scan.ts";
import { seqOfSnapshot } from "../timeline/snapshot.ts";
import { filesBelow, filesBelowLinks } from "../files/folder.ts";
import { PRINCIPAL_SECRET_FILE, readPrincipalSecret } from "../files/principal_secret.ts";
import type { Findings } from "./findings.ts";

/** The format of the directory; 1 where there is no file of it. Errors: a newer version wrote it. */
export function checkFormat(dataDir: string, findings: Findings): number {
  try {
    return knownFormat(dataDir) ?? 1;
  } catch (error) {
    const text = errorText(error);
    if (/ has format \d+| was broken off/.test(text)) throw error;
    findings.damaged("damaged_format", "format", "it holds no version of a format");
    return 1;
  }
}

/**
 * Checks the secret of the principals: without it the service does not start, and a repair cannot make it
 * again.
 */
export function checkPrincipalSecret(dataDir: string, format: number, findings: Findings): void {
  try {
    readPrincipalSecret(dataDir, format);
  } catch (error) {
    findings.damaged("unreadable_file", PRINCIPAL_SECRET_FILE, errorText(error));
  }
}

/**
 * The highest sequence number that the snapshot knows of; 0 where it says nothing. Call it before the log is
 * read.
 */
export function checkSnapshot(dataDir: string, findings: Findings): number {
  try {
    return seqOfSnapshot(join(dataDir, "timeline")) ?? 0;
  } catch (error) {
    const text = `it is not used, and made again: ${errorText(error)}`;
    findings.note("unusable_snapshot", "timeline/snapshot", text);
    return 0;
  }
}

export const DELIVERY_FILE = "webhook-delivery.wal";

/** Checks the delivery log. Returns the number of records. */
export function checkDeliveries(dataDir: string, findings: Findings): number {
  let records = 0;
  try {
    using file = openRegular(join(dataDir, DELIVERY_FILE));
    const { size } = file.statSync();
    const damaged = (from: number, to: number) =>
      findings.damaged("damaged_deliveries", DELIVERY_FILE, "bytes that are no record", {
        offset: from,
        bytes: to - from,
      });
    const end = scanSegment(file, size, 0, 0, { record: () => records += 1, damage: damaged });
    if (end.tailFrom < 0 || end.tailFrom === size) return records;
    const lines = linesIn(file, end.tailFrom, size);
    if (lines.count > 0) damaged(end.tailFrom, lines.end);
    if (lines.end === size || file.statSync().size !== size) return records;
    const isTorn = isTornRecord(readAt(file, lines.end, Math.min(HEADER_BYTES, size - lines.end)));
    if (!isTorn) damaged(lines.end, size);
    else {
      findings.note("torn_write", DELIVERY_FILE, "a write that was cut off; the next start cuts it", {
        offset: lines.end,
        bytes: size - lines.end,
      });
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0; // there was never a webhook
    findings.damaged("unreadable_file", DELIVERY_FILE, `it cannot be read: ${errorText(error)}`);
  }
  return records;
}

/**
 * Checks the kept answers. Returns their number. One without an end is that of a request that is under way,
 * or that a crash ended.
 */
export async function checkAnswers(dataDir: string, findings: Findings): Promise<number> {
  let answers = 0;
  for (const path of filesBelowLinks(dataDir, "idempotency")) {
    const file = join(dataDir, path);
    try {
      const found = readAnswerFile(file);
      if (found === undefined) {
        findings.note("leftover_file", path, "its request had not begun");
        continue;
      }
      const { end, headBytes } = found;
      if (end !== undefined && "bytes" in end) { for await (const _ of answerPieces(file, headBytes, end)); }
      answers += 1;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue; // it was a day old
      findings.damaged("damaged_answer", path, errorText(error));
    }
  }
  return answers;
}

/** Checks the uploads. Nothing says which bytes an upload had: each is read to its end. */
export function checkUploads(uploadRoot: string, findings: Findings): { files: number; bytes: number } {
  const buffer = new Uint8Array(1024 * 1024);
  let [files, bytes] = [0, 0];
  for (const path of filesBelow(uploadRoot, "")) {
    try {
      using file = openRegular(join(uploadRoot, path));
      for (let read = file.readSync(buffer); read; read = file.readSync(buffer)) bytes += read;
      files += 1;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue;
      findings.damaged("unreadable_file", `uploads/${path}`, `it cannot be read: ${errorText(error)}`);
    }
  }
  return { files, bytes };
}
