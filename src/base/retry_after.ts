/** When a server that is busy wants to be asked again. */

/**
 * Milliseconds from `nowMs` on, of the header `retry-after` (seconds or an HTTP date) or `retry-after-ms`; null where there is none, or none
 * that can be read. At most a day.
 */
export function retryAfterMs(headers: Headers, nowMs: number): number | null {
  const exact = headers.get("retry-after-ms")?.trim() ?? "";
  if (NUMBER.test(exact)) return bounded(Number(exact));
  const asked = headers.get("retry-after")?.trim() ?? "";
  if (NUMBER.test(asked)) return bounded(Number(asked) * 1000);
  const dateMs = /^[A-Z][a-z]{2},? /.test(asked) ? Date.parse(asked) : NaN;
  return Number.isNaN(dateMs) ? null : bounded(dateMs - nowMs);
}

const NUMBER = /^\d{1,12}(?:\.\d{1,9})?$/;
const DAY_MS = 24 * 60 * 60 * 1000;

function bounded(ms: number): number {
  return Math.min(DAY_MS, Math.max(0, Math.ceil(ms)));
}
