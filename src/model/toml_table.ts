/** Reads a TOML file of settings field by field, and says of every fault where it is, without a value that
 * may be secret.
 */

import { parse, TomlError } from "smol-toml";
import { shownName } from "./shape_message.ts";

/** The error of a text that is no TOML. */
export class TomlFault extends Error {
  override readonly name = "TomlFault";
}

/**
 * Reads the tables of a file. Errors: `TomlFault`. The library quotes the lines around a fault, which may
 * contain a key: only the first line of its message is used.
 */
export function parsedToml(text: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const rule = error.message.split("\n")[0]!.replace(/^Invalid TOML document: /, "");
    throw new TomlFault(`line ${error.line}, column ${error.column}: not TOML: ${rule}`);
  }
}

export const TOKEN_RULE = "must be a key of printable ASCII characters without spaces";
/**
 * Whether a text has only characters that a header may contain, so that a bad key fails at the start and not
 * at every request.
 */
export const isToken = (key: string) => /^[\x21-\x7e]+$/.test(key);

interface FieldOptions {
  readonly isOptional?: boolean;
}

/**
 * A TOML table that is read field by field; `close` then reports the unknown fields. A fault shows the text
 * of the file, never the value of a variable.
 */
export class TomlTable {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #place: string;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #faults: string[];
  readonly #read = new Set<string>();

  constructor(
    fields: Readonly<Record<string, unknown>>,
    place: string,
    env: Readonly<Record<string, string | undefined>>,
    faults: string[],
  ) {
    this.#fields = fields;
    this.#place = place;
    this.#env = env;
    this.#faults = faults;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  /** Adds a fault. The message is the path of the field followed by `rule`. */
  fault(name: string, rule: string): void {
    this.#faults.push(`${this.#path(name)} ${rule}${this.#got(name)}`);
  }

  /** Like `fault`, without the value that was given, which may be secret or a part of a larger one. */
  say(name: string, rule: string): void {
    this.#faults.push(`${this.#path(name)} ${rule}`);
  }

  /** A string that is not blank, with its variables replaced. */
  text(name: string, { isOptional = false }: FieldOptions = {}): string | undefined {
    const value = this.#take(name);
    if (value === undefined && isOptional) return undefined;
    const text = typeof value === "string" ? this.#filledIn(value) : "";
    if (text.trim() !== "") return text;
    this.fault(name, "must be a text that is not blank");
    return undefined;
  }

  /** Like `text`, but a variable that is not set is a fault, and the value is never shown. */
  secret(name: string, { isOptional = false }: FieldOptions = {}): string | undefined {
    const value = this.#take(name);
    if (value === undefined && isOptional) return undefined;
    const text = typeof value === "string" ? this.#filledIn(value) : "";
    const unset = typeof value === "string" ? this.#unset(value) : [];
    if (isToken(text) && unset.length === 0) return text;
    this.#faults.push(
      `${this.#path(name)} ${TOKEN_RULE}, got ${
        unset.length > 0 ? `${unset.join(", ")}, not set` : value === undefined ? "none" : "another value"
      }`,
    );
    return undefined;
  }

  word<const T extends string>(
    name: string,
    words: readonly T[],
    { isOptional = false }: FieldOptions = {},
  ): T | undefined {
    const value = this.#take(name);
    if (value === undefined && isOptional) return undefined;
    const text = typeof value === "string" ? this.#filledIn(value) : undefined;
    const word = words.find((word) => word === text);
    if (word === undefined) this.fault(name, `must be one of ${words.join(", ")}`);
    return word;
  }

  /**
   * A path or a URL with its variables replaced, which is never shown. In the user name and password of a URL
   * the value of a variable is taken as it is: its special characters are encoded. A variable that is not set
   * is a fault.
   */
  location(name: string, rule = "must be a path or a URL"): string | undefined {
    const value = this.#take(name);
    const template = typeof value === "string" ? value.trim() : "";
    const unset = this.#unset(template);
    if (template !== "" && unset.length === 0) {
      const [, before = "", user = "", after = template] = USER_INFO.exec(template) ?? [];
      return `${before}${this.#filledIn(user, encodeURIComponent)}${this.#filledIn(after)}`;
    }
    const got = unset.length > 0 ? `${unset.join(", ")}, not set` : value === undefined ? "none" : "no text";
    this.#faults.push(`${this.#path(name)} ${rule}, got ${got}`);
    return undefined;
  }

  /** The text as it stands in the file, with variables by their names; empty for anything else. */
  written(name: string): string {
    const value = this.#take(name);
    return typeof value === "string" ? value.trim() : "";
  }

  /** A truth value; false where it is not given. */
  flag(name: string): boolean {
    const value = this.#take(name);
    if (value === undefined || typeof value === "boolean") return value ?? false;
    this.fault(name, "must be true or false");
    return false;
  }

