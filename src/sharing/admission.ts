/** Admission of model calls: which call may start now, which one waits, and which one is refused. */

import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";

/** How urgent a call is, from the most to the least urgent. */
export const LATENCY_CLASSES = ["urgent_live", "live", "offline"] as const;
export type LatencyClass = typeof LATENCY_CLASSES[number];

/** The limits of the queue. See docs/models.md#admission. */
export interface AdmissionLimits {
  /** Calls at once. */
  readonly globalLimit: number;
  /** Calls of one principal at once; at most `globalLimit`. */
  readonly perPrincipalLimit: number;
  /** Together with `globalLimit` the number of slots: calls that are under way or waiting. */
  readonly waiterLimit: number;
  readonly waitTimeoutMs: number;
  /** Output tokens that calls under way may reserve together. */
  readonly tokenBudget: number;
  /** Media bytes that calls under way may reserve together. */
  readonly byteBudget: number;
}

export interface AdmissionCall {
  readonly principalKey: string;
  /** Calls of one stream take turns with those of other streams. */
  readonly streamKey: string;
  readonly latencyClass: LatencyClass;
  readonly tokens: number;
  readonly bytes: number;
  /** The time from now until the answer must have arrived. */
  readonly deadlineMs: number;
  /** How long the call itself probably takes: it may start until `deadlineMs - estimateMs`. */
  readonly estimateMs: number;
  /** The signal of the call: when it aborts, the call leaves the queue. */
  readonly signal: AbortSignal;
}

/** The right to call, with its reservations. Released with `using`; releasing it twice does nothing. */
export interface AdmissionPermit extends Disposable {
  readonly waitedMs: number;
}

export type AdmissionLimit = "global" | "principal";

/** Why a call is not admitted. */
export class AdmissionRefused extends Error {
  override readonly name = "AdmissionRefused";

  constructor(
    /** A retry can succeed after each of them but `budget_exceeded`. */
    readonly reason: "saturated" | "deadline_missed" | "budget_exceeded",
    message: string,
    /** The limit that the call was waiting for at the end, for a wait that ran out. */
    readonly limit?: AdmissionLimit,
  ) {
    super(message);
  }
}

/** What has happened since the queue was opened. */
export interface AdmissionStats {
  readonly acquired: Readonly<Record<LatencyClass, number>>;
  /** Waits that ran out. */
  readonly timeouts: Readonly<Record<AdmissionLimit, number>>;
  /** Calls that found no slot. */
  readonly waiterRejections: number;
  readonly deadlineMissed: number;
  readonly budgetRejections: number;
  /**
   * Calls that were admitted, immediately or later, and waits that ran out; and the time that all of them
   * waited.
   */
  readonly waits: number;
  readonly waitedMs: number;
}

/** A waiting call gains one rank each time it has waited this long. */
const AGEING_MS = 250;

/**
 * A call is admitted while there are a free call in all, a free call of its principal, and tokens and bytes
 * for it. Otherwise it waits, until `min(waitTimeoutMs, deadlineMs - estimateMs)`:
 *
 *     larger than a whole budget ───────────────────────────────────────────→ budget_exceeded
 *     cannot start in time ─────────────────────────────────────────────────→ deadline_missed
 *     fits ─────────────────────────────────────→ admitted
 *     no slot free (globalLimit + waiterLimit) ─────────────────────────────→ saturated
 *     waits ──┬─ something is given back, and it is the first that fits ──→ admitted
 *             ├─ its latest start passes ─────────────────────────────────────→ deadline_missed
 *             ├─ the wait timeout passes ─────────────────────────────────────→ saturated
 *             └─ its signal aborts ─────────────────────────────────────────→ the signal's reason
 *
 * A call that fits is admitted even when all slots are taken, because it does not delay a waiting call.
 * Otherwise one principal at its own limit could fill the slots and keep the others from idle providers.
 *
 * Of the waiting calls that fit, the first is chosen by these rules in this order: the lowest class rank; not
 * of the principal served last; not of the stream served last; the earliest latest start; the first that
 * arrived. Can a call starve?
 *
 * - No class starves: a rank improves by one every 250 ms, so after 500 ms an offline call has the rank of a
 *   new urgent
 *   one. Ranks stop at 0. Otherwise many old calls of one principal would stay ahead of every later call.
 * - No principal starves because another one has many calls: at equal rank two principals take turns, however
 *   many
 *   calls each has waiting, and so do two streams of one principal. Of three or more principals, those with early
 *   latest starts can stay ahead of one with a late one, until the wait timeout ends its wait.
 * - A large call can be overtaken by small ones that fit where it does not, as no capacity is kept free for
 *   it: that
 *   would leave providers idle. Its wait is bounded like every other, by `waitTimeoutMs`.
 *
 * Invariant: no waiting call fits. So a new call that fits overtakes none, the queue need not be searched
 * when a call arrives or leaves, and a release searches it once for each call that it admits and once more.
 */
