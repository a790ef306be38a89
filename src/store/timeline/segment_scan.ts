/** Reads one segment file from an offset to its end, record by record, and skips whatever is not a record. */

import { HEADER_BYTES, isLineBreak, ParsedRecord } from "./record.ts";
import { MAX_SEQ } from "./event_index.ts";

/** Receives each record in order. `bytes` and `record` are reused, so they are valid only during the call. */
export interface RecordSink {
  record(bytes: Uint8Array, record: ParsedRecord, offset: number): void;
  /**
   * The bytes from `from` to `to` are not a record; the record after them has the sequence number `nextSeq`.
   */
  damage(from: number, to: number, nextSeq: number): void;
}

/** How a segment ends. */
export interface SegmentEnd {
  /**
   * Offset of the first byte after the last record's body that is not its line break, which is the file's
   * size where only the line break is missing; -1 when the file ends with a whole record.
   */
  readonly tailFrom: number;
  /** Whether the last record is whole except for its line break. */
  readonly lacksLineBreak: boolean;
}

/**
 * Reads a segment from an offset to its end. A record whose sequence number is not above all numbers before
 * it is a copy, and is skipped like damage. `afterSeq` is the highest number of the segments before this one.
 */
export function scanSegment(
  file: Deno.FsFile,
  sizeBytes: number,
  fromOffset: number,
  afterSeq: number,
  sink: RecordSink,
): SegmentEnd {
  const window = new FileWindow(file, sizeBytes);
  const record = new ParsedRecord();
  let lastSeq = afterSeq;
  let offset = fromOffset;
  let damageFrom = -1;
  let lacksLineBreak = false;
  while (offset < sizeBytes) {
    if (!window.parse(record, offset)) {
      if (damageFrom < 0) damageFrom = offset;
      offset = window.nextCandidate(offset + 1);
      continue;
    }
    if (record.seq <= lastSeq || record.seq > MAX_SEQ) {
      if (damageFrom < 0) damageFrom = offset;
      offset += record.sizeBytes;
      continue;
    }
    if (damageFrom >= 0) sink.damage(damageFrom, offset, record.seq);
    const at = offset - window.start;
    sink.record(window.bytes, record, offset);
    lastSeq = record.seq;
    const bodyEnd = at + record.sizeBytes - 1;
    // The byte after the body is in the window, unless the file ends there.
    lacksLineBreak = !(window.start + bodyEnd < sizeBytes && isLineBreak(window.bytes[bodyEnd]));
    damageFrom = lacksLineBreak ? window.start + bodyEnd : -1;
    offset = window.start + bodyEnd + (lacksLineBreak ? 0 : 1);
  }
  return { tailFrom: damageFrom, lacksLineBreak };
}

/** The sequence number of the first whole record, or 0 when there is none. */
export function firstSeqOf(file: Deno.FsFile, sizeBytes: number): number {
  const window = new FileWindow(file, sizeBytes, 64 * 1024);
  const record = new ParsedRecord();
  for (let offset = 0; offset < sizeBytes; offset = window.nextCandidate(offset + 1)) {
    if (window.parse(record, offset)) return record.seq;
  }
  return 0;
}

/** The number of line breaks from `from` to `to`, and the offset at which the last line ends. */
export function linesIn(file: Deno.FsFile, from: number, to: number): { count: number; end: number } {
  let [count, end] = [0, from];
  const buffer = new Uint8Array(Math.min(to - from, 64 * 1024));
  file.seekSync(from, Deno.SeekMode.Start);
  for (let offset = from; offset < to;) {
    const read = file.readSync(buffer.subarray(0, Math.min(to - offset, buffer.length)));
    if (!read) break;
    for (let at = 0; at < read; at++) {
      if (buffer[at] !== 0x0a) continue;
      count++;
      end = offset + at + 1;
    }
    offset += read;
  }
  return { count, end };
}

/** A part of the file in memory. It only moves forward, and grows for a record that is larger than it. */
class FileWindow {
  bytes: Uint8Array;
  /** The offset in the file of `bytes[0]`. */
  start = 0;
  #end = 0;
  readonly #file: Deno.FsFile;
  readonly #sizeBytes: number;

  constructor(file: Deno.FsFile, sizeBytes: number, windowBytes = 1024 * 1024) {
    this.bytes = new Uint8Array(Math.max(1, Math.min(windowBytes, sizeBytes)));
    this.#file = file;
    this.#sizeBytes = sizeBytes;
  }

  parse(record: ParsedRecord, offset: number): boolean {
    this.#need(offset, HEADER_BYTES);
    const known = this.#end - this.start;
    if (record.parse(this.bytes, offset - this.start, known)) {
      if (offset + record.sizeBytes <= this.#end || this.#end === this.#sizeBytes) return true;
      // Only the line break is outside. Moving the window changes the offsets of the columns, so it is parsed
      // again.
      this.#need(offset, record.sizeBytes);
      return record.parse(this.bytes, 0, this.#end - this.start);
    }
    if (this.#end === this.#sizeBytes) return false;
    const claimed = record.claimedBytes(this.bytes, offset - this.start, known);
    if (claimed < 0 || offset + claimed - 1 <= this.#end || offset + claimed - 1 > this.#sizeBytes) {
      return false;
    }
    this.#need(offset, claimed);
    return record.parse(this.bytes, 0, this.#end - this.start);
  }

  /** The next offset from `offset` on where a header may start, or the end of the file. */
  nextCandidate(offset: number): number {
    while (offset + HEADER_BYTES <= this.#sizeBytes) {
      this.#need(offset, HEADER_BYTES);
      const stop = this.#end - HEADER_BYTES;
      for (; offset <= stop; offset++) {
        const at = offset - this.start;
        if (
          this.bytes[at] === 0x31 && this.bytes[at + 1] === 0x20 && this.bytes[at + 10] === 0x20 &&
          this.bytes[at + 20] === 0x20
        ) return offset;
      }
    }
    return this.#sizeBytes;
  }

  /** Moves the window so that it has `bytes` bytes from `offset` on, or all up to the end of the file. */
  #need(offset: number, bytes: number): void {
    const wantedEnd = Math.min(offset + bytes, this.#sizeBytes);
    if (offset >= this.start && wantedEnd <= this.#end) return;
    const keptFrom = Math.min(offset, this.#end) - this.start;
    const keptBytes = this.#end - this.start - keptFrom;
    if (bytes > this.bytes.length) {
      const grown = new Uint8Array(
        Math.min(Math.max(bytes, this.bytes.length * 2), this.#sizeBytes - offset),
      );
      grown.set(this.bytes.subarray(keptFrom, keptFrom + keptBytes));
      this.bytes = grown;
    } else this.bytes.copyWithin(0, keptFrom, keptFrom + keptBytes);
    this.start = offset;
    this.#end = offset + keptBytes;
    this.#file.seekSync(this.#end, Deno.SeekMode.Start);
    while (this.#end < this.#sizeBytes && this.#end - this.start < this.bytes.length) {
      const read = this.#file.readSync(this.bytes.subarray(this.#end - this.start));
      if (!read) {
        throw new Error(`Cannot read a segment of ${this.#sizeBytes} bytes: it ends at ${this.#end}`);
      }
      this.#end += read;
    }
  }
}
