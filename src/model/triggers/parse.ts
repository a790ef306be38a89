/** Reads the source of a trigger line by line and names the position of each fault. See
 * docs/triggers-policies.md#trigger-source.
 */

import { type FieldFault, refuse } from "../../contract/refusal.ts";
import { quoted } from "../field_rules.ts";
import { didYouMean } from "./near_miss.ts";
import {
  type Action,
  CAPTURE_KINDS,
  CHANNELS,
  type Comparison,
  COMPARISONS,
  type Signal,
} from "./program.ts";
import { parseSignal } from "./signal_text.ts";
import { IDENTIFIER, identifierFault } from "../trigger_identifier.ts";

/** A line and a column of the source, both from 1; a column counts UTF-16 units. */
export interface SourcePosition {
  readonly line: number;
  readonly column: number;
}

/** A value with its position in the source. */
export interface Located<T> {
  readonly value: T;
  readonly position: SourcePosition;
}

export interface Condition {
  readonly signal: Located<Signal>;
  readonly comparison: Located<Comparison>;
  readonly threshold: Located<number>;
  /** How many consecutive frames the condition must hold; undefined for one without `for`. */
  readonly frames: Located<number> | undefined;
}

/** A source that follows the grammar; its numbers may still be out of range. */
export interface ParsedTrigger {
  readonly programId: Located<string>;
  readonly version: Located<number>;
  readonly conditions: readonly Condition[];
  readonly edge: SourcePosition | undefined;
  readonly cooldownMs: Located<number> | undefined;
  /** The actions in source order; not empty. */
  readonly actions: readonly Located<Action>[];
}

/** Faults that are reported for one source. */
const FAULTS_MAX = 16;

/** Reads a source. Errors: 422 on `source`, one fault a line, each beginning `line N: column C: `. */
export function parseTrigger(source: string): ParsedTrigger {
  const reader = new SourceReader();
  const faults: FieldFault[] = [];
  for (const [index, text] of source.split(/\r?\n/).entries()) {
    try {
      reader.read(new Line(text, index + 1));
    } catch (error) {
      if (!(error instanceof SourceFault)) throw error;
      faults.push(error.field);
      if (faults.length === FAULTS_MAX) break;
    }
  }
  // A part may be missing because its line is faulty, so it is reported only when every line could be read.
  if (faults.length > 0) throw refuse.invalidFields(faults);
  try {
    return reader.finish();
  } catch (error) {
    throw error instanceof SourceFault ? refuse.invalidFields([error.field]) : error;
  }
}

/** A fault of the source as a refusal names it. */
export function sourceField({ line, column }: SourcePosition, message: string): FieldFault {
  return { field: "source", message: `line ${line}: column ${column}: ${message}` };
}

/** The error that ends the reading of one line. */
class SourceFault extends Error {
  readonly field: FieldFault;

  constructor(position: SourcePosition, message: string) {
    super(message);
    this.field = sourceField(position, message);
  }
}

const KEYWORDS = ["trigger", "when", "and", "edge", "cooldown", "emit", "capture", "notify", "end"] as const;
type Keyword = typeof KEYWORDS[number];

/** Reads the lines in order and collects their contents. */
class SourceReader {
  /**
   * The position of the header, even a faulty one: the lines after it are then not reported as out of order.
   */
  #header: SourcePosition | undefined;
  #programId: Located<string> | undefined;
  #version: Located<number> | undefined;
  readonly #conditions: Condition[] = [];
  #edge: SourcePosition | undefined;
  #cooldownMs: Located<number> | undefined;
  readonly #actions: Located<Action>[] = [];
  #emit: SourcePosition | undefined;
  #end: SourcePosition | undefined;
  #last: SourcePosition = { line: 1, column: 1 };

  read(line: Line): void {
    this.#last = line.position;
    if (line.isDone) return;
    const first = line.take("a keyword");
    if (this.#end) {
      throw new SourceFault(first.position, `nothing may follow end, which is line ${this.#end.line}`);
    }
    this.#statement(keyword(first), first.position, line);
    line.finish();
  }

