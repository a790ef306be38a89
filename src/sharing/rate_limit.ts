/** Token buckets: the limits on requests a second, for all callers together and for each. See
 * docs/api.md#rate-limits.
 */

import { RefusalForNow } from "../contract/refusal.ts";

/** The refusal of one request too many: 429, with the whole seconds after which a request can succeed. */
export class RateLimited extends RefusalForNow {
  constructor(
    retryAfterSeconds: number,
    message = "Cannot serve this request now as the limit of requests a second is reached",
  ) {
    super(retryAfterSeconds, "rate_limited", message);
  }
}

/** Holds up to `ratePerSecond` tokens and gains that many a second; a request takes one. */
export class TokenBucket {
  readonly #ratePerSecond: number;
  readonly #nowMs: () => number;
  #tokens: number;
  #filledMs: number;

  constructor(ratePerSecond: number, nowMs: () => number) {
    this.#ratePerSecond = ratePerSecond;
    this.#nowMs = nowMs;
    this.#tokens = ratePerSecond;
    this.#filledMs = nowMs();
  }

  /** Takes a token, or throws {@link RateLimited} and takes none. */
  take(): void {
    const nowMs = this.#nowMs();
    this.#tokens = Math.min(this.#ratePerSecond, this.#tokensAt(nowMs));
    this.#filledMs = nowMs;
    if (this.#tokens < 1) {
      throw new RateLimited(Math.max(1, Math.ceil((1 - this.#tokens) / this.#ratePerSecond)));
    }
    this.#tokens -= 1;
  }

  /** Whether {@link take} would throw. */
  get isEmpty(): boolean {
    return this.#tokensAt(this.#nowMs()) < 1;
  }

  /** Whether the bucket is full again, so that removing it changes nothing for its owner. */
  isIdle(nowMs: number): boolean {
    return this.#tokensAt(nowMs) >= this.#ratePerSecond;
  }

  #tokensAt(nowMs: number): number {
    return this.#tokens + (nowMs - this.#filledMs) / 1000 * this.#ratePerSecond;
  }
}

/** A bucket for each principal, up to `slots` at once; a principal without a free slot is refused. */
export class PrincipalBuckets {
  readonly #options: { ratePerSecond: number; slots: number; nowMs: () => number };
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(options: { ratePerSecond: number; slots: number; nowMs: () => number }) {
    this.#options = options;
  }

  take(principalKey: string): void {
    const { ratePerSecond, slots, nowMs } = this.#options;
    let bucket = this.#buckets.get(principalKey);
    if (!bucket) {
      if (this.#buckets.size >= slots) this.#removeIdle(nowMs());
      if (this.#buckets.size >= slots) throw new RateLimited(1);
      bucket = new TokenBucket(ratePerSecond, nowMs);
      this.#buckets.set(principalKey, bucket);
    }
    bucket.take();
  }

  /** Whether {@link take} would throw, unless all slots are taken. */
  isEmpty(principalKey: string): boolean {
    return this.#buckets.get(principalKey)?.isEmpty ?? false;
  }

  #removeIdle(nowMs: number): void {
    for (const [principalKey, bucket] of this.#buckets) {
      if (bucket.isIdle(nowMs)) this.#buckets.delete(principalKey);
    }
  }
}
