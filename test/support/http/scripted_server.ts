/** Shared by the scripted servers of several protocols: checks of requests, and waits that end when the client disconnects. */

/** Throws an Error with this message unless the condition holds. */
export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** What `promise` gives; rejects when the caller disconnects or the server closes, so that nothing waits for ever. */
export function untilGone<T>(promise: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T> {
  return new Promise((resolve, reject) => {
    for (const signal of signals) {
      if (signal.aborted) reject(new Error("gone"));
      signal.addEventListener("abort", () => reject(new Error("gone")), { once: true });
    }
    promise.then(resolve, reject);
  });
}