  finish(): ParsedTrigger {
    const [programId, version] = [this.#programId, this.#version];
    const end = this.#end;
    if (!end) throw new SourceFault(this.#last, 'the last line must be "end"');
    if (!programId || !version) throw new SourceFault(end, 'there is no line "trigger ID version NUMBER"');
    if (this.#conditions.length === 0) {
      throw new SourceFault(end, 'there is no condition: "when SIGNAL >= NUMBER"');
    }
    if (!this.#emit) throw new SourceFault(end, 'there is no line "emit EVENT_TYPE"');
    return {
      programId,
      version,
      conditions: this.#conditions,
      edge: this.#edge,
      cooldownMs: this.#cooldownMs,
      actions: this.#actions,
    };
  }

  #statement(word: Keyword, position: SourcePosition, line: Line): void {
    switch (word) {
      case "trigger":
        return this.#takeHeader(position, line);
      case "when":
      case "and":
        return this.#takeCondition(position, line);
      case "edge":
        line.takeWord("rising");
        this.#edge ??= position;
        return;
      case "cooldown":
        this.#cooldownMs = line.takeDuration();
        return;
      case "emit":
        if (this.#emit) {
          throw new SourceFault(
            position,
            `a trigger has exactly one emit, and line ${this.#emit.line} is one`,
          );
        }
        this.#emit = position;
        return this.#addAction(
          { op: "emit", event_type: line.takeIdentifier("an event type").value },
          position,
        );
      case "capture":
        return this.#takeCapture(position, line);
      case "notify": {
        const channel = line.takeOneOf("a channel", CHANNELS);
        return this.#addAction({ op: "notify", channel: channel.value }, position);
      }
      case "end":
        line.finish();
        this.#end = position;
    }
  }

  #takeHeader(position: SourcePosition, line: Line): void {
    if (this.#header) {
      throw new SourceFault(
        position,
        `a source has exactly one header, and line ${this.#header.line} is one`,
      );
    }
    this.#header = position;
    this.#programId = line.takeIdentifier("a program id");
    line.takeWord("version");
    this.#version = line.takeWhole("a version");
  }

  #takeCondition(position: SourcePosition, line: Line): void {
    if (!this.#header) {
      throw new SourceFault(position, 'a condition needs the header before it: "trigger ID version NUMBER"');
    }
    const signal = line.takeSignal();
    const comparison = line.takeComparison();
    const threshold = line.takeNumber();
    let frames: Located<number> | undefined;
    if (!line.isDone) {
      line.takeWord("for");
      frames = line.takeWhole("a number of frames");
      line.takeWord("frames");
    }
    this.#conditions.push({ signal, comparison, threshold, frames });
  }

  #takeCapture(position: SourcePosition, line: Line): void {
    const kind = line.takeOneOf("what to capture", CAPTURE_KINDS).value;
    if (kind === "keyframe") {
      return this.#addAction({ op: "capture", kind, before_ms: 0, after_ms: 0 }, position);
    }
    const before = line.takeDuration("a duration before");
    const after = line.takeDuration("a duration after");
    this.#addAction({ op: "capture", kind, before_ms: before.value, after_ms: after.value }, before.position);
  }

  #addAction(value: Action, position: SourcePosition): void {
    this.#actions.push({ value, position });
  }
}

function keyword({ value, position }: Located<string>): Keyword {
  const known = KEYWORDS.find((word) => word === value);
  if (!known) {
    throw new SourceFault(position, `unknown keyword ${quoted(value)}${didYouMean(value, KEYWORDS)}`);
  }
  return known;
}

/** Comparisons of other languages, with the right one for the hint. */
const OTHER_COMPARISONS: Readonly<Record<string, string>> = {
  "=": "==",
  "===": "==",
  "=>": ">=",
  "=<": "<=",
};

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** The fields of one line without its comment, taken from left to right. */
class Line {
  readonly position: SourcePosition;
  readonly #fields: readonly Located<string>[];
  #next = 0;

