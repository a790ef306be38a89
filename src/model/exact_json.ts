/** JSON that passes through us with every number exactly as it was written, whatever a double would make of it. */

/** What `JSON.rawJSON` makes: JSON.stringify writes the text as it is. */
declare global {
  interface JSON {
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/** For JSON.stringify only: each number of the result is an object that stands for its text. */
export function parseWithRawNumbers(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined ? JSON.rawJSON(source) : value;
  });
}

/**
 * A whole number of 16 digits or more may be past 2^53, where a double loses digits. Digits behind a point are not
 * looked at: scores have many, and asking about every number costs ten times what reading them does.
 */
const LONG_INTEGER = /(?:^|[-:,[\s])\d{16}/;

/** JSON.parse, except that a whole number which a double cannot hold becomes a bigint. */
export function parseExactJson(text: string): unknown {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const source = context?.source;
    const isInexact = typeof value === "number" && source !== undefined && !Number.isSafeInteger(value) &&
      /^-?\d+$/.test(source);
    return isInexact ? BigInt(source) : value;
  });
}
