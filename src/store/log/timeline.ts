/** The timeline: every event of every run in one order, on disk, and the runs that follow from them. */

import { join } from "node:path";
import { refuse } from "../../base/refusal.ts";
import type { Log } from "../../base/log.ts";
import type { World } from "../../base/world.ts";
import { DEFAULT_STREAM_ID } from "../../model/identifiers.ts";
import { type NewEvent, PreparedPayload, type Run, type RunView } from "../../model/runs/run.ts";
import { RunRegister, type TimelineView } from "../../model/runs/run_register.ts";
import { type Damage, DamageReport } from "./damage.ts";
import { EventIndex, MAX_SEQ } from "./event_index.ts";
import { type EventQuery, EventReader, type StoredEvent } from "./event_reader.ts";
import { DirectoryLock } from "./lock.ts";
import { bodyColumns, isOneLine, RecordBatch } from "./record.ts";
import { ReadAhead } from "./read_ahead.ts";
import { type LogEnd, replay } from "./replay.ts";
import { type CommittedEvent, NotificationRing, type Subscription } from "./notification_ring.ts";
import { findSegments, type SegmentReader, SegmentWriter } from "./segment.ts";
import { loadSnapshot, snapshotBytesOf, type SnapshotState, writeSnapshot } from "./snapshot.ts";
import { GroupSync } from "./group_sync.ts";

export type { CommittedEvent, Drained, Subscription } from "./notification_ring.ts";
export type { EventQuery, StoredEvent } from "./event_reader.ts";
export type { Damage } from "./damage.ts";
export type { TimelineView } from "../../model/runs/run_register.ts";

export interface TimelineOptions {
  /** Made when it is missing, mode 0700. */
  readonly dataDir: string;
  readonly world: World;
  /** D3: `none` answers when the operating system has the bytes, `group` when the disk has them. */
  readonly sync: "none" | "group";
  /** A segment that would grow past this is closed and the next one started; 64 MiB. */
  readonly segmentBytes?: number;
  /** Told of every damaged stretch, for the metrics; the log is told anyway. */
  readonly onDamage?: (damage: Damage) => void;
  /** Stands in for fdatasync in tests. */
  readonly syncData?: (file: Deno.FsFile) => Promise<void>;
}

export interface TimelineStats {
  /** Events that can be read. */
  readonly events: number;
  /** Events that are known to be lost, since the log began. */
  readonly damagedRecords: number;
  readonly segments: number;
  readonly bytes: number;
  /** Commits that the disk refused, since the process started. */
  readonly appendFailures: number;
}

/**
 * Told of each event in sequence order, inside the commit that wrote it and after its run was folded. It must be
 * quick and must not throw. `json` is the payload as it was written.
 */
export type CommitObserver = (run: RunView, seq: number, kind: string, json: string | Uint8Array) => void;

const SEGMENT_BYTES = 64 * 1024 * 1024;
/** A snapshot is written when the log grew by this many times its size: so at most a quarter is written on top. */
const SNAPSHOT_WORTH = 4;

/**
 * `${dataDir}/timeline/<number of the first event, 20 digits>.wal`, the record format of record.ts, and a snapshot
 * that may be deleted at any time. Only `commit` appends; no two commits overlap; what commit returned can be read.
 */
export class Timeline implements AsyncDisposable {
  readonly #world: World;
  readonly #log: Log;
  readonly #directory: string;
  readonly #segmentBytes: number;
  readonly #lock: DirectoryLock;
  readonly #register: RunRegister;
  readonly #index: EventIndex;
  readonly #segments: SegmentReader;
  readonly #damage: DamageReport;
  readonly #reader: EventReader;
  readonly #readAhead: ReadAhead;
  readonly #sync: GroupSync | undefined;
  readonly #ring = new NotificationRing();
  readonly #observers = new Set<CommitObserver>();
  readonly #batch = new RecordBatch();
  #writer: SegmentWriter | undefined;
  #nextSeq: number;
  /** How much of the log the last snapshot covers. */
  #snapshotPosition: number;
  /** Segments that were filled and are being brought to the disk, in order. */
  #rolling: Promise<void> = Promise.resolve();
  #isDeciding = false;
  #isClosed = false;
  #appendFailures = 0;

