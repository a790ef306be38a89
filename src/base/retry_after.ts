/** When a server that is busy wants to be asked again. */

/**
 * Milliseconds from `nowMs` on, of the header `retry-after` (seconds or a date) or `retry-after-ms`; null
 * where there is none, or none that can be read. At most a day.
 */
export function retryAfterMs(headers: Headers, nowMs: number): number | null {
  const exact = NUMBER.exec(headers.get("retry-after-ms") ?? "")?.[1];
  if (exact !== undefined) return boundedWait(Number(exact));
  const asked = headers.get("retry-after")?.trim() ?? "";
  const seconds = NUMBER.exec(asked)?.[1];
  if (seconds !== undefined) {
    return boundedWait(
      Number(seconds) < EPOCH_S_MIN ? Number(seconds) * 1000 : Number(seconds) * 1000 - nowMs,
    );
  }
  const dateMs = DATE.test(asked)
    ? Date.parse(asked)
    : ASCTIME.test(asked)
    ? Date.parse(`${asked} UTC`)
    : NaN;
  return Number.isNaN(dateMs) ? null : boundedWait(dateMs - nowMs);
}

/** A number of seconds, with or without its unit. Proxies that join two headers write it twice. */
const NUMBER = /^\s*(\d{1,12}(?:\.\d{1,9})?)\s*(?:s|sec|seconds?)?\s*(?:,|$)/i;
/** From so many seconds on, a number is not a wait but a moment since 1970: some servers write that. */
const EPOCH_S_MIN = 1e9;
const DATE = /^(?:[A-Z][a-z]{2,8}, \d|\d{4}-\d\d-\d\dT)/;
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} +\d/;
const DAY_MS = 24 * 60 * 60 * 1000;

/** A wait in whole milliseconds, at most a day. */
export function boundedWait(ms: number): number {
  return Math.min(DAY_MS, Math.max(0, Math.ceil(ms)));
}
