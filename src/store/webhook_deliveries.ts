/** The webhook delivery log: the result of each delivery attempt, and how far each webhook has come. */

import { join } from "node:path";
import type { Log } from "../base/log.ts";
import type { World } from "../base/world.ts";
import { type DeliveryRecord, deliveryRecord, DeliveryState } from "../model/webhooks/delivery.ts";
import { DamageReport } from "./timeline/damage.ts";
import { bodyColumns, columnText, isTornRecord, type ParsedRecord, RecordBatch } from "./timeline/record.ts";
import { SegmentWriter } from "./timeline/segment.ts";
import { linesIn, scanSegment } from "./timeline/segment_scan.ts";
import { readAt } from "./files/file_bytes.ts";

export interface DeliveryLogOptions {
  /** The data directory. The caller must own its lock. */
  readonly dataDir: string;
  readonly world: World;
  /** The size at which the log is compacted, unless eight times its live content is larger; 4 MiB. */
  readonly compactBytes?: number;
}

const FILE_NAME = "webhook-delivery.wal";
const TEMPORARY_NAME = `${FILE_NAME}.new`;
const COMPACT_BYTES = 4 * 1024 * 1024;
/** How many times its live content the log must have when it is compacted. */
const COMPACT_FACTOR = 8;

/**
 * The file `${dataDir}/webhook-delivery.wal` has the records of record.ts: seq is a number of this log, the
 * stream is the webhook's id, the kind is the state, and the payload is the JSON of a delivery record:
 *
 *   1 <crc> <length> 0 17<TAB>run-5b…e6<TAB>wh_3f…1a<TAB>1763658553000<TAB>delivered<TAB>{"webhook_id":…,"seq":40,…}
 *
 * Records are written without a sync: a delivery whose record was lost in a power cut is made again. Only
 * this class writes the file, and every state follows from the records in it. See
 * docs/protocols.md#delivery-log.
 */
export class DeliveryLog implements AsyncDisposable {
  readonly #world: World;
  readonly #log: Log;
  readonly #dataDir: string;
  readonly #compactBytes: number;
  /** The states by webhook id. */
  readonly #states: Map<string, DeliveryState>;
  readonly #batch = new RecordBatch();
  #writer: SegmentWriter;
  /** The number of the last record. */
  #number: number;
  #compactAtBytes: number;
  #compacting: Promise<void> | undefined;
  /** Records that were appended since the running compaction has copied the live content. */
  #appended: Appended[] = [];
  #isClosed = false;

  /**
   * Reads the log. Damage is reported and copied to a file, a torn record at the end is cut. Throws the error
   * of the operating system when the log cannot be read or written at all.
   */
  static open(options: DeliveryLogOptions): DeliveryLog {
    const { dataDir, world } = options;
    removeIfThere(join(dataDir, TEMPORARY_NAME));
    const log = world.log.child("webhooks");
    const read = readDeliveries(dataDir, log);
    const { size } = Deno.statSync(join(dataDir, FILE_NAME));
    const writer = resume(dataDir, FILE_NAME, size, read.lacksLineBreak);
    return new DeliveryLog(options, log, read, writer);
  }

  private constructor(
    { dataDir, world, compactBytes = COMPACT_BYTES }: DeliveryLogOptions,
    log: Log,
    read: ReadDeliveries,
    writer: SegmentWriter,
  ) {
    this.#world = world;
    this.#log = log;
    this.#dataDir = dataDir;
    this.#compactBytes = compactBytes;
    this.#states = read.states;
    this.#number = read.lastNumber;
    this.#writer = writer;
    this.#compactAtBytes = Math.max(compactBytes, this.sizeBytes);
  }

  get sizeBytes(): number {
    return this.#writer.segment.sizeBytes;
  }