  /** Reads the log, or its snapshot and what came after; damage is reported and never stops it. */
  // deno-lint-ignore require-await
  static async open(options: TimelineOptions): Promise<Timeline> {
    const directory = join(options.dataDir, "timeline");
    Deno.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const lock = DirectoryLock.take(options.dataDir);
    try {
      return new Timeline(options, directory, lock);
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  }

  private constructor(options: TimelineOptions, directory: string, lock: DirectoryLock) {
    const startedMs = options.world.monotonicMs();
    this.#world = options.world;
    this.#log = options.world.log.child("timeline");
    this.#directory = directory;
    this.#segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
    this.#lock = lock;
    this.#damage = new DamageReport(directory, this.#log, options.onDamage);
    const found = findSegments(directory);
    const snapshot = loadSnapshot(directory, found, this.#log);
    this.#register = snapshot.register;
    this.#index = snapshot.index;
    this.#segments = snapshot.segments;
    this.#damage.records = snapshot.damagedRecords;
    this.#snapshotPosition = snapshot.segments.endPosition;
    const replayed: LogEnd = replay(found, snapshot.seenSeq, {
      directory,
      reader: this.#segments,
      register: this.#register,
      index: this.#index,
      damage: this.#damage,
      log: this.#log,
    });
    this.#nextSeq = replayed.nextSeq;
    if (replayed.segment !== undefined) {
      this.#writer = SegmentWriter.resume(directory, replayed.segment, replayed.lacksLineBreak);
    }
    this.#reader = new EventReader(this.#index, this.#segments, this.#damage);
    this.#readAhead = new ReadAhead(directory, this.#segments, () => options.world.monotonicMs());
    this.#sync = options.sync === "group"
      ? new GroupSync(options.syncData ?? ((file) => file.syncData()), directory)
      : undefined;
    this.#log.info("timeline open", {
      ...this.stats,
      next_seq: this.#nextSeq,
      snapshot_bytes_covered: this.#snapshotPosition,
      took_ms: Math.round(options.world.monotonicMs() - startedMs),
    });
  }

  get view(): TimelineView {
    return this.#register;
  }

  get stats(): TimelineStats {
    return {
      events: this.#index.eventCount,
      damagedRecords: this.#damage.records,
      segments: this.#segments.segments.length,
      bytes: this.#segments.endPosition,
      appendFailures: this.#appendFailures,
    };
  }

