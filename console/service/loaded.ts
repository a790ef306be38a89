/** What a page asks of the service: the value, why it is not there, and when to ask again. */

import { useEffect, useRef, useState } from "preact/hooks";
import { returns } from "./session.ts";

export interface Loaded<T> {
  /** The last value; it stays while it is asked for again, and when that fails. */
  readonly value: T | undefined;
  /** Why the last question failed; undefined when it did not. */
  readonly failure: unknown;
  /** No value yet, for so long that a person notices. */
  readonly isSlow: boolean;
  /** Asks again now. */
  readonly reload: () => void;
}

/** An answer that comes sooner needs no sign that something is under way. */
const SLOW_MS = 200;

/**
 * Asks when the page is shown, whenever one of `inputs` changes, when the service is back, and with `everyMs` so often while the
 * page can be seen, and as soon as it can be seen again. Of two answers the older one is dropped.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  everyMs?: number,
): Loaded<T> {
  const [state, setState] = useState<
    { value?: T; failure?: unknown; isSlow: boolean }
  >({ isSlow: false });
  const [asked, setAsked] = useState(0);
  const inputKey = useRef<readonly unknown[]>(inputs);
  const returned = returns.value;
  useEffect(() => {
    const ending = new AbortController();
    const hasChanged = inputKey.current.some((input, index) => input !== inputs[index]);
    inputKey.current = inputs;
    if (hasChanged) setState({ isSlow: false });
    const slow = setTimeout(
      () => setState((last) => ({ ...last, isSlow: last.value === undefined })),
      SLOW_MS,
    );
    // What `load` throws at once is a failure like every other.
    (async () => await load(ending.signal))().then(
      (value) => ending.signal.aborted || setState({ value, isSlow: false }),
      (failure) =>
        ending.signal.aborted ||
        setState((last) => ({ ...last, failure, isSlow: false })),
    ).finally(() => clearTimeout(slow));
    return () => {
      clearTimeout(slow);
      ending.abort();
    };
  }, [...inputs, asked, returned]);
  useEffect(() => {
    if (everyMs === undefined) return;
    const ask = () => document.hidden || setAsked((count) => count + 1);
    const timer = setInterval(ask, everyMs);
    document.addEventListener("visibilitychange", ask);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", ask);
    };
  }, [everyMs]);
  return {
    value: state.value,
    failure: state.failure,
    isSlow: state.isSlow,
    reload: () => setAsked((count) => count + 1),
  };
}
