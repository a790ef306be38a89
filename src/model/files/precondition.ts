/** Conditional requests: whether the copy of the caller is current, by RFC 9110 section 13. See
 * docs/api/files.md#ranges-and-conditions.
 */

/** The values that distinguish one version of a file from another. */
export interface Validators {
  /** The strong tag of the version: quotes included, no `W/`. */
  readonly etag: string;
  /** When the file was changed last, epoch milliseconds; null when the content can never change. */
  readonly modifiedMs: number | null;
}

/**
 * Checks the conditions of a request: `not_modified` means 304, `failed` means 412. The order of the checks
 * is that of RFC 9110 section 13.2.2.
 */
export function precondition(
  headers: Headers,
  { etag, modifiedMs }: Validators,
): "holds" | "not_modified" | "failed" {
  const ifMatch = headers.get("if-match");
  const unmodifiedSince = dateMs(headers.get("if-unmodified-since"));
  if (ifMatch !== null) {
    if (!listsTag(ifMatch, (tag) => tag === etag)) return "failed";
  } else if (unmodifiedSince !== null && modifiedMs !== null && wholeSecond(modifiedMs) > unmodifiedSince) {
    return "failed";
  }
  const ifNoneMatch = headers.get("if-none-match");
  if (ifNoneMatch !== null) {
    return listsTag(ifNoneMatch, (tag) => tag.replace(/^W\//, "") === etag) ? "not_modified" : "holds";
  }
  const modifiedSince = dateMs(headers.get("if-modified-since"));
  const isOlder = modifiedSince !== null && modifiedMs !== null && wholeSecond(modifiedMs) <= modifiedSince;
  return isOlder ? "not_modified" : "holds";
}

/**
 * Whether a range may be answered under `If-Range`: always without the header, else only when it names the
 * current version. A weak tag never matches.
 */
export function rangeApplies(headers: Headers, { etag, modifiedMs }: Validators): boolean {
  const condition = headers.get("if-range")?.trim();
  if (condition === undefined) return true;
  if (/^(W\/)?"/.test(condition)) return condition === etag;
  return modifiedMs !== null && dateMs(condition) === wholeSecond(modifiedMs);
}

/** The format of a `Last-Modified` header. */
export function httpDate(ms: number): string {
  return new Date(ms).toUTCString();
}

/** Whether a header lists a tag: it is `*`, or a list of tags; a comma may be part of a tag. */
function listsTag(header: string, matchesTag: (tag: string) => boolean): boolean {
  if (header.trim() === "*") return true;
  return (header.match(/(W\/)?"[^"]*"/g) ?? []).some(matchesTag);
}

/** The time of an HTTP date; null for a text that is none: such a condition is ignored. */
function dateMs(text: string | null): number | null {
  if (text === null || !/^[A-Za-z]{3,9}, .* GMT$|^[A-Za-z]{3} [A-Za-z]{3} /.test(text.trim())) return null;
  // The oldest of the three formats names no time zone; it is in GMT like the others.
  const zoned = text.trim().endsWith("GMT") ? text : `${text} GMT`;
  const ms = Date.parse(zoned);
  return Number.isNaN(ms) ? null : ms;
}

/** A time in whole seconds, as HTTP dates have no fractions. */
function wholeSecond(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
