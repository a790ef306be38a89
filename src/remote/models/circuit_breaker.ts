/** When to leave a backend alone: after failures in a row it is skipped for a while, then one question finds out. */

/**
 * ```
 *            3 failures in a row, or a spent quota
 *   closed ─────────────────────────────────────────▶ open for 5 s, then 10 s, … up to 60 s
 *     ▲                                                 │ time is over
 *     │            the probe ends well                  ▼          the probe fails
 *     └────────────────────────────────────────────── half open ──────────────────▶ open, twice as long
 * ```
 * Times are of a clock that never goes back. An answer of any kind shows that the backend works.
 */
export class Circuit {
  #failures = 0;
  /** Null while closed. */
  #open: { readonly untilMs: number; readonly forMs: number } | null = null;
  #isProbing = false;

  /** Whether the backend is to be skipped now. */
  isOpen(nowMs: number): boolean {
    return this.#open !== null && (nowMs < this.#open.untilMs || this.#isProbing);
  }

  /** One question begins; tell what became of it. A question that is asked although the circuit is open is no probe. */
  enter(nowMs: number): CircuitPass {
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
    // While it is open, only the probe makes it longer: the others began before, or were asked for want of a better one.
    if (isProbe || (!this.#open && (isQuotaSpent || this.#failures >= FAILURES_MAX))) {
      this.#open = { untilMs: nowMs + forMs, forMs };
    }
  }
}

/** The first of these calls counts. */
export interface CircuitPass {
  succeeded(): void;
  failed(nowMs: number, isQuotaSpent: boolean): void;
  /** Ended in a way that says nothing of the backend. */
  released(): void;
}

const FAILURES_MAX = 3;
const OPEN_MS_FIRST = 5_000;
const OPEN_MS_MAX = 60_000;
