/** A deadline that is disposed when the wait it bounds is over. */

/** Calls `onLate` once after `ms`, unless it was disposed before. */
export function deadline(ms: number, onLate: () => void): Disposable {
  const timer = setTimeout(onLate, ms);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}