  /**
   * One synchronous step: `decide` sees the live view and says which events follow; they get consecutive sequence
   * numbers and the time, go to the log as one write, are folded and rung. Nothing can come in between, so a
   * decision is never stale. What `decide` throws is thrown on, and nothing is written.
   *
   * Refuses with `storage_unavailable` when the disk does not take the bytes, all of them or none, and with
   * `not_found` an event for a run that was deleted (contract 8.4).
   */
  commit(decide: (view: TimelineView) => readonly NewEvent[]): readonly CommittedEvent[] {
    if (this.#isClosed) throw new Error("Cannot commit to a timeline that is closed");
    if (this.#isDeciding) throw new Error("Cannot commit inside the decision of another commit");
    this.#sync?.assertUsable();
    const events = this.#decide(decide);
    if (events.length === 0) return [];
    const ptsMs = Math.max(0, Math.floor(this.#world.now()));
    const payloads = this.#encode(events, ptsMs);
    let position = this.#write();
    const committed: CommittedEvent[] = [];
    for (let number = 0; number < events.length; number++) {
      const { runId, kind: rawKind } = events[number]!;
      const kind = rawKind.toWellFormed();
      const seq = this.#nextSeq++;
      const run = this.#register.entry(runId);
      this.#fold(run, seq, ptsMs, kind, payloads[number]!, position);
      for (const observe of this.#observers) observe(run, seq, kind, payloads[number]!);
      position += this.#batch.recordBytes[number]!;
      committed.push({ seq, ptsMs, kind, runId });
    }
    this.#batch.clear();
    this.#ring.ring(committed);
    return committed;
  }

  /**
   * Resolves when everything committed so far is as safe as SERVICE_WAL_SYNC asks (D3). With `group` all who wait
   * share one fdatasync; when that fails it refuses with `storage_unavailable`, and so does every commit after it.
   */
  synced(): Promise<void> {
    return this.#sync?.synced() ?? Promise.resolve();
  }

  /**
   * The run's events that are in the log when the reading begins, in sequence order, in batches of at most 256
   * events or about 1 MiB, so that the caller can let others work in between. Nothing for an unknown run; a deleted
   * one is read like any other.
   */
  read(runId: string, query: EventQuery = {}): Iterable<readonly StoredEvent[]> {
    const run = this.#register.find(runId);
    return run === undefined ? [] : this.#reader.readRun(run, query);
  }

  /**
   * Like `read`, for answers of any length: events that are not in the file cache are brought there many at a time,
   * and nobody waits for the disk meanwhile.
   */
  readAhead(runId: string, query: EventQuery = {}): AsyncIterable<readonly StoredEvent[]> {
    const run = this.#register.find(runId);
    return run === undefined ? none() : this.#reader.readRunAhead(run, query, this.#readAhead);
  }

  /** Like `read`, over all runs: for what must be found whoever's it is, such as webhooks after a restart. */
  readAll(query: EventQuery): Iterable<readonly StoredEvent[]> {
    return this.#reader.readAll(query, this.#register.lastSeq);
  }

  /** One event, or undefined when the log does not have it. */
  readOne(seq: number): StoredEvent | undefined {
    return this.#reader.readOne(seq);
  }

  /** The payload's JSON text as it is in the log, for a worker to parse; undefined when the log does not have it. */
  readPayload(seq: number): Uint8Array<ArrayBuffer> | undefined {
    return this.#reader.readPayload(seq);
  }

  /** A place at the bell for new events of one run, or of all; see Subscription for how to lose none. */
  subscribe(runId?: string): Subscription {
    return this.#ring.subscribe(runId);
  }

  /**
   * For a fold that is not the timeline's own: it reads what the log has, and in the same synchronous step in which
   * it finds that it has read everything (`view.lastSeq`) it begins to count what it is told here.
   */
  observe(observer: CommitObserver): Disposable {
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  /** Writes the snapshot and lets go of the directory. Waiting readers are told, commits throw from now on. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#ring[Symbol.dispose]();
    try {
      await this.#sync?.close();
      await this.#rolling;
      await this.#writeSnapshot();
    } catch (error) {
      this.#log.error("cannot write the snapshot", { error: String(error) });
    } finally {
      this.#writer?.[Symbol.dispose]();
      this.#segments[Symbol.dispose]();
      this.#lock[Symbol.dispose]();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #decide(decide: (view: TimelineView) => readonly NewEvent[]): readonly NewEvent[] {
    this.#isDeciding = true;
    try {
      return decide(this.#register);
    } finally {
      this.#isDeciding = false;
    }
  }

  /** Fills the batch; returns the payloads as JSON. Throws before anything is written. */
  #encode(events: readonly NewEvent[], ptsMs: number): (string | Uint8Array)[] {
    if (this.#nextSeq + events.length > MAX_SEQ) {
      throw refuse.because("storage_unavailable", "Cannot append an event: the sequence numbers are used up");
    }
    this.#batch.clear();
    const payloads: (string | Uint8Array)[] = [];
    let deletedHere: Set<string> | undefined;
    for (let number = 0; number < events.length; number++) {
      const { runId, kind, payload, streamId } = events[number]!;
      if (this.#register.find(runId)?.deleted || deletedHere?.has(runId)) {
        throw refuse.notFound("run", "run_id");
      }
      if (kind === "run_deleted") (deletedHere ??= new Set()).add(runId);
      const json = payloadJson(kind, payload);
      const left = events.length - 1 - number;
      const columns = bodyColumns(
        left,
        this.#nextSeq + number,
        runId,
        streamId ?? DEFAULT_STREAM_ID,
        ptsMs,
        kind,
      );
      this.#batch.add(columns, json);
      payloads.push(json);
    }
    this.#batch.finish();
    return payloads;
  }

  /** Appends the batch; returns its position. */
  #write(): number {
    try {
      const position = this.#writerFor(this.#batch.sizeBytes).append(this.#batch);
      this.#sync?.wrote(this.#writer!.file);
      return position;
    } catch (error) {
      this.#appendFailures += 1;
      this.#log.error("cannot append to the timeline", { error: String(error) });
      throw refuse.because("storage_unavailable", "The timeline cannot take the event: the disk refused it");
    }
  }

  #writerFor(bytes: number): SegmentWriter {
    const current = this.#writer;
    if (current !== undefined) {
      const { sizeBytes } = current.segment;
      if (sizeBytes === 0 || sizeBytes + bytes <= this.#segmentBytes) return current;
    }
    const next = SegmentWriter.create(this.#directory, this.#nextSeq, this.#segments);
    this.#sync?.rolled(current?.file);
    this.#writer = next;
    if (current !== undefined) this.#rolling = this.#rolling.then(() => this.#finishSegment(current));
    return next;
  }

  /** Behind the commits that go on: brings a full segment to the disk, and takes a snapshot when it is worth it. */
  async #finishSegment(full: SegmentWriter): Promise<void> {
    try {
      await this.synced();
      await full.file.syncData();
      const bytesSince = this.#segments.endPosition - this.#snapshotPosition;
      if (bytesSince > SNAPSHOT_WORTH * snapshotBytesOf(this.#index, this.#register.count)) {
        await this.#writeSnapshot();
      }
    } catch (error) {
      this.#log.error("cannot finish a full segment", { error: String(error) });
    } finally {
      full[Symbol.dispose]();
    }
  }

  async #writeSnapshot(): Promise<void> {
    const position = this.#segments.endPosition;
    const state: SnapshotState = {
      register: this.#register,
      index: this.#index,
      segments: this.#segments,
      damagedRecords: this.#damage.records,
      nextSeq: this.#nextSeq,
    };
    await writeSnapshot(this.#directory, state, async () => await this.#writer?.file.syncData());
    this.#snapshotPosition = position;
  }

  #fold(
    run: Run,
    seq: number,
    ptsMs: number,
    kind: string,
    json: string | Uint8Array,
    position: number,
  ): void {
    // The payload is parsed from the text that was written, so that a replay folds exactly the same.
    const payload = run.needsPayloadOf(kind) ? parsePayload(json) : undefined;
    this.#index.add(run, seq, position, this.#index.kindId(kind));
    this.#register.fold(run, seq, ptsMs, kind, payload);
  }
}

async function* none(): AsyncIterable<readonly StoredEvent[]> {}

function payloadJson(kind: string, payload: unknown): string | Uint8Array {
  if (payload instanceof PreparedPayload) {
    if (!isOneLine(payload.json)) {
      throw new TypeError(`Cannot write a ${kind} payload: its JSON is not on one line`);
    }
    return payload.json;
  }
  const json: string | undefined = JSON.stringify(payload);
  if (json === undefined) throw new TypeError(`Cannot write a ${kind} payload: it is not a JSON value`);
  return json;
}

function parsePayload(json: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof json === "string" ? json : new TextDecoder().decode(json));
  } catch {
    return undefined;
  }
}
