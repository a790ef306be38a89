/** JSON whose integers keep all their digits: those beyond 2^53 are read as bigint on request, and bigint can
 * be sent.
 */

/**
 * Stands in front of the digits while they pass through JSON as a string. No text of a request or an answer
 * has it.
 */
const MARK = "\u0000integer:";
const MARKED = /"\\u0000integer:(-?\d+)"/g;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/** As JSON.stringify; a bigint becomes a JSON number. */
export function toJson(value: unknown): string {
  let hasBigint = false;
  const text = JSON.stringify(value, (_key, item) => {
    if (typeof item !== "bigint") return item;
    hasBigint = true;
    return `${MARK}${item}`;
  });
  return hasBigint ? text.replace(MARKED, "$1") : text;
}

/** As JSON.parse; with `exact`, an integer that a number cannot hold becomes a bigint. */
export function fromJson(text: string, exact: boolean): unknown {
  if (!exact || !/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKEN, (token) => isTooLong(token) ? `"\\u0000integer:${token}"` : token);
  return JSON.parse(
    marked,
    (_key, item) =>
      typeof item === "string" && item.startsWith(MARK) ? BigInt(item.slice(MARK.length)) : item,
  );
}

function isTooLong(token: string): boolean {
  return /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
}
