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