  /** A list of texts, `["one", "two"]`, with at least one in it. */
  texts(name: string): readonly string[] | undefined {
    const value = this.#take(name);
    const isList = Array.isArray(value) && value.length > 0;
    if (isList && value.every((text) => typeof text === "string")) return value;
    const got = value === undefined ? ", got none" : "";
    this.say(name, `must be a list of texts that is not empty${got}`);
    return undefined;
  }

  /** The fields of `names` that are given, as they are in the file. */
  given(names: readonly string[]): Record<string, unknown> {
    const values = names.map((name) => [name, this.#take(name)] as const);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  }

  /** A whole number that a double holds exactly. */
  integer(name: string, { isOptional = false }: FieldOptions = {}): number | undefined {
    const value = this.#take(name);
    if (value === undefined && isOptional) return undefined;
    if (typeof value === "number" && Number.isSafeInteger(value)) return value;
    this.fault(name, "must be an integer");
    return undefined;
  }

  /** Any number, `inf` and `nan` among them. */
  number(name: string): number | undefined {
    const value = this.#take(name);
    if (typeof value === "number") return value;
    this.fault(name, "must be a number");
    return undefined;
  }

  table(name: string, { isOptional = true }: FieldOptions = {}): TomlTable | undefined {
    const value = this.#take(name);
    if (value === undefined && isOptional) return undefined;
    if (isTable(value)) return this.#inner(value, this.#path(name));
    this.fault(name, "must be a table");
    return undefined;
  }

  /**
   * The tables `[[name]]`; none when there is no such array. A fault names a table by its number, or by what
   * `keyOf` gives for it.
   */
  tables(
    name: string,
    keyOf: (fields: Readonly<Record<string, unknown>>) => string | null = () => null,
  ): readonly TomlTable[] {
    const value = this.#take(name);
    if (value === undefined) return [];
    if (Array.isArray(value) && value.every(isTable)) {
      return value.map((fields, index) =>
        this.#inner(fields, `${this.#path(name)}[${keyOf(fields) ?? index}]`)
      );
    }
    this.fault(name, `must be written as [[${name}]]`);
    return [];
  }

  /** Reports the unknown fields. Call it after the last field was read. */
  close(): void {
    for (const name of Object.keys(this.#fields).filter((name) => !this.#read.has(name))) {
      const known = [...this.#read].join(", ");
      this.#faults.push(`${this.#path(shownName(name))} is not a field, the fields here are ${known}`);
    }
  }

  #take(name: string): unknown {
    this.#read.add(name);
    return this.has(name) ? this.#fields[name] : undefined;
  }

  #inner(fields: Readonly<Record<string, unknown>>, place: string): TomlTable {
    return new TomlTable(fields, place, this.#env, this.#faults);
  }

  #path(name: string): string {
    return this.#place === "" ? name : `${this.#place}.${name}`;
  }

  /** The value as it is written in the file; one that may contain a password, or is long, is not shown. */
  #got(name: string): string {
    const value = this.has(name) ? this.#fields[name] : undefined;
    if (value === undefined) return ", got none";
    if (typeof value === "object") return `, got ${Array.isArray(value) ? "an array" : "a table or a date"}`;
    if (typeof value !== "string") return `, got ${value}`;
    if (value.includes("@") || value.length > SHOWN_CHARACTERS_MAX) return ", got a value that is not shown";
    const unset = this.#unset(value);
    return `, got ${JSON.stringify(value)}${
      unset.length > 0 ? `, where ${unset.join(", ")} is not set` : ""
    }`;
  }

  /** A text with its variables replaced, once: a value that looks like a variable is not replaced again. */
  #filledIn(text: string, encode: (value: string) => string = (value) => value): string {
    return text.replace(VARIABLES, (whole, name: string) => {
      const value = this.#valueOf(name);
      return value === undefined ? whole : encode(value);
    });
  }

  /**
   * The names of variables that are not set. `${NAME:-default}` and the like, which shells know, are none.
   * What stands in them may be secret.
   */
  #unset(text: string): string[] {
    const names = [...text.matchAll(VARIABLES)].map(([, name]) => name!);
    const unset = names.filter((name) => this.#valueOf(name) === undefined);
    return text.replaceAll(VARIABLES, "").includes("${")
      ? [...unset, "${…} with more than a name in it"]
      : unset;
  }

  #valueOf(name: string): string | undefined {
    return Object.hasOwn(this.#env, name) ? this.#env[name] : undefined;
  }
}

const VARIABLES = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
/** What stands before and at the user name and password of a URL, and the rest from the `@` on. */
const USER_INFO = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)(@.*)$/is;
const SHOWN_CHARACTERS_MAX = 120;

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
