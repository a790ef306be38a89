/** Reads events from the log with the help of the index: those of one run, of all runs, or one by its number.
 */

import { crc32 } from "node:zlib";
import { yieldToEventLoop } from "../../base/wait.ts";
import { DEFAULT_STREAM_ID } from "../../model/identifiers.ts";
import type { Run } from "../../model/runs/run.ts";
import type { DamageReport } from "./damage.ts";
import { type EventIndex, UNNUMBERED_KIND } from "./event_index.ts";
import { columnText, HEADER_BYTES, ParsedRecord } from "./record.ts";
import type { ReadAhead } from "./read_ahead.ts";
import type { Segment, SegmentReader } from "./segment.ts";

/** An event as it is in the log. */
export interface StoredEvent {
  readonly seq: number;
  readonly runId: string;
  readonly streamId: string;
  /** The time of the event, epoch milliseconds. */
  readonly ptsMs: number;
  readonly kind: string;
  /** The payload: JSON text exactly as it was written, because JSON.parse would round 64-bit integers. */
  readonly payload: string;
}

/** An event that is too long to be read at once. */
export interface LongEvent extends Omit<StoredEvent, "payload"> {
  /** The payload in pieces of text, with turns for others in between; may be read more than once. */
  readonly pieces: AsyncIterable<string>;
  /** The size of the payload in UTF-8. */
  readonly payloadBytes: number;
}

export interface EventQuery {
  /** The first event that is read. */
  readonly fromSeq?: number;
  /** The last event that is read. */
  readonly toSeq?: number;
  /**
   * The kinds that are read. They are looked up in the index, so events of other kinds are not read from the
   * disk.
   */
  readonly kinds?: ReadonlySet<string> | ((kind: string) => boolean);
  /** The most events over all batches. */
  readonly limit?: number;
}

/** What is read in one batch. */
export interface BatchQuery extends EventQuery {
  /** About how many bytes the batch has at most, but at least one event; 1 MiB unless given. */
  readonly batchBytes?: number;
}

const BATCH_EVENTS = 256;
const BATCH_BYTES = 1024 * 1024;
/** Records with a smaller gap between them are fetched with one read, together with the bytes of the gap. */
const COALESCE_GAP_BYTES = 4096;
/** How many bytes are fetched of a record whose end is not in the index. */
const GUESS_BYTES = 64 * 1024;

/** A range of the log to fetch with one read, and the events in it. */
interface PlannedRead {
  readonly segment: Segment;
  readonly from: number;
  to: number;
  readonly seqs: number[];
}

/** Bytes of a long record that are parsed in one turn, which takes a few milliseconds. */
const PIECE_BYTES = 256 * 1024;

