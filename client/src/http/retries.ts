/** Which failures are worth another attempt, and how long to wait before it. */

import { HttpError, NetworkError } from "./errors.ts";

/** No pause is longer, whatever the service asks for. */
const LONGEST_PAUSE_MS = 30_000;

/**
 * A broken connection, 429, 5xx and work that is still going on. Not 507: no time makes room for a caller
 * that stores too much.
 */
export function isWorthRetrying(error: unknown): error is HttpError | NetworkError {
  if (error instanceof NetworkError) return true;
  if (!(error instanceof HttpError)) return false;
  const { status } = error;
  return status === 429 || (status >= 500 && status !== 507) || isStillRunning(error);
}

/**
 * Whether the service is still working on an earlier attempt of the same call: only then a 409 says when to
 * come back.
 */
export function isStillRunning(error: unknown): boolean {
  return error instanceof HttpError && error.status === 409 && error.retryAfterMs !== null;
}

/**
 * What the service asks for, else `baseMs` doubled with each attempt and a random part of `baseMs`; at most
 * 30 s.
 */
export function pauseMs(attempt: number, baseMs: number, error?: unknown): number {
  const asked = error instanceof HttpError ? error.retryAfterMs : null;
  return Math.min(asked ?? baseMs * 2 ** (attempt - 1) + Math.random() * baseMs, LONGEST_PAUSE_MS);
}

/** Reads a `Retry-After` header: whole seconds or an HTTP date; null where it is absent or neither. */
export function readRetryAfter(value: string | null, nowMs = Date.now()): number | null {
  const text = value?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const time = /^[A-Z][a-z]{2,8},? /.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(time) ? null : Math.max(0, time - nowMs);
}
