/** The segment files of the log: their names, and how they are found, read and appended to. */

import { errorText } from "../../base/log.ts";
import { join } from "node:path";
import { openRegular } from "../files/file_bytes.ts";
import type { RecordBatch } from "./record.ts";
import { firstSeqOf } from "./segment_scan.ts";

/**
 * One file of the log. The first byte of this one has the position `base`, and no two segments share a
 * position. A segment begins where the one before it ends, except for one that was rewritten without removed
 * events: it has positions of its own above `REWRITTEN_BASE`. See docs/protocols.md#segments.
 */
export interface Segment {
  name: string;
  readonly base: number;
  sizeBytes: number;
  /** Whether the segment may have records of events that were removed. */
  hasRemoved: boolean;
}

const REWRITTEN_BASE = 2 ** 52;

/** A segment file as it was found in the directory. */
export interface FoundSegment {
  readonly name: string;
  readonly sizeBytes: number;
  /** The sequence number of the segment's first whole record, else the number in its name, else 0. */
  readonly firstSeq: number;
  /** Why the segment cannot be read; empty when it can be read. */
  readonly unreadable: string;
}

const SEGMENT_NAME = /^(\d{20})(?:-\d+)?\.wal$/;
const OPEN_FILES_MAX = 64;

/**
 * The name of a segment; `attempt` is above 0 when a file of that name exists already: the name then gets
 * `-1`, `-2`, …
 */
export function segmentName(firstSeq: number, attempt: number): string {
  return `${String(firstSeq).padStart(20, "0")}${attempt === 0 ? "" : `-${attempt}`}.wal`;
}

/** The first sequence number according to a segment's name, or 0 when the name has none. */
export function seqOfName(name: string): number {
  return Number(SEGMENT_NAME.exec(name)?.[1] ?? 0);
}

/**
 * Every `*.wal`, ordered by its first event and not by its name, so that a renamed file is read in its right
 * place.
 */
export function findSegments(directory: string): FoundSegment[] {
  const found: FoundSegment[] = [];
  for (const { name } of Deno.readDirSync(directory)) {
    if (name.endsWith(".wal")) found.push(inspect(directory, name));
  }
  return found.sort((a, b) => a.firstSeq - b.firstSeq || (a.name < b.name ? -1 : 1));
}

function inspect(directory: string, name: string): FoundSegment {
  try {
    using file = openRegular(join(directory, name));
    const { size } = file.statSync();
    return { name, sizeBytes: size, firstSeq: firstSeqOf(file, size) || seqOfName(name), unreadable: "" };
  } catch (error) {
    const unreadable = errorText(error);
    return { name, sizeBytes: sizeOf(join(directory, name)), firstSeq: seqOfName(name), unreadable };
  }
}

function sizeOf(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch {
    return 0;
  }
}

/** Reads the log at given positions; keeps a bounded number of files open. */
export class SegmentReader implements Disposable {
  /** The segments in log order. */
  readonly segments: Segment[] = [];
  /** The segments by their base, and with them a segment that is about to take the place of another one. */
  readonly #byBase: Segment[] = [];
  #rewritten: { readonly old: Segment; readonly next: Segment } | undefined;
  readonly #directory: string;
  /** The open files, ordered by last use, the least recently used first. */
  readonly #files = new Map<Segment, Deno.FsFile>();
  #isClosed = false;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The position at which the next segment starts. */
  get endPosition(): number {
    const last = this.segments.at(-1);
    return last === undefined ? 0 : last.base + last.sizeBytes;
  }

