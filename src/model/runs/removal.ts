/** Which runs retention removes, why, and why the others stay. See docs/retention.md#what-goes. */

import { FairRemoval, type StoredPart } from "../../sharing/fair_removal.ts";
import type { RemovalReason } from "../events/run_payloads.ts";

/** Why a run stays whatever its age and size; `within_limits` where it would go if the limits were lower. */
export const STAY_REASONS = [
  "on_hold",
  "not_ended",
  "webhook_behind",
  "mirror_behind",
  "within_limits",
] as const;
export type StayReason = typeof STAY_REASONS[number];

export interface RunFacts {
  readonly runId: string;
  readonly principalKey: string;
  readonly endedMs: number;
  /** What its removal gives back. */
  readonly bytes: number;
  /** Also true of a run that is on hold and has ended. */
  readonly hasEnded: boolean;
  readonly deleted: boolean;
  readonly stays: Exclude<StayReason, "within_limits"> | null;
  /** Undefined where it has no limit. */
  readonly ageLimitMs: number | undefined;
}

export interface RunChoice extends RunFacts {
  readonly goes: RemovalReason | null;
}

export interface RunLimits {
  readonly nowMs: number;
  /** After which deleted runs go; undefined where they stay. */
  readonly deletedLimitMs: number | undefined;
  /** Runs of one principal that have ended. */
  readonly endedMax: number | undefined;
  /** Of all runs together. */
  readonly bytesMax: number | undefined;
  readonly room: RoomWanted;
}

/** What the disk lacks. */
export interface RoomWanted {
  readonly bytes: number;
  /** So many runs at most go for it. */
  readonly runsMax: number;
  /** What blobs of a run have besides its records; none for a run that is missing. */
  readonly blobBytes: ReadonlyMap<string, number>;
}

export const NO_ROOM_WANTED: RoomWanted = { bytes: 0, runsMax: Infinity, blobBytes: new Map() };

/** What a principal stores in runs, and the places of those that may go, the oldest first. */
interface RunStore extends StoredPart {
  readonly going: number[];
  next: number;
}

/** Add every run, decide, then choose. Each step is cheap, so that the caller can give others a turn in between. */
export class RemovalPlan {
  readonly #limits: RunLimits;
  readonly #runs: RunFacts[] = [];
  readonly #goes: (RemovalReason | null)[] = [];
  #order: Float64Array<ArrayBufferLike> = new Float64Array();

  constructor(limits: RunLimits) {
    this.#limits = limits;
  }

  add(run: RunFacts): void {
    this.#runs.push(run);
    this.#goes.push(this.#byAge(run));
  }

  /** Run it to its end before {@link choices}. Only the first step is longer: a few milliseconds for 100,000 runs. */
  *decide(): Generator<void, void> {
    const { endedMax, bytesMax, room } = this.#limits;
    this.#order = this.#oldestFirst();
    yield;
    if (endedMax !== undefined) yield* this.#beyondCount(endedMax);
    if (bytesMax !== undefined) {
      yield* this.#beyondBytes({
        bytesMax,
        reason: "bytes",
        runsMax: Infinity,
        bytesOf: ({ bytes }) => bytes,
      });
    }
    if (room.bytes <= 0) return;
    const bytesOf = ({ runId, bytes }: RunFacts) => bytes + (room.blobBytes.get(runId) ?? 0);
    let left = -room.bytes;
    for (const run of this.#runs) {
      left += bytesOf(run);
      yield;
    }
    yield* this.#beyondBytes({ bytesMax: left, reason: "free_space", runsMax: room.runsMax, bytesOf });
  }

  /** The oldest first. */
  *choices(): Generator<RunChoice, void> {
    for (const at of this.#order) yield { ...this.#runs[at]!, goes: this.#goes[at]! };
  }

  #byAge({ stays, deleted, endedMs, ageLimitMs }: RunFacts): RemovalReason | null {
    const { nowMs, deletedLimitMs } = this.#limits;
    const ageMs = nowMs - endedMs;
    if (stays !== null) return null;
    if (deleted && deletedLimitMs !== undefined && ageMs > deletedLimitMs) return "deleted";
    return ageLimitMs !== undefined && ageMs > ageLimitMs ? "age" : null;
  }

  /** Of each principal, what it has deleted goes first, so that it does not push out what it keeps. */
  *#beyondCount(endedMax: number): Generator<void, void> {
    const counts = new Map<string, number>();
    for (const [at, { principalKey, hasEnded }] of this.#runs.entries()) {
      if (hasEnded && this.#goes[at] === null) counts.set(principalKey, (counts.get(principalKey) ?? 0) + 1);
      yield;
    }
    for (const isDeleted of [true, false]) {
      for (const at of this.#order) {
        const { principalKey, stays, deleted } = this.#runs[at]!;
        const count = counts.get(principalKey) ?? 0;
        if (count > endedMax && stays === null && deleted === isDeleted && this.#goes[at] === null) {
          this.#goes[at] = "count";
          counts.set(principalKey, count - 1);
        }
        yield;
      }
    }
  }

  *#beyondBytes({ bytesMax, reason, runsMax, bytesOf }: {
    readonly bytesMax: number;
    readonly reason: RemovalReason;
    readonly runsMax: number;
    readonly bytesOf: (run: RunFacts) => number;
  }): Generator<void, void> {
    const stores = new Map<string, RunStore>();
    for (const at of this.#order) {
      const run = this.#runs[at]!;
      let store = stores.get(run.principalKey);
      if (store === undefined) stores.set(run.principalKey, store = { bytes: 0, going: [], next: 0 });
      if (this.#goes[at] === null) {
        store.bytes += bytesOf(run);
        if (run.stays === null) store.going.push(at);
      }
      yield;
    }
    const removal = new FairRemoval(stores.values(), bytesMax);
    let runs = 0;
    for (let store = removal.next(); store !== null && runs < runsMax; store = removal.next()) {
      const at = store.going[store.next++];
      removal.took(at === undefined ? null : bytesOf(this.#runs[at]!));
      if (at === undefined) continue;
      this.#goes[at] = reason;
      runs++;
      yield;
    }
  }

  /** The places of the runs. Sorted as plain numbers, without a call for each: time and place in one, as exact as a double can be. */
  #oldestFirst(): Float64Array {
    const count = this.#runs.length;
    let [firstMs, lastMs] = [Infinity, -Infinity];
    for (const { endedMs } of this.#runs) {
      firstMs = Math.min(firstMs, endedMs);
      lastMs = Math.max(lastMs, endedMs);
    }
    // A millisecond up to 100,000 runs of two years, and a tenth of a second for ten million of ten.
    const stepMs = Math.max(1, (lastMs - firstMs + 1) * count / 2 ** 52);
    const keys = new Float64Array(count);
    for (let at = 0; at < count; at++) {
      keys[at] = Math.floor((this.#runs[at]!.endedMs - firstMs) / stepMs) * count + at;
    }
    keys.sort();
    for (let at = 0; at < count; at++) keys[at]! %= count;
    return keys;
  }
}
