/** Which kinds of backends have become slow, by their last calls. Contract 1.4. */

import type { ProviderKind } from "../../model/infer/inference.ts";
import { LIMITS } from "../../model/limits.ts";

export class LatencyAlarm {
  readonly #calls = new Map<ProviderKind, Call[]>();

  /** A call that ended after `latencyMs`. */
  record(kind: ProviderKind, latencyMs: number, nowMs: number): void {
    const calls = this.#calls.get(kind) ?? [];
    calls.push({ latencyMs, atMs: nowMs });
    if (calls.length > CALLS_KEPT) calls.shift();
    this.#calls.set(kind, calls);
  }

  /** Kinds with ten calls or more of which fewer than 95 % ended within 5 s. */
  alarmed(nowMs: number): ReadonlySet<ProviderKind> {
    const kinds = [...this.#calls].filter(([, calls]) => {
      const recent = calls.filter(({ atMs }) => nowMs - atMs < FORGOTTEN_AFTER_MS);
      const inTime = recent.filter(({ latencyMs }) => latencyMs <= LIMITS.backend.alarmLatencyMs);
      return recent.length >= LIMITS.backend.alarmCallsMin &&
        inTime.length < recent.length * LIMITS.backend.alarmShareInTime;
    });
    return new Set(kinds.map(([kind]) => kind));
  }
}

interface Call {
  readonly latencyMs: number;
  readonly atMs: number;
}

const CALLS_KEPT = 200;
/** Who stays away from a backend because it is slow must learn some time that it may not be any more. */
const FORGOTTEN_AFTER_MS = 600_000;
