/** The delivery log, `${dataDir}/webhook-delivery.wal`: what became of each webhook delivery, and where each hook is. */

import { join } from "node:path";
import type { Log } from "../base/log.ts";
import type { World } from "../base/world.ts";
import { type DeliveryRecord, deliveryRecord, DeliveryState } from "../model/webhooks/delivery.ts";
import { type Damage, DamageReport } from "./log/damage.ts";
import { bodyColumns, columnText, isTornRecord, type ParsedRecord, RecordBatch } from "./log/record.ts";
import { SegmentWriter } from "./log/segment.ts";
import { linesIn, scanSegment } from "./log/segment_scan.ts";

export interface DeliveryLogOptions {
  /** The caller holds its lock. */
  readonly dataDir: string;
  readonly world: World;
  /** The log is rewritten when it reaches this size, or eight times its live content; 4 MiB. */
  readonly compactBytes?: number;
}

const NAME = "webhook-delivery.wal";
const COMPACT_BYTES = 4 * 1024 * 1024;
/** How often the live content may stand in the log before it is rewritten. */
const COMPACT_WORTH = 8;

/**
 * The records of record.ts, with a number of their own as seq, the hook's id as stream, the state as kind and the JSON
 * of contract 8.3 as payload:
 *
 *   1 <crc> <length> 0 17<TAB>run-5b…e6<TAB>wh_3f…1a<TAB>1763658553000<TAB>delivered<TAB>{"webhook_id":…,"seq":40,…}
 *
 * Records are handed to the operating system and never synced one by one: what a power cut takes from the end of the
 * log is delivered once more. Only this class writes the file; every state follows from the records in it.
 */
export class DeliveryLog implements AsyncDisposable {
  readonly #world: World;
  readonly #log: Log;
  readonly #dataDir: string;
  readonly #compactBytes: number;
  readonly #states = new Map<string, DeliveryState>();
  readonly #batch = new RecordBatch();
  #writer: SegmentWriter;
  /** Of the last record. */
  #number = 0;
  #compactAtBytes: number;
  #compacting: Promise<void> | undefined;
  /** Appended since the running compaction took its picture. */
  #appended: Appended[] = [];
  #isClosed = false;

  /**
   * Reads the log; damage is set aside and reported, a torn end is cut. Throws what the disk said when the log cannot
   * be read or written at all.
   */
  static open(options: DeliveryLogOptions): DeliveryLog {
    return new DeliveryLog(options);
  }

