/** Retention: removes recordings, runs and uploads that are old or too much, pass by pass, while the service
 * goes on. See docs/retention.md.
 */

import { basename } from "node:path";
import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { pause, yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { Refusal } from "../../contract/refusal.ts";
import { event } from "../../model/events/event_table.ts";
import { LIMITS } from "../../contract/limits.ts";
import {
  NO_ROOM_WANTED,
  RemovalPlan,
  type RemovalReason,
  type RoomWanted,
  type RunChoice,
} from "../../model/runs/removal.ts";
import { type NewEvent, summaryOf } from "../../model/runs/run.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { CommittedEvent } from "../../store/timeline/notification_ring.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { BlobSweep } from "../../store/media/blob_sweep.ts";
import { oldUploads, removeUpload } from "../../store/media/old_uploads.ts";
import { DiskReserve } from "../../store/space/disk_reserve.ts";
import type { DiskRoom } from "../../store/space/disk_room.ts";
import type { StoredBytes } from "../../store/space/stored_bytes.ts";
import type { Caller } from "../caller.ts";
import type { AgeClock } from "./age_clock.ts";
import { MediaRemoval } from "./media_removal.ts";
import type { RecordingRemoval } from "./recording_removal.ts";
import { type RetentionLook, RetentionReport } from "./retention_report.ts";
import type { RunStanding } from "./run_standing.ts";

/** The settings of retention; undefined for what has no limit. */
export interface RetentionRules {
  readonly runHours: number | undefined;
  readonly runBytes: number | undefined;
  /** How many runs of each principal that have ended may stay. */
  readonly endedRuns: number | undefined;
  readonly pictureHours: number | undefined;
  readonly pictureBytes: number | undefined;
  readonly clipHours: number | undefined;
  readonly clipBytes: number | undefined;
  readonly soundHours: number | undefined;
  readonly soundBytes: number | undefined;
  readonly uploadHours: number | undefined;
  readonly uploadBytes: number | undefined;
  /** What is to stay free on the disk of the data directory. */
  readonly freeBytes: number | undefined;
}

export interface RetentionOptions {
  readonly timeline: Timeline;
  readonly rules: RetentionRules;
  readonly standing: RunStanding;
  readonly recordings: RecordingRemoval;
  readonly dataDir: string;
  readonly uploadRoot: string;
  readonly stored: Pick<StoredBytes, "recountBlobs" | "blobBytesOfRuns">;
  readonly sweep: (onRemoval: (bytes: number) => void) => Pick<BlobSweep, "run">;
  readonly room: (folder: string) => Promise<Pick<DiskRoom, "free_bytes"> | null>;
  readonly world: World;
  /** By which ages are judged; the wall clock unless given. */
  readonly ages?: AgeClock;
  readonly metrics: Metrics;
}

/** From so much on the log says that the clock has run ahead. */
const AHEAD_TOLD_MS = 5 * 60_000;

/**
 * ```
 *   a pass: look at every run ──► `events_removed` of each that goes, ──► its records ──► blobs that no
 *                                 and its metric; `media_removed`         leave the log   event names, uploads
 * ```
 *
 * A process that is killed in between goes on with what the events say at its next pass: see
 * Timeline.removeRecords.
 */
export class Retention implements AsyncDisposable {
  readonly #options: RetentionOptions;
  readonly #log: Log;
  readonly #ages: Pick<World, "now">;
  readonly #tasks = new TaskGroup();
  readonly #media: MediaRemoval;
  readonly #reserve: DiskReserve;
  #passing: Promise<void> = Promise.resolve();
  #lastPassMs: number | null = null;
  #lastPassAtMs: number;
  /** At first, too: a process that was killed may have left blobs that no event names. */
  #isSweepDue = true;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#log = options.world.log.child("retention");
    this.#lastPassAtMs = options.world.monotonicMs();
    const { timeline, rules, standing, dataDir, world } = options;
    this.#ages = options.ages ?? world;
    this.#reserve = new DiskReserve({ dataDir, world });
    this.#media = new MediaRemoval({
      ...{ timeline, dataDir, world: this.#ages },
      limits: {
        picture: { hours: rules.pictureHours, bytes: rules.pictureBytes },
        clip: { hours: rules.clipHours, bytes: rules.clipBytes },
        sound: { hours: rules.soundHours, bytes: rules.soundBytes },
      },
      sourceHours: () => standing.sourceMediaHours(),
    });
  }

  /** Whether any limit is set. */
  get isOn(): boolean {
    const { rules, standing, recordings } = this.#options;
    return Object.values(rules).some((limit) => limit !== undefined) || standing.sourceHours().size > 0 ||
      recordings.isOn || this.#media.isOn;
  }

  /** The first pass is one interval after the start, when the service has read what it needs. */
  start(): void {
    const { world, rules: { freeBytes } } = this.#options;
    this.#tasks.start(async (signal) => {
      await this.#next(() => this.#fillReserve());
      while (
        await pause(
          world,
          freeBytes === undefined ? LIMITS.retention.passMs : LIMITS.retention.floorCheckMs,
          signal,
        )
      ) {
        if (!this.isOn) continue;
        const sinceMs = world.monotonicMs() - this.#lastPassAtMs;
        const isDue = sinceMs >= LIMITS.retention.passMs - LIMITS.retention.floorCheckMs / 2;
        await (isDue ? this.pass() : this.#next(() => this.#makeRoom()));
      }
    });
  }

  /** Never rejects: what could not be removed goes with a later pass. Two passes do not overlap. */
  pass(): Promise<void> {
    return this.#next(() => this.#pass());
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#passing = this.#passing.then(work).catch((error) => {
      if (this.#tasks.signal.aborted) return;
      this.#options.metrics.add("service_retention_failures_total");
      this.#log.error("a pass of retention failed", { error: String(error) });
    });
    return this.#passing;
  }

  /** What the next pass would remove of the caller's runs, and why the others stay. Removes nothing. */
  async look(caller: Caller): Promise<RetentionLook> {
    const report = new RetentionReport(caller.principalKey);
    const room = { ...NO_ROOM_WANTED, bytes: await this.#missingBytes() };
    for await (const choice of this.#choices(room)) report.add(choice);
    if (this.#media.isOn) { for await (const choice of this.#media.choices()) report.addMedia(choice); }
    return { is_on: this.isOn, last_pass_at_ms: this.#lastPassMs, ...report.look() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks.close();
    await this.#passing;
  }

  async #pass(): Promise<void> {
    const { world } = this.#options;
    this.#lastPassAtMs = world.monotonicMs();
    this.#tellClock();
    const recorded = await this.#options.recordings.byLimits(this.#tasks.signal);
    if (recorded.segments > 0) this.#log.info("removed what recordings have too much", { ...recorded });
    const runs = await this.#removeRuns(NO_ROOM_WANTED);
    await this.#removeMedia();
    const uploads = await this.#removeUploads();
    const { events, bytes, blobs } = await this.#removeRest({ isUrgent: false });
    if (runs + events + blobs + uploads > 0) {
      this.#log.info("removed what retention says", { runs, events, bytes, blobs, uploads });
    }
    await this.#makeRoom();
    this.#lastPassMs = Math.floor(world.now());
  }

  #tellClock(): void {
    const aheadMs = this.#options.ages?.aheadMs ?? 0;
    if (aheadMs < AHEAD_TOLD_MS) return;
    this.#log.warn(
      "the clock of this machine has run ahead, so ages are judged without what it gained; a start takes it as right",
      { ahead_s: Math.round(aheadMs / 1000) },
    );
  }

  /**
   * First segments of recordings, so many as are missing. Then one run, then two, then four: what they give
   * back is known when it is gone.
   */
  async #makeRoom(): Promise<void> {
    for (let runsMax = 1;; runsMax *= 2) {
      const missing = await this.#missingBytes();
      this.#options.metrics.set("service_retention_missing_bytes", missing);
      if (missing === 0) return await this.#fillReserve();
      const recorded = await this.#options.recordings.makeRoom(missing, this.#tasks.signal);
      if (recorded.segments > 0) {
        this.#log.warn("removed the oldest segments of recordings, as the disk has too little room", {
          ...recorded,
        });
        continue;
      }
      const blobBytes = await this.#options.stored.blobBytesOfRuns(this.#tasks.signal);
      const runs = await this.#removeRuns({ bytes: missing, runsMax, blobBytes });
      if (runs === 0) return;
      const { events, bytes, blobs } = await this.#removeRest({ isUrgent: true });
      this.#log.warn("removed the oldest runs, as the disk has too little room", {
        runs,
        events,
        bytes,
        blobs,
      });
    }
  }

  /** What was given up is taken again as soon as there is room. */
  async #fillReserve(): Promise<void> {
    if (!this.isOn) return;
    const room = await this.#options.room(this.#options.dataDir);
    if (room !== null) await this.#reserve.fill(room.free_bytes);
  }

  /** Where the disk is full, the reserve is given up for what is to be written, step by step. */
  #commit(decide: (view: TimelineView) => readonly NewEvent[]): readonly CommittedEvent[] {
    for (;;) {
      try {
        return this.#options.timeline.commit(decide);
      } catch (error) {
        const isFull = error instanceof Refusal && error.kind === "storage_unavailable";
        if (!isFull || !this.#reserve.giveUp()) throw error;
        this.#log.warn("gave up a part of the reserve on the disk, which is full", {
          left_bytes: this.#reserve.bytes,
        });
      }
    }
  }

  /** 0 without a floor, and where the system does not tell. */
  async #missingBytes(): Promise<number> {
    const { rules: { freeBytes }, dataDir } = this.#options;
    if (freeBytes === undefined) return 0;
    const room = await this.#options.room(dataDir);
    return room === null ? 0 : Math.max(0, freeBytes - room.free_bytes);
  }

  /** Returns how many it removed. */
  async #removeRuns(room: RoomWanted): Promise<number> {
    let runs = 0;
    for await (const choice of this.#choices(room)) {
      this.#tasks.signal.throwIfAborted();
      if (choice.goes === null) continue;
      if (this.#removeRun(choice.runId, choice.goes)) runs++;
      await yieldToEventLoop();
    }
    if (runs > 0) this.#isSweepDue = true;
    return runs;
  }

  /** Removes what is left of the removed runs: their records, and the blobs that nobody else names. */
  async #removeRest(
    { isUrgent }: { readonly isUrgent: boolean },
  ): Promise<{ readonly events: number; readonly bytes: number; readonly blobs: number }> {
    const { timeline, metrics, sweep, stored } = this.#options;
    const { signal } = this.#tasks;
    const { events, bytes, failed } = await timeline.removeRecords({ isUrgent });
    metrics.add("service_retention_failures_total", failed);
    if (!this.#isSweepDue) return { events, bytes, blobs: 0 };
    await timeline.flushed(); // no blob may go before the event that says so is on the disk
    const swept = await sweep((size) => {
      metrics.add("service_retention_removed_total", { what: "blobs" });
      metrics.add("service_retention_removed_bytes_total", { what: "blobs" }, size);
    }).run(signal);
    this.#isSweepDue = (swept?.young ?? 0) > 0;
    metrics.add("service_retention_failures_total", swept?.failed ?? 0);
    const blobs = swept?.blobs ?? 0;
    if (blobs > 0) await stored.recountBlobs(signal);
    const removed = { events, bytes: bytes + (swept?.bytes ?? 0), blobs };
    if (failed === 0 || blobs === 0) return removed;
    // What was given back may be the room that a copy of a segment lacked.
    const again = await timeline.removeRecords({ isUrgent });
    return { ...removed, events: events + again.events, bytes: removed.bytes + again.bytes };
  }

  /** Says what goes; the files go with those that no event names. */
  async #removeMedia(): Promise<void> {
    if (!this.#media.isOn) return;
    for await (const { runId, media, reason, throughSeq, blobs, bytes } of this.#media.choices()) {
      this.#tasks.signal.throwIfAborted();
      const payload = { media, reason, through_seq: throughSeq, blobs, bytes };
      const [removed] = this.#commit((view) => {
        const run = view.run(runId);
        return run === undefined || run.onHold || run.removedSeq > 0
          ? []
          : [event("media_removed", runId, payload)];
      });
      if (removed !== undefined) this.#isSweepDue = true;
      await yieldToEventLoop();
    }
  }

  async #removeUploads(): Promise<number> {
    const { rules: { uploadHours: hours, uploadBytes: bytes }, uploadRoot, metrics } = this.#options;
    if (hours === undefined && bytes === undefined) return 0;
    const used = await this.#usedNames();
    const isUsed = (name: string) => used.has(name);
    let removed = 0;
    for (
      const upload of await oldUploads(uploadRoot, { hours, bytes }, { nowMs: this.#ages.now(), isUsed })
    ) {
      this.#tasks.signal.throwIfAborted();
      metrics.add("service_retention_removed_total", { what: "uploads" });
      metrics.add("service_retention_removed_bytes_total", { what: "uploads" }, upload.bytes);
      try {
        if (await removeUpload(uploadRoot, upload)) removed++;
      } catch (error) {
        metrics.add("service_retention_failures_total");
        this.#log.error("cannot remove an upload", { error: String(error) });
      }
    }
    return removed;
  }

  /** File names of the sources of runs that are on hold or have not ended. */
  async #usedNames(): Promise<ReadonlySet<string>> {
    const { timeline, standing } = this.#options;
    const names = new Set<string>();
    let looked = 0;
    for (const run of timeline.view.everyRun()) {
      const stays = run.removedSeq === 0 ? standing.staysFor(run) : null;
      if (stays === "on_hold" || stays === "not_ended") names.add(basename(run.sourceUri));
      if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
    }
    return names;
  }

  /** All runs that have events, the oldest first; decided in steps, with turns for others in between. */
  async *#choices(room: RoomWanted): AsyncGenerator<RunChoice, void> {
    const { timeline, standing, rules } = this.#options;
    const hours = standing.sourceHours();
    const isByAge = rules.runHours !== undefined || hours.size > 0;
    const plan = new RemovalPlan({
      nowMs: this.#ages.now(),
      deletedLimitMs: isByAge ? LIMITS.retention.deletedHours * 3_600_000 : undefined,
      endedMax: rules.endedRuns,
      bytesMax: rules.runBytes,
      room,
    });
    let looked = 0;
    for (const run of timeline.view.everyRun()) {
      if (run.removedSeq === 0) plan.add(standing.factsOf(run, hours));
      if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
    }
    for (const _ of plan.decide()) if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
    for (const choice of plan.choices()) {
      yield choice;
      if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
    }
  }

  /** False where the run has changed meanwhile, so that it stays. */
  #removeRun(runId: string, reason: RemovalReason): boolean {
    const { standing, metrics } = this.#options;
    let [events, bytes] = [0, 0];
    const [removed] = this.#commit((view) => {
      const run = view.run(runId);
      if (run === undefined || run.removedSeq > 0 || standing.staysFor(run) !== null) return [];
      [events, bytes] = [run.eventCount, run.logBytes];
      return [event("events_removed", runId, {
        ...{ reason, events, bytes },
        through_seq: run.lastSeq,
        run: summaryOf(run),
      })];
    });
    if (removed === undefined) return false;
    metrics.add("service_retention_removed_total", { what: "runs" });
    metrics.add("service_retention_removed_total", { what: "events" }, events);
    metrics.add("service_retention_removed_bytes_total", { what: "events" }, bytes);
    return true;
  }
}

const RUNS_PER_TURN = 512;