  constructor(text: string, number: number) {
    const code = text.replace(/#.*/s, "").trimEnd();
    // The end of the line, where a missing field would be.
    this.position = { line: number, column: code.length + 1 };
    this.#fields = Array.from(code.matchAll(/\S+/g), ({ 0: value, index }) => ({
      value,
      position: { line: number, column: index + 1 },
    }));
  }

  get isDone(): boolean {
    return this.#next === this.#fields.length;
  }

  /** The next field; `what` names the expected one in the error message. */
  take(what: string): Located<string> {
    if (this.isDone) throw new SourceFault(this.position, `the line ends where ${what} is expected`);
    return this.#fields[this.#next++]!;
  }

  /** Refuses a line with fields that were not read. */
  finish(): void {
    if (this.isDone) return;
    const { value, position } = this.#fields[this.#next]!;
    throw new SourceFault(position, `nothing is expected here: got ${quoted(value)}`);
  }

  takeWord(word: string): void {
    this.takeOneOf(`"${word}"`, [word]);
  }

  takeOneOf<const Word extends string>(what: string, words: readonly Word[]): Located<Word> {
    const { value, position } = this.take(what);
    const word = words.find((known) => known === value);
    if (word === undefined) {
      const expected = words.map((known) => `"${known}"`).join(" or ");
      throw new SourceFault(
        position,
        `expected ${expected}: got ${quoted(value)}${didYouMean(value, words)}`,
      );
    }
    return { value: word, position };
  }

  takeIdentifier(what: string): Located<string> {
    const field = this.take(what);
    if (!IDENTIFIER.test(field.value)) {
      throw new SourceFault(field.position, `${what} ${identifierFault(field.value)}`);
    }
    return field;
  }

  takeSignal(): Located<Signal> {
    const { value: text, position } = this.take("a signal");
    const glued = /[<>=]/.exec(text);
    if (glued && glued.index > 0) {
      const spaced = text.replace(/\s*([<>=]+)\s*/, " $1 ").trim();
      throw new SourceFault(position, `fields are separated by blanks: write ${quoted(spaced)}`);
    }
    const value = parseSignal(text);
    if (typeof value === "string") throw new SourceFault(position, value);
    return { value, position };
  }

  takeComparison(): Located<Comparison> {
    const { value: text, position } = this.take("a comparison");
    if (Object.hasOwn(COMPARISONS, text)) {
      return { value: COMPARISONS[text as keyof typeof COMPARISONS], position };
    }
    const other = Object.hasOwn(OTHER_COMPARISONS, text) ? OTHER_COMPARISONS[text] : undefined;
    const hint = other === undefined ? "" : `, did you mean "${other}"?`;
    throw new SourceFault(position, `expected one of > >= < <= ==: got ${quoted(text)}${hint}`);
  }

  /** Takes a decimal number with an optional sign and exponent. */
  takeNumber(): Located<number> {
    const { value: text, position } = this.take("a number");
    if (!NUMBER.test(text)) throw new SourceFault(position, `expected a number: got ${quoted(text)}`);
    // Adding 0 turns a negative zero, which JSON cannot represent, into zero.
    return { value: Number(text) + 0, position };
  }

  takeWhole(what: string): Located<number> {
    const { value: text, position } = this.take(what);
    return { value: whole(text, text, what, position), position };
  }

  /** Takes milliseconds, with the unit or without. */
  takeDuration(what = "a duration"): Located<number> {
    const { value: text, position } = this.take(what);
    if (text.endsWith("ms") || /^\d+$/.test(text)) {
      const value = whole(text.replace(/ms$/, ""), text, what, position);
      const following = this.#fields[this.#next];
      if (following?.value === "ms") {
        throw new SourceFault(following.position, `the unit follows without a blank: write "${value}ms"`);
      }
      return { value, position };
    }
    const seconds = /^(\d+)s$/.exec(text);
    const hint = seconds ? `, did you mean "${seconds[1]}000ms"?` : "";
    throw new SourceFault(
      position,
      `expected ${what} in milliseconds such as "4000ms": got ${quoted(text)}${hint}`,
    );
  }
}

/** Reads a whole number: digits only, and none that JSON cannot represent exactly. */
function whole(digits: string, text: string, what: string, position: SourcePosition): number {
  if (!/^\d+$/.test(digits)) {
    throw new SourceFault(position, `expected ${what}, a whole number: got ${quoted(text)}`);
  }
  const value = Number(digits);
  if (!Number.isSafeInteger(value)) {
    throw new SourceFault(
      position,
      `${what} must be at most ${Number.MAX_SAFE_INTEGER}: got ${quoted(text)}`,
    );
  }
  return value;
}
