/** Reads the log when it is opened: folds every valid record, reports damage, and determines where the log
 * ends.
 */

import { join } from "node:path";
import { errorText, type Log } from "../../base/log.ts";
import { isAccepted } from "./accepted_losses.ts";
import { FoldingSink, type FoldTarget } from "./folding_sink.ts";
import { type FoundSegment, type Segment, seqOfName } from "./segment.ts";
import { linesIn, type RecordSink, scanSegment, type SegmentEnd } from "./segment_scan.ts";

/** Where the next record goes. */
export interface LogEnd {
  /** The sequence number of the next event. */
  readonly nextSeq: number;
  /** The segment to append to; undefined when a new one must be started. */
  readonly segment: Segment | undefined;
  readonly lacksLineBreak: boolean;
}

export interface ReplayTarget extends FoldTarget {
  readonly directory: string;
  readonly log: Log;
}

/**
 * The longest tail that is cut although it is not a torn record. A longer one stays, and a new segment is
 * started after it.
 */
const CUT_BYTES_MAX = 1024 * 1024;
/** The shortest possible record: the header, the shortest columns and `{}`. */
const RECORD_BYTES_MIN = 34;

/**
 * Reads the segments. `found` is in log order. The snapshot covers the first `reader.segments.length` of
 * them, the last of those up to its `sizeBytes`. `seenSeq` is the highest sequence number that is known to
 * have been given to an event.
 */
export function replay(found: readonly FoundSegment[], seenSeq: number, into: ReplayTarget): LogEnd {
  const { reader, register } = into;
  const covered = reader.segments.length;
  let end: LogEnd = { nextSeq: 1, segment: undefined, lacksLineBreak: false };
  for (let number = Math.max(0, covered - 1); number < found.length; number++) {
    const file = found[number]!;
    const isLast = number === found.length - 1;
    const segment = number < covered ? reader.segments[number]! : reader.add(file.name, 0);
    end = { nextSeq: Math.max(end.nextSeq, seqOfName(file.name)), segment: undefined, lacksLineBreak: false };
    if (file.unreadable !== "") end = { ...end, nextSeq: skipUnreadable(file, file.unreadable, into) };
    else {
      warnIfRenamed(file, into.log);
      try {
        const tail = replaySegment(segment, file.sizeBytes, isLast, into);
        const nextSeq = Math.max(end.nextSeq, register.lastSeq + 1 + tail.lostSeqs);
        end = { nextSeq, segment: tail.segment, lacksLineBreak: tail.lacksLineBreak };
      } catch (error) {
        if (!(error instanceof SegmentUnreadable)) throw error;
        end = { ...end, nextSeq: skipUnreadable(file, error.message, into) };
      }
    }
  }
  const nextSeq = Math.max(end.nextSeq, register.lastSeq + 1);
  if (seenSeq >= nextSeq && !isAccepted(into.accepted, nextSeq, seenSeq)) {
    reportLostEnd(nextSeq, seenSeq, found, into);
  }
  return { ...end, nextSeq: Math.max(nextSeq, seenSeq + 1) };
}

/** Reports events that the snapshot has and the log has lost at its end. */
function reportLostEnd(
  fromSeq: number,
  toSeq: number,
  found: readonly FoundSegment[],
  into: ReplayTarget,
): void {
  const last = found.at(-1);
  into.damage.add({
    segment: last?.name ?? "",
    offset: last?.sizeBytes ?? 0,
    bytes: 0,
    records: toSeq - fromSeq + 1,
    what: `events ${fromSeq} to ${toSeq} are missing from the end of the log`,
  });
}

class SegmentUnreadable extends Error {}

/** Reports a segment that cannot be read; returns a sequence number above every event that it can hold. */
function skipUnreadable(file: FoundSegment, why: string, into: ReplayTarget): number {
  // 0 records: the gap before the first number of the next segment is reported there, with its exact count.
  const what = `the segment cannot be read: ${why}`;
  into.damage.add({ segment: file.name, offset: 0, bytes: file.sizeBytes, records: 0, what });
  return Math.max(into.register.lastSeq, seqOfName(file.name)) + 1 +
    Math.floor(file.sizeBytes / RECORD_BYTES_MIN);
}

