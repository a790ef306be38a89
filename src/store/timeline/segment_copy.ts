/** Copies a segment of the log without the records of removed events, in small steps. */

import { crc32 } from "node:zlib";
import { yieldToEventLoop } from "../../base/wait.ts";
import { ByteLookup } from "./byte_lookup.ts";
import { columnText, HEADER_BYTES, isLineBreak, ParsedRecord } from "./record.ts";
import { GAP_BYTES_MAX, gapEnd, writeGapRecord } from "./gap_record.ts";
import { NumberList } from "./number_list.ts";

export interface SegmentCopyOptions {
  readonly from: string;
  readonly sizeBytes: number;
  readonly to: string;
  /** Gives the first event that is left of a run; 0 where all are. */
  readonly firstLeftOf: (runId: string) => number;
  /** Ends the copying when it aborts, which then rejects. */
  readonly signal: AbortSignal;
}

export interface SegmentCopy {
  readonly sizeBytes: number;
  /** The events that the copy has, ascending, in pairs: number and offset. */
  readonly kept: NumberList;
  /** The numbers of the removed events, in pairs: first and last. */
  readonly gaps: NumberList;
  readonly removedEvents: number;
}

/** The error of a segment with bytes that are no record. They are evidence, so nothing of it is removed. */
export class SegmentDamaged extends Error {
  override readonly name = "SegmentDamaged";
}

/** Bytes that are read, parsed and written in one turn: less than a millisecond. */
const STEP_BYTES = 64 * 1024;

/**
 * Copies a segment. Null where it has no removed event; then there is no file `to`. The copy is on the disk
 * when it resolves.
 */
export async function copySegment(options: SegmentCopyOptions): Promise<SegmentCopy | null> {
  const { from, to } = options;
  let isKept = false;
  try {
    using source = await Deno.open(from, { read: true });
    using target = await Deno.open(to, { create: true, truncate: true, write: true, mode: 0o600 });
    const copy = await new Copying(options, source, target).run();
    if (copy !== null) await target.syncData();
    isKept = copy !== null;
    return copy;
  } finally {
    // on a full disk it would take the space that events need
    if (!isKept) await Deno.remove(to).catch(() => {});
  }
}