export class EventReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #record = new ParsedRecord();
  /**
   * Sequence numbers of damaged records that were reported, so that each is reported once and not at every
   * read.
   */
  readonly #reported = new Set<number>();
  readonly #index: EventIndex;
  readonly #segments: SegmentReader;
  readonly #damage: DamageReport;
  readonly #isLeft: (runId: string, seq: number) => boolean;
  #buffer = new Uint8Array(64 * 1024);

  /** `isLeft`: whether the event was not removed; its record may still be in the log. */
  constructor(
    index: EventIndex,
    segments: SegmentReader,
    damage: DamageReport,
    isLeft: (runId: string, seq: number) => boolean,
  ) {
    this.#isLeft = isLeft;
    this.#index = index;
    this.#segments = segments;
    this.#damage = damage;
  }

  *readRun(run: Run, query: EventQuery): Iterable<readonly StoredEvent[]> {
    const budget = budgetOf(query);
    for (const plan of this.#plans(query, budget, this.#alongRun(run, query))) {
      const events = this.#fetchPlanned(plan, query, budget, run.runId);
      if (events.length > 0) yield events;
    }
  }

  /**
   * The first batch of `readRun`. An event that is longer than a batch may be is not read: its number comes
   * instead.
   */
  firstOfRun(run: Run, query: BatchQuery): readonly StoredEvent[] | number | undefined {
    const budget = budgetOf(query);
    for (const plan of this.#plans(query, budget, this.#alongRun(run, query))) {
      if (isLong(plan, query)) return plan[0]!.seqs[0]!;
      const events = this.#fetchPlanned(plan, query, budget, run.runId);
      if (events.length > 0) return events;
    }
    return undefined;
  }

  /**
   * Like `readRun`, for long readings: what is not in the file cache is read into it first, without blocking.
   */
  async *readRunAhead(
    run: Run,
    query: EventQuery,
    readAhead: ReadAhead,
  ): AsyncIterable<readonly StoredEvent[]> {
    const budget = budgetOf(query);
    for (const plan of this.#plans(query, budget, this.#alongRun(run, query))) {
      await readAhead.warm(plan);
      const events = this.#fetchPlanned(plan, query, budget, run.runId);
      if (events.length > 0) yield events;
    }
  }

  /**
   * Like `readRunAhead`, but an event that is longer than a batch may be comes alone, to be read in pieces.
   */
  async *readRunInPieces(
    run: Run,
    query: EventQuery,
    readAhead: ReadAhead,
  ): AsyncIterable<readonly (StoredEvent | LongEvent)[]> {
    const budget = budgetOf(query);
    let isFirst = true;
    for (const plan of this.#plans(query, budget, this.#alongRun(run, query))) {
      if (!isFirst) await yieldToEventLoop();
      isFirst = false;
      await readAhead.warm(plan);
      const long = isLong(plan, query) ? await this.longEvent(plan[0]!.seqs[0]!) : undefined;
      if (long === undefined) {
        const events = this.#fetchPlanned(plan, query, budget, run.runId);
        if (events.length > 0) yield events;
      } else if (query.kinds === undefined || matcherOf(query.kinds)(long.kind)) {
        budget.left -= 1;
        yield [long];
      }
    }
  }

  *readAll(query: EventQuery, logLastSeq: number): Iterable<readonly StoredEvent[]> {
    const lastSeq = Math.min(query.toSeq ?? Infinity, logLastSeq);
    const wanted = this.#wantedKinds(query);
    const next: NextSeq = (fromSeq, after) =>
      this.#index.firstOfKinds(wanted, after === 0 ? fromSeq : after + 1, lastSeq);
    const budget = budgetOf(query);
    for (const plan of this.#plans(query, budget, next)) {
      const events = this.#fetchPlanned(plan, query, budget);
      if (events.length > 0) yield events;
    }
  }

  /** The events with these numbers, which ascend; those that are damaged are left out. */
  *readNumbers(runId: string, seqs: ArrayLike<number>): Iterable<readonly StoredEvent[]> {
    let at = 0;
    const next: NextSeq = () => seqs[at++] ?? 0;
    for (const plan of this.#plans({}, { left: Infinity }, next)) yield this.#fetch(plan, runId);
  }

  readOne(seq: number): StoredEvent | undefined {
    const bytes = this.#fetchOne(seq);
    const event = bytes === undefined ? undefined : this.#event(bytes, this.#record);
    return event === undefined || !this.#isLeft(event.runId, seq) ? undefined : event;
  }

  /**
   * The payload of one event in pieces of text, however long it is, with turns for others in between; no
   * piece when the log does not have the event. It is read twice, as its checksum is known only at its end.
   */
  async *readPieces(seq: number): AsyncIterable<string> {
    const record = await this.#longRecord(seq);
    if (record === undefined) {
      const event = this.readOne(seq);
      if (event !== undefined) yield event.payload;
      return;
    }
    yield* this.#piecesOf(record);
  }

  async *#piecesOf(
    { seq, payloadStart, payloadEnd }: LongRecord,
    pieceBytes = PIECE_BYTES,
  ): AsyncGenerator<string> {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    for (let at = payloadStart; at < payloadEnd; at += pieceBytes) {
      const bytes = this.#readOf(seq, at, Math.min(payloadEnd, at + pieceBytes));
      if (bytes === undefined) throw new EventsRemoved(seq);
      yield decoder.decode(bytes, { stream: true });
      await yieldToEventLoop();
    }
  }

  /**
   * The event with its payload in pieces; undefined for a record that `readOne` is for: one that is no longer
   * than a piece, or that is damaged. A piece has at most `bytesMax` bytes of UTF-8, and at most 256 KiB.
   */
  async longEvent(seq: number, bytesMax = PIECE_BYTES): Promise<LongEvent | undefined> {
    const pieceBytes = Math.min(bytesMax, PIECE_BYTES);
    const record = await this.#longRecord(seq, pieceBytes);
    if (record === undefined) return undefined;
    return {
      ...record.columns,
      pieces: { [Symbol.asyncIterator]: () => this.#piecesOf(record, pieceBytes) },
      payloadBytes: record.payloadEnd - record.payloadStart,
    };
  }

  /**
   * Where the payload of a long and whole record is in its segment. Any other record is left to `readOne`.
   */
  async #longRecord(seq: number, shortMax = PIECE_BYTES): Promise<LongRecord | undefined> {
    const position = Number.isSafeInteger(seq) && seq > 0 ? this.#index.positionOf(seq) : -1;
    if (position < 0) return undefined;
    const segment = this.#segments.at(position);
    const from = position - segment.base;
    const head = this.#read(segment, from, Math.min(from + shortMax, segment.sizeBytes));
    const parsed = this.#record.parseHead(head);
    const { payloadStart, payloadEnd } = this.#record;
    if (parsed === null || this.#record.seq !== seq || payloadEnd <= head.length) return undefined;
    if (from + payloadEnd > segment.sizeBytes) return undefined;
    const columns = this.#columns(head, this.#record);
    if (!this.#isLeft(columns.runId, seq)) return undefined;
    let checksum = 0;
    for (let at = 11; at < payloadEnd; at += PIECE_BYTES) {
      const end = Math.min(payloadEnd, at + PIECE_BYTES);
      const bytes = this.#readOf(seq, at, end);
      if (bytes === undefined) return undefined;
      checksum = crc32(bytes, checksum);
      await yieldToEventLoop();
    }
    if (checksum !== parsed.checksum) return undefined;
    return { seq, payloadStart, payloadEnd, columns };
  }

  /** Bytes of a record, wherever it is now; undefined where the log does not have it any more. */
  #readOf(seq: number, from: number, to: number): Uint8Array<ArrayBuffer> | undefined {
    const position = this.#index.positionOf(seq);
    if (position < 0) return undefined;
    const segment = this.#segments.at(position);
    const start = position - segment.base;
    return this.#read(segment, start + from, start + to);
  }

  /** About how many bytes the record has; 0 when the log does not have it. */
  sizeOf(seq: number): number {
    const position = Number.isSafeInteger(seq) && seq > 0 ? this.#index.positionOf(seq) : -1;
    if (position < 0) return 0;
    const segment = this.#segments.at(position);
    return this.#endOf(seq, segment, position - segment.base) - (position - segment.base);
  }

  readPayload(seq: number): Uint8Array<ArrayBuffer> | undefined {
    return this.#fetchOne(seq)?.slice(this.#record.payloadStart, this.#record.payloadEnd);
  }

  #alongRun(run: Run, query: EventQuery): NextSeq {
    const lastSeq = Math.min(query.toSeq ?? Infinity, run.lastSeq);
    const runLastSeq = run.lastSeq;
    const { removedSeq } = run;
    const wanted = this.#wantedKinds(query);
    return (fromSeq, after) => {
      if (run.removedSeq !== removedSeq) throw new EventsRemoved(after);
      let seq = after === 0
        ? this.#index.firstFrom(run, fromSeq)
        : after === runLastSeq
        ? 0
        : this.#index.nextOf(after);
      while (seq !== 0 && seq <= lastSeq && !isWanted(wanted, this.#index.kindIdOf(seq))) {
        seq = seq === runLastSeq ? 0 : this.#index.nextOf(seq);
      }
      return seq > lastSeq ? 0 : seq;
    };
  }

  /** The reads of each batch; they end with the last event or when the budget is used up. */
  *#plans(query: BatchQuery, budget: Budget, next: NextSeq): Iterable<readonly PlannedRead[]> {
    const { batchBytes = BATCH_BYTES } = query;
    let after = 0;
    let seq = budget.left > 0 ? next(Math.max(1, query.fromSeq ?? 1), 0) : 0;
    while (seq !== 0 && budget.left > 0) {
      const plan: PlannedRead[] = [];
      const countMax = Math.min(BATCH_EVENTS, budget.left);
      for (let count = 0, bytes = 0; seq !== 0 && count < countMax; count++) {
        const size = this.#addRead(plan, seq);
        bytes += size;
        // The first record of a batch is read whatever its size.
        if (bytes > batchBytes && count > 0) {
          plan.at(-1)!.seqs.pop();
          if (plan.at(-1)!.seqs.length === 0) plan.pop();
          break;
        }
        after = seq;
        seq = next(0, after);
      }
      yield plan;
    }
  }

  #fetchPlanned(
    plan: readonly PlannedRead[],
    query: EventQuery,
    budget: Budget,
    runId?: string,
  ): StoredEvent[] {
    let events = this.#fetch(plan, runId);
    // The index has no kind for events whose kind came after 65,535 other kinds.
    if (query.kinds !== undefined) {
      const matches = matcherOf(query.kinds);
      events = events.filter((event) => matches(event.kind));
    }
    if (runId === undefined) events = events.filter((event) => this.#isLeft(event.runId, event.seq));
    budget.left -= events.length;
    return events;
  }

  /**
   * Adds the record to the last planned read when it is near, else as a new one; returns about how many bytes
   * it has.
   */
  #addRead(plan: PlannedRead[], seq: number): number {
    const position = this.#index.positionOf(seq);
    const last = plan.at(-1);
    const inLast = last !== undefined && position >= last.segment.base &&
      position < last.segment.base + last.segment.sizeBytes;
    const segment = inLast ? last.segment : this.#segments.at(position);
    const from = position - segment.base;
    const to = this.#endOf(seq, segment, from);
    if (inLast && from - last.to <= COALESCE_GAP_BYTES && to - last.from <= BATCH_BYTES) {
      last.to = to;
      last.seqs.push(seq);
    } else plan.push({ segment, from, to, seqs: [seq] });
    return to - from;
  }

  /** Offset of the next record; where the index does not have it, as the header says, or a guess. */
  #endOf(seq: number, segment: Segment, from: number): number {
    const nextPosition = this.#index.positionOf(seq + 1);
    const end = segment.base + segment.sizeBytes;
    if (nextPosition > segment.base + from && nextPosition <= end) return nextPosition - segment.base;
    const claimed = this.#record.claimedBytes(
      this.#read(segment, from, from + HEADER_BYTES),
      0,
      HEADER_BYTES,
    );
    return Math.min(segment.sizeBytes, from + Math.max(claimed, GUESS_BYTES));
  }

  #fetch(plan: readonly PlannedRead[], runId: string | undefined): StoredEvent[] {
    const events: StoredEvent[] = [];
    for (const { segment, from, to, seqs } of plan) {
      const bytes = this.#read(segment, from, to);
      for (const seq of seqs) {
        const start = this.#index.positionOf(seq) - segment.base - from;
        if (this.#parse(bytes, start, seq)) events.push(this.#event(bytes, this.#record, runId));
        else {
          // Damaged, or longer than planned: read alone, it is either whole or reported as damaged.
          const event = this.readOne(seq);
          if (event !== undefined) events.push(event);
        }
      }
    }
    return events;
  }

  /** Reads one record with the length that its header claims, and parses it into `#record`. */
  #fetchOne(seq: number): Uint8Array<ArrayBuffer> | undefined {
    const position = Number.isSafeInteger(seq) && seq > 0 ? this.#index.positionOf(seq) : -1;
    if (position < 0) return undefined;
    const segment = this.#segments.at(position);
    const from = position - segment.base;
    let to = this.#endOf(seq, segment, from);
    let bytes = this.#read(segment, from, to);
    if (this.#parse(bytes, 0, seq)) return bytes;
    const claimed = this.#record.claimedBytes(bytes, 0, bytes.length);
    if (claimed > bytes.length && from + claimed - 1 <= segment.sizeBytes) {
      to = from + claimed;
      bytes = this.#read(segment, from, to);
      if (this.#parse(bytes, 0, seq)) return bytes;
    }
    this.#reportBad(segment, from, to, seq);
    return undefined;
  }

  #parse(bytes: Uint8Array, start: number, seq: number): boolean {
    return start + HEADER_BYTES <= bytes.length && this.#record.parse(bytes, start, bytes.length) &&
      this.#record.seq === seq;
  }

  /**
   * Takes the run id and the kind from the index where possible, because decoding them for each event takes
   * time.
   */
  #event(bytes: Uint8Array, record: ParsedRecord, runId?: string): StoredEvent {
    const { payloadStart, payloadEnd } = record;
    const payload = this.#decoder.decode(bytes.subarray(payloadStart, payloadEnd));
    return { ...this.#columns(bytes, record, runId), payload };
  }

  #columns(bytes: Uint8Array, record: ParsedRecord, runId?: string): Omit<StoredEvent, "payload"> {
    return {
      seq: record.seq,
      runId: runId ?? columnText(this.#decoder, bytes, record.runStart, record.runEnd),
      streamId: this.#streamId(bytes, record.streamStart, record.streamEnd),
      ptsMs: record.ptsMs,
      kind: this.#index.kindNames[this.#index.kindIdOf(record.seq)] ??
        columnText(this.#decoder, bytes, record.kindStart, record.kindEnd),
    };
  }

  #streamId(bytes: Uint8Array, start: number, end: number): string {
    let same = end - start === DEFAULT_STREAM_ID.length;
    for (let at = 0; same && at < DEFAULT_STREAM_ID.length; at++) {
      same = bytes[start + at] === DEFAULT_STREAM_ID.charCodeAt(at);
    }
    return same ? DEFAULT_STREAM_ID : columnText(this.#decoder, bytes, start, end);
  }

  /**
   * Reads a range of a segment. The result is valid until the next read; it is empty when the file cannot be
   * read. Throws after the log was closed.
   */
  #read(segment: Segment, from: number, to: number): Uint8Array<ArrayBuffer> {
    let buffer = this.#buffer;
    if (to - from > buffer.length) {
      buffer = new Uint8Array(Math.max(to - from, Math.min(BATCH_BYTES, buffer.length * 2)));
      // The buffer of a very large record is not kept.
      if (buffer.length <= BATCH_BYTES) this.#buffer = buffer;
    }
    try {
      return buffer.subarray(0, this.#segments.read(segment, from, buffer.subarray(0, to - from)));
    } catch (error) {
      if (error instanceof DOMException) throw error;
      return buffer.subarray(0, 0);
    }
  }

  #reportBad(segment: Segment, from: number, to: number, seq: number): void {
    if (this.#reported.has(seq)) return;
    this.#reported.add(seq);
    const what = `event ${seq} cannot be read back`;
    this.#damage.add(
      { segment: segment.name, offset: from, bytes: to - from, records: 1, what },
      (bytesMax) => this.#read(segment, from, Math.min(to, from + bytesMax)),
    );
  }

  /**
   * The wanted kinds: one byte for each kind id, 1 when events of the kind may be wanted. A query without
   * `kinds` wants all.
   */
  #wantedKinds({ kinds }: EventQuery): Uint8Array {
    const names = this.#index.kindNames;
    const wanted = new Uint8Array(names.length >= UNNUMBERED_KIND ? UNNUMBERED_KIND + 1 : names.length);
    if (kinds === undefined) return wanted.fill(1);
    const matches = matcherOf(kinds);
    for (let id = 0; id < names.length; id++) wanted[id] = matches(names[id]!) ? 1 : 0;
    if (wanted.length > UNNUMBERED_KIND) wanted[UNNUMBERED_KIND] = 1;
    return wanted;
  }
}

