/** What one source may make its relay do each second; whoever wants more is slowed down. */

import type { SleepSignal, World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";

/** How much of something a source may do each second where it does nothing else. */
type Spending = Partial<Record<keyof typeof PER_SECOND, number>>;

/** By how much it may go over the second of its budget before it waits: shorter waits cost more than they save. */
const LEAST_WAIT_MS = 20;

/**
 * Each thing that a source makes the relay do has a price in milliseconds, many times what it takes. A source has a second of them each
 * second, and may spend one second in advance.
 */
export class SourceBudget {
  readonly #world: Pick<World, "sleep" | "monotonicMs">;
  readonly #onSlowed: () => void;
  /** When everything so far is paid for, on the monotonic clock. */
  #paidMs = 0;
  #isSlowed = false;

  /** `onSlowed` is called when the source has to wait for the first time. */
  constructor(world: Pick<World, "sleep" | "monotonicMs">, onSlowed: () => void = () => {}) {
    this.#world = world;
    this.#onSlowed = onSlowed;
  }

  /** Why no more comes, where it may be that; undefined for a source that never had to wait. */
  get reason(): string | undefined {
    return this.#isSlowed ? SLOWED : undefined;
  }

  spend(spending: Spending): void {
    const nowMs = this.#world.monotonicMs();
    this.#paidMs = Math.max(this.#paidMs, nowMs);
    for (const [what, count] of Object.entries(spending) as [keyof Spending, number][]) {
      this.#paidMs += count * 1000 / PER_SECOND[what];
    }
  }

  /** Until the source may go on; undefined where it may at once. Rejects with the reason of the signal. */
  turn(signal: SleepSignal): Promise<void> | undefined {
    const earlyMs = this.#paidMs - this.#world.monotonicMs() - ADVANCE_MS;
    if (earlyMs < LEAST_WAIT_MS) return undefined;
    if (!this.#isSlowed) {
      this.#isSlowed = true;
      this.#onSlowed();
    }
    return this.#world.sleep(earlyMs, signal);
  }
}

const ADVANCE_MS = 1000;
const SLOWED = "its server sends more than one source may, and is read slowly";

const PER_SECOND = {
  bytes: LIMITS.sources.budget.bytesPerSecond,
  unpackedBytes: LIMITS.sources.budget.unpackedBytesPerSecond,
  pieces: LIMITS.sources.budget.piecesPerSecond,
  pictures: LIMITS.sources.budget.picturesPerSecond,
  datagrams: LIMITS.sources.budget.datagramsPerSecond,
  requests: LIMITS.sources.budget.requestsPerSecond,
  addresses: LIMITS.sources.budget.addressesPerSecond,
} as const;
