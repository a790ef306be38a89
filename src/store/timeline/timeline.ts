/** The timeline: all events of all runs in one order, on disk, and the state of the runs that follows from
 * them.
 */

import { join } from "node:path";
import { refuse } from "../../contract/refusal.ts";
import type { Log } from "../../base/log.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import { DEFAULT_STREAM_ID, PUBLIC_PRINCIPAL } from "../../model/identifiers.ts";
import {
  EVENTS_REMOVED,
  MEDIA_REMOVED,
  type NewEvent,
  PreparedPayload,
  type Run,
  type RunView,
} from "../../model/runs/run.ts";
import type { PrincipalNames } from "../../model/principal_names.ts";
import { RunRegister, type TimelineView } from "../../model/runs/run_register.ts";
import { RecordRemoval, removeCopies, type RemovedRecords } from "./record_removal.ts";
import { type AcceptedLosses, acceptedLosses } from "./accepted_losses.ts";
import { type Damage, DamageReport } from "./damage.ts";
import { EventIndex, MAX_SEQ } from "./event_index.ts";
import {
  type BatchQuery,
  type EventQuery,
  EventReader,
  type LongEvent,
  type StoredEvent,
} from "./event_reader.ts";
import { requireKnownFormat } from "../files/data_format.ts";
import { openPrincipalNames } from "../files/principal_secret.ts";
import { startRunAgain } from "./folding_sink.ts";
import { DirectoryLock } from "../files/directory_lock.ts";
import { bodyColumns, RecordBatch } from "./record.ts";
import { ReadAhead } from "./read_ahead.ts";
import { RecentEvents } from "./recent_events.ts";
import { type LogEnd, replay } from "./replay.ts";
import { type CommittedEvent, NotificationRing, type Subscription } from "./notification_ring.ts";
import { findSegments, type SegmentReader, SegmentWriter } from "./segment.ts";
import { SnapshotRows } from "./snapshot_rows.ts";
import { StagedPayload } from "./staged_payload.ts";
import { loadSnapshot, snapshotBytesOf, type SnapshotState, writeSnapshot } from "./snapshot.ts";
import { GroupSync } from "./group_sync.ts";

/** Decides whether a principal may store so many bytes more; refuses with `storage_quota`. */
export interface StorageQuota {
  requireRoom(principalKey: string, bytes: number): void;
}

export interface TimelineOptions {
  /** The data directory, created with mode 0700 when it is missing. */
  readonly dataDir: string;
  readonly world: World;
  /**
   * SERVICE_WAL_SYNC: with `none` a request is answered when the operating system has the bytes, with `group`
   * when the disk has them. See docs/deployment/data-directory.md#durability.
   */
  readonly sync: "none" | "group";
  /** The API keys that are configured; none unless given. The data have other names for their principals. */
  readonly apiKeys?: readonly string[];
  /** The largest segment in bytes; one that would become larger is closed. 64 MiB unless given. */
  readonly segmentBytes?: number;
  /** The number of runs beyond which no new one is taken; the limit unless given. */
  readonly runsMax?: number;
  /** Called for every damaged range, for the metrics; the log gets a message anyway. */
  readonly onDamage?: (damage: Damage) => void;
  /** Replaces fdatasync in tests. */
  readonly syncData?: (file: Deno.FsFile) => Promise<void>;
}

export interface TimelineStats {
  /** Events that can be read. */
  readonly events: number;
  /** Events that are known to be lost, since the log exists. */
  readonly damagedRecords: number;
  readonly segments: number;
  readonly bytes: number;
  /** Whether every event can be read that was written, as far as is known. */
  readonly isSound: boolean;
  /** Commits that could not be written to the disk, since the process started. */
  readonly appendFailures: number;
}

/**
 * Called for each event in sequence order, inside the commit that wrote it and after it was folded into its
 * run. It must be fast and must not throw. `json` is the payload as it was written.
 */
export type CommitObserver = (
  run: RunView,
  seq: number,
  kind: string,
  json: string | PreparedPayload,
) => void;