  private constructor({ dataDir, world, compactBytes = COMPACT_BYTES }: DeliveryLogOptions) {
    this.#world = world;
    this.#log = world.log.child("webhooks");
    this.#dataDir = dataDir;
    this.#compactBytes = compactBytes;
    removeIfThere(this.#temporaryPath);
    const lacksLineBreak = this.#read();
    this.#writer = resume(dataDir, NAME, Deno.statSync(this.#path).size, lacksLineBreak);
    this.#compactAtBytes = Math.max(compactBytes, this.sizeBytes);
  }

  get sizeBytes(): number {
    return this.#writer.segment.sizeBytes;
  }

  /** What is known of the hook; it changes with every record. */
  stateOf(runId: string, webhookId: string): DeliveryState {
    let state = this.#states.get(webhookId);
    if (state === undefined) this.#states.set(webhookId, state = new DeliveryState(runId));
    return state;
  }

  /**
   * Writes one record and folds it. Throws what the disk said; then nothing was written, and what became of the
   * delivery is not known after a restart: it is made again.
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

  /** Drops a hook that was deleted; its records go with the next compaction. */
  forget(webhookId: string): void {
    this.#states.delete(webhookId);
  }

  /** Drops every hook that `isKnown` does not name. */
  retain(isKnown: (webhookId: string) => boolean): void {
    for (const webhookId of [...this.#states.keys()]) if (!isKnown(webhookId)) this.forget(webhookId);
  }

  /** Resolves when a compaction that is under way has ended. */
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

  get #path(): string {
    return join(this.#dataDir, NAME);
  }

  get #temporaryPath(): string {
    return join(this.#dataDir, `${NAME}.new`);
  }

  #write(writer: SegmentWriter, records: readonly Appended[], firstNumber: number): void {
    this.#batch.clear();
    records.forEach(({ runId, ptsMs, record }, index) => {
      const columns = bodyColumns(0, firstNumber + index, runId, record.webhook_id, ptsMs, record.state);
      this.#batch.add(columns, JSON.stringify(record));
    });
    this.#batch.finish();
    writer.append(this.#batch);
  }

  /** Folds the file; returns whether its last record lacks its line break. */
  #read(): boolean {
    using file = Deno.openSync(this.#path, { create: true, read: true, write: true, mode: 0o600 });
    const { size } = file.statSync();
    const damage = new DamageReport(this.#dataDir, this.#log, undefined, "webhook delivery log");
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const setAside = (from: number, to: number, records: number, what = "bytes that are no record") =>
      damage.add(
        { segment: NAME, offset: from, bytes: to - from, records, what } satisfies Damage,
        (bytesMax) => bytesOf(file, from, Math.min(to - from, bytesMax)),
      );
    const end = scanSegment(file, size, 0, 0, {
      record: (bytes, record) => {
        this.#number = record.seq;
        this.#foldPayload(decoder, bytes, record);
      },
      damage: (from, to, nextNumber) => {
        // Where the line break alone is bad, nothing is lost.
        if (to > from) setAside(from, to, Math.max(0, nextNumber - this.#number - 1));
      },
    });
    if (end.tailFrom < 0) return false;
    const lines = linesIn(file, end.tailFrom, size);
    if (lines.count > 0) {
      setAside(end.tailFrom, lines.end, lines.count);
      this.#number += lines.count;
    }
    if (lines.end < size) {
      const tail = bytesOf(file, lines.end, size - lines.end);
      if (!isTornRecord(tail)) setAside(lines.end, size, 0);
      this.#log.warn("cut a torn write from the end of the webhook delivery log", { bytes: tail.length });
      file.truncateSync(lines.end);
    }
    return end.lacksLineBreak && lines.count === 0;
  }

  #foldPayload(decoder: TextDecoder, bytes: Uint8Array, parsed: ParsedRecord): void {
    const record = deliveryRecord(decoder.decode(bytes.subarray(parsed.payloadStart, parsed.payloadEnd)));
    if (record === undefined) return;
    const runId = columnText(decoder, bytes, parsed.runStart, parsed.runEnd);
    this.stateOf(runId, record.webhook_id).fold(record);
  }

  /**
   * Writes the live content to a new file, then what was appended in the meantime, and puts it in the old one's place.
   * A failure costs nothing but the room that was to be saved.
   */
  async #compact(): Promise<void> {
    const before = this.sizeBytes;
    this.#appended = [];
    let next: SegmentWriter | undefined;
    try {
      Deno.openSync(this.#temporaryPath, { create: true, truncate: true, write: true, mode: 0o600 }).close();
      next = resume(this.#dataDir, `${NAME}.new`, 0, false);
      const live = this.#liveRecords();
      this.#write(next, live, 1);
      const liveBytes = next.segment.sizeBytes;
      await next.file.syncData();
      const since = this.#appended;
      if (since.length > 0) this.#write(next, since, live.length + 1);
      Deno.renameSync(this.#temporaryPath, this.#path);
      this.#number = live.length + since.length;
      [next, this.#writer] = [this.#writer, next];
      this.#compactAtBytes = Math.max(this.#compactBytes, liveBytes * COMPACT_WORTH);
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

/** A record with what its columns say besides. */
interface Appended {
  readonly runId: string;
  readonly ptsMs: number;
  readonly record: DeliveryRecord;
}

function resume(directory: string, name: string, sizeBytes: number, lacksLineBreak: boolean): SegmentWriter {
  return SegmentWriter.resume(directory, { name, base: 0, sizeBytes }, lacksLineBreak);
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function bytesOf(file: Deno.FsFile, from: number, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  file.seekSync(from, Deno.SeekMode.Start);
  let filled = 0;
  while (filled < count) {
    const read = file.readSync(bytes.subarray(filled));
    if (!read) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}
