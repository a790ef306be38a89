/** The search index over the descriptions of all events, kept up to date with the timeline. */

import { yieldToEventLoop } from "../../base/wait.ts";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { refuse } from "../../contract/refusal.ts";
import type { Log } from "../../base/log.ts";
import type { World } from "../../base/world.ts";
import { describedPayload } from "../../model/events/description.ts";
import { isGone, type PreparedPayload, type RunView } from "../../model/runs/run.ts";
import { loadIndex, saveIndex, type SearchIndexState } from "./index_file.ts";
import { PrincipalIndex, type SearchMatches } from "./principal_index.ts";
import type { Timeline } from "../timeline/timeline.ts";

export interface SearchIndexOptions {
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly world: World;
}

export interface DescriptionQuery {
  /** The text to find: at least one character; compared by `comparableText`. */
  readonly text: string;
  /** The run whose events are searched; else those of every run of the principal that is not deleted. */
  readonly runId?: string | undefined;
  /** The largest number of sequence numbers to return. */
  readonly limit: number;
}

/** Kinds without a description whose payload may have megabytes. */
const SKIPPED_KINDS: ReadonlySet<string> = new Set(["frames_decoded"]);
/** Batches of 256 events after which it yields while it reads the log: some milliseconds. */
const YIELD_BATCHES = 16;
/**
 * The least number of events that the file lacks when it is written again; it must also lack as many as there
 * are descriptions.
 */
const SAVE_EVENTS_MIN = 100_000;
/** The least number of descriptions with which the log is read again to remove those of deleted runs. */
const COMPACT_EVENTS_MIN = 10_000;

/**
 * The index over all runs. After `open` it reads its file and then the rest of the log, in the background and
 * in small steps. From then on it observes each commit. A search before that waits, so its answer is always
 * complete.
 *
 *   file ──> log from the file's last event on ──> commits
 *
 * When the file is missing, damaged or of another log, the whole log is read, which only takes longer. See
 * docs/protocols.md#search-index.
 */
export class SearchIndex implements AsyncDisposable {
  readonly #timeline: Timeline;
  readonly #log: Log;
  readonly #path: string;
  readonly #observing: Disposable;
  #caughtUp: Promise<void> = Promise.resolve();
  #principals = new Map<string, PrincipalIndex>();
  #eventCount = 0;
  #lastSeq = 0;
  #savedSeq = 0;
  /** Whether the index has read the whole log and now observes the commits. */
  #hasCaughtUp = false;
  #isClosed = false;
  #saving: Promise<void> = Promise.resolve();
  #isSaving = false;

