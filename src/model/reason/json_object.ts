/** Finds the objects and lists in the text of a model, also where their JSON is only nearly right. Takes
 * linear time for every text.
 */

/** The deepest JSON that is accepted, because later code may recurse into it. */
export const MAX_JSON_DEPTH = 64;

export interface FoundValues {
  /**
   * The objects and lists that are part of no other one, in the order of the text; none of a text that is
   * cut, too deep or too broken.
   */
  readonly values: readonly unknown[];
  /**
   * Whether the text ends in the middle of an object or a list: then it is not known what the model wanted to
   * say last.
   */
  readonly isCut: boolean;
}

/**
 * Finds the values. Beside JSON it reads: line breaks and unescaped quotes in texts, other quotes, colons and
 * commas, keys without quotes, a comma too many or before a key too few, `True`, `False`, `None` and `NaN`,
 * comments, escapes around a whole object, and half surrogate pairs, which become U+FFFD. What is still
 * broken is skipped with all that was read in it, because a part of a broken object is no answer. See
 * docs/reason.md#model-answers.
 */
export function jsonValues(text: string): FoundValues {
  const whole = strictJson(text);
  if (whole !== undefined) return { values: [whole], isCut: false };
  if (!ESCAPED_OBJECT.test(text)) return valuesIn(text);
  return valuesIn(text.replace(/\\[nrt]/g, " ").replace(/\\(["\\/])/g, "$1"));
}

/** A text that was made JSON twice, without the quotes around it. */
const ESCAPED_OBJECT = /^[^{]*\{(?:\s|\\[nrt])*\\"/;

function valuesIn(text: string): FoundValues {
  const values: unknown[] = [];
  let stepsLeft = STEPS_PER_CHARACTER * text.length;
  let skippedTo = 0;
  for (let at = nextStart(text, 0); at >= 0; at = nextStart(text, Math.max(at + 1, skippedTo))) {
    const reading = new LooseJson(text, at);
    const end = reading.read();
    stepsLeft -= reading.furthest - at;
    if (end !== null) {
      const value = strictJson(reading.json);
      if (value !== undefined) values.push(value);
      skippedTo = end;
    } else if (reading.isCut || reading.isTooDeep) {
      return { values: [], isCut: reading.isCut };
    } else {
      skippedTo = reading.lastClosed;
    }
    // What follows is not known, and may be the answer.
    if (stepsLeft < 0) return { values: [], isCut: false };
  }
  return { values, isCut: false };
}

/**
 * The value of a text that is JSON as a whole; undefined where it is none, and where it is nested too deeply.
 */
export function strictJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(wholePairs(text.toWellFormed()));
    return jsonDepth(value) > MAX_JSON_DEPTH ? undefined : value;
  } catch {
    return undefined;
  }
}

/** The depth of the arrays and objects of a parsed value, found without recursion. */
export function jsonDepth(value: unknown): number {
  let level: unknown[] = [value];
  for (let depth = 0;; depth++) {
    const containers = level.filter((entry) => typeof entry === "object" && entry !== null);
    if (containers.length === 0) return depth;
    level = containers.flatMap((entry) => Object.values(entry as object));
  }
}

/**
 * The steps that are taken for each character. They bound the time for a text of which each brace begins
 * another long object that is broken.
 */
const STEPS_PER_CHARACTER = 8;

function nextStart(text: string, from: number): number {
  START.lastIndex = from;
  return START.exec(text)?.index ?? -1;
}

const START = /[{[]/g;

/**
 * The JSON without escapes of half a surrogate pair, which would be no text: neither a log nor a browser
 * could show it.
 */
function wholePairs(json: string): string {
  return json.replace(ESCAPES, (escape, half) => half === undefined ? escape : "\\ufffd");
}

const ESCAPES =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\[^]/g;

/** One attempt to read an object or a list that begins at a place of a text. */
class LooseJson {
  /** How far the attempt has looked. */
  furthest: number;
  /** The end of the last object or list that the attempt finished. */
  lastClosed: number;
  isCut = false;
  isTooDeep = false;
  readonly #text: string;
  readonly #json: string[] = [];
  readonly #open: ("{" | "[")[] = [];
  #at: number;

  constructor(text: string, start: number) {
    this.#text = text;
    this.#at = this.furthest = this.lastClosed = start;
  }

  /** What was read, as proper JSON. */
  get json(): string {
    return this.#json.join("");
  }

  /** The position after the value, or null. */
  read(): number | null {
    const isWhole = this.#values();
    this.furthest = Math.max(this.furthest, this.#at);
    return isWhole ? this.#at : null;
  }

  #values(): boolean {
    this.#push();
    for (let isFirst = true;;) {
      this.#skipBlank();
      if (this.#next === this.#closing) {
        this.#pop(); // of an empty one, or behind a comma too many
      } else {
        if (!isFirst) this.#json.push(",");
        if (this.#open.at(-1) === "{" && !this.#key()) return false;
        this.#skipBlank();
        if (this.#next === "{" || this.#next === "[") {
          this.isTooDeep = this.#open.length >= MAX_JSON_DEPTH;
          if (this.isTooDeep) return false;
          this.#push();
          isFirst = true;
          continue;
        }
        if (!this.#scalar()) return false;
      }
      // A value has ended: so do the containers that end with it, up to the next comma.
      for (;;) {
        if (this.#open.length === 0) return true;
        this.#skipBlank();
        if (this.#next !== this.#closing) break;
        this.#pop();
      }
      isFirst = false;
      if (this.#match(COMMA) === null && !this.#isBeforeKey()) return this.#failed();
    }
  }

  get #next(): string | undefined {
    return this.#text[this.#at];
  }

  get #closing(): string {
    return this.#open.at(-1) === "{" ? "}" : "]";
  }

  #push(): void {
    const opening = this.#next as "{" | "[";
    this.#open.push(opening);
    this.#json.push(opening);
    this.#at++;
  }

  #pop(): void {
    this.#json.push(this.#closing);
    this.#open.pop();
    this.lastClosed = ++this.#at;
  }

  /**
   * Notes whether the text is cut, which it is where it ends and more had to come; one brace at its end is no
   * cut answer. Always false.
   */
  #failed(): false {
    this.isCut ||= this.#json.length > 1 && this.#text.length - this.#at < WORD_MAX &&
      /^[\w.+-]*$/.test(this.#text.slice(this.#at));
    return false;
  }

  #key(): boolean {
    const word = this.#match(KEY);
    if (word !== null) this.#json.push(`"${word}"`);
    else if (!this.#string({ isKey: true })) return this.#failed();
    this.#skipBlank();
    if (this.#match(COLON) === null) return this.#failed();
    this.#json.push(":");
    return true;
  }

  /** Whether a comma is missing. */
  #isBeforeKey(): boolean {
    QUOTED_KEY.lastIndex = this.#at;
    return this.#open.at(-1) === "{" && QUOTED_KEY.test(this.#text);
  }

  #scalar(): boolean {
    if (this.#string({ isKey: false })) return true;
    if (this.isCut) return false;
    const word = this.#match(WORD)?.toLowerCase();
    const number = word === undefined ? this.#match(NUMBER) : null;
    if (word !== undefined) this.#json.push(NOTHING.has(word) ? "null" : word);
    else if (number !== null) this.#json.push(number.endsWith("%") ? `"${number}"` : numberJson(number));
    else return this.#failed();
    return true;
  }

  /** Reads a text. In a value, a quote ends it only where its container can go on behind it. */
  #string({ isKey }: { readonly isKey: boolean }): boolean {
    const text = this.#text;
    const closing = QUOTES.get(text[this.#at] ?? "");
    if (closing === undefined) return false;
    let value = "";
    let hasQuotes = false;
    for (let at = this.#at + 1; at < text.length;) {
      const unit = text[at]!;
      this.furthest = at;
      if (unit === "\\") {
        const [escape, said] = unescaped(text, at);
        value += said;
        at += escape;
      } else if (unit !== closing) {
        value += unit;
        at++;
      } else if (isKey || this.#endsAt(at)) {
        this.#json.push(JSON.stringify(value.toWellFormed()));
        this.#at = at + 1;
        return true;
      } else {
        hasQuotes = true;
        value += unit;
        at++;
      }
    }
    this.isCut = !hasQuotes && this.#json.length > 1;
    return false;
  }

  #endsAt(quote: number): boolean {
    BEHIND.lastIndex = quote + 1;
    return BEHIND.test(this.#text);
  }

  /** White space and comments. */
  #skipBlank(): void {
    for (;;) {
      this.#match(BLANK);
      const start = this.#match(COMMENT);
      if (start === null) return;
      const at = this.#text.indexOf(start === "/*" ? "*/" : "\n", this.#at);
      this.#at = at < 0 ? this.#text.length : start === "/*" ? at + 2 : at;
    }
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const matched = pattern.exec(this.#text)?.[0];
    if (matched === undefined) return null;
    this.#at += matched.length;
    return matched;
  }
}

/** Blanks, also those of no width, and line breaks that are escaped where no text is. */
const BLANK = /(?:[\s\u200b\u2060]|\\[nrt])+/y;
const COMMA = /[,，]/y;
const COLON = /[:：]/y;
const COMMENT = /\/\/|\/\*|#/y;
const KEY = /[A-Za-z_$][\w$]*(?=\s*[:：])/y;
const QUOTED_KEY = /(["'])[\w -]{1,64}\1\s*[:：]/y;
const WORD = /(?:true|false|null|none|undefined|nan|-?infinity)\b/iy;
/** What other languages write for no value, and numbers that JSON does not have. */
const NOTHING: ReadonlySet<string> = new Set(["none", "undefined", "nan", "infinity", "-infinity"]);
const NUMBER = /[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?:\s?%)?(?![\w.])/y;
/** The longest number or word that the end of the text may cut. */
const WORD_MAX = 32;
/**
 * What may stand behind a text: the end of its list or object, a comment, a comma with what may follow it, or
 * a key without a comma.
 */
const BEHIND =
  /(?:[\s\u200b\u2060]|\\[nrt])*(?:[\]}]|\/[/*]|#|$|[,，](?:[\s\u200b\u2060]|\\[nrt])*(?:$|["'`“”‘’{}[\].+/#-]|\d|(?:true|false|null|none|nan)\b|[A-Za-z_$][\w$]*\s*[:：])|(["'])[\w -]{1,64}\1\s*[:：])/iy;
/** The quotes that end a text, by the one with which it begins. */
const QUOTES: ReadonlyMap<string, string> = new Map([
  ...[['"', '"'], ["'", "'"], ["`", "`"]] as const,
  ...[["“", "”"], ["”", "”"], ["‘", "’"], ["’", "’"]] as const,
]);

function numberJson(number: string): string {
  return number.replace(/^\+/, "").replace(/^(-?)\./, "$10.").replace(/\.(?!\d)/, "");
}

/** The length of an escape, and what it stands for. One that JSON does not have stands for itself. */
function unescaped(text: string, at: number): [number, string] {
  const unit = text[at + 1] ?? "";
  const hex = unit === "u" ? /^[0-9a-fA-F]{4}$/.exec(text.slice(at + 2, at + 6)) : null;
  if (hex) return [6, String.fromCharCode(parseInt(hex[0], 16))];
  const known = ESCAPED.get(unit);
  return known === undefined ? [1, "\\"] : [2, known];
}

const ESCAPED: ReadonlyMap<string, string> = new Map([
  ...['"', "\\", "/", "'", "_", "“", "”"].map((unit) => [unit, unit] as const),
  ...[["b", "\b"], ["f", "\f"], ["n", "\n"], ["r", "\r"], ["t", "\t"], ["\n", "\n"]] as const,
]);
