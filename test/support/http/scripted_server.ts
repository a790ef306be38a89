/** Shared by the scripted servers of several protocols: checks of requests, and waits that end when the
 * client disconnects.
 */

/** Throws an Error with this message unless the condition holds. */
export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** Why there is no answer: the caller has disconnected, or the server closes. */
class Gone extends Error {}

/**
 * Whether `error` only says that nobody waits for the answer any more: the caller has disconnected, or the
 * server closes.
 */
export function meansGone(error: unknown, ...signals: readonly AbortSignal[]): boolean {
  return error instanceof Gone || signals.some(({ aborted }) => aborted);
}

/** The whole body. Rejects with {@link Gone} where the caller disconnects before it is sent. */
export function wholeBody(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  // The signal of such a request does not abort, or not in time.
  return request.bytes().catch(() => Promise.reject(new Gone()));
}

/**
 * What `promise` gives; rejects with {@link Gone} when the caller disconnects or the server closes, so that
 * nothing waits for ever.
 */
export function untilGone<T>(promise: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T> {
  return new Promise((resolve, reject) => {
    for (const signal of signals) {
      if (signal.aborted) reject(new Gone());
      signal.addEventListener("abort", () => reject(new Gone()), { once: true });
    }
    promise.then(resolve, reject);
  });
}