  private constructor({ timeline, dataDir, world }: SearchIndexOptions) {
    this.#timeline = timeline;
    this.#log = world.log.child("search");
    this.#path = join(dataDir, "search-index");
    this.#observing = timeline.observe((run, seq, kind, json) => {
      if (this.#hasCaughtUp) this.#observe(run, seq, kind, json);
    });
  }

  /**
   * Opens the index. Returns at once and reads in the background: first the index file, then the rest of the
   * log.
   */
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
   * How many of the principal's events match, and the sequence numbers of the first ones, ascending. Refuses
   * with `storage_unavailable` when the index was closed before it had read the log.
   */
  async find(principalKey: string, { text, runId, limit }: DescriptionQuery): Promise<SearchMatches> {
    await this.#caughtUp;
    // It was closed before it had read the log, so the answer would be incomplete.
    if (!this.#hasCaughtUp) {
      throw refuse.because("storage_unavailable", "Cannot search while the service is closing");
    }
    const isSearched = (id: string) => (runId === undefined || id === runId) && this.#isReadable(id);
    return await this.#principals.get(principalKey)?.find(text, { isSearched, limit }) ??
      { total: 0, seqs: [] };
  }

  /** Writes the file, so that the next start does not read the same events again. */
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
      this.#principals = this.#byOwner(state);
      for (const principal of this.#principals.values()) this.#eventCount += principal.eventCount;
      this.#lastSeq = this.#savedSeq = state.lastSeq;
    } catch (error) {
      if (error instanceof Closed) throw error;
      if (error instanceof Deno.errors.NotFound) return;
      this.#log.warn("the search index is not usable, reading the log", {
        path: this.#path,
        reason: String(error),
      });
      // Removed, because the new log could grow until its event under that number passes for the one of the
      // file.
      await Deno.remove(this.#path).catch(() => {});
    }
  }

  #check({ lastSeq, fingerprint, principals }: SearchIndexState): void {
    if (lastSeq > this.#timeline.view.lastSeq || fingerprint !== this.#fingerprint(lastSeq)) {
      throw new Error("it belongs to another log");
    }
    let [total, kept] = [0, 0];
    for (const principal of principals.values()) {
      total += principal.eventCount;
      kept += principal.countOf((runId) => this.#isReadable(runId));
    }
    if (total > COMPACT_EVENTS_MIN && kept * 2 < total) {
      throw new Error("most of it is of runs that are gone");
    }
  }

  /**
   * The indexes by the principals' present names. A file that was written before a key was configured may
   * have two parts of one principal, under two names.
   */
  #byOwner({ principals }: SearchIndexState): Map<string, PrincipalIndex> {
    const { names } = this.#timeline;
    const byOwner = new Map(Array.from(principals, ([written, index]) => [names.current(written), index]));
    if (byOwner.size < principals.size) throw new Error("it has two parts of one principal");
    return byOwner;
  }

  async #readLog(): Promise<void> {
    while (this.#lastSeq < this.#timeline.view.lastSeq) {
      const toSeq = this.#timeline.view.lastSeq;
      const query = { fromSeq: this.#lastSeq + 1, toSeq, kinds: (kind: string) => !SKIPPED_KINDS.has(kind) };
      let batches = 0;
      for (const batch of this.#timeline.readAll(query)) {
        for (const { runId, seq, payload } of batch) {
          const run = this.#timeline.view.run(runId);
          if (run !== undefined) this.#add(run, seq, payload);
          this.#lastSeq = seq;
        }
        if (++batches % YIELD_BATCHES !== 0) continue;
        await yieldToEventLoop();
        if (this.#isClosed) return;
      }
      this.#lastSeq = toSeq;
    }
    this.#hasCaughtUp = true;
    this.#saveIfDue();
  }

  #observe(run: RunView, seq: number, kind: string, json: string | PreparedPayload): void {
    this.#lastSeq = seq;
    if (!SKIPPED_KINDS.has(kind)) {
      this.#add(run, seq, typeof json === "string" ? json : json.text);
    }
    this.#saveIfDue();
  }

  /**
   * Adds an event, but not one of a deleted run, or of a run without an owner, because no principal could
   * find it.
   */
  #add(run: RunView, seq: number, json: string): void {
    const { principalKey, runId } = run;
    if (principalKey === "" || isGone(run)) return;
    const description = describedPayload(json)?.description;
    // No query matches an empty description.
    if (!description) return;
    let principal = this.#principals.get(principalKey);
    if (principal === undefined) this.#principals.set(principalKey, principal = new PrincipalIndex());
    principal.add(seq, runId, description);
    this.#eventCount++;
  }

  #isReadable(runId: string): boolean {
    const run = this.#timeline.view.run(runId);
    return run !== undefined && !isGone(run);
  }

  #saveIfDue(): void {
    const lacking = this.#lastSeq - this.#savedSeq;
    if (lacking < SAVE_EVENTS_MIN || this.#isSaving || lacking < this.#eventCount) return;
    this.#isSaving = true;
    this.#saving = this.#save().finally(() => this.#isSaving = false);
  }

  /** Writes the file if possible: when it cannot be written, the next start reads more of the log. */
  async #save(): Promise<void> {
    const lastSeq = this.#lastSeq;
    try {
      const fingerprint = this.#fingerprint(lastSeq);
      await saveIndex(this.#path, { lastSeq, fingerprint, principals: this.#principals });
    } catch (error) {
      this.#log.error("cannot write the search index", { path: this.#path, error: String(error) });
    }
    // Also after a failure, so that it does not try again with every commit while the disk is full.
    this.#savedSeq = lastSeq;
  }

  /**
   * The fingerprint of an event, which distinguishes it from another one that got its number after the log
   * had lost its end.
   */
  #fingerprint(seq: number): string {
    const event = this.#timeline.readOne(seq);
    return event === undefined ? "" : `${event.runId} ${event.ptsMs} ${event.kind} ${crc32(event.payload)}`;
  }
}

class Closed extends Error {}
