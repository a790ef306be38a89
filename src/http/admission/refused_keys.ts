/** Bounds how many keys somebody without one can try. See docs/api.md#refused-keys. */

import { networkOf } from "../../base/ip_address.ts";
import { LIMITS } from "../../contract/limits.ts";
import { PrincipalBuckets, RateLimited } from "../../sharing/rate_limit.ts";

/**
 * While an address has tried too many wrong keys, no further key of it is looked at, so that a right guess
 * reads like a wrong one. A key that was right from there before is no guess: callers behind the same proxy
 * go on.
 */
export class RefusedKeys {
  readonly #buckets: PrincipalBuckets;
  /** The principals that had the right key, by network; those that were seen first are forgotten first. */
  readonly #seen = new Map<string, Set<string>>();

  constructor(nowMs: () => number) {
    this.#buckets = new PrincipalBuckets({
      ratePerSecond: LIMITS.keys.wrongPerSecond,
      slots: LIMITS.keys.addresses,
      nowMs,
    });
  }

  /** Throws {@link RateLimited} where too many keys from there were wrong. */
  refused(address: string): void {
    try {
      this.#buckets.take(networkOf(address));
    } catch (error) {
      if (error instanceof RateLimited) throw tooMany(error.retryAfterSeconds);
      throw error;
    }
  }

  /**
   * Throws {@link RateLimited} where too many keys from there were wrong, and this principal was not seen
   * there before.
   */
  accepted(address: string, principalKey: string): void {
    const network = networkOf(address);
    const seen = this.#seen.get(network);
    if (seen?.has(principalKey)) return;
    if (this.#buckets.isEmpty(network)) throw tooMany(1);
    if (seen !== undefined) return void seen.add(principalKey);
    const [first] = this.#seen.keys();
    if (this.#seen.size >= LIMITS.keys.addresses) this.#seen.delete(first!);
    this.#seen.set(network, new Set([principalKey]));
  }
}

function tooMany(retryAfterSeconds: number): RateLimited {
  return new RateLimited(
    retryAfterSeconds,
    "Cannot look at a key from this address now as too many from there were wrong",
  );
}
