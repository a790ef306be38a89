/** Which runs retention removes, why, and why the others stay. See docs/retention.md#what-goes. */

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
  /** Of all runs together. */
  readonly bytesMax: number | undefined;
  /** So much room is missing on the disk. */
  readonly bytesToFree: number;
}

/** Add every run, then choose. Both are cheap for each run, so that the caller can do them in steps. */
export class RemovalPlan {
  readonly #limits: RunLimits;
  readonly #runs: RunFacts[] = [];
  #bytes = 0;
  #bytesToFree: number;

  constructor(limits: RunLimits) {
    this.#limits = limits;
    this.#bytesToFree = limits.bytesToFree;
  }

  add(run: RunFacts): void {
    this.#runs.push(run);
    const gives = this.#byAge(run) === null ? 0 : run.bytes;
    this.#bytes += run.bytes - gives;
    this.#bytesToFree -= gives;
  }

  /** The oldest first. */
  *choices(): Generator<RunChoice, void> {
    for (const at of this.#order()) {
      const run = this.#runs[at]!;
      const byAge = this.#byAge(run);
      const goes = byAge ?? (run.stays === null ? this.#bySize(run) : null);
      yield { ...run, goes };
    }
  }

  /** What is still missing on the disk when all that was chosen is gone; known when all choices were made. */
  get bytesMissing(): number {
    return Math.max(0, this.#bytesToFree);
  }

  #byAge({ stays, deleted, endedMs, ageLimitMs }: RunFacts): RemovalReason | null {
    const { nowMs, deletedLimitMs } = this.#limits;
    const ageMs = nowMs - endedMs;
    if (stays !== null) return null;
    if (deleted && deletedLimitMs !== undefined && ageMs > deletedLimitMs) return "deleted";
    return ageLimitMs !== undefined && ageMs > ageLimitMs ? "age" : null;
  }

  #bySize({ bytes }: RunFacts): RemovalReason | null {
    const isTooMuch = this.#bytes > (this.#limits.bytesMax ?? Infinity);
    if (!isTooMuch && this.#bytesToFree <= 0) return null;
    this.#bytes -= bytes;
    this.#bytesToFree -= bytes;
    return isTooMuch ? "bytes" : "free_space";
  }

  /** Sorted as plain numbers, and filled without a call for each: a few milliseconds for 100,000 runs. Seconds, then the place in the list. */
  #order(): Float64Array {
    const keys = new Float64Array(this.#runs.length);
    for (let at = 0; at < keys.length; at++) {
      keys[at] = Math.floor(this.#runs[at]!.endedMs / 1000) * PLACES + at;
    }
    keys.sort();
    for (let at = 0; at < keys.length; at++) keys[at]! %= PLACES;
    return keys;
  }
}

/** Seconds since 1970 need 32 bits, which leaves a double as many places. */
const PLACES = 2 ** 21;
