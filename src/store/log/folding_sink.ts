/** Takes the records of one segment while it is read, folds them, and reports what lies between them. */

import type { Run } from "../../model/runs/run.ts";
import type { RunRegister } from "../../model/runs/run_register.ts";
import { ByteLookup } from "./byte_lookup.ts";
import type { DamageReport } from "./damage.ts";
import type { EventIndex } from "./event_index.ts";
import { columnText, HEADER_BYTES, isTornRecord, type ParsedRecord } from "./record.ts";
import type { Segment } from "./segment.ts";
import type { RecordSink } from "./segment_scan.ts";

export interface FoldInto {
  readonly register: RunRegister;
  readonly index: EventIndex;
  readonly damage: DamageReport;
}

/** Holds back the records of a commit until its last one is there: a torn commit must not be folded. */
export class FoldingSink implements RecordSink {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #runs = new ByteLookup<Run>();
  readonly #kinds = new ByteLookup<{ name: string; id: number }>();
  readonly #pending: Pending[] = [];
  #pendingLeft = 0;
  /** The number that the next record should have. */
  #expectedSeq: number;

  constructor(
    private readonly segment: Segment,
    private readonly file: Deno.FsFile,
    private readonly into: FoldInto,
  ) {
    this.#expectedSeq = into.register.lastSeq + 1;
  }

  record(bytes: Uint8Array, record: ParsedRecord, offset: number): void {
    const { seq, left } = record;
    if (seq > this.#expectedSeq) this.#reportGap(offset, seq);
    this.#expectedSeq = seq + 1;
    const run = this.#runOf(bytes, record.runStart, record.runEnd);
    const kind = this.#kindOf(bytes, record.kindStart, record.kindEnd);
    const payload = run.needsPayloadOf(kind.name) ? this.#payload(bytes, record) : undefined;
    if (this.#pending.length > 0 && left !== this.#pendingLeft - 1) this.flush();
    if (left > 0) {
      this.#pendingLeft = left;
      this.#pending.push({ run, seq, ptsMs: record.ptsMs, kind: kind.name, offset, payload });
      return;
    }
    this.flush();
    this.#fold(run, seq, record.ptsMs, kind.name, kind.id, offset, payload);
  }

  damage(from: number, to: number, nextSeq: number): void {
    const records = nextSeq > this.#expectedSeq ? nextSeq - this.#expectedSeq : 0;
    this.#expectedSeq = Math.max(this.#expectedSeq, nextSeq);
    const what = to === from ? "a line break between two records is missing" : "bytes that are no record";
    const damage = { segment: this.segment.name, offset: from, bytes: to - from, records, what };
    this.into.damage.add(damage, (bytesMax) => this.#bytes(from, Math.min(to - from, bytesMax)));
  }

  /** Folds what is held back, once it is known not to be a torn commit. */
  flush(): void {
    for (const { run, seq, ptsMs, kind, offset, payload } of this.#pending) {
      this.#fold(run, seq, ptsMs, kind, this.into.index.kindId(kind), offset, payload);
    }
    this.#pending.length = 0;
  }

  /** The commit that lacks its end: where and with which number it starts, and how many records are to follow. */
  openCommit(): { offset: number; seq: number; left: number } | undefined {
    const first = this.#pending[0];
    return first && { offset: first.offset, seq: first.seq, left: this.#pendingLeft };
  }

  /** Whether the bytes are the beginning of a record, as a write that was stopped leaves them. */
  isTornRecord(from: number, to: number): boolean {
    return isTornRecord(this.#bytes(from, Math.min(HEADER_BYTES, to - from)));
  }

  #fold(
    run: Run,
    seq: number,
    ptsMs: number,
    kind: string,
    kindId: number,
    offset: number,
    payload: unknown,
  ): void {
    this.into.index.add(run, seq, this.segment.base + offset, kindId);
    this.into.register.fold(run, seq, ptsMs, kind, payload);
  }

  #reportGap(offset: number, seq: number): void {
    const records = seq - this.#expectedSeq;
    const what = `events ${this.#expectedSeq} to ${seq - 1} are missing`;
    this.into.damage.add({ segment: this.segment.name, offset, bytes: 0, records, what });
  }

  #runOf(bytes: Uint8Array, start: number, end: number): Run {
    return this.#runs.find(bytes, start, end) ??
      this.#runs.add(
        bytes,
        start,
        end,
        this.into.register.entry(columnText(this.#decoder, bytes, start, end)),
      );
  }

  #kindOf(bytes: Uint8Array, start: number, end: number): { name: string; id: number } {
    const known = this.#kinds.find(bytes, start, end);
    if (known !== undefined) return known;
    const name = columnText(this.#decoder, bytes, start, end);
    return this.#kinds.add(bytes, start, end, { name, id: this.into.index.kindId(name) });
  }

  #payload(bytes: Uint8Array, record: ParsedRecord): unknown {
    try {
      return JSON.parse(this.#decoder.decode(bytes.subarray(record.payloadStart, record.payloadEnd)));
    } catch {
      return undefined;
    }
  }

  #bytes(from: number, count: number): Uint8Array {
    // The scanner seeks before each of its own reads, so moving the file's place is safe.
    const bytes = new Uint8Array(count);
    this.file.seekSync(from, Deno.SeekMode.Start);
    let filled = 0;
    while (filled < count) {
      const read = this.file.readSync(bytes.subarray(filled));
      if (!read) break;
      filled += read;
    }
    return bytes.subarray(0, filled);
  }
}

/** A record of a commit whose last record was not seen yet. */
interface Pending {
  readonly run: Run;
  readonly seq: number;
  readonly ptsMs: number;
  readonly kind: string;
  readonly offset: number;
  readonly payload: unknown;
}