/** The error of a reading whose events are removed meanwhile: what was read so far must not pass for all. */
class EventsRemoved extends Error {
  override readonly name = "EventsRemoved";

  constructor(seq: number) {
    super(`Cannot read on at event ${seq}: the events of its run were removed meanwhile`);
  }
}

/** Where the payload of a long record is, as offsets in its segment. */
interface LongRecord {
  readonly seq: number;
  readonly payloadStart: number;
  readonly payloadEnd: number;
  readonly columns: Omit<StoredEvent, "payload">;
}

/** How many events a reading may still return. */
interface Budget {
  left: number;
}

/**
 * Gives the next event of a reading: the first one from `fromSeq` on when `after` is 0, else the one after
 * `after`; 0 when there is none.
 */
type NextSeq = (fromSeq: number, after: number) => number;

/** Whether the plan has one event only, which is longer than a batch may be. */
function isLong(
  [first, ...others]: readonly PlannedRead[],
  { batchBytes = BATCH_BYTES }: BatchQuery,
): boolean {
  return first !== undefined && others.length === 0 && first.seqs.length === 1 &&
    first.to - first.from > batchBytes;
}

function budgetOf(query: EventQuery): Budget {
  return { left: query.limit ?? Infinity };
}

function matcherOf(kinds: ReadonlySet<string> | ((kind: string) => boolean)): (kind: string) => boolean {
  return typeof kinds === "function" ? kinds : (kind) => kinds.has(kind);
}

function isWanted(wanted: Uint8Array, kindId: number): boolean {
  return wanted[kindId] === 1;
}
