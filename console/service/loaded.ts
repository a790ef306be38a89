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
/** A connection that gives no answer for so long is probably dead. */
const LATE_MS = 10_000;

/**
 * Asks when the page is shown, whenever one of `inputs` changes, when the service is back, and with `everyMs`
 * so often while the page can be seen, and as soon as it can be seen again. Of two answers the older one is
 * dropped; so that a page whose answers take longer than `everyMs` shows them all the same, it is not asked
 * again by the clock alone while one is on its way.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  everyMs?: number,
): Loaded<T> {
  const [last, setLast] = useState<Heard<T>>({ inputs, isSlow: false });
  const [asked, setAsked] = useState(0);
  const underWaySinceMs = useRef(-Infinity);
  const returned = returns.value;
  // What was said of other inputs is never shown as said of these.
  const ofThese = (answer: Heard<T>): Heard<T> => isOf(answer, inputs) ? answer : { inputs, isSlow: false };
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    const change = (changes: (answer: Heard<T>) => Partial<Heard<T>>) =>
      signal.aborted || setLast((answer) => {
        const before = ofThese(answer);
        return { ...before, ...changes(before) };
      });
    const slow = setTimeout(() => change(({ value }) => ({ isSlow: value === undefined })), SLOW_MS);
    underWaySinceMs.current = performance.now();
    // What `load` throws at once is a failure like every other.
    (async () => await load(signal))().then(
      (value) => change(() => ({ value, failure: undefined, isSlow: false })),
      (failure) => change(() => ({ failure, isSlow: false })),
    ).finally(() => {
      clearTimeout(slow);
      if (!signal.aborted) underWaySinceMs.current = -Infinity;
    });
    return () => {
      clearTimeout(slow);
      ending.abort();
    };
  }, [...inputs, asked, returned]);
  useEffect(() => {
    if (everyMs === undefined) return;
    const ask = () => document.hidden || setAsked((count) => count + 1);
    const timer = setInterval(() => {
      if (performance.now() - underWaySinceMs.current >= LATE_MS) ask();
    }, everyMs);
    document.addEventListener("visibilitychange", ask);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", ask);
    };
  }, [everyMs]);
  const { value, failure, isSlow } = ofThese(last);
  return { value, failure, isSlow, reload: () => setAsked((count) => count + 1) };
}

/** The last that was heard of a question with these inputs. */
interface Heard<T> {
  readonly inputs: readonly unknown[];
  readonly value?: T | undefined;
  readonly failure?: unknown;
  readonly isSlow: boolean;
}

function isOf<T>(answer: Heard<T>, inputs: readonly unknown[]): boolean {
  return answer.inputs.every((input, index) => input === inputs[index]);
}
