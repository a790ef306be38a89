/** Every run of the log, by id and by principal, and how many of a principal's runs are active. */

import { firstIndexWhere } from "../../base/sorted.ts";
import { PrincipalNames } from "../principal_names.ts";
import { EVENTS_REMOVED, isGone, isTerminal, Run, type RunView, statusOf } from "./run.ts";

/** Where a run stands among those of its principal; no two have the same place. */
export type RunPlace = Pick<RunView, "createdMs" | "firstSeq">;

/** Which of a principal's runs are listed, and how. */
export interface RunOrder {
  /** The run behind which the list begins, in this order. */
  readonly after?: RunPlace | null;
  readonly isNewestFirst?: boolean;
}

/** The part of the timeline that a decision may read. */
export interface TimelineView {
  /** A run, deleted ones included, `deleted` is true; undefined when the log has no `run_created` for it. */
  run(runId: string): RunView | undefined;
  /**
   * The runs of a principal by creation time, oldest first unless asked otherwise; deleted and removed runs
   * left out.
   */
  runsOf(principalKey: string, order?: RunOrder): Iterable<RunView>;
  /** The number of the principal's runs that are not deleted, not terminal and not expired. */
  activeCount(principalKey: string, nowMs: number, ttlMs: number): number;
  /**
   * Runs whose live session has no terminal record: it is running, or the process ended before it was
   * written.
   */
  openLiveRuns(): Iterable<RunView>;
  /** Every run that has an owner, deleted and removed ones included. */
  everyRun(): Iterable<RunView>;
  /**
   * Bytes of all records of the principal's runs, of deleted ones too: their records stay until retention
   * removes them.
   */
  logBytes(principalKey: string): number;
  /** Bytes of all records of those runs of the principal that are on hold. */
  heldBytes(principalKey: string): number;
  /** The sequence number of the newest event, 0 in an empty log. */
  readonly lastSeq: number;
}

export class RunRegister implements TimelineView {
  readonly #names: Pick<PrincipalNames, "current">;
  readonly #runs = new Map<string, Run>();
  readonly #principals = new Map<string, PrincipalRuns>();
  lastSeq = 0;

  /**
   * Makes an empty register. Owners have the names of `names`, whatever the data call them; those of the data
   * unless given.
   */
  constructor(names: Pick<PrincipalNames, "current"> = new PrincipalNames(null)) {
    this.#names = names;
  }

  run(runId: string): RunView | undefined {
    const run = this.#runs.get(runId);
    return run?.isCreated ? run : undefined;
  }

  *runsOf(principalKey: string, order: RunOrder = {}): Iterable<RunView> {
    for (const run of this.#principals.get(principalKey)?.inOrder(order) ?? []) if (!isGone(run)) yield run;
  }

  activeCount(principalKey: string, nowMs: number, ttlMs: number): number {
    return this.#principals.get(principalKey)?.activeCount(nowMs, ttlMs) ?? 0;
  }

  *openLiveRuns(): Iterable<RunView> {
    for (const run of this.#runs.values()) {
      if (run.source !== "" && !isGone(run) && !isTerminal(run.state)) yield run;
    }
  }

  logBytes(principalKey: string): number {
    return this.#principals.get(principalKey)?.logBytes ?? 0;
  }

  heldBytes(principalKey: string): number {
    return this.#principals.get(principalKey)?.heldBytes ?? 0;
  }

  get count(): number {
    return this.#runs.size;
  }

  *everyRun(): Iterable<RunView> {
    for (const run of this.#runs.values()) if (run.isCreated) yield run;
  }

  /** Every run, those without `run_created` included, in the order of their first event. */
  all(): Iterable<Run> {
    return this.#runs.values();
  }

  /** The run to fold into; made when this is its first event. */
  entry(runId: string): Run {
    let run = this.#runs.get(runId);
    if (run === undefined) {
      run = new Run(runId);
      this.#runs.set(runId, run);
    }
    return run;
  }

  find(runId: string): Run | undefined {
    return this.#runs.get(runId);
  }

  /** Folds one event, whose record has `recordBytes`, into its run and updates the runs of its principal. */
  fold(run: Run, seq: number, ptsMs: number, kind: string, payload: unknown, recordBytes = 0): void {
    const wasCreated = run.isCreated;
    const wasGone = isGone(run);
    const bytesBefore = run.logBytes;
    const heldBefore = heldBytesOf(run);
    run.fold(seq, ptsMs, kind, payload);
    run.logBytes = kind === EVENTS_REMOVED ? recordBytes : bytesBefore + recordBytes;
    this.lastSeq = seq;
    if (!run.isCreated) return;
    if (wasCreated) {
      const principal = this.#principals.get(run.principalKey)!;
      principal.logBytes += run.logBytes - bytesBefore;
      principal.heldBytes += heldBytesOf(run) - heldBefore;
    }
    if (wasGone) return;
    if (wasCreated) this.#principals.get(run.principalKey)!.touch(run);
    else this.#adopt(run);
  }

  /** Adds a run that was folded before, from a snapshot. */
  adopt(run: Run): void {
    this.#runs.set(run.runId, run);
    if (run.isCreated) this.#adopt(run);
  }

  /** Gives the run to its owner. */
  #adopt(run: Run): void {
    run.principalKey = this.#names.current(run.principalKey);
    let owner = this.#principals.get(run.principalKey);
    if (owner === undefined) this.#principals.set(run.principalKey, owner = new PrincipalRuns());
    owner.add(run);
  }
}

function heldBytesOf({ onHold, logBytes }: Run): number {
  return onHold ? logBytes : 0;
}

/**
 * One principal's runs. `#candidates` holds the runs that may be active, so that counting does not visit
 * 100,000 old runs: an expired run is removed from it and added again with its next event, which makes it
 * active again.
 */
class PrincipalRuns {
  /** The runs by creation time. */
  runs: Run[] = [];
  /** Bytes of the records of all runs, deleted ones included; below, those of runs on hold. */
  logBytes = 0;
  heldBytes = 0;
  readonly #candidates = new Set<Run>();
  /** Runs that were idle since before this time have been removed from the candidates. */
  #droppedBeforeMs = -Infinity;
  #goneCount = 0;