export class AdmissionQueue implements Disposable {
  readonly limits: AdmissionLimits;
  readonly #world: Pick<World, "monotonicMs" | "sleep">;
  readonly #stats = {
    acquired: { urgent_live: 0, live: 0, offline: 0 },
    timeouts: { global: 0, principal: 0 },
    waiterRejections: 0,
    deadlineMissed: 0,
    budgetRejections: 0,
    waits: 0,
    waitedMs: 0,
  };
  /** The principals with a call under way or waiting. */
  readonly #principals = new Map<string, PrincipalCalls>();
  #active = 0;
  #waiting = 0;
  #tokens = 0;
  #bytes = 0;
  #tickets = 0;
  #lastServed = { principal: "", stream: "" };
  #isClosed = false;

  constructor(limits: AdmissionLimits, world: Pick<World, "monotonicMs" | "sleep">) {
    this.limits = limits;
    this.#world = world;
  }

  /** Calls under way. */
  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Output tokens that calls under way have reserved. */
  get activeTokens(): number {
    return this.#tokens;
  }

  /** Media bytes that calls under way have reserved. */
  get activeBytes(): number {
    return this.#bytes;
  }

  get stats(): AdmissionStats {
    return this.#stats;
  }

  /** Waits for a permit. Rejects with {@link AdmissionRefused}, or with the signal's reason. */
  acquire(call: AdmissionCall): Promise<AdmissionPermit> {
    if (call.signal.aborted) return Promise.reject(call.signal.reason);
    if (this.#isClosed) return Promise.reject(closing());
    const oversize = this.#oversize(call);
    if (oversize) {
      this.#stats.budgetRejections += 1;
      return Promise.reject(oversize);
    }
    const nowMs = this.#world.monotonicMs();
    const latestStartMs = nowMs + call.deadlineMs - call.estimateMs;
    if (latestStartMs < nowMs) return Promise.reject(this.#deadlineMissed(0));
    const principal = this.#principals.get(call.principalKey) ?? newPrincipalCalls(call.principalKey);
    if (this.#fits(principal, call)) return Promise.resolve(this.#admit(principal, call, 0));
    const { globalLimit, waiterLimit } = this.limits;
    if (this.#active + this.#waiting >= globalLimit + waiterLimit) {
      this.#stats.waiterRejections += 1;
      return Promise.reject(new AdmissionRefused("saturated", `${this.#waiting} calls are waiting already`));
    }
    return this.#wait(principal, call, nowMs, latestStartMs);
  }

  /** Refuses all waiting and all later calls; permits that are out stay valid. */
  close(): void {
    this.#isClosed = true;
    for (const { waiters } of [...this.#principals.values()]) {
      for (const waiter of [...waiters]) waiter.reject(closing());
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #wait(
    principal: PrincipalCalls,
    call: AdmissionCall,
    sinceMs: number,
    latestStartMs: number,
  ): Promise<AdmissionPermit> {
    const endMs = Math.min(latestStartMs, sinceMs + this.limits.waitTimeoutMs);
    return new Promise((resolve, reject) => {
      const leave = () => {
        principal.waiters.delete(waiter);
        this.#waiting -= 1;
        this.#forgetIdle(principal);
        call.signal.removeEventListener("abort", onAbort);
        timeout[Symbol.dispose]();
      };
      const waiter: WaitingCall = {
        call,
        classRank: LATENCY_CLASSES.indexOf(call.latencyClass),
        ticket: ++this.#tickets,
        sinceMs,
        latestStartMs,
        endMs,
        // The call counts as under way before it leaves the queue, so that its principal is not removed in
        // between.
        admit: (nowMs) => {
          resolve(this.#admit(principal, call, nowMs - sinceMs));
          leave();
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      const onAbort = () => waiter.reject(call.signal.reason);
      call.signal.addEventListener("abort", onAbort, { once: true });
      principal.waiters.add(waiter);
      this.#principals.set(principal.key, principal);
      this.#waiting += 1;
      const timeout = timer(this.#world, endMs - sinceMs, () => {
        waiter.reject(this.#waitRanOut(principal, waiter));
      });
    });
  }

  #admit(principal: PrincipalCalls, call: AdmissionCall, waitedMs: number): AdmissionPermit {
    this.#principals.set(principal.key, principal);
    principal.active += 1;
    this.#active += 1;
    this.#tokens += call.tokens;
    this.#bytes += call.bytes;
    this.#lastServed = { principal: call.principalKey, stream: call.streamKey };
    this.#stats.acquired[call.latencyClass] += 1;
    this.#countWait(waitedMs);
    let isOut = true;
    const release = () => {
      if (!isOut) return;
      isOut = false;
      principal.active -= 1;
      this.#active -= 1;
      this.#tokens -= call.tokens;
      this.#bytes -= call.bytes;
      this.#forgetIdle(principal);
      this.#admitWaiters();
    };
    return { waitedMs, [Symbol.dispose]: release };
  }

  #admitWaiters(): void {
    const nowMs = this.#world.monotonicMs();
    while (this.#waiting > 0 && this.#active < this.limits.globalLimit) {
      const first = this.#firstThatFits(nowMs);
      if (!first) return;
      first.admit(nowMs);
    }
  }

  #firstThatFits(nowMs: number): WaitingCall | undefined {
    let first: WaitingCall | undefined;
    for (const principal of this.#principals.values()) {
      if (principal.active >= this.limits.perPrincipalLimit) continue;
      for (const waiter of principal.waiters) {
        // A call whose time is over is refused by its timer, even when that timer is late.
        if (nowMs > waiter.endMs || !this.#fitsBudgets(waiter.call)) continue;
        if (!first || this.#isBefore(waiter, first, nowMs)) first = waiter;
      }
    }
    return first;
  }

  #isBefore(one: WaitingCall, other: WaitingCall, nowMs: number): boolean {
    const byRank = rank(one, nowMs) - rank(other, nowMs);
    if (byRank !== 0) return byRank < 0;
    const { principal, stream } = this.#lastServed;
    const isRepeat = one.call.principalKey === principal;
    if (isRepeat !== (other.call.principalKey === principal)) return !isRepeat;
    const isSameStream = one.call.streamKey === stream;
    if (isSameStream !== (other.call.streamKey === stream)) return !isSameStream;
    return (one.latestStartMs - other.latestStartMs || one.ticket - other.ticket) < 0;
  }

  #fits(principal: PrincipalCalls, call: AdmissionCall): boolean {
    const { globalLimit, perPrincipalLimit } = this.limits;
    return this.#active < globalLimit && principal.active < perPrincipalLimit && this.#fitsBudgets(call);
  }

  #fitsBudgets({ tokens, bytes }: AdmissionCall): boolean {
    const { tokenBudget, byteBudget } = this.limits;
    return this.#tokens + tokens <= tokenBudget && this.#bytes + bytes <= byteBudget;
  }

  #oversize({ tokens, bytes }: AdmissionCall): AdmissionRefused | undefined {
    const { tokenBudget, byteBudget } = this.limits;
    const excess = tokens > tokenBudget
      ? `${tokens} output tokens are more than the whole budget of ${tokenBudget}`
      : bytes > byteBudget
      ? `${bytes} media bytes are more than the whole budget of ${byteBudget}`
      : undefined;
    return excess === undefined ? undefined : new AdmissionRefused("budget_exceeded", excess);
  }

  #waitRanOut(principal: PrincipalCalls, { sinceMs, latestStartMs, endMs }: WaitingCall): AdmissionRefused {
    const waitedMs = this.#world.monotonicMs() - sinceMs;
    this.#countWait(waitedMs);
    if (endMs === latestStartMs) return this.#deadlineMissed(waitedMs);
    const limit = principal.active >= this.limits.perPrincipalLimit ? "principal" : "global";
    this.#stats.timeouts[limit] += 1;
    return new AdmissionRefused("saturated", `not admitted within ${this.limits.waitTimeoutMs} ms`, limit);
  }

  #deadlineMissed(waitedMs: number): AdmissionRefused {
    this.#stats.deadlineMissed += 1;
    const waited = waitedMs > 0 ? ` after a wait of ${Math.round(waitedMs)} ms` : "";
    return new AdmissionRefused("deadline_missed", `the call could no longer end in time${waited}`);
  }

  #countWait(waitedMs: number): void {
    this.#stats.waits += 1;
    this.#stats.waitedMs += waitedMs;
  }

  #forgetIdle({ key, active, waiters }: PrincipalCalls): void {
    if (active === 0 && waiters.size === 0) this.#principals.delete(key);
  }
}

interface PrincipalCalls {
  readonly key: string;
  active: number;
  readonly waiters: Set<WaitingCall>;
}

interface WaitingCall {
  readonly call: AdmissionCall;
  readonly classRank: number;
  readonly ticket: number;
  readonly sinceMs: number;
  readonly latestStartMs: number;
  /** The end of its wait. */
  readonly endMs: number;
  readonly admit: (nowMs: number) => void;
  readonly reject: (reason: unknown) => void;
}

function newPrincipalCalls(key: string): PrincipalCalls {
  return { key, active: 0, waiters: new Set() };
}

function rank({ classRank, sinceMs }: WaitingCall, nowMs: number): number {
  return Math.max(0, classRank - Math.floor((nowMs - sinceMs) / AGEING_MS));
}

function closing(): AdmissionRefused {
  return new AdmissionRefused("saturated", "the service is closing");
}
