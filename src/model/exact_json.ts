/** JSON whose numbers keep all their digits, even where a double would lose some. */

/** JSON.stringify writes the text of a value that `JSON.rawJSON` made unchanged. */
declare global {
  interface JSON {
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/** The result is for JSON.stringify only: each number in it is an object that holds its text. */
export function parseWithRawNumbers(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined ? JSON.rawJSON(source) : value;
  });
}

/** For JSON.stringify only: a number that is written with exactly these digits. */
export function exactNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

/**
 * An integer of 16 digits or more may exceed 2^53, where a double loses digits. Digits after a decimal point are ignored:
 * scores have many of them, and a reviver for every number makes parsing ten times slower.
 */
const LONG_INTEGER = /(?:^|[-:,[\s])\d{16}/;

/** No field takes a longer integer, and the time to make a bigint grows faster than its digits. */
const DIGITS_MAX = 40;

/** Whether an integer of `text` may be longer than a double can hold. */
export function hasLongInteger(text: string): boolean {
  return LONG_INTEGER.test(text);
}

/** JSON.parse, except that an integer which a double cannot hold becomes a bigint. */
export function parseExactJson(text: string): unknown {
  if (!hasLongInteger(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const source = context?.source;
    const isInexact = typeof value === "number" && source !== undefined && !Number.isSafeInteger(value) &&
      source.length <= DIGITS_MAX && /^-?\d+$/.test(source);
    return isInexact ? BigInt(source) : value;
  });
}
