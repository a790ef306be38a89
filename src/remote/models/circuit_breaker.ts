/** The circuit breaker of one backend: after several failures in a row it is skipped for a while, then
 * probed.
 */

/**
 * ```
 *            3 failures in a row, or a spent quota
 *   closed ─────────────────────────────────────────▶ open for 5 s, then 10 s, … up to 60 s
 *     ▲                                                 │ the time has passed
 *     │            the probe succeeds                   ▼          the probe fails
 *     └────────────────────────────────────────────── half open ──────────────────▶ open, twice as long
 * ```
 * The probe is the next call. Times are monotonic. Any answer of the backend counts as a success. See
 * docs/models.md#circuit-breaker.
 */
export class CircuitBreaker {
  #failures = 0;
  /** Until when the breaker is open, and for how long it was opened; null while it is closed. */
  #open: { readonly untilMs: number; readonly forMs: number } | null = null;
  #isProbing = false;

  /** Whether the backend must be skipped now. */
  isOpen(nowMs: number): boolean {
    return this.#open !== null && (nowMs < this.#open.untilMs || this.#isProbing);
  }

  /** Where the breaker is, and when its probe may come: a monotonic time, 0 where that has passed. */
  look(nowMs: number): CircuitLook {
    if (this.#open === null) return { state: "closed", untilMs: 0 };
    if (nowMs < this.#open.untilMs) return { state: "open", untilMs: this.#open.untilMs };
    return { state: "half_open", untilMs: 0 };
  }

  /**
   * Starts one call; the caller reports its result. A call that starts although the breaker is open is not a
   * probe.
   */
  enter(nowMs: number): CircuitCall {
    const isProbe = this.#open !== null && !this.isOpen(nowMs);
    if (isProbe) this.#isProbing = true;
    let isOver = false;
    const once = (end: () => void) => () => {
      if (isOver) return;
      isOver = true;
      if (isProbe) this.#isProbing = false;
      end();
    };
    return {
      succeeded: once(() => {
        this.#failures = 0;
        this.#open = null;
      }),
      failed: (atMs, isQuotaSpent) => once(() => this.#fail(atMs, isQuotaSpent, isProbe))(),
      released: once(() => {}),
    };
  }

  #fail(nowMs: number, isQuotaSpent: boolean, isProbe: boolean): void {
    this.#failures += 1;
    const forMs = this.#open ? Math.min(this.#open.forMs * 2, OPEN_MS_MAX) : OPEN_MS_FIRST;
    // While it is open, only the probe extends it: the other calls started before, or no other backend was
    // left to ask.
    if (isProbe || (!this.#open && (isQuotaSpent || this.#failures >= FAILURES_MAX))) {
      this.#open = { untilMs: nowMs + forMs, forMs };
    }
  }
}

export interface CircuitLook {
  readonly state: "closed" | "open" | "half_open";
  readonly untilMs: number;
}

/** One call of the backend. Only the first result that is reported counts. */
export interface CircuitCall {
  succeeded(): void;
  failed(nowMs: number, isQuotaSpent: boolean): void;
  /** Reports that the call ended without a result that says whether the backend works. */
  released(): void;
}

const FAILURES_MAX = 3;
const OPEN_MS_FIRST = 5_000;
const OPEN_MS_MAX = 60_000;
