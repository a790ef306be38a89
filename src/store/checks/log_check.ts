/** Reads every record of the log without writing anything, beside a service that appends to it, too. */

import { errorText } from "../../base/log.ts";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { BLOB_KEY_END, mayNameBlobs, namedBlobs } from "../../model/events/blob_references.ts";
import {
  isMediaRemoved,
  NONE_REMOVED,
  type RemovedMedia,
  withRemoved,
} from "../../model/files/media_kind.ts";
import { EVENTS_REMOVED, MEDIA_REMOVED } from "../../model/runs/run.ts";
import { blobPath } from "../media/blobs.ts";
import { readAt } from "../files/file_bytes.ts";
import { ByteLookup } from "../timeline/byte_lookup.ts";
import { columnText, HEADER_BYTES, isTornRecord, type ParsedRecord } from "../timeline/record.ts";
import { findSegments, type FoundSegment, seqOfName } from "../timeline/segment.ts";
import { linesIn, type RecordSink, scanSegment, type SegmentEnd } from "../timeline/segment_scan.ts";
import { gapEnd } from "../timeline/gap_record.ts";
import { type AcceptedLosses, isAccepted } from "../timeline/accepted_losses.ts";
import { Findings } from "./findings.ts";

/** Where a blob is named: first, where that event still names it. */
export interface BlobMention {
  readonly seq: number;
  readonly segment: string;
  readonly offset: number;
}

export interface CheckedLog {
  readonly segments: number;
  readonly bytes: number;
  readonly records: number;
  readonly runs: number;
  /** Of the last record; 0 without any. */
  readonly lastSeq: number;
  /** What the next event gets at least. */
  readonly nextSeq: number;
  /** By the path of the blob, relative to the data directory. */
  readonly blobs: ReadonlyMap<string, BlobMention>;
}

/** A service may start a segment, append to one or take one away meanwhile: then damage is looked for again. */
const ROUNDS_MAX = 3;

/** Adds what it finds to `findings`. */
export function checkLog(dataDir: string, accepted: AcceptedLosses, findings: Findings): CheckedLog {
  const directory = join(dataDir, "timeline");
  for (let round = 1;; round++) {
    const found = findSegments(directory);
    const check = new LogCheck(directory, accepted, findings.isComplete);
    check.read(found);
    const isFinal = check.findings.isSound || round === ROUNDS_MAX || isSame(found, findSegments(directory));
    if (!isFinal) continue;
    findings.include(check.findings);
    return check.result();
  }
}

function isSame(before: readonly FoundSegment[], after: readonly FoundSegment[]): boolean {
  const text = (found: readonly FoundSegment[]) => JSON.stringify(found);
  return text(before) === text(after);
}

/** One pass over the log. */
class LogCheck implements RecordSink {
  readonly findings: Findings;
  readonly #directory: string;
  readonly #accepted: AcceptedLosses;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #runs = new ByteLookup<true>();
  readonly #kinds = new ByteLookup<CheckedKind>();
  /** The first and the last mention of each run. */
  readonly #blobs = new Map<string, Map<string, RunMentions>>();
  /** The run's events before this one were removed by retention, also where their records are still there. */
  readonly #removedBefore = new Map<string, number>();
  /** Of each run that has lost media before its events. */
  readonly #removedMedia = new Map<string, RemovedMedia>();
  #segment = "";
  #segments = 0;
  #bytes = 0;
  #records = 0;
  #runCount = 0;
  #lastSeq = 0;
  /** The sequence number that the next record should have. */
  #expectedSeq = 1;
  /** Of the commit whose last record was not read yet: where it begins, and how many records of it miss. */
  #open = { offset: 0, left: 0 };

  constructor(directory: string, accepted: AcceptedLosses, isComplete: boolean) {
    this.#directory = directory;
    this.#accepted = accepted;
    this.findings = new Findings(isComplete ? Infinity : undefined);
  }

  result(): CheckedLog {
    return {
      segments: this.#segments,
      bytes: this.#bytes,
      records: this.#records,
      runs: this.#runCount,
      lastSeq: this.#lastSeq,
      nextSeq: this.#expectedSeq,
      blobs: this.#namedBlobs(),
    };
  }

