/** JSON whose numbers keep all their digits, even where a double would lose some. */

/** JSON.stringify writes the text of a value that `JSON.rawJSON` made unchanged. */
declare global {
  interface JSON {
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/** The JSON with each number as an object that holds its text. The result is for JSON.stringify only. */
export function parseWithRawNumbers(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined ? JSON.rawJSON(source) : value;
  });
}

/** A number that is written with exactly these digits. The result is for JSON.stringify only. */
export function exactNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

/**
 * Finds an integer of 16 digits or more, which may exceed 2^53, where a double loses digits. Digits after a
 * decimal point are ignored: scores have many of them, and a reviver for every number makes parsing ten times
 * slower.
 */
const LONG_INTEGER = /(?:^|[-:,[\s])\d{16}/;

/**
 * The most digits of an integer. No field takes a longer one, and the time to make a bigint grows faster than
 * its digits.
 */
const DIGITS_MAX = 40;

/** Whether an integer of `text` may be longer than a double can hold. */
export function hasLongInteger(text: string): boolean {
  return LONG_INTEGER.test(text);
}

/**
 * Parses like JSON.parse, except that an integer which a double cannot hold becomes a bigint. A reviver would
 * take ten times as long, so long integers are parsed as marked texts: `[18446744073709551615]` as
 * `["\\u0000integer 18446744073709551615"]`. A caller who sends such a text gets the integer that it names.
 */
export function parseExactJson(text: string): unknown {
  if (!hasLongInteger(text)) return JSON.parse(text);
  let value;
  try {
    value = JSON.parse(withMarkedIntegers(text));
  } catch {
    value = JSON.parse(text); // throws, with a message about the text as it was sent
  }
  return unmarked(value);
}

const MARK = "\u0000integer ";
const MARK_IN_JSON = JSON.stringify(MARK).slice(0, -1);
const DIGITS_MIN = 16;

const [QUOTE, BACKSLASH, POINT, PLUS, MINUS, ZERO, NINE] = [0x22, 0x5c, 0x2e, 0x2b, 0x2d, 0x30, 0x39];

/**
 * The text with its long integers marked, only where a value may stand and its syntax is right; everything
 * else is left to the parser.
 */
function withMarkedIntegers(text: string): string {
  let marked = "";
  let taken = 0;
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    if (!isDigit(code)) {
      at++;
      continue;
    }
    const end = endOfDigits(text, at);
    const past = endOfFraction(text, end);
    const digits = end - at;
    if (past === end && digits >= DIGITS_MIN && digits <= DIGITS_MAX && code !== ZERO && !isKey(text, end)) {
      const start = text.charCodeAt(at - 1) === MINUS ? at - 1 : at;
      const number = text.slice(start, end);
      if (!Number.isSafeInteger(Number(number))) {
        marked += `${text.slice(taken, start)}${MARK_IN_JSON}${number}"`;
        taken = end;
      }
    }
    at = past;
  }
  return marked + text.slice(taken);
}

/** The place behind the closing quote of the text that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at + 1;
  }
  return text.length;
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at++;
  return at;
}

/** The place behind the point and the exponent that may follow the digits before `start`. */
function endOfFraction(text: string, start: number): number {
  const point = text.charCodeAt(start) === POINT ? endOfDigits(text, start + 1) : start;
  if ((text.charCodeAt(point) | 0x20) !== 0x65) return point;
  const sign = text.charCodeAt(point + 1);
  return endOfDigits(text, sign === PLUS || sign === MINUS ? point + 2 : point + 1);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Whether an integer stands in the place of a key: that is a fault, which the parser must see. */
function isKey(text: string, end: number): boolean {
  let at = end;
  while (" \t\r\n".includes(text.charAt(at)) && at < text.length) at++;
  return text.charAt(at) === ":";
}

function unmarked(value: unknown): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? integerOf(value) : value;
  if (typeof value !== "object" || value === null) return value;
  const parts = value as Record<string, unknown>;
  for (const key in parts) {
    const part = parts[key];
    const exact = unmarked(part);
    if (exact !== part) parts[key] = exact;
  }
  return value;
}

function integerOf(text: string): bigint | string {
  const digits = text.slice(MARK.length);
  return /^-?[1-9]\d{15,39}$/.test(digits) ? BigInt(digits) : text;
}