  /** The state of the webhook's deliveries; the object changes with every record. */
  stateOf(runId: string, webhookId: string): DeliveryState {
    return stateIn(this.#states, runId, webhookId);
  }

  /**
   * Writes one record and folds it. Throws the error of the operating system, for example on a full disk.
   * Then nothing was written, so after a restart the result of the delivery is not known, and it is made
   * again.
   */
  append(runId: string, record: DeliveryRecord): void {
    if (this.#isClosed) throw new Error("Cannot append to a delivery log that is closed");
    const appended = { runId, ptsMs: Math.floor(this.#world.now()), record };
    this.#write(this.#writer, [appended], this.#number + 1);
    this.#number += 1;
    this.stateOf(runId, record.webhook_id).fold(record);
    if (this.#compacting !== undefined) this.#appended.push(appended);
    else if (this.sizeBytes >= this.#compactAtBytes) {
      this.#compacting = this.#compact().finally(() => this.#compacting = undefined);
    }
  }

  /** Drops a deleted webhook; the next compaction removes its records. */
  forget(webhookId: string): void {
    this.#states.delete(webhookId);
  }

  /** Drops every webhook that `isKnown` denies. */
  retain(isKnown: (webhookId: string) => boolean): void {
    for (const webhookId of [...this.#states.keys()]) if (!isKnown(webhookId)) this.forget(webhookId);
  }

  /** Waits for the compaction that is under way, if any. */
  async compacted(): Promise<void> {
    await this.#compacting;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#compacting;
    this.#writer[Symbol.dispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #write(writer: SegmentWriter, records: readonly Appended[], firstNumber: number): void {
    this.#batch.clear();
    records.forEach(({ runId, ptsMs, record }, index) => {
      const { webhook_id: streamId, state: kind } = record;
      const columns = bodyColumns({ left: 0, seq: firstNumber + index, runId, streamId, ptsMs, kind });
      this.#batch.add(columns, JSON.stringify(record));
    });
    this.#batch.finish();
    writer.append(this.#batch);
  }

  /**
   * Writes the live content to a new file, then the records appended in the meantime, and renames it over the
   * old file. When it fails, the old file stays in use.
   */
  async #compact(): Promise<void> {
    const before = this.sizeBytes;
    const temporaryPath = join(this.#dataDir, TEMPORARY_NAME);
    this.#appended = [];
    let next: SegmentWriter | undefined;
    try {
      Deno.openSync(temporaryPath, { create: true, truncate: true, write: true, mode: 0o600 }).close();
      next = resume(this.#dataDir, TEMPORARY_NAME, 0, false);
      const live = this.#liveRecords();
      this.#write(next, live, 1);
      const liveBytes = next.segment.sizeBytes;
      await next.file.syncData();
      const since = this.#appended;
      if (since.length > 0) this.#write(next, since, live.length + 1);
      Deno.renameSync(temporaryPath, join(this.#dataDir, FILE_NAME));
      this.#number = live.length + since.length;
      [next, this.#writer] = [this.#writer, next];
      this.#compactAtBytes = Math.max(this.#compactBytes, liveBytes * COMPACT_FACTOR);
      using directory = await Deno.open(this.#dataDir, { read: true });
      await directory.sync();
      this.#log.debug("compacted the webhook delivery log", { from_bytes: before, to_bytes: this.sizeBytes });
    } catch (error) {
      this.#compactAtBytes = before * 2;
      this.#log.warn("cannot compact the webhook delivery log", { error: String(error) });
    } finally {
      next?.[Symbol.dispose]();
      this.#appended = [];
    }
  }

  #liveRecords(): Appended[] {
    const ptsMs = Math.floor(this.#world.now());
    return [...this.#states].flatMap(([webhookId, state]) =>
      state.records(webhookId).map((record) => ({ runId: state.runId, ptsMs, record }))
    );
  }
}

/** A delivery record with the columns that are not part of its JSON. */
interface Appended {
  readonly runId: string;
  readonly ptsMs: number;
  readonly record: DeliveryRecord;
}

/** The content of the log. */
interface ReadDeliveries {
  /** The states by webhook id. */
  readonly states: Map<string, DeliveryState>;
  /** The number of the last record. */
  readonly lastNumber: number;
  /** Whether the last record is whole except for its line break. */
  readonly lacksLineBreak: boolean;
}

function readDeliveries(dataDir: string, log: Log): ReadDeliveries {
  using file = Deno.openSync(join(dataDir, FILE_NAME), {
    create: true,
    read: true,
    write: true,
    mode: 0o600,
  });
  const { size } = file.statSync();
  const report = new DamageReport(dataDir, log, undefined, "webhook delivery log");
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const states = new Map<string, DeliveryState>();
  let lastNumber = 0;
  const addDamage = (from: number, to: number, records: number) =>
    report.add(
      { segment: FILE_NAME, offset: from, bytes: to - from, records, what: "bytes that are no record" },
      (bytesMax) => readAt(file, from, Math.min(to - from, bytesMax)),
    );
  const end = scanSegment(file, size, 0, 0, {
    record: (bytes, record) => {
      lastNumber = record.seq;
      foldRecord(states, decoder, bytes, record);
    },
    damage: (from, to, nextNumber) => {
      // An empty range: only a line break is damaged, and no record is lost.
      if (to > from) addDamage(from, to, Math.max(0, nextNumber - lastNumber - 1));
    },
  });
  if (end.tailFrom < 0) return { states, lastNumber, lacksLineBreak: false };
  const lines = linesIn(file, end.tailFrom, size);
  if (lines.count > 0) {
    addDamage(end.tailFrom, lines.end, lines.count);
    lastNumber += lines.count;
  }
  if (lines.end < size) {
    const tail = readAt(file, lines.end, size - lines.end);
    if (!isTornRecord(tail)) addDamage(lines.end, size, 0);
    log.warn("cut a torn write from the end of the webhook delivery log", { bytes: tail.length });
    file.truncateSync(lines.end);
  }
  return { states, lastNumber, lacksLineBreak: end.lacksLineBreak && lines.count === 0 };
}

function foldRecord(
  states: Map<string, DeliveryState>,
  decoder: TextDecoder,
  bytes: Uint8Array,
  parsed: ParsedRecord,
): void {
  const record = deliveryRecord(decoder.decode(bytes.subarray(parsed.payloadStart, parsed.payloadEnd)));
  if (record === undefined) return;
  const runId = columnText(decoder, bytes, parsed.runStart, parsed.runEnd);
  stateIn(states, runId, record.webhook_id).fold(record);
}

function stateIn(states: Map<string, DeliveryState>, runId: string, webhookId: string): DeliveryState {
  let state = states.get(webhookId);
  if (state === undefined) states.set(webhookId, state = new DeliveryState(runId));
  return state;
}

function resume(directory: string, name: string, sizeBytes: number, lacksLineBreak: boolean): SegmentWriter {
  return SegmentWriter.resume(directory, { name, base: 0, sizeBytes, hasRemoved: false }, lacksLineBreak);
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
