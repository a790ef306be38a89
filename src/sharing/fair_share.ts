/** The rule by which several principals share a fixed amount: permits, webhooks, memory. See
 * docs/security/load.md#shares.
 */

/** A principal may hold at most this many times what it leaves free. */
const HELD_FOR_EACH_FREE = 3;

/**
 * Whether a principal that holds `held` may take `wanted` of what is `free`. One that holds nothing may take
 * whatever is there. Alone, a principal gets three quarters of all, so there is something left for whoever
 * comes next, who gets three quarters of the rest at most, and so on.
 */
export function isWithinShare(held: number, wanted: number, free: number): boolean {
  const left = free - wanted;
  return left >= 0 && (held === 0 || held + wanted <= HELD_FOR_EACH_FREE * left);
}

/** A part of a budget that a principal holds. */
export interface HeldShare extends Disposable {
  /**
   * Takes what is missing, or gives back what is too much; false where there is not so much, and nothing
   * changes.
   */
  resize(amount: number): boolean;
}

/** A fixed amount of which principals hold parts: bytes, threads, sessions. */
export class SharedBudget {
  readonly limit: number;
  readonly #isShared: boolean;
  /** Principals that hold something. */
  readonly #held = new Map<string, number>();
  #used = 0;

  /** `isShared`: whether several principals may come, so that none may hold everything. */
  constructor({ limit, isShared }: { readonly limit: number; readonly isShared: boolean }) {
    this.limit = limit;
    this.#isShared = isShared;
  }

  get used(): number {
    return this.#used;
  }

  /** Why the principal cannot take `wanted` now; null when it can. */
  faultOf(principalKey: string, wanted: number): "exhausted" | "kept_for_others" | null {
    const free = this.limit - this.#used;
    if (wanted > free) return "exhausted";
    const isFair = !this.#isShared || isWithinShare(this.#held.get(principalKey) ?? 0, wanted, free);
    return isFair ? null : "kept_for_others";
  }

  /** Takes `amount`, which {@link faultOf} has allowed. Disposing the result gives it back, once. */
  take(principalKey: string, amount: number): HeldShare {
    let held: number | null = amount;
    this.#add(principalKey, amount);
    return {
      resize: (next) => {
        if (held === null || (next > held && this.faultOf(principalKey, next - held) !== null)) return false;
        this.#add(principalKey, next - held);
        held = next;
        return true;
      },
      [Symbol.dispose]: () => {
        if (held !== null) this.#add(principalKey, -held);
        held = null;
      },
    };
  }

  #add(principalKey: string, amount: number): void {
    this.#used += amount;
    const held = (this.#held.get(principalKey) ?? 0) + amount;
    if (held === 0) this.#held.delete(principalKey);
    else this.#held.set(principalKey, held);
  }
}
