/** Whether a camera is armed: what its schedule says, and what a call has said since. See
 * docs/cameras.md#armed-times.
 */

import { type ArmedTimes, scheduledAt } from "./armed_times.ts";

/** What a call has said. */
export interface ArmedByCall {
  readonly armed: boolean;
  /** When the schedule counts again, epoch milliseconds; null for not before the next call. */
  readonly until_ms: number | null;
  /** The schedule at the time of the call: with another one in the file the call does not count any more. */
  readonly schedule: string;
}

export interface ArmedState {
  readonly isArmed: boolean;
  readonly by: "schedule" | "call";
  /** When that changes next, as far as is known, epoch milliseconds; null for not by itself. */
  readonly changeMs: number | null;
}

/** A camera without a schedule is armed at all times. */
const ALWAYS = { isArmed: true, changeMs: null };

/** A schedule as a text, by which it is compared. */
export const scheduleText = (times: ArmedTimes | null) => JSON.stringify(times);

export function isInForce(call: ArmedByCall, times: ArmedTimes | null, nowMs: number): boolean {
  const { until_ms, schedule } = call;
  return schedule === scheduleText(times) && (until_ms === null || nowMs < until_ms);
}

export function armedAt(times: ArmedTimes | null, call: ArmedByCall | null, nowMs: number): ArmedState {
  const scheduled = times ? scheduledAt(times, nowMs) : ALWAYS;
  if (call === null || !isInForce(call, times, nowMs)) return { ...scheduled, by: "schedule" };
  const { armed, until_ms } = call;
  const state = { isArmed: armed, by: "call" } as const;
  if (until_ms === null) return { ...state, changeMs: null };
  const then = times ? scheduledAt(times, until_ms) : ALWAYS;
  return { ...state, changeMs: then.isArmed === armed ? then.changeMs : until_ms };
}

/**
 * What follows from a call: it holds for so long, or until the schedule changes next; null where it says what
 * the schedule says anyway.
 */
export function calledAt(
  times: ArmedTimes | null,
  { armed, forMs }: { readonly armed: boolean; readonly forMs: number | null },
  nowMs: number,
): ArmedByCall | null {
  const schedule = scheduleText(times);
  if (forMs !== null) return { armed, until_ms: nowMs + forMs, schedule };
  const scheduled = times ? scheduledAt(times, nowMs) : ALWAYS;
  return scheduled.isArmed === armed ? null : { armed, until_ms: scheduled.changeMs, schedule };
}