const SEGMENT_BYTES = 64 * 1024 * 1024;
/**
 * A snapshot is written when the log has grown by this many times the snapshot's size, so that snapshots add
 * at most a quarter to the bytes written.
 */
const SNAPSHOT_GROWTH_MIN = 4;

/**
 * On disk: `${dataDir}/timeline/<number of the first event, 20 digits>.wal` in the format of record.ts, and a
 * snapshot that may be deleted at any time. Only `commit` appends. No two commits overlap. The events that
 * `commit` returned can be read at once. See docs/protocols.md#log-format.
 */
export class Timeline implements AsyncDisposable {
  /** How principals are called in the log, and in all else that is kept. */
  readonly names: PrincipalNames;
  readonly #world: World;
  readonly #log: Log;
  readonly #directory: string;
  readonly #segmentBytes: number;
  readonly #runsMax: number;
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
  readonly #recent = new RecentEvents();
  #writer: SegmentWriter | undefined;
  #nextSeq: number;
  /** How much of the log the last snapshot covers. */
  #snapshotPosition: number;
  /** Resolves when every full segment so far was synced to the disk, in order. */
  #finishing: Promise<void> = Promise.resolve();
  #isDeciding = false;
  #quota: StorageQuota | undefined;
  #heldQuota: StorageQuota | undefined;
  #isClosed = false;
  readonly #closing = new AbortController();
  readonly #removal: RecordRemoval;
  #appendFailures = 0;
  /** The rows of the snapshot that is being written. */
  #snapshotRows: SnapshotRows | undefined;

