/** Receives the records of one segment during a replay, folds them, and reports the damage between them. */

import { EVENTS_REMOVED, type Run } from "../../model/runs/run.ts";
import type { RunRegister } from "../../model/runs/run_register.ts";
import { type AcceptedLosses, isAccepted } from "./accepted_losses.ts";
import { ByteLookup } from "./byte_lookup.ts";
import type { DamageReport } from "./damage.ts";
import type { EventIndex } from "./event_index.ts";
import { columnText, HEADER_BYTES, isTornRecord, type ParsedRecord } from "./record.ts";
import { gapEnd } from "./gap_record.ts";
import type { Segment, SegmentReader } from "./segment.ts";
import type { RecordSink } from "./segment_scan.ts";

/** What the records are folded into. */
export interface FoldTarget {
  readonly register: RunRegister;
  readonly index: EventIndex;
  readonly damage: DamageReport;
  /** Events that miss and are no damage. */
  readonly accepted: AcceptedLosses;
  readonly reader: SegmentReader;
}

/**
 * Makes the run begin again without the events before. Call it before `events_removed` is folded into the
 * run.
 */
export function startRunAgain(run: Run, { index, reader }: Pick<FoldTarget, "index" | "reader">): void {
  index.restart(run);
  const [from, to] = [index.positionOf(run.firstSeq), index.positionOf(run.lastSeq)];
  if (run.eventCount > 0 && from >= 0 && to >= 0) reader.markRemoved(from, to);
}

/** Keeps the records of a commit until its last one was read: an incomplete commit must not be folded. */
export class FoldingSink implements RecordSink {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #segment: Segment;
  readonly #file: Deno.FsFile;
  readonly #into: FoldTarget;
  readonly #runs = new ByteLookup<Run>();
  readonly #kinds = new ByteLookup<Kind>();
  readonly #pending: ReadRecord[] = [];
  /** How many records of the pending commit follow. */
  #pendingLeft = 0;
  /** The sequence number that the next record should have. */
  #expectedSeq: number;

  constructor(segment: Segment, file: Deno.FsFile, into: FoldTarget) {
    this.#segment = segment;
    this.#file = file;
    this.#into = into;
    this.#expectedSeq = into.register.lastSeq + 1;
  }

  record(bytes: Uint8Array, record: ParsedRecord, offset: number): void {
    const { seq, left } = record;
    if (seq > this.#expectedSeq) this.#reportGap(offset, seq);
    const removedEnd = gapEnd(bytes, record);
    if (removedEnd > 0) return this.#passRemoved(removedEnd);
    this.#expectedSeq = seq + 1;
    const run = this.#runOf(bytes, record.runStart, record.runEnd);
    const kind = this.#kindOf(bytes, record.kindStart, record.kindEnd);
    const payload = run.needsPayloadOf(kind.name) ? this.#payload(bytes, record) : undefined;
    if (this.#pending.length > 0 && left !== this.#pendingLeft - 1) this.flush();
    const { ptsMs, sizeBytes } = record;
    const read: ReadRecord = { run, seq, ptsMs, kind, offset, payload, sizeBytes };
    if (left > 0) {
      this.#pendingLeft = left;
      this.#pending.push(read);
      return;
    }
    this.flush();
    this.#fold(read);
  }

  damage(from: number, to: number, nextSeq: number): void {
    const records = nextSeq > this.#expectedSeq ? nextSeq - this.#expectedSeq : 0;
    this.#expectedSeq = Math.max(this.#expectedSeq, nextSeq);
    const what = to === from ? "a line break between two records is missing" : "bytes that are no record";
    const damage = { segment: this.#segment.name, offset: from, bytes: to - from, records, what };
    this.#into.damage.add(damage, (bytesMax) => this.#bytes(from, Math.min(to - from, bytesMax)));
  }

  /**
   * Folds the pending records; call it when they are known not to be an incomplete commit at the end of the
   * log.
   */
  flush(): void {
    for (const record of this.#pending) this.#fold(record);
    this.#pending.length = 0;
  }

  /**
   * The commit whose last record was not read: where it starts, its first sequence number, how many records
   * miss.
   */
  openCommit(): { offset: number; seq: number; left: number } | undefined {
    const first = this.#pending[0];
    return first && { offset: first.offset, seq: first.seq, left: this.#pendingLeft };
  }

  /** Whether the bytes are the beginning of a record, as an interrupted write leaves them. */
  isTornRecord(from: number, to: number): boolean {
    return isTornRecord(this.#bytes(from, Math.min(HEADER_BYTES, to - from)));
  }

  #fold({ run, seq, ptsMs, kind, offset, payload, sizeBytes }: ReadRecord): void {
    if (kind.name === EVENTS_REMOVED) startRunAgain(run, this.#into);
    this.#into.index.add(run, seq, this.#segment.base + offset, kind.id);
    this.#into.register.fold(run, seq, ptsMs, kind.name, payload, sizeBytes);
  }

  /** Notes that the events up to `toSeq` were removed on purpose. */
  #passRemoved(toSeq: number): void {
    this.flush();
    const { register } = this.#into;
    this.#expectedSeq = Math.max(this.#expectedSeq, toSeq + 1);
    register.lastSeq = Math.max(register.lastSeq, toSeq);
  }

  #reportGap(offset: number, seq: number): void {
    if (isAccepted(this.#into.accepted, this.#expectedSeq, seq - 1)) return;
    const records = seq - this.#expectedSeq;
    const what = `events ${this.#expectedSeq} to ${seq - 1} are missing`;
    this.#into.damage.add({ segment: this.#segment.name, offset, bytes: 0, records, what });
  }

  #runOf(bytes: Uint8Array, start: number, end: number): Run {
    return this.#runs.find(bytes, start, end) ??
      this.#runs.add(
        bytes,
        start,
        end,
        this.#into.register.entry(columnText(this.#decoder, bytes, start, end)),
      );
  }

  #kindOf(bytes: Uint8Array, start: number, end: number): Kind {
    const known = this.#kinds.find(bytes, start, end);
    if (known !== undefined) return known;
    const name = columnText(this.#decoder, bytes, start, end);
    return this.#kinds.add(bytes, start, end, { name, id: this.#into.index.kindId(name) });
  }

  #payload(bytes: Uint8Array, record: ParsedRecord): unknown {
    try {
      return JSON.parse(this.#decoder.decode(bytes.subarray(record.payloadStart, record.payloadEnd)));
    } catch {
      return undefined;
    }
  }

  #bytes(from: number, count: number): Uint8Array {
    // The scanner seeks before each of its reads, so the file's offset may change here.
    const bytes = new Uint8Array(count);
    this.#file.seekSync(from, Deno.SeekMode.Start);
    let filled = 0;
    while (filled < count) {
      const read = this.#file.readSync(bytes.subarray(filled));
      if (!read) break;
      filled += read;
    }
    return bytes.subarray(0, filled);
  }
}

interface Kind {
  readonly name: string;
  /** The id of the kind in the event index. */
  readonly id: number;
}

/** A record with what is needed to fold it. */
interface ReadRecord {
  readonly run: Run;
  readonly seq: number;
  readonly ptsMs: number;
  readonly kind: Kind;
  readonly offset: number;
  readonly payload: unknown;
  readonly sizeBytes: number;
}
