/** The `Range` header: the requested bytes of a file, by RFC 9110 section 14. See
 * docs/api/files.md#ranges-and-conditions.
 */

/** A range of bytes; both ends belong to it. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * The range that `header` requests of a file of `sizeBytes`, cut to the file; `unsatisfiable` (416) when no
 * byte of the file is in it, or `whole`. A header that is malformed, has another unit or more than one range
 * also gives `whole`: a server may ignore those, and many small ranges would be expensive.
 *
 *     requestedRange("bytes=-500", 1200)  // { first: 700, last: 1199 }
 */
export function requestedRange(
  header: string | null,
  sizeBytes: number,
): ByteRange | "whole" | "unsatisfiable" {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? "") ?? [];
  if (first === undefined || last === undefined || first + last === "") return "whole";
  if (first === "") {
    const suffix = Math.min(Number(last), sizeBytes);
    return suffix === 0 ? "unsatisfiable" : { first: sizeBytes - suffix, last: sizeBytes - 1 };
  }
  if (last !== "" && isBelow(last, first)) return "whole";
  if (Number(first) >= sizeBytes) return "unsatisfiable";
  return { first: Number(first), last: last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}

/** Compares integers of any length as texts: as doubles, 2^53 and 2^53 + 1 would be equal. */
function isBelow(left: string, right: string): boolean {
  return BigInt(left) < BigInt(right);
}
