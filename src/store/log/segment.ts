/** The segment files of the log: what they are called, how they are found, read and appended to. */

import { join } from "node:path";
import type { RecordBatch } from "./record.ts";
import { firstSeqOf } from "./segment_scan.ts";

/** One file of the log. Its bytes have positions from `base` on, counted over all segments in order. */
export interface Segment {
  readonly name: string;
  readonly base: number;
  sizeBytes: number;
}

/** A segment file as it was found in the directory. */
export interface FoundSegment {
  readonly name: string;
  readonly sizeBytes: number;
  /** The first whole record's number; for a file without one, the number in its name; 0 for neither. */
  readonly firstSeq: number;
  /** Why it cannot be read; empty when it can. */
  readonly unreadable: string;
}

const NAME = /^(\d{20})(?:-\d+)?\.wal$/;
const OPEN_FILES_MAX = 64;

/** The second name of a number is for the case that somebody else's file has the first. */
function segmentName(firstSeq: number, attempt: number): string {
  return `${String(firstSeq).padStart(20, "0")}${attempt === 0 ? "" : `-${attempt}`}.wal`;
}

/** The number that a segment's name says it starts with, or 0. */
export function seqOfName(name: string): number {
  return Number(NAME.exec(name)?.[1] ?? 0);
}

/** Every `*.wal` in the order of the events inside, so that a renamed file is still read where it belongs. */
export function findSegments(directory: string): FoundSegment[] {
  const found: FoundSegment[] = [];
  for (const { name } of Deno.readDirSync(directory)) {
    if (name.endsWith(".wal")) found.push(look(directory, name));
  }
  return found.sort((a, b) => a.firstSeq - b.firstSeq || (a.name < b.name ? -1 : 1));
}

function look(directory: string, name: string): FoundSegment {
  try {
    using file = Deno.openSync(join(directory, name), { read: true });
    const { size, isFile } = file.statSync();
    if (!isFile) throw new Error("not a regular file");
    return { name, sizeBytes: size, firstSeq: firstSeqOf(file, size) || seqOfName(name), unreadable: "" };
  } catch (error) {
    const unreadable = error instanceof Error ? error.message : String(error);
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

/** Reads at positions of the log; keeps a bounded number of files open. */
export class SegmentReader implements Disposable {
  readonly segments: Segment[] = [];
  readonly #directory: string;
  /** In the order of use, the longest unused first. */
  readonly #files = new Map<Segment, Deno.FsFile>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Where the next segment's positions start. */
  get endPosition(): number {
    const last = this.segments.at(-1);
    return last === undefined ? 0 : last.base + last.sizeBytes;
  }

  add(name: string, sizeBytes: number): Segment {
    const segment = { name, base: this.endPosition, sizeBytes };
    this.segments.push(segment);
    return segment;
  }

  /** The segment that holds `position`, which must be inside the log. */
  at(position: number): Segment {
    let low = 0;
    let high = this.segments.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.segments[middle]!.base <= position) low = middle;
      else high = middle - 1;
    }
    return this.segments[low]!;
  }

  /** Fills `target` from `offset` of the segment; returns how many bytes there were. */
  read(segment: Segment, offset: number, target: Uint8Array): number {
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

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) file.close();
    this.#files.clear();
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
      file.close();
      this.#files.delete(segment);
      return;
    }
  }
}

/** The one open file that the log grows in. Every append is whole or not there at all. */
export class SegmentWriter implements Disposable {
  readonly file: Deno.FsFile;
  readonly segment: Segment;
  /** Bytes past the segment's size are left over from a failed append and could not be cut yet. */
  #needsCut = false;
  #lacksLineBreak: boolean;

  private constructor(file: Deno.FsFile, segment: Segment, lacksLineBreak: boolean) {
    this.file = file;
    this.segment = segment;
    this.#lacksLineBreak = lacksLineBreak;
  }

  /** Goes on after the last record; `lacksLineBreak`: that is whole but for its line break, the first append adds it. */
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

  /** Hands the batch to the operating system; returns its position in the log. Throws what the disk said. */
  append(batch: RecordBatch): number {
    if (this.#needsCut) this.#cut();
    try {
      if (this.#lacksLineBreak) {
        writeAll(this.file, LINE_BREAK);
        this.segment.sizeBytes++;
        this.#lacksLineBreak = false;
      }
      for (const piece of batch.pieces) writeAll(this.file, piece);
    } catch (error) {
      this.#needsCut = true;
      try {
        this.#cut();
      } catch {
        // The next append tries again before it writes anything.
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

  #cut(): void {
    this.file.truncateSync(this.segment.sizeBytes);
    this.#needsCut = false;
  }
}

const LINE_BREAK = new Uint8Array([0x0a]);

/** A disk that fills up takes a part of the bytes first and fails at the next write. */
function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) {
    written += file.writeSync(written === 0 ? bytes : bytes.subarray(written));
  }
}