  add(run: Run): void {
    this.logBytes += run.logBytes;
    this.heldBytes += heldBytesOf(run);
    // A clock that was set back can give a later run an earlier creation time.
    let at = this.runs.length;
    while (at > 0 && comparePlaces(this.runs[at - 1]!, run) > 0) at--;
    this.runs.splice(at, 0, run);
    if (isGone(run)) this.#goneCount++;
    else this.touch(run);
  }

  touch(run: Run): void {
    if (isGone(run)) this.#remove(run);
    else if (isTerminal(run.state)) this.#candidates.delete(run);
    else this.#candidates.add(run);
  }

  /** The runs in an order. Finds the first place in a list of any length without going through it. */
  *inOrder({ after = null, isNewestFirst = false }: RunOrder): Iterable<Run> {
    const { runs } = this;
    if (isNewestFirst) {
      let at = after === null ? runs.length : firstCreatedFrom(runs, after.createdMs + 1);
      for (at--; at >= 0; at--) if (after === null || comparePlaces(runs[at]!, after) < 0) yield runs[at]!;
      return;
    }
    let at = after === null ? 0 : firstCreatedFrom(runs, after.createdMs);
    for (; at < runs.length; at++) if (after === null || comparePlaces(runs[at]!, after) > 0) yield runs[at]!;
  }

  activeCount(nowMs: number, ttlMs: number): number {
    const idleBeforeMs = nowMs - ttlMs;
    if (idleBeforeMs < this.#droppedBeforeMs) this.#recollect();
    for (const run of this.#candidates) {
      if (statusOf(run, nowMs, ttlMs) === "expired") this.#candidates.delete(run);
    }
    this.#droppedBeforeMs = idleBeforeMs;
    return this.#candidates.size;
  }

  /**
   * Collects the candidates again: after the clock went back or the TTL grew, removed runs may be active
   * again.
   */
  #recollect(): void {
    for (const run of this.runs) if (!isGone(run) && !isTerminal(run.state)) this.#candidates.add(run);
  }

  /**
   * Removes a run. Deleted and removed runs stay in `runs` until they are half of it, so that the cost of a
   * deletion is constant on average.
   */
  #remove(run: Run): void {
    this.#candidates.delete(run);
    this.#goneCount++;
    if (this.#goneCount * 2 <= this.runs.length) return;
    // A new array, because the old one may be iterated at the moment.
    this.runs = this.runs.filter((each) => !isGone(each));
    this.#goneCount = 0;
  }
}

function comparePlaces(one: RunPlace, other: RunPlace): number {
  return one.createdMs - other.createdMs || one.firstSeq - other.firstSeq;
}

/** The index of the first run that was created at this time or later. */
function firstCreatedFrom(runs: readonly Run[], createdMs: number): number {
  return firstIndexWhere(runs, (run) => run.createdMs >= createdMs);
}
