/** The `Range` header: which bytes of a file are asked for. RFC 9110 14, decision D5. */

/** Both ends belong to the range. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * What `header` asks of a file of `sizeBytes`: one range that is cut to the file, `unsatisfiable` (416) when no byte of
 * the file is in it, or `whole`. Whole is also the answer to what is malformed, of another unit, or more than one
 * range: a server may ignore those, and many small ranges are a way to make it work hard.
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

/** Of whole numbers with any count of digits: doubles would take 2^53 and 2^53 + 1 for the same. */
function isBelow(left: string, right: string): boolean {
  return BigInt(left) < BigInt(right);
}
