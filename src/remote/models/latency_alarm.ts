/** Which kinds of backends are slow, judged by their last calls. */

import type { ProviderKind } from "../../model/infer/inference.ts";
import { LIMITS } from "../../contract/limits.ts";

/** See docs/models.md#catalog. */
export class LatencyAlarm {
  readonly #calls = new Map<ProviderKind, CallLatency[]>();

  /** Records a call that took `latencyMs`. */
  record(kind: ProviderKind, latencyMs: number, nowMs: number): void {
    const calls = this.#calls.get(kind) ?? [];
    calls.push({ latencyMs, atMs: nowMs });
    if (calls.length > CALLS_KEPT) calls.shift();
    this.#calls.set(kind, calls);
  }

  /** Kinds with ten recent calls or more, of which fewer than 95 % took at most 5 s. */
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

interface CallLatency {
  readonly latencyMs: number;
  readonly atMs: number;
}

const CALLS_KEPT = 200;
/** Callers avoid a slow backend, so it gets no new calls; without this the alarm would stay on forever. */
const FORGOTTEN_AFTER_MS = 600_000;