/** One copying. It allocates nothing for a record or a gap: collecting that takes longer than a step. */
class Copying {
  readonly #options: SegmentCopyOptions;
  readonly #source: Deno.FsFile;
  readonly #target: Deno.FsFile;
  readonly #record = new ParsedRecord();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The first event that is left of each run. */
  readonly #runs = new ByteLookup<{ readonly firstLeft: number }>();
  #buffer = new Uint8Array(STEP_BYTES);
  /** How much of the buffer is filled, and where its first byte is in the segment. */
  #filled = 0;
  #start = 0;
  /** The first of the removed events before the present record; 0 without any. */
  #gapFrom = 0;
  #gapTo = 0;
  /** Bytes that are to be written next: the records of one step, and the gap before them. */
  readonly #out = new Uint8Array(STEP_BYTES + GAP_BYTES_MAX);
  #outBytes = 0;
  #lastSeq = 0;
  readonly #copy = {
    sizeBytes: 0,
    kept: new NumberList(),
    gaps: new NumberList(),
    removedEvents: 0,
  };

  constructor(options: SegmentCopyOptions, source: Deno.FsFile, target: Deno.FsFile) {
    this.#options = options;
    this.#source = source;
    this.#target = target;
  }

  async run(): Promise<SegmentCopy | null> {
    const { sizeBytes, signal } = this.#options;
    while (this.#start < sizeBytes) {
      signal.throwIfAborted();
      await this.#fill();
      const used = this.#takeRecords();
      await this.#flush();
      if (used === 0) await this.#takeLong();
      else this.#drop(used);
      await yieldToEventLoop();
    }
    this.#closeGap();
    await this.#flush();
    return this.#copy.removedEvents === 0 ? null : this.#copy;
  }

  async #fill(): Promise<void> {
    const end = Math.min(this.#buffer.length, this.#options.sizeBytes - this.#start);
    while (this.#filled < end) {
      const read = await this.#source.read(this.#buffer.subarray(this.#filled, end));
      if (!read) throw new SegmentDamaged(`it ends at ${this.#start + this.#filled}`);
      this.#filled += read;
    }
  }

  /** Takes the whole records of the buffer. Returns how many bytes they had. */
  #takeRecords(): number {
    const record = this.#record;
    const bytes = this.#buffer.subarray(0, this.#filled);
    let at = 0;
    let keptFrom = -1;
    while (at < bytes.length && record.parse(bytes, at, bytes.length)) {
      const end = at + record.sizeBytes;
      if (end > bytes.length && this.#start + bytes.length < this.#options.sizeBytes) break;
      if (!isLineBreak(bytes[end - 1])) {
        throw new SegmentDamaged(`a line break is missing at ${this.#start + end}`);
      }
      if (this.#isRemoved(bytes)) {
        if (keptFrom >= 0) this.#keep(bytes, keptFrom, at);
        keptFrom = -1;
      } else {
        this.#note();
        if (keptFrom < 0) keptFrom = at;
      }
      at = end;
    }
    if (keptFrom >= 0) this.#keep(bytes, keptFrom, at);
    return at;
  }

  /** Takes a record that is longer than the buffer, or finds that it is none. */
  async #takeLong(): Promise<void> {
    const record = this.#record;
    const bytes = this.#buffer.subarray(0, this.#filled);
    const head = bytes.length < HEADER_BYTES ? null : record.parseHead(bytes);
    if (
      head === null || record.sizeBytes <= bytes.length ||
      this.#start + record.sizeBytes > this.#options.sizeBytes
    ) {
      throw new SegmentDamaged(`there is no record at ${this.#start}`);
    }
    const { sizeBytes } = record;
    const isRemoved = this.#isRemoved(bytes);
    if (!isRemoved) {
      this.#note();
      await this.#flush();
    }
    let checksum = 0;
    for (let done = 0; done < sizeBytes;) {
      await this.#fill();
      const piece = this.#buffer.subarray(0, Math.min(this.#filled, sizeBytes - done));
      checksum = crc32(
        piece.subarray(done === 0 ? 11 : 0, done + piece.length === sizeBytes ? -1 : undefined),
        checksum,
      );
      if (!isRemoved) await this.#write(piece);
      done += piece.length;
      this.#drop(piece.length);
      await yieldToEventLoop();
    }
    if (checksum !== head.checksum) {
      throw new SegmentDamaged(`the record before ${this.#start} has another checksum`);
    }
  }

  /** Whether the events of the record that was parsed last are removed, or it stands for such events. */
  #isRemoved(bytes: Uint8Array): boolean {
    const { seq, runStart, runEnd } = this.#record;
    if (seq <= this.#lastSeq) throw new SegmentDamaged(`event ${seq} is there twice`);
    this.#lastSeq = seq;
    const end = gapEnd(bytes, this.#record);
    if (end > 0) return this.#extendGap(seq, end);
    const run = this.#runs.find(bytes, runStart, runEnd) ?? this.#runs.add(bytes, runStart, runEnd, {
      firstLeft: this.#options.firstLeftOf(columnText(this.#decoder, bytes, runStart, runEnd)),
    });
    if (seq >= run.firstLeft) return false;
    this.#copy.removedEvents++;
    return this.#extendGap(seq, seq);
  }

  #extendGap(fromSeq: number, toSeq: number): true {
    // a number that damage had destroyed before
    if (this.#gapFrom > 0 && fromSeq !== this.#gapTo + 1) this.#closeGap();
    if (this.#gapFrom === 0) this.#gapFrom = fromSeq;
    this.#gapTo = toSeq;
    return true;
  }

  #closeGap(): void {
    if (this.#gapFrom === 0) return;
    this.#copy.gaps.push(this.#gapFrom);
    this.#copy.gaps.push(this.#gapTo);
    const end = writeGapRecord(this.#gapFrom, this.#gapTo, this.#out, this.#outBytes);
    this.#copy.sizeBytes += end - this.#outBytes;
    this.#outBytes = end;
    this.#gapFrom = 0;
  }

  #keep(bytes: Uint8Array, from: number, to: number): void {
    this.#out.set(bytes.subarray(from, to), this.#outBytes);
    this.#outBytes += to - from;
  }

  /** Notes where the record that was parsed last goes. */
  #note(): void {
    this.#closeGap();
    this.#copy.kept.push(this.#record.seq);
    this.#copy.kept.push(this.#copy.sizeBytes);
    this.#copy.sizeBytes += this.#record.sizeBytes;
  }

  async #flush(): Promise<void> {
    if (this.#outBytes === 0) return;
    await this.#write(this.#out.subarray(0, this.#outBytes));
    this.#outBytes = 0;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      written += await this.#target.write(bytes.subarray(written));
    }
  }

  #drop(count: number): void {
    this.#buffer.copyWithin(0, count, this.#filled);
    this.#filled -= count;
    this.#start += count;
  }
}
