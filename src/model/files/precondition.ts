/** Conditional requests: whether the caller's copy is still good. RFC 9110 13, decision D5. */

/** What tells one version of a file from another. */
export interface Validators {
  /** Strong: quotes included, no `W/`. */
  readonly etag: string;
  /** Epoch milliseconds; null where the content can never change. */
  readonly modifiedMs: number | null;
}

/** `not_modified` is 304, `failed` is 412. The order of the checks is that of RFC 9110 13.2.2. */
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
 * Whether `If-Range` lets a range be answered as one: without the header it does, else only with the very version that
 * the caller has the rest of. A weak tag never does.
 */
export function rangeApplies(headers: Headers, { etag, modifiedMs }: Validators): boolean {
  const condition = headers.get("if-range")?.trim();
  if (condition === undefined) return true;
  if (/^(W\/)?"/.test(condition)) return condition === etag;
  return modifiedMs !== null && dateMs(condition) === wholeSecond(modifiedMs);
}

/** As in a `Last-Modified` header. */
export function httpDate(ms: number): string {
  return new Date(ms).toUTCString();
}

/** `*`, or a list of tags; a comma may be part of a tag. */
function listsTag(header: string, isTheOne: (tag: string) => boolean): boolean {
  if (header.trim() === "*") return true;
  return (header.match(/(W\/)?"[^"]*"/g) ?? []).some(isTheOne);
}

/** Null for what is no HTTP date: such a condition is ignored. */
function dateMs(text: string | null): number | null {
  if (text === null || !/^[A-Za-z]{3,9}, .* GMT$|^[A-Za-z]{3} [A-Za-z]{3} /.test(text.trim())) return null;
  // The oldest form names no zone, and is in GMT like the others.
  const zoned = text.trim().endsWith("GMT") ? text : `${text} GMT`;
  const ms = Date.parse(zoned);
  return Number.isNaN(ms) ? null : ms;
}

/** HTTP dates know no fractions of a second. */
function wholeSecond(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