  /** The size of all segments. */
  get sizeBytes(): number {
    return this.segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  add(name: string, sizeBytes: number, base = this.endPosition): Segment {
    const segment = { name, base, sizeBytes, hasRemoved: false };
    this.segments.push(segment);
    this.#register(segment);
    return segment;
  }

  /**
   * Adds `name`, which is about to take the place of `old`. Until then it can be read at its positions, as
   * the other can.
   */
  addRewritten(old: Segment, name: string, sizeBytes: number): Segment {
    const last = this.#byBase.at(-1);
    const base = Math.max(REWRITTEN_BASE, last === undefined ? 0 : last.base + last.sizeBytes);
    const next = { name, base, sizeBytes, hasRemoved: false };
    this.#register(next);
    this.#rewritten = { old, next };
    return next;
  }

  /**
   * Gives the segment that was added last the place and the name of the other one, whose positions nobody has
   * any more. Where it does not get the name, it is read under its own, and the next start finds the other
   * one.
   */
  async replaceRewritten(): Promise<void> {
    const { old, next } = this.#rewritten!;
    next.hasRemoved = old.hasRemoved;
    this.segments[this.segments.indexOf(old)] = next;
    this.#byBase.splice(this.#byBase.indexOf(old), 1);
    this.#files.get(old)?.close();
    this.#files.delete(old);
    this.#open(next); // stays open while it has neither the one name nor the other for sure
    try {
      // Not in this thread: giving back 64 MiB of the old file takes 45 ms.
      await Deno.rename(join(this.#directory, next.name), join(this.#directory, old.name));
      next.name = old.name;
    } finally {
      this.#rewritten = undefined;
    }
  }

  /** Notes that the records between the two positions are of a run whose events were removed. */
  markRemoved(fromPosition: number, toPosition: number): void {
    const numberOf = (position: number) => {
      const segment = this.at(position);
      const number = this.segments.indexOf(segment);
      return number < 0 && segment === this.#rewritten?.next
        ? this.segments.indexOf(this.#rewritten.old)
        : number;
    };
    const to = numberOf(toPosition);
    for (let number = numberOf(fromPosition); number <= to; number++) {
      this.segments[number]!.hasRemoved = true;
    }
  }

  /** The segment that holds `position`, which must be inside the log. */
  at(position: number): Segment {
    let low = 0;
    let high = this.#byBase.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#byBase[middle]!.base <= position) low = middle;
      else high = middle - 1;
    }
    return this.#byBase[low]!;
  }

  /** Reads into `target` from `offset` of the segment; returns how many bytes it read. */
  read(segment: Segment, offset: number, target: Uint8Array): number {
    if (this.#isClosed) throw new DOMException("The log was closed", "AbortError");
    const file = this.#open(segment);
    file.seekSync(offset, Deno.SeekMode.Start);
    let filled = 0;
    while (filled < target.length) {
      const read = file.readSync(target.subarray(filled));
      if (!read) break;
      filled += read;
    }
    return filled;
  }

  /** Closes the files. An answer whose client has gone may still be reading: it ends at its next read. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const file of this.#files.values()) file.close();
    this.#files.clear();
  }

  #register(segment: Segment): void {
    let at = this.#byBase.length;
    while (at > 0 && this.#byBase[at - 1]!.base > segment.base) at--;
    this.#byBase.splice(at, 0, segment);
  }

  #open(segment: Segment): Deno.FsFile {
    let file = this.#files.get(segment);
    if (file === undefined) {
      file = Deno.openSync(join(this.#directory, segment.name), { read: true });
      if (this.#files.size >= OPEN_FILES_MAX) this.#closeOldest();
    } else this.#files.delete(segment);
    this.#files.set(segment, file);
    return file;
  }

  #closeOldest(): void {
    for (const [segment, file] of this.#files) {
      if (segment === this.#rewritten?.next) continue;
      file.close();
      this.#files.delete(segment);
      return;
    }
  }
}

/**
 * The one segment that records are appended to. An append is all or nothing: when the disk is full or fails,
 * the bytes that were written so far are removed again, so no part of a commit stays in the log. See
 * docs/deployment/data-directory.md#durability.
 */
export class SegmentWriter implements Disposable {
  readonly file: Deno.FsFile;
  readonly segment: Segment;
  /**
   * Whether the file has bytes past `segment.sizeBytes`, from a failed append, which could not be removed
   * yet.
   */
  #needsTruncate = false;
  #lacksLineBreak: boolean;

  private constructor(file: Deno.FsFile, segment: Segment, lacksLineBreak: boolean) {
    this.file = file;
    this.segment = segment;
    this.#lacksLineBreak = lacksLineBreak;
  }

  /**
   * Continues an existing segment after its last record. `lacksLineBreak`: that record is whole except for
   * its line break, which the first append writes.
   */
  static resume(directory: string, segment: Segment, lacksLineBreak: boolean): SegmentWriter {
    const file = Deno.openSync(join(directory, segment.name), { append: true });
    return new SegmentWriter(file, segment, lacksLineBreak);
  }

  /** Starts a new segment at the end of the log. */
  static create(directory: string, firstSeq: number, segments: SegmentReader): SegmentWriter {
    for (let attempt = 0;; attempt++) {
      const name = segmentName(firstSeq, attempt);
      try {
        const file = Deno.openSync(join(directory, name), { createNew: true, append: true, mode: 0o600 });
        return new SegmentWriter(file, segments.add(name, 0), false);
      } catch (error) {
        if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      }
    }
  }

  /**
   * Writes the batch to the file, without a sync; returns its position in the log.
   *
   * Throws the error of the operating system, such as "No space left on device". Then the file is truncated
   * to its size before the append, and nothing of the batch is in the log. If the truncation fails too, the
   * next append repeats it before it writes, and throws when it fails again.
   */
  append(batch: RecordBatch): number {
    if (this.#needsTruncate) this.#truncate();
    try {
      if (this.#lacksLineBreak) {
        writeAll(this.file, LINE_BREAK);
        this.segment.sizeBytes++;
        this.#lacksLineBreak = false;
      }
      for (const piece of batch.pieces()) writeAll(this.file, piece);
    } catch (error) {
      this.#needsTruncate = true;
      try {
        this.#truncate();
      } catch {
        // The next append truncates before it writes.
      }
      throw error;
    }
    const position = this.segment.base + this.segment.sizeBytes;
    this.segment.sizeBytes += batch.sizeBytes;
    return position;
  }

  [Symbol.dispose](): void {
    this.file.close();
  }

  #truncate(): void {
    this.file.truncateSync(this.segment.sizeBytes);
    this.#needsTruncate = false;
  }
}

const LINE_BREAK = new Uint8Array([0x0a]);

/**
 * Writes all of `bytes`, also where one write takes only a part: a disk that becomes full does so first, and
 * fails at the next write.
 */
export function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) {
    written += file.writeSync(written === 0 ? bytes : bytes.subarray(written));
  }
}