  /**
   * Reads the snapshot and the part of the log after it, or the whole log without a usable snapshot. Damage
   * is reported and does not stop it. Throws when another process owns the data directory.
   */
  static async open(options: TimelineOptions): Promise<Timeline> {
    const { world, dataDir } = options;
    const startedMs = world.monotonicMs();
    const directory = join(dataDir, "timeline");
    Deno.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const lock = DirectoryLock.acquire(dataDir);
    try {
      requireKnownFormat(dataDir);
      const names = await openPrincipalNames(dataDir, options.apiKeys ?? [], world);
      const read = readTimeline(
        directory,
        acceptedLosses(dataDir),
        names,
        world.log.child("timeline"),
        options.onDamage,
      );
      const timeline = new Timeline(options, directory, { lock, names, read });
      timeline.#log.info("timeline open", {
        ...timeline.stats,
        next_seq: read.end.nextSeq,
        snapshot_bytes_covered: read.snapshotPosition,
        took_ms: Math.round(world.monotonicMs() - startedMs),
      });
      return timeline;
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  }

  private constructor(
    options: TimelineOptions,
    directory: string,
    { lock, names, read }: {
      readonly lock: DirectoryLock;
      readonly names: PrincipalNames;
      readonly read: ReadTimeline;
    },
  ) {
    const { world, sync, syncData = (file) => file.syncData(), segmentBytes = SEGMENT_BYTES } = options;
    this.#world = world;
    this.#log = read.log;
    this.#directory = directory;
    this.#segmentBytes = segmentBytes;
    this.#runsMax = options.runsMax ?? LIMITS.timeline.runsMax;
    this.#lock = lock;
    this.names = names;
    this.#register = read.register;
    this.#index = read.index;
    this.#segments = read.segments;
    this.#damage = read.damage;
    this.#writer = read.writer;
    this.#nextSeq = read.end.nextSeq;
    this.#snapshotPosition = read.snapshotPosition;
    const isLeft = (runId: string, seq: number) => seq >= (this.#register.find(runId)?.firstSeq ?? 0);
    this.#reader = new EventReader(this.#index, this.#segments, this.#damage, isLeft);
    this.#removal = new RecordRemoval({
      dataDir: options.dataDir,
      directory,
      index: read.index,
      segments: read.segments,
      register: read.register,
      log: read.log,
      signal: this.#closing.signal,
    });
    this.#readAhead = new ReadAhead(directory, this.#segments, () => world.monotonicMs());
    this.#sync = sync === "group" ? new GroupSync(syncData, directory) : undefined;
  }

  get view(): TimelineView {
    return this.#register;
  }

  get stats(): TimelineStats {
    return {
      events: this.#index.eventCount,
      damagedRecords: this.#damage.records,
      isSound: this.#damage.records === 0 && this.#damage.ranges === 0,
      segments: this.#segments.segments.length,
      bytes: this.#segments.sizeBytes,
      appendFailures: this.#appendFailures,
    };
  }

  /**
   * One synchronous step. `decide` sees the current view and returns the events to write. They get
   * consecutive sequence numbers and the time, are written to the log at once, folded into their runs, and
   * the subscribers are notified. Nothing can happen in between, so a decision is never stale. What `decide`
   * throws is rethrown, and nothing is written.
   *
   * When the disk is full or fails, none of the events is written or folded, no subscriber is notified, and
   * the commit is refused with `storage_unavailable` (HTTP 503). The next commit tries to write again. See
   * docs/deployment/data-directory.md#durability.
   *
   * An event for a run that was deleted is refused with `not_found`, and so are the other events of its
   * commit. See docs/reference/events.md#kinds.
   */
  commit(decide: (view: TimelineView) => readonly NewEvent[]): readonly CommittedEvent[] {
    const { tracing } = this.#world;
    if (!tracing.isOn) return this.#commit(decide);
    using span = tracing.child("commit");
    try {
      const committed = this.#commit(decide);
      span.set({ "service.events": committed.length, "service.seq": committed.at(-1)?.seq });
      return committed;
    } catch (error) {
      span.failed(error instanceof Error ? error.name : "error");
      throw error;
    }
  }

  #commit(decide: (view: TimelineView) => readonly NewEvent[]): readonly CommittedEvent[] {
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
      const { runId, kind: rawKind, streamId } = events[number]!;
      const kind = rawKind.toWellFormed();
      const event = { seq: this.#nextSeq++, ptsMs, kind, runId };
      const run = this.#register.entry(runId);
      this.#keepRecent(run, event, streamId, payloads[number]!);
      const recordBytes = this.#batch.recordBytes[number]!;
      this.#fold(run, event, payloads[number]!, { position, recordBytes });
      for (const observe of this.#observers) observe(run, event.seq, kind, payloads[number]!);
      position += recordBytes;
      committed.push(event);
    }
    this.#batch.clear();
    this.#ring.publish(committed);
    return committed;
  }

  /**
   * An empty payload for a text of any length: what is too long for memory waits on the disk for its commit.
   */
  newPayload(): PreparedPayload {
    return new StagedPayload(this.#directory, this.#log);
  }

  /**
   * From now on `quota` is asked before events are written, and `heldQuota` for those of runs on hold: what
   * they throw refuses the commit.
   */
  limitBy(quota: StorageQuota, heldQuota?: StorageQuota): void {
    this.#quota = quota;
    this.#heldQuota = heldQuota;
  }

  /**
   * Refuses with `storage_quota` a principal that may store nothing more; to be asked before work whose
   * result is events.
   */
  requireRoom(principalKey: string): void {
    this.#quota?.requireRoom(principalKey, 0);
  }

  /**
   * Resolves when everything committed so far is as safe as SERVICE_WAL_SYNC asks: at once with `none`. With
   * `group` all callers that wait share one fdatasync; when it fails, they and every later commit are refused
   * with `storage_unavailable`. See docs/deployment/data-directory.md#durability.
   */
  synced(): Promise<void> {
    return this.#sync?.synced() ?? Promise.resolve();
  }

  /** Resolves when everything committed so far is on the disk, whatever SERVICE_WAL_SYNC says. */
  async flushed(): Promise<void> {
    const current = this.#writer;
    await this.#finishing;
    await this.synced();
    if (this.#writer === current) await current?.file.syncData();
    else await this.#finishing; // which syncs it
  }

  /**
   * The run's events that are in the log when the reading starts, in sequence order, in batches of at most
   * 256 events or about 1 MiB, so that the caller can yield to other requests between batches. Empty for an
   * unknown run. A deleted run is read like any other.
   */
  read(runId: string, query: EventQuery = {}): Iterable<readonly StoredEvent[]> {
    const run = this.#register.find(runId);
    if (run === undefined) return [];
    const recent = this.#recent.read(runId, query);
    if (recent === undefined) return this.#reader.readRun(run, query);
    return recent.length === 0 ? [] : [recent];
  }

  /**
   * Like `read`, for answers of any length: events that are not in the file cache are read into it many at a
   * time, and the service is not blocked meanwhile.
   */
  readAhead(runId: string, query: EventQuery = {}): AsyncIterable<readonly StoredEvent[]> {
    const run = this.#register.find(runId);
    return run === undefined ? inOneBatch([]) : this.#reader.readRunAhead(run, query, this.#readAhead);
  }

  /** Like `readAhead`, but an event of more than about 1 MiB comes alone, and its payload in pieces. */
  readInPieces(runId: string, query: EventQuery = {}): AsyncIterable<readonly (StoredEvent | LongEvent)[]> {
    const run = this.#register.find(runId);
    if (run === undefined) return inOneBatch([]);
    const recent = this.#recent.read(runId, query);
    return recent ? inOneBatch(recent) : this.#reader.readRunInPieces(run, query, this.#readAhead);
  }

  /**
   * The first batch of `read`. An event that is longer than a batch may be is not read: it comes alone, as
   * its number, for `readOneInPieces`.
   */
  readFirst(runId: string, query: BatchQuery = {}): readonly StoredEvent[] | number | undefined {
    const run = this.#register.find(runId);
    if (run === undefined) return undefined;
    const recent = this.#recent.read(runId, query);
    if (recent === undefined) return this.#reader.firstOfRun(run, query);
    return recent.length === 0 ? undefined : recent;
  }

  /**
   * One event, with its payload in pieces where it is longer than one; undefined when the log does not have
   * it. A piece has at most `pieceBytes` of UTF-8: 256 KiB unless less is given.
   */
  async readOneInPieces(seq: number, pieceBytes?: number): Promise<StoredEvent | LongEvent | undefined> {
    return await this.#reader.longEvent(seq, pieceBytes) ?? this.#reader.readOne(seq);
  }

  /** Like `read`, over all runs, for example to find the registered webhooks after a restart. */
  readAll(query: EventQuery): Iterable<readonly StoredEvent[]> {
    return this.#reader.readAll(query, this.#register.lastSeq);
  }

  /** The payload of one event of any length, in pieces of text; no piece when the log does not have it. */
  readPieces(seq: number): AsyncIterable<string> {
    return this.#reader.readPieces(seq);
  }

  /** About how many bytes the event has in the log; 0 when the log does not have it. */
  sizeOf(seq: number): number {
    return this.#reader.sizeOf(seq);
  }

  /** One event, or undefined when the log does not have it. */
  readOne(seq: number): StoredEvent | undefined {
    return this.#reader.readOne(seq);
  }

  /** Batches of the events of a run with these numbers, which ascend: near ones are read together. */
  readNumbers(runId: string, seqs: ArrayLike<number>): Iterable<readonly StoredEvent[]> {
    return this.#reader.readNumbers(runId, seqs);
  }

  /**
   * The payload's JSON text as it is in the log, to be parsed in a worker; undefined when the log does not
   * have it.
   */
  readPayload(seq: number): Uint8Array<ArrayBuffer> | undefined {
    return this.#reader.readPayload(seq);
  }

  /** Notifications of new events of one run, or of all; see Subscription for how to miss none. */
  subscribe(runId?: string): Subscription {
    return this.#ring.subscribe(runId);
  }

  /**
   * Lets a component derive its own state from the events, such as the search index. The component reads the
   * log, and starts to use the calls of `observer` in the same synchronous step in which it finds that it has
   * read everything (`view.lastSeq`), so it misses no event and gets none twice.
   */
  observe(observer: CommitObserver): Disposable {
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  /**
   * Writes the full segments again without the records of removed events, one after the other and in small
   * steps; the service goes on. A segment that cannot be written again stays as it is. See
   * docs/retention.md#the-log.
   *
   * ```
   *   copy without the records, synced ──► readers move to the copy ──► the copy gets the name of the segment ──► snapshot
   * ```
   *
   * Those of the segment that is written to go, too, where it has 1 MiB, or `isUrgent`.
   *
   * A process that is killed before the copy has its name leaves the segment as it was, and the next start
   * removes the copy.
   */
  removeRecords({ isUrgent = false } = {}): Promise<RemovedRecords> {
    const removing = this.#finishing.then(() => this.#removeRecords(isUrgent));
    this.#finishing = removing.then(() => {}, () => {});
    return removing;
  }

  /** Closes all subscriptions, writes the snapshot and releases the directory. Commits throw from now on. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closing.abort(new DOMException("The timeline was closed", "AbortError"));
    this.#ring[Symbol.dispose]();
    try {
      await this.#sync?.close();
      await this.#finishing;
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
  #encode(events: readonly NewEvent[], ptsMs: number): (string | PreparedPayload)[] {
    if (this.#nextSeq + events.length > MAX_SEQ) {
      throw refuse.because("storage_unavailable", "Cannot append an event: the sequence numbers are used up");
    }
    this.#batch.clear();
    const payloads: (string | PreparedPayload)[] = [];
    let deletedHere: Set<string> | undefined;
    for (let number = 0; number < events.length; number++) {
      const { runId, kind, payload, streamId } = events[number]!;
      const isRemoval = kind === EVENTS_REMOVED || kind === MEDIA_REMOVED;
      if (!isRemoval && (this.#register.find(runId)?.deleted || deletedHere?.has(runId))) {
        throw refuse.notFound("run", "run_id");
      }
      if (kind === "run_created") this.#requirePlaceFor(runId);
      if (kind === "run_deleted") (deletedHere ??= new Set()).add(runId);
      const json = payloadJson(kind, payload);
      const left = events.length - 1 - number;
      const seq = this.#nextSeq + number;
      const columns = bodyColumns({ left, seq, runId, streamId: streamId ?? DEFAULT_STREAM_ID, ptsMs, kind });
      this.#batch.add(columns, json);
      payloads.push(json);
    }
    if (this.#batch.sizeBytes > LIMITS.timeline.commitBytesMax) {
      this.#batch.clear();
      throw refuse.because(
        "storage_unavailable",
        `Cannot append more than ${LIMITS.timeline.commitBytesMax} bytes of events at once`,
      );
    }
    this.#requireRoomFor(events);
    this.#batch.finish();
    return payloads;
  }

  /**
   * Refuses a new run for which there is no place. This comes before anything is written: a record that the
   * register cannot take would stop the next start, too.
   */
  #requirePlaceFor(runId: string): void {
    if (this.#register.count < this.#runsMax || this.#register.find(runId) !== undefined) return;
    throw refuse.because(
      "storage_unavailable",
      `Cannot create a run: the log has ${this.#register.count} runs, and takes no more than ${this.#runsMax}`,
    );
  }

  /**
   * Refuses events for which the principal has no room. What ends or removes something is written in any
   * case.
   */
  #requireRoomFor(events: readonly NewEvent[]): void {
    if (this.#quota === undefined) return;
    const [bytes, held] = [new Map<string, number>(), new Map<string, number>()];
    for (const [number, { runId, kind, payload }] of events.entries()) {
      if (ALWAYS_WRITTEN.has(kind)) continue;
      const run = this.#register.run(runId);
      const principalKey = run?.principalKey ?? principalIn(payload);
      const more = this.#batch.recordBytes[number]!;
      bytes.set(principalKey, (bytes.get(principalKey) ?? 0) + more);
      if (run?.onHold) held.set(principalKey, (held.get(principalKey) ?? 0) + more);
    }
    try {
      for (const [principalKey, count] of bytes) this.#quota.requireRoom(principalKey, count);
      for (const [principalKey, count] of held) this.#heldQuota?.requireRoom(principalKey, count);
    } catch (error) {
      this.#batch.clear();
      throw error;
    }
  }

  /**
   * Appends the batch; returns its position. This is where a full disk becomes the answer
   * `storage_unavailable`: the append has left nothing of the batch in the log, and the sequence numbers are
   * used for the next commit.
   */
  #write(): number {
    try {
      const position = this.#writerFor(this.#batch.sizeBytes).append(this.#batch);
      this.#sync?.recordWrite(this.#writer!.file);
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
    return this.#startSegment();
  }

  #startSegment(): SegmentWriter {
    const current = this.#writer;
    const next = this.#replaceWriter();
    if (current !== undefined) this.#finishing = this.#finishing.then(() => this.#finishSegment(current));
    return next;
  }

  #replaceWriter(): SegmentWriter {
    const next = SegmentWriter.create(this.#directory, this.#nextSeq, this.#segments);
    this.#sync?.recordNewSegment(this.#writer?.file);
    return this.#writer = next;
  }

  /**
   * Does in the background what a full segment needs: syncs it to the disk, and writes a snapshot when the
   * log has grown enough.
   */
  async #finishSegment(full: SegmentWriter): Promise<void> {
    try {
      await this.synced();
      await full.file.syncData();
      const bytesSince = this.#segments.endPosition - this.#snapshotPosition;
      if (bytesSince > SNAPSHOT_GROWTH_MIN * snapshotBytesOf(this.#index, this.#register.count)) {
        await this.#writeSnapshot();
      }
    } catch (error) {
      this.#log.error("cannot finish a full segment", { error: String(error) });
    } finally {
      full[Symbol.dispose]();
    }
  }

  async #removeRecords(isUrgent: boolean): Promise<RemovedRecords> {
    const { segments } = this.#segments;
    if (this.#isClosed || !segments.some(({ hasRemoved }) => hasRemoved)) {
      return { events: 0, bytes: 0, failed: 0 };
    }
    await this.synced();
    await this.#writer?.file.syncData(); // no record may go before the event that says so is on the disk
    await this.#endLastSegment(isUrgent ? 1 : Math.min(ENDED_BYTES_MIN, this.#segmentBytes / 2));
    const removed = await this.#removal.run();
    if (removed.events === 0 || this.#isClosed) return removed;
    try {
      await this.#writeSnapshot();
    } catch (error) { // a start without it reads the whole log
      this.#log.error("cannot write the snapshot", { error: String(error) });
    }
    return removed;
  }

  /**
   * Ends the last segment. Its file is closed when this resolves: to close the file of a segment that has
   * lost its name takes 80 ms.
   */
  async #endLastSegment(bytesMin: number): Promise<void> {
    const last = this.#segments.segments.at(-1);
    const current = this.#writer;
    if (!last?.hasRemoved || last.sizeBytes < bytesMin || last !== current?.segment) return;
    this.#replaceWriter();
    await this.#finishSegment(current);
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
    this.#snapshotRows = new SnapshotRows(this.#index);
    try {
      const syncLog = async () => await this.#writer?.file.syncData();
      await writeSnapshot(this.#directory, state, this.#snapshotRows, syncLog);
    } finally {
      this.#snapshotRows = undefined;
    }
    this.#snapshotPosition = position;
  }

  /** Keeps an event in memory, before it is folded into its run. */
  #keepRecent(
    run: Run,
    event: CommittedEvent,
    streamId: string | undefined,
    payload: string | PreparedPayload,
  ): void {
    const isKept = typeof payload === "string" &&
      payload.length <= LIMITS.timeline.recentPayloadCharactersMax && event.kind !== "run_deleted" &&
      event.kind !== EVENTS_REMOVED;
    if (!isKept) return this.#recent.forget(run.runId);
    this.#recent.add(run, {
      ...event,
      streamId: streamId?.toWellFormed() ?? DEFAULT_STREAM_ID,
      payload,
    });
  }

  #fold(
    run: Run,
    { seq, ptsMs, kind }: CommittedEvent,
    json: string | PreparedPayload,
    { position, recordBytes }: { readonly position: number; readonly recordBytes: number },
  ): void {
    // The payload is parsed from the text that was written, so that a replay gives exactly the same state.
    const payload = run.needsPayloadOf(kind) ? parsePayload(json) : undefined;
    this.#snapshotRows?.keep(run);
    if (kind === EVENTS_REMOVED) startRunAgain(run, { index: this.#index, reader: this.#segments });
    this.#index.add(run, seq, position, this.#index.kindId(kind));
    this.#register.fold(run, seq, ptsMs, kind, payload, recordBytes);
  }
}

/**
 * The least size of a segment that is ended for removals. A smaller one goes on, so that years of removals do
 * not leave thousands of small ones.
 */
const ENDED_BYTES_MIN = 1024 * 1024;

/** Events that are written although their principal may store nothing more. */
const ALWAYS_WRITTEN: ReadonlySet<string> = new Set([
  "run_completed",
  "run_failed",
  "run_deleted",
  "stop_requested",
  EVENTS_REMOVED,
  MEDIA_REMOVED,
  "webhook_deleted",
  "hold_released",
]);

/** The principal that a `run_created` names: its run is not known yet. */
function principalIn(payload: unknown): string {
  const { principal_key: key } = (payload ?? {}) as { principal_key?: unknown };
  return typeof key === "string" && key !== "" ? key : PUBLIC_PRINCIPAL;
}

/** The state of a timeline after its files were read. */
interface ReadTimeline {
  readonly log: Log;
  readonly damage: DamageReport;
  readonly register: RunRegister;
  readonly index: EventIndex;
  readonly segments: SegmentReader;
  /** Continues the last segment; undefined when a new one must be started. */
  readonly writer: SegmentWriter | undefined;
  readonly end: LogEnd;
  /** How much of the log the snapshot covers. */
  readonly snapshotPosition: number;
}

function readTimeline(
  directory: string,
  accepted: AcceptedLosses,
  names: PrincipalNames,
  log: Log,
  onDamage: TimelineOptions["onDamage"],
): ReadTimeline {
  const damage = new DamageReport(directory, log, onDamage);
  removeCopies(directory);
  const found = findSegments(directory);
  const snapshot = loadSnapshot(directory, found, { accepted, names, log });
  const { register, index, segments } = snapshot;
  damage.records = snapshot.damagedRecords;
  const snapshotPosition = segments.endPosition;
  const into = { directory, reader: segments, register, index, damage, accepted, log };
  const end = replay(found, snapshot.seenSeq, into);
  const writer = end.segment && SegmentWriter.resume(directory, end.segment, end.lacksLineBreak);
  return { log, damage, register, index, segments, writer, end, snapshotPosition };
}

/** The events in one batch; no batch where there are none. */
async function* inOneBatch(events: readonly StoredEvent[]): AsyncIterable<readonly StoredEvent[]> {
  if (events.length > 0) yield events;
}

function payloadJson(kind: string, payload: unknown): string | PreparedPayload {
  if (payload instanceof PreparedPayload) {
    if (!payload.isOneLine) {
      throw new TypeError(`Cannot write a ${kind} payload: its JSON is not on one line`);
    }
    return payload;
  }
  const json: string | undefined = JSON.stringify(payload);
  if (json === undefined) throw new TypeError(`Cannot write a ${kind} payload: it is not a JSON value`);
  return json;
}

function parsePayload(json: string | PreparedPayload): unknown {
  try {
    return JSON.parse(typeof json === "string" ? json : json.text);
  } catch {
    return undefined;
  }
}
