/** Who may call a model provider now, who waits and who is told no: one gate for all callers. Contract 7.6. */

import type { World } from "./world.ts";

/** From the most to the least urgent. */
export const LATENCY_CLASSES = ["urgent_live", "live", "offline"] as const;
export type LatencyClass = typeof LATENCY_CLASSES[number];

export interface AdmissionLimits {
  /** Calls at once. */
  readonly globalLimit: number;
  /** Calls of one principal at once; at most `globalLimit`. */
  readonly perPrincipalLimit: number;
  /** With `globalLimit` it makes the slots: calls that are under way or waiting. */
  readonly waiterLimit: number;
  readonly waitTimeoutMs: number;
  /** Output tokens that calls under way may reserve together. */
  readonly tokenBudget: number;
  /** Media bytes that calls under way may reserve together. */
  readonly byteBudget: number;
}

export interface AdmissionCall {
  readonly principalKey: string;
  /** Calls of one stream take turns with those of others. */
  readonly streamKey: string;
  readonly latencyClass: LatencyClass;
  readonly tokens: number;
  readonly bytes: number;
  /** From now until the answer must be there. */
  readonly deadlineMs: number;
  /** How long the call itself probably takes: it may start until `deadlineMs - estimateMs`. */
  readonly estimateMs: number;
  /** Leaves the queue as soon as it aborts. */
  readonly signal: AbortSignal;
}

/** The right to call, with its reservations. Give it back with `using`; giving it back twice does nothing. */
export interface AdmissionPermit extends Disposable {
  readonly waitedMs: number;
}

export type AdmissionLimit = "global" | "principal";

/** Why a call is not admitted. */
export class AdmissionRefused extends Error {
  override readonly name = "AdmissionRefused";

  constructor(
    /** `budget_exceeded` never passes, however often it is tried; the others may. */
    readonly reason: "saturated" | "deadline_missed" | "budget_exceeded",
    message: string,
    /** Of a wait that ran out: which limit was in the way at the end. */
    readonly limit?: AdmissionLimit,
  ) {
    super(message);
  }
}

/** Counted since the gate was opened. */
export interface AdmissionStats {
  readonly acquired: Readonly<Record<LatencyClass, number>>;
  /** Waits that ran out. */
  readonly timeouts: Readonly<Record<AdmissionLimit, number>>;
  /** Calls that found no slot. */
  readonly waiterRejections: number;
  readonly deadlineMissed: number;
  readonly budgetRejections: number;
  /** Calls that were admitted, at once or later, and waits that ran out; and the time they all waited. */
  readonly waits: number;
  readonly waitedMs: number;
}

/** A waiter gains one rank each time it has waited this long. */
const AGEING_MS = 250;

/**
 * A call is admitted while there are a free call in all, a free call of its principal, and tokens and bytes for it.
 * Otherwise it waits, until `min(waitTimeoutMs, deadlineMs - estimateMs)`:
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
 * A call that fits takes nobody's place, so full slots do not refuse it: else one principal at its own limit could
 * fill them and shut the others out of idle providers.
 *
 * Of the waiters that fit, the first is the one with the lowest class rank, then not of the principal served last,
 * then not of the stream served last, then the earliest latest start, then the first that came. Who starves?
 *
 * - No class: a rank improves by one every 250 ms, so after 500 ms an offline call ranks with a new urgent one. Ranks end
 *   at 0 and do not go on growing: an old crowd of one principal would outrank everybody who comes after it.
 * - No principal through the crowd of another: at equal rank two principals take turns, however many calls each
 *   has waiting, and so do two streams of one principal. Of three or more, those in a hurry (early latest starts) can go
 *   ahead of one that is patient, until the wait timeout ends its wait.
 * - A large call can be passed by small ones that fit where it does not, as nothing is held back for it. Idle providers
 *   would be the price of that, and its wait is bounded: like every other it ends within `waitTimeoutMs`.
 *
 * Invariant: no waiter fits. A newcomer that fits passes nobody, an arrival or a departure never makes the gate look
 * through its queue, and only what is given back does, once for each call that it admits and once more.
 */
export class Admission implements Disposable {
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
  /** Those that have a call under way or waiting. */
  readonly #principals = new Map<string, Principal>();
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

  /** Rejects with {@link AdmissionRefused}, or with the signal's reason. */
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
    const principal = this.#principals.get(call.principalKey) ?? newPrincipal(call.principalKey);
    if (this.#fits(principal, call)) return Promise.resolve(this.#admit(principal, call, 0));
    const { globalLimit, waiterLimit } = this.limits;
    if (this.#active + this.#waiting >= globalLimit + waiterLimit) {
      this.#stats.waiterRejections += 1;
      return Promise.reject(new AdmissionRefused("saturated", `${this.#waiting} calls are waiting already`));
    }
    return this.#wait(principal, call, nowMs, latestStartMs);
  }

