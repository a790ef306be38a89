/** The descriptions of all events, searchable at once: a fold of the timeline that finds its own place in it. */

import { yieldToEventLoop } from "../../base/wait.ts";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { refuse } from "../../base/refusal.ts";
import type { Log } from "../../base/log.ts";
import type { World } from "../../base/world.ts";
import { describedPayload } from "../../model/events/description.ts";
import type { RunView } from "../../model/runs/run.ts";
import { type IndexState, loadIndex, saveIndex } from "./index_file.ts";
import { type Found, PrincipalDescriptions } from "./principal_index.ts";
import type { Timeline } from "../log/timeline.ts";

export interface SearchIndexOptions {
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly world: World;
}

export interface DescriptionQuery {
  /** At least one character; compared without regard to case, by `comparableText`. */
  readonly text: string;
  /** Only events of this run; of every run of the principal that is not deleted, if not given. */
  readonly runId?: string | undefined;
  /** At most so many sequence numbers are returned. */
  readonly limit: number;
}

/** Kinds that have no description and may be megabytes long. */
const KINDS_LEFT_OUT: ReadonlySet<string> = new Set(["frames_decoded"]);
/** Reading the log, others get their turn after this many batches of 256 events: some milliseconds. */
const TURN_BATCHES = 16;
/** The file is written again when it lacks this many events and at least as many as there are descriptions. */
const SAVE_EVENTS_MIN = 100_000;
/** Below this it is not worth reading the log again to get rid of what belongs to deleted runs. */
const COMPACT_EVENTS_MIN = 10_000;

/**
 * From its start it reads its file and then the log from there on, in small steps beside everything else; once it has
 * caught up it is told of each commit. A search that comes earlier waits until then, so its answer is always whole.
 *
 *   file ──> log from the file's last event on ──> commits
 *
 * A file that is missing, damaged or of another log costs time and nothing else.
 */
export class SearchIndex implements AsyncDisposable {
  readonly #timeline: Timeline;
  readonly #log: Log;
  readonly #path: string;
  readonly #observing: Disposable;
  #caughtUp: Promise<void> = Promise.resolve();
  #principals = new Map<string, PrincipalDescriptions>();
  #eventCount = 0;
  #lastSeq = 0;
  #savedSeq = 0;
  #isLive = false;
  #isClosed = false;
  #saving: Promise<void> = Promise.resolve();
  #isSaving = false;