/**
 * Warns where a segment was renamed: its first event is before the number in its name. A later first event
 * means damage at the file's start.
 */
function warnIfRenamed(file: FoundSegment, log: Log): void {
  const named = seqOfName(file.name);
  if (file.firstSeq > 0 && (named === 0 || named > file.firstSeq)) {
    log.warn("a timeline segment does not have its name", { segment: file.name, first_seq: file.firstSeq });
  }
}

interface Tail {
  readonly segment: Segment | undefined;
  readonly lacksLineBreak: boolean;
  /** How many sequence numbers the damaged records at the end of the log had. No other event may get them. */
  readonly lostSeqs: number;
}

function replaySegment(segment: Segment, sizeBytes: number, isLast: boolean, into: ReplayTarget): Tail {
  const fromOffset = segment.sizeBytes;
  // Set before the scan, so that positions in the segment are valid even if the scan fails.
  segment.sizeBytes = sizeBytes;
  using file = Deno.openSync(join(into.directory, segment.name), { read: true });
  const fold = new FoldingSink(segment, file, into);
  const end = scan(file, sizeBytes, fromOffset, into.register.lastSeq, fold);
  if (!isLast) {
    fold.flush();
    // Only a line break is missing at the very end: nothing is lost, and no record follows in this segment.
    if (end.tailFrom >= 0 && end.tailFrom < sizeBytes) fold.damage(end.tailFrom, sizeBytes, 0);
    return { segment: undefined, lacksLineBreak: false, lostSeqs: 0 };
  }
  return closeLog({ segment, sizeBytes, file, fold, end, into });
}

function scan(
  file: Deno.FsFile,
  sizeBytes: number,
  from: number,
  afterSeq: number,
  sink: RecordSink,
): SegmentEnd {
  try {
    return scanSegment(file, sizeBytes, from, afterSeq, sink);
  } catch (error) {
    throw new SegmentUnreadable(errorText(error));
  }
}

/** The last segment after its scan. */
interface ScannedEnd {
  readonly segment: Segment;
  readonly sizeBytes: number;
  readonly file: Deno.FsFile;
  readonly fold: FoldingSink;
  readonly end: SegmentEnd;
  readonly into: ReplayTarget;
}

/**
 * Decides what the end of the last segment is. It can have these parts, in this order:
 *
 *   records whose commit is incomplete | whole lines that are not records | bytes without a line break
 *
 * An interrupted write leaves an incomplete commit: all of it is cut, so a commit is in the log completely or
 * not at all. A line that has its line break was written completely and became damaged later: it stays, it is
 * reported, and its sequence number is not used again. See docs/deployment/data-directory.md#durability.
 */
function closeLog({ segment, sizeBytes, file, fold, end, into }: ScannedEnd): Tail {
  const tailFrom = end.tailFrom < 0 ? sizeBytes : end.tailFrom;
  const lines = linesIn(file, tailFrom, sizeBytes);
  const commit = fold.openCommit();
  if (commit !== undefined && lines.count < commit.left) {
    cut(segment, commit.offset, sizeBytes, into);
    return { segment, lacksLineBreak: false, lostSeqs: commit.seq - 1 - into.register.lastSeq };
  }
  fold.flush();
  if (lines.count > 0) fold.damage(tailFrom, lines.end, into.register.lastSeq + 1 + lines.count);
  const tail = { segment, lacksLineBreak: end.lacksLineBreak && lines.count === 0, lostSeqs: lines.count };
  if (lines.end === sizeBytes) return tail;
  const isTorn = fold.isTornRecord(lines.end, sizeBytes);
  if (!isTorn) fold.damage(lines.end, sizeBytes, 0);
  if (!isTorn && sizeBytes - lines.end > CUT_BYTES_MAX) return { ...tail, segment: undefined };
  cut(segment, lines.end, sizeBytes, into);
  return tail;
}

function cut(segment: Segment, offset: number, sizeBytes: number, { directory, log }: ReplayTarget): void {
  log.warn("cut a torn write from the end of the timeline", {
    segment: segment.name,
    offset,
    bytes: sizeBytes - offset,
  });
  Deno.truncateSync(join(directory, segment.name), offset);
  segment.sizeBytes = offset;
}
