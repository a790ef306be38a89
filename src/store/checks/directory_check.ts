/** Checks a whole data directory: every record, every blob by its hash, every reference. Writes nothing and
 * takes no lock.
 */

import { join } from "node:path";
import { HEADER_BYTES, ParsedRecord } from "../timeline/record.ts";
import { readAt } from "../files/file_bytes.ts";
import { acceptedLosses, isAccepted } from "../timeline/accepted_losses.ts";
import { checkBlobs, type CheckedBlobs } from "./blob_check.ts";
import {
  checkAnswers,
  checkDeliveries,
  checkFormat,
  checkPrincipalSecret,
  checkSnapshot,
  checkUploads,
} from "./file_check.ts";
import { type CheckedRecordings, checkRecordings } from "./recording_check.ts";
import { Findings } from "./findings.ts";
import { type CheckedLog, checkLog } from "./log_check.ts";

export interface CheckedPlaces {
  readonly dataDir: string;
  readonly uploadRoot: string;
}

export interface DirectoryCheck {
  readonly dataDir: string;
  readonly format: number;
  readonly log: CheckedLog;
  readonly blobs: CheckedBlobs;
  readonly deliveries: number;
  readonly answers: number;
  readonly recordings: CheckedRecordings;
  readonly uploads: { readonly files: number; readonly bytes: number };
  readonly findings: Findings;
}

/** Checks a data directory. Errors: a newer version wrote it, or it cannot be read at all. */
export async function checkDirectory(
  { dataDir, uploadRoot }: CheckedPlaces,
  findings: Findings = new Findings(),
): Promise<DirectoryCheck> {
  const format = checkFormat(dataDir, findings);
  checkPrincipalSecret(dataDir, format, findings);
  const accepted = acceptedLosses(dataDir);
  const seenSeq = checkSnapshot(dataDir, findings);
  const log = checkLog(dataDir, accepted, findings);
  if (seenSeq > log.nextSeq - 1 && !isAccepted(accepted, log.nextSeq, seenSeq)) {
    findings.damaged(
      "missing_events",
      "timeline/snapshot",
      `it knows events up to ${seenSeq}, and the log ends with ${log.nextSeq - 1}`,
      { seqs: [log.nextSeq, seenSeq] },
    );
  }
  let logAgain: CheckedLog | undefined;
  const isStillNamed = (path: string) =>
    isRecordThere(dataDir, log, path) &&
    (logAgain ??= checkLog(dataDir, accepted, new Findings())).blobs.has(path);
  const blobs = checkBlobs(dataDir, log, { accepted, isStillNamed, findings });
  return {
    dataDir,
    format,
    log,
    blobs,
    deliveries: checkDeliveries(dataDir, findings),
    answers: await checkAnswers(dataDir, findings),
    recordings: checkRecordings(dataDir, findings),
    uploads: checkUploads(uploadRoot, findings),
    findings,
  };
}

/** Whether the record that named the blob first is where it was. */
function isRecordThere(dataDir: string, log: CheckedLog, path: string): boolean {
  const { segment, offset, seq } = log.blobs.get(path)!;
  try {
    using file = Deno.openSync(join(dataDir, "timeline", segment), { read: true });
    const head = readAt(file, offset, HEADER_BYTES);
    const record = new ParsedRecord();
    const bytes = readAt(file, offset, Math.max(0, record.claimedBytes(head, 0, head.length)));
    return record.parse(bytes, 0, bytes.length) && record.seq === seq;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