  private constructor({ timeline, dataDir, world }: SearchIndexOptions) {
    this.#timeline = timeline;
    this.#log = world.log.child("search");
    this.#path = join(dataDir, "search-index");
    this.#observing = timeline.observe((run, seq, kind, json) => {
      if (this.#isLive) this.#observe(run, seq, kind, json);
    });
  }

  /** Returns at once and reads in the background: first the index file, then the rest of the log. */
  static open(options: SearchIndexOptions): SearchIndex {
    const index = new SearchIndex(options);
    index.#caughtUp = index.#build(options.world);
    // Every search gets the error. Without a search it must not become an unhandled rejection.
    index.#caughtUp.catch(() => {});
    return index;
  }

  /** Events with a description that are indexed now. */
  get eventCount(): number {
    return this.#eventCount;
  }

  /** Resolves when every event of the log is in the index. */
  caughtUp(): Promise<void> {
    return this.#caughtUp;
  }

  /**
   * How many of the principal's events match, and the sequence numbers of the first ones, ascending. Refuses with
   * `storage_unavailable` when the index was closed before it had read the log.
   */
  async find(principalKey: string, { text, runId, limit }: DescriptionQuery): Promise<Found> {
    await this.#caughtUp;
    // Closed before it had read everything: no answer is better than half of one.
    if (!this.#isLive) {
      throw refuse.because("storage_unavailable", "Cannot search while the service is closing");
    }
    const counts = (id: string) => (runId === undefined || id === runId) && this.#isReadable(id);
    return await this.#principals.get(principalKey)?.find(text, { counts, limit, yieldToEventLoop }) ??
      { total: 0, seqs: [] };
  }

  /** Writes the file; what was read so far is not read again next time. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#caughtUp.catch(() => {});
    this.#observing[Symbol.dispose]();
    await this.#saving;
    if (this.#lastSeq > this.#savedSeq) await this.#save();
  }

  async #build(world: World): Promise<void> {
    const startedMs = world.monotonicMs();
    try {
      await yieldToEventLoop();
      await this.#load();
      await this.#readLog();
    } catch (error) {
      if (error instanceof Closed) return;
      this.#log.error("cannot build the search index", { error: String(error) });
      throw error;
    }
    if (!this.#isClosed) {
      const took_ms = Math.round(world.monotonicMs() - startedMs);
      this.#log.info("search index ready", {
        descriptions: this.eventCount,
        from_file: this.#savedSeq,
        took_ms,
      });
    }
  }

  async #load(): Promise<void> {
    try {
      const state = await loadIndex(this.#path, async () => {
        if (this.#isClosed) throw new Closed();
        await yieldToEventLoop();
      });
      this.#check(state);
      this.#principals = new Map(state.principals);
      for (const principal of this.#principals.values()) this.#eventCount += principal.eventCount;
      this.#lastSeq = this.#savedSeq = state.lastSeq;
    } catch (error) {
      if (error instanceof Closed) throw error;
      if (error instanceof Deno.errors.NotFound) return;
      this.#log.warn("the search index is not usable, reading the log", {
        path: this.#path,
        reason: String(error),
      });
      // A later log must not be able to look like the one that it belongs to.
      await Deno.remove(this.#path).catch(() => {});
    }
  }

  #check({ lastSeq, fingerprint, principals }: IndexState): void {
    if (lastSeq > this.#timeline.view.lastSeq || fingerprint !== this.#fingerprint(lastSeq)) {
      throw new Error("it belongs to another log");
    }
    let [total, kept] = [0, 0];
    for (const principal of principals.values()) {
      total += principal.eventCount;
      kept += principal.countOf((runId) => this.#isReadable(runId));
    }
    if (total > COMPACT_EVENTS_MIN && kept * 2 < total) throw new Error("most of it is of deleted runs");
  }

  async #readLog(): Promise<void> {
    while (this.#lastSeq < this.#timeline.view.lastSeq) {
      const toSeq = this.#timeline.view.lastSeq;
      const query = { fromSeq: this.#lastSeq + 1, toSeq, kinds: (kind: string) => !KINDS_LEFT_OUT.has(kind) };
      let batches = 0;
      for (const batch of this.#timeline.readAll(query)) {
        for (const { runId, seq, payload } of batch) {
          const run = this.#timeline.view.run(runId);
          if (run !== undefined) this.#add(run, seq, payload);
          this.#lastSeq = seq;
        }
        if (++batches % TURN_BATCHES !== 0) continue;
        await yieldToEventLoop();
        if (this.#isClosed) return;
      }
      this.#lastSeq = toSeq;
    }
    this.#isLive = true;
    this.#saveIfWorth();
  }

  #observe(run: RunView, seq: number, kind: string, json: string | Uint8Array): void {
    this.#lastSeq = seq;
    if (!KINDS_LEFT_OUT.has(kind)) {
      this.#add(run, seq, typeof json === "string" ? json : new TextDecoder().decode(json));
    }
    this.#saveIfWorth();
  }

  /** Nothing for a run without an owner, whom nobody could ask for it, or a deleted one. */
  #add({ principalKey, runId, deleted }: RunView, seq: number, json: string): void {
    if (principalKey === "" || deleted) return;
    const description = describedPayload(json)?.description;
    // The empty one contains no query.
    if (!description) return;
    let principal = this.#principals.get(principalKey);
    if (principal === undefined) this.#principals.set(principalKey, principal = new PrincipalDescriptions());
    principal.add(seq, runId, description);
    this.#eventCount++;
  }

  #isReadable(runId: string): boolean {
    return this.#timeline.view.run(runId)?.deleted === false;
  }

  #saveIfWorth(): void {
    const lacking = this.#lastSeq - this.#savedSeq;
    if (lacking < SAVE_EVENTS_MIN || this.#isSaving || lacking < this.#eventCount) return;
    this.#isSaving = true;
    this.#saving = this.#save().finally(() => this.#isSaving = false);
  }

  /** A file that cannot be written costs time at the next start. */
  async #save(): Promise<void> {
    const lastSeq = this.#lastSeq;
    try {
      const fingerprint = this.#fingerprint(lastSeq);
      await saveIndex(this.#path, { lastSeq, fingerprint, principals: this.#principals });
    } catch (error) {
      this.#log.error("cannot write the search index", { path: this.#path, error: String(error) });
    }
    // Also after a failure, so that a full disk is not tried again with every commit.
    this.#savedSeq = lastSeq;
  }

  /** Tells the event under a number from another one that could get the number after the log lost its end. */
  #fingerprint(seq: number): string {
    const event = this.#timeline.readOne(seq);
    return event === undefined ? "" : `${event.runId} ${event.ptsMs} ${event.kind} ${crc32(event.payload)}`;
  }
}

class Closed extends Error {}
