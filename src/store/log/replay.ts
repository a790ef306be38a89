/** Reads the log when it is opened: folds every good record, reports what is damaged, says where the log ends. */

import { join } from "node:path";
import type { Log } from "../../base/log.ts";
import { FoldingSink, type FoldInto } from "./folding_sink.ts";
import { type FoundSegment, type Segment, type SegmentReader, seqOfName } from "./segment.ts";
import { linesIn, type RecordSink, scanSegment, type SegmentEnd } from "./segment_scan.ts";

/** Where the next record goes. */
export interface LogEnd {
  /** The number that the next event gets. */
  readonly nextSeq: number;
  /** The segment to go on with; undefined when a new one must be started. */
  readonly segment: Segment | undefined;
  readonly lacksLineBreak: boolean;
}

export interface ReplayInto extends FoldInto {
  readonly directory: string;
  readonly reader: SegmentReader;
  readonly log: Log;
}

/** An unknown tail longer than this is left where it is, and a new segment is started after it. */
const CUT_BYTES_MAX = 1024 * 1024;
/** No record is shorter: the header, the shortest columns and `{}`. */
const RECORD_BYTES_MIN = 34;

/**
 * `found` in log order; the first `reader.segments.length` of them are covered by the snapshot already, the last
 * of those up to its `sizeBytes`. `seenSeq` is the highest number that was ever given out, as far as is known.
 */
export function replay(found: readonly FoundSegment[], seenSeq: number, into: ReplayInto): LogEnd {
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
      warnOfName(file, into.log);
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
  if (seenSeq >= nextSeq) reportLostEnd(nextSeq, seenSeq, found, into);
  return { ...end, nextSeq: Math.max(nextSeq, seenSeq + 1) };
}

/** The snapshot knew of later events than the log has now. */
function reportLostEnd(
  fromSeq: number,
  toSeq: number,
  found: readonly FoundSegment[],
  into: ReplayInto,
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

/** Reports the segment; returns a number that is above every event it can hold. */
function skipUnreadable(file: FoundSegment, why: string, into: ReplayInto): number {
  // How many events it had shows when the next segment starts with a higher number than expected.
  const what = `the segment cannot be read: ${why}`;
  into.damage.add({ segment: file.name, offset: 0, bytes: file.sizeBytes, records: 0, what });
  return Math.max(into.register.lastSeq, seqOfName(file.name)) + 1 +
    Math.floor(file.sizeBytes / RECORD_BYTES_MIN);
}

/** Damage at a segment's start makes its first event later than its name says; earlier means that it was renamed. */
function warnOfName(file: FoundSegment, log: Log): void {
  const named = seqOfName(file.name);
  if (file.firstSeq > 0 && (named === 0 || named > file.firstSeq)) {
    log.warn("a timeline segment does not have its name", { segment: file.name, first_seq: file.firstSeq });
  }
}

interface Tail {
  readonly segment: Segment | undefined;
  readonly lacksLineBreak: boolean;
  /** Numbers of damaged records at the end of the log, which must not be given to other events. */
  readonly lostSeqs: number;
}

function replaySegment(segment: Segment, sizeBytes: number, isLast: boolean, into: ReplayInto): Tail {
  const fromOffset = segment.sizeBytes;
  // Positions inside are known from here on, also if the scan does not come to the end.
  segment.sizeBytes = sizeBytes;
  using file = Deno.openSync(join(into.directory, segment.name), { read: true });
  const fold = new FoldingSink(segment, file, into);
  const end = scan(file, sizeBytes, fromOffset, into.register.lastSeq, fold);
  if (!isLast) {
    fold.flush();
    // A line break that is lacking at the very end lacks to nobody.
    if (end.tailFrom >= 0 && end.tailFrom < sizeBytes) fold.damage(end.tailFrom, sizeBytes, 0);
    return { segment: undefined, lacksLineBreak: false, lostSeqs: 0 };
  }
  return closeLog(segment, sizeBytes, file, fold, end, into);
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
    throw new SegmentUnreadable(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Decides what the end of the last segment is, which is one of these or several in this order:
 *
 *   records without the end of their commit | whole lines that are no records | bytes without a line break
 *
 * A write that was torn leaves a commit without its end: it is cut, whole. Lines that do have their line break were
 * written whole and went bad later: they are damage and stay, and their numbers are not given again.
 */
function closeLog(
  segment: Segment,
  sizeBytes: number,
  file: Deno.FsFile,
  fold: FoldingSink,
  end: SegmentEnd,
  into: ReplayInto,
): Tail {
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

function cut(segment: Segment, offset: number, sizeBytes: number, { directory, log }: ReplayInto): void {
  log.warn("cut a torn write from the end of the timeline", {
    segment: segment.name,
    offset,
    bytes: sizeBytes - offset,
  });
  Deno.truncateSync(join(directory, segment.name), offset);
  segment.sizeBytes = offset;
}