  /** Refuses everyone who waits and everyone who comes; permits that are out stay valid. */
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
    principal: Principal,
    call: AdmissionCall,
    sinceMs: number,
    latestStartMs: number,
  ): Promise<AdmissionPermit> {
    const endMs = Math.min(latestStartMs, sinceMs + this.limits.waitTimeoutMs);
    return new Promise((resolve, reject) => {
      const timer = new AbortController();
      const leave = () => {
        principal.waiters.delete(waiter);
        this.#waiting -= 1;
        this.#forgetIdle(principal);
        call.signal.removeEventListener("abort", onAbort);
        timer.abort(WAIT_IS_OVER);
      };
      const waiter: Waiter = {
        call,
        classRank: LATENCY_CLASSES.indexOf(call.latencyClass),
        ticket: ++this.#tickets,
        sinceMs,
        latestStartMs,
        endMs,
        // Counts as under way before it leaves the queue: its principal has something all the time.
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
      const onEnd = () => waiter.reject(this.#inVain(principal, waiter));
      call.signal.addEventListener("abort", onAbort, { once: true });
      principal.waiters.add(waiter);
      this.#principals.set(principal.key, principal);
      this.#waiting += 1;
      this.#world.sleep(endMs - sinceMs, timer.signal).then(onEnd, () => {/* the wait ended before */});
    });
  }

  #admit(principal: Principal, call: AdmissionCall, waitedMs: number): AdmissionPermit {
    this.#principals.set(principal.key, principal);
    principal.active += 1;
    this.#active += 1;
    this.#tokens += call.tokens;
    this.#bytes += call.bytes;
    this.#lastServed = { principal: call.principalKey, stream: call.streamKey };
    this.#stats.acquired[call.latencyClass] += 1;
    this.#countWait(waitedMs);
    let isOut = true;
    const giveBack = () => {
      if (!isOut) return;
      isOut = false;
      principal.active -= 1;
      this.#active -= 1;
      this.#tokens -= call.tokens;
      this.#bytes -= call.bytes;
      this.#forgetIdle(principal);
      this.#admitWaiters();
    };
    return { waitedMs, [Symbol.dispose]: giveBack };
  }

  #admitWaiters(): void {
    const nowMs = this.#world.monotonicMs();
    while (this.#waiting > 0 && this.#active < this.limits.globalLimit) {
      const first = this.#firstThatFits(nowMs);
      if (!first) return;
      first.admit(nowMs);
    }
  }

  #firstThatFits(nowMs: number): Waiter | undefined {
    let first: Waiter | undefined;
    for (const principal of this.#principals.values()) {
      if (principal.active >= this.limits.perPrincipalLimit) continue;
      for (const waiter of principal.waiters) {
        // One whose time is up is refused by its timer, even when that runs late.
        if (nowMs > waiter.endMs || !this.#fitsBudgets(waiter.call)) continue;
        if (!first || this.#isBefore(waiter, first, nowMs)) first = waiter;
      }
    }
    return first;
  }

  #isBefore(one: Waiter, other: Waiter, nowMs: number): boolean {
    const byRank = rank(one, nowMs) - rank(other, nowMs);
    if (byRank !== 0) return byRank < 0;
    const { principal, stream } = this.#lastServed;
    const isRepeat = one.call.principalKey === principal;
    if (isRepeat !== (other.call.principalKey === principal)) return !isRepeat;
    const isSameStream = one.call.streamKey === stream;
    if (isSameStream !== (other.call.streamKey === stream)) return !isSameStream;
    return (one.latestStartMs - other.latestStartMs || one.ticket - other.ticket) < 0;
  }

  #fits(principal: Principal, call: AdmissionCall): boolean {
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

  #inVain(principal: Principal, { sinceMs, latestStartMs, endMs }: Waiter): AdmissionRefused {
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

  #forgetIdle({ key, active, waiters }: Principal): void {
    if (active === 0 && waiters.size === 0) this.#principals.delete(key);
  }
}

interface Principal {
  readonly key: string;
  active: number;
  readonly waiters: Set<Waiter>;
}

interface Waiter {
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

/** Why a timer is stopped; made once, as each waiter stops one. */
const WAIT_IS_OVER = new DOMException("The wait is over", "AbortError");

function newPrincipal(key: string): Principal {
  return { key, active: 0, waiters: new Set() };
}

function rank({ classRank, sinceMs }: Waiter, nowMs: number): number {
  return Math.max(0, classRank - Math.floor((nowMs - sinceMs) / AGEING_MS));
}

function closing(): AdmissionRefused {
  return new AdmissionRefused("saturated", "the service is closing");
}