  read(found: readonly FoundSegment[]): void {
    found.forEach((file, number) => this.#readSegment(file, number === found.length - 1));
  }

  record(bytes: Uint8Array, record: ParsedRecord, offset: number): void {
    const { seq, left } = record;
    if (seq > this.#expectedSeq) this.#missing(this.#expectedSeq, seq - 1, offset);
    const removedEnd = gapEnd(bytes, record);
    this.#expectedSeq = Math.max(seq, removedEnd) + 1;
    if (removedEnd > 0) return void (this.#open.left = 0);
    this.#lastSeq = seq;
    this.#records += 1;
    if (this.#open.left === 0 || left !== this.#open.left - 1) this.#open.offset = offset;
    this.#open.left = left;
    if (this.#runs.find(bytes, record.runStart, record.runEnd) === undefined) {
      this.#runs.add(bytes, record.runStart, record.runEnd, true);
      this.#runCount += 1;
    }
    const kind = this.#kindOf(bytes, record);
    if (kind.mayNameBlobs) this.#collect(bytes, record, offset, kind.name);
    if (kind.removesEvents) this.#removedBefore.set(this.#runOf(bytes, record), seq);
    if (kind.name === MEDIA_REMOVED) this.#noteRemoved(bytes, record);
  }

  damage(from: number, to: number, nextSeq: number): void {
    const lost = nextSeq - this.#expectedSeq;
    const seqs = lost > 0 ? [this.#expectedSeq, nextSeq - 1] as const : undefined;
    const what = to === from ? "a line break between two records is missing" : "bytes that are no record";
    this.#expectedSeq = Math.max(this.#expectedSeq, nextSeq);
    const text = seqs ? `${what}; ${eventsText(...seqs)} lost` : what;
    this.#damaged(text, { offset: from, bytes: to - from, ...(seqs && { seqs }) });
  }

  #readSegment(file: FoundSegment, isLast: boolean): void {
    this.#segment = file.name;
    this.#segments += 1;
    this.#bytes += file.sizeBytes;
    const path = this.#path();
    if (file.unreadable !== "") {
      return this.findings.damaged("unreadable_file", path, `it cannot be read: ${file.unreadable}`);
    }
    this.#expectNumber(file, isLast);
    try {
      using open = Deno.openSync(join(this.#directory, file.name), { read: true });
      const end = scanSegment(open, file.sizeBytes, 0, this.#expectedSeq - 1, this);
      if (isLast) this.#closeLog(open, file.sizeBytes, end);
      else if (end.tailFrom >= 0 && end.tailFrom < file.sizeBytes) {
        this.damage(end.tailFrom, file.sizeBytes, 0);
      }
    } catch (error) {
      this.findings.damaged("unreadable_file", path, `it cannot be read: ${errorText(error)}`);
    }
  }

  /** The name of an empty last segment keeps the numbers before it from being used again. */
  #expectNumber(file: FoundSegment, isLast: boolean): void {
    const named = seqOfName(file.name);
    if (!isLast || file.firstSeq !== named || named <= this.#expectedSeq) return;
    this.#missing(this.#expectedSeq, named - 1, 0);
    this.#expectedSeq = named;
  }

  /** As a start does (`closeLog` in log/replay.ts), without cutting anything. */
  #closeLog(file: Deno.FsFile, sizeBytes: number, end: SegmentEnd): void {
    const tailFrom = end.tailFrom < 0 ? sizeBytes : end.tailFrom;
    const lines = linesIn(file, tailFrom, sizeBytes);
    if (this.#open.left > 0 && lines.count < this.#open.left) {
      return this.#torn(file, this.#open.offset, sizeBytes);
    }
    if (lines.count > 0) this.damage(tailFrom, lines.end, this.#expectedSeq + lines.count);
    if (lines.end === sizeBytes) return;
    const head = readAt(file, lines.end, Math.min(HEADER_BYTES, sizeBytes - lines.end));
    if (isTornRecord(head)) this.#torn(file, lines.end, sizeBytes);
    else this.damage(lines.end, sizeBytes, 0);
  }

  /** A log that grows is not torn: its writer was seen in the middle of a commit. */
  #torn(file: Deno.FsFile, offset: number, sizeBytes: number): void {
    if (file.statSync().size !== sizeBytes) return;
    const text = "a write that was cut off, of a commit that was never answered; the next start cuts it";
    this.findings.note("torn_write", this.#path(), text, { offset, bytes: sizeBytes - offset });
  }

  #missing(from: number, to: number, offset: number): void {
    const seqs = [from, to] as const;
    if (isAccepted(this.#accepted, from, to)) {
      const text = `${eventsText(from, to)} lost, as a repair said`;
      return this.findings.note("accepted_loss", this.#path(), text, { offset, seqs });
    }
    this.findings.damaged("missing_events", this.#path(), `${eventsText(from, to)} missing`, {
      offset,
      seqs,
    });
  }

  #damaged(text: string, details: { offset: number; bytes: number; seqs?: readonly [number, number] }): void {
    this.findings.damaged("damaged_bytes", this.#path(), text, details);
  }

  #path(): string {
    return `timeline/${this.#segment}`;
  }

  #kindOf(bytes: Uint8Array, { kindStart, kindEnd }: ParsedRecord): CheckedKind {
    const known = this.#kinds.find(bytes, kindStart, kindEnd);
    if (known !== undefined) return known;
    const kind = columnText(this.#decoder, bytes, kindStart, kindEnd);
    return this.#kinds.add(bytes, kindStart, kindEnd, {
      name: kind,
      mayNameBlobs: mayNameBlobs(kind),
      removesEvents: kind === EVENTS_REMOVED,
    });
  }

  /** The first mention of each blob in an event that was not removed. */
  #namedBlobs(): Map<string, BlobMention> {
    const named = new Map<string, BlobMention>();
    for (const [path, mentions] of this.#blobs) {
      for (const [runId, { mediaType, first, last }] of mentions) {
        const mention = [first, last].find(({ seq }) => this.#isLeft(runId, mediaType, seq));
        if (mention && mention.seq < (named.get(path)?.seq ?? Infinity)) named.set(path, mention);
      }
    }
    return named;
  }

  /** Whether the event still names its blob of this type. */
  #isLeft(runId: string, mediaType: string, seq: number): boolean {
    return seq >= (this.#removedBefore.get(runId) ?? 0) &&
      !isMediaRemoved(this.#removedMedia.get(runId) ?? NONE_REMOVED, mediaType, seq);
  }

  #noteRemoved(bytes: Uint8Array, record: ParsedRecord): void {
    const runId = this.#runOf(bytes, record);
    const payload = new TextDecoder().decode(bytes.subarray(record.payloadStart, record.payloadEnd));
    this.#removedMedia.set(
      runId,
      withRemoved(this.#removedMedia.get(runId) ?? NONE_REMOVED, parsed(payload)),
    );
  }

  #runOf(bytes: Uint8Array, { runStart, runEnd }: ParsedRecord): string {
    return columnText(this.#decoder, bytes, runStart, runEnd);
  }

  #collect(bytes: Uint8Array, record: ParsedRecord, offset: number, kind: string): void {
    const { seq, payloadStart, payloadEnd } = record;
    const payload = Buffer.from(bytes.buffer, bytes.byteOffset + payloadStart, payloadEnd - payloadStart);
    if (!payload.includes(BLOB_KEY_END)) return;
    for (const { mediaType, sha256 } of namedBlobs(kind, parsed(payload.toString()))) {
      const path = blobPath(mediaType, sha256);
      if (path === undefined) continue;
      const runId = this.#runOf(bytes, record);
      const mentions = this.#blobs.get(path) ?? new Map<string, RunMentions>();
      this.#blobs.set(path, mentions);
      const last = { seq, segment: this.#segment, offset };
      const known = mentions.get(runId);
      const isKept = known !== undefined && this.#isLeft(runId, mediaType, known.first.seq);
      if (isKept) known.last = last;
      else mentions.set(runId, { mediaType, first: last, last });
    }
  }
}

interface RunMentions {
  readonly mediaType: string;
  readonly first: BlobMention;
  last: BlobMention;
}

interface CheckedKind {
  readonly name: string;
  readonly removesEvents: boolean;
  readonly mayNameBlobs: boolean;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // written by somebody else's program: it names nothing
  }
}

/** `event 7 is`, `events 7 to 9 are`. */
function eventsText(from: number, to: number): string {
  return from === to ? `event ${from} is` : `events ${from} to ${to} are`;
}
