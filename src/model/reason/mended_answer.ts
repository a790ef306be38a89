/** What small models write otherwise than they were asked to, read as it was meant and without a guess. See
 * docs/reason.md#model-answers.
 */

import { normalForm } from "../../base/normal_form.ts";

/**
 * The value as the schema has it, where it says the same in other forms: names in another case, numbers and
 * truth values in quotes, choices in another case, one value for a list, and null for nothing.
 */
export function mendedBy(schema: unknown, value: unknown, root: unknown = schema): unknown {
  const { known, mayBeNull } = plainSchema(schema, root);
  if (known === null || (value === null && mayBeNull)) return value;
  const types = [known.type].flat();
  if (Array.isArray(known.enum)) return choiceFor(known.enum, value);
  if (types.includes("number") || types.includes("integer")) {
    return types.includes("string")
      ? value
      : known.maximum === 1 && known.minimum === 0
      ? unitOf(value) ?? value
      : numberOf(value) ?? value;
  }
  if (types.includes("boolean") && typeof value === "string" && /^\s*(?:true|false)\s*$/i.test(value)) {
    return value.trim().toLowerCase() === "true";
  }
  if (Array.isArray(value)) return value.map((each) => mendedBy(known.items, each, root));
  const { properties, required } = known;
  if (!isObject(value) || !isObject(properties)) return value;
  const needed = Array.isArray(required) ? required : [];
  const entries = Object.entries(renamed(value, namesOf(properties))).flatMap(([name, each]) => {
    if (!Object.hasOwn(properties, name)) return [[name, each]];
    const mended = mendedBy(properties[name], listFor(properties[name], each, root), root);
    return mended === null && !needed.includes(name) && !plainSchema(properties[name], root).mayBeNull
      ? []
      : [[name, mended]];
  });
  return Object.fromEntries(entries);
}

/** The object with these names where it has them in another case or form: `ObjectLabel`, `object-label`. */
export function withNames(
  value: Record<string, unknown>,
  names: readonly string[],
): Record<string, unknown> {
  return renamed(value, byPlainName(names));
}

function renamed(
  value: Record<string, unknown>,
  wanted: ReadonlyMap<string, string>,
): Record<string, unknown> {
  const entries = Object.entries(value).map(([name, each]) => {
    const known = wanted.get(plainName(name)) ?? name;
    return [Object.hasOwn(value, known) ? name : known, each];
  });
  return Object.fromEntries(entries);
}

/** Reads a number, also in quotes; null for anything else. */
export function numberOf(value: unknown): number | null {
  const number = typeof value === "string" && NUMBER_TEXT.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

const NUMBER_TEXT = /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/;

/**
 * Reads a part of 1: a number from 0 to 1, one of another (`9/10`), or a percentage: `90%`, or a number over
 * 10 to 100. A number from 1 to 10 may be a part of ten, so it is none. A text may have a comma in place of
 * the point.
 */
export function unitOf(value: unknown): number | null {
  const text = typeof value === "string"
    ? normalForm(value, "NFKC").trim().replace(/^(\d*),(?=\d)/, "$1.")
    : "";
  const [, part, whole] = /^([\d.]+)\s*\/\s*([\d.]+)$/.exec(text) ?? [];
  const percent = numberOf(/^(.*?)\s*(?:%|per ?cent)$/i.exec(text)?.[1]);
  const ratio = percent !== null
    ? percent / 100
    : part !== undefined && Number(whole) > 0
    ? Number(part) / Number(whole)
    : null;
  const number = ratio ?? numberOf(typeof value === "string" ? text : value);
  if (number === null || !(number >= 0 && number <= 100)) return null;
  if (number <= 1) return number;
  return ratio === null && number > 10 ? number / 100 : null;
}

/**
 * Reads milliseconds: a number, or a time as `0:12`, `1:02:03.5`, `12.5 s` or `800ms`; null for anything
 * else.
 */
export function offsetMsOf(value: unknown): number | null {
  const number = numberOf(value);
  if (number !== null || typeof value !== "string") return number;
  const [, amount, unit] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|milliseconds?)\s*$/i.exec(value) ?? [];
  if (amount !== undefined) return Number(amount) * (/^m/i.test(unit!) ? 1 : 1000);
  const clock = /^\s*(?:(\d{1,3}):)?(\d{1,3}):(\d{1,2}(?:[.,]\d{1,9})?)\s*$/.exec(value);
  if (clock === null) return null;
  const [, hours = "0", minutes, seconds] = clock;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds!.replace(",", "."))) * 1000;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The schema behind references and behind choices between a schema and null: the one that says of which type
 * a value is.
 */
function plainSchema(
  schema: unknown,
  root: unknown,
): { readonly known: Record<string, unknown> | null; readonly mayBeNull: boolean } {
  let known = isObject(schema) ? schema : null;
  let mayBeNull = false;
  for (let hop = 0; known !== null && hop < HOPS_MAX; hop++) {
    if ([known.type].flat().includes("null")) mayBeNull = true;
    const choices: unknown[] = [known.anyOf ?? known.oneOf ?? []].flat();
    const [only, ...others] = choices.filter((each) => !isObject(each) || each.type !== "null");
    mayBeNull ||= choices.some((each) => isObject(each) && each.type === "null");
    const next = typeof known.$ref === "string"
      ? referenced(known.$ref, root)
      : others.length === 0
      ? only
      : undefined;
    if (next === undefined) return { known, mayBeNull };
    known = isObject(next) ? next : null;
  }
  return { known, mayBeNull };
}

/** The longest chain of references; a longer one leads to itself. */
const HOPS_MAX = 8;

function referenced(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#/")) return null;
  return reference.slice(2).split("/").reduce<unknown>((at, part) => {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    return isObject(at) && Object.hasOwn(at, name) ? at[name] : null;
  }, root);
}

function listFor(schema: unknown, value: unknown, root: unknown): unknown {
  const isList = plainSchema(schema, root).known?.type === "array";
  return isList && value !== null && value !== undefined && !Array.isArray(value) ? [value] : value;
}

/** The choice that a text is, also in another case or form; other values as they are. */
function choiceFor(choices: readonly unknown[], value: unknown): unknown {
  if (typeof value !== "string") return value;
  const texts = known(CHOICES, choices, () => choices.filter((choice) => typeof choice === "string"));
  return texts.get(value) ?? texts.get(plainName(value)) ?? value;
}

function namesOf(properties: Record<string, unknown>): ReadonlyMap<string, string> {
  return known(NAMES, properties, () => Object.keys(properties));
}

/** Choices and names of parts of schemas, kept as an answer may have thousands of values for each. */
const CHOICES = new WeakMap<object, ReadonlyMap<string, string>>();
const NAMES = new WeakMap<object, ReadonlyMap<string, string>>();

function known(
  kept: WeakMap<object, ReadonlyMap<string, string>>,
  part: object,
  texts: () => readonly string[],
): ReadonlyMap<string, string> {
  let found = kept.get(part);
  if (found === undefined) kept.set(part, found = byPlainName(texts()));
  return found;
}

/** Each text under itself, and under its plain name where no other text is that. */
function byPlainName(texts: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const text of texts.toReversed()) found.set(plainName(text), text);
  for (const text of texts) found.set(text, text);
  return found;
}

function plainName(name: string): string {
  return name.trim().replace(/([a-z\d])(?=[A-Z])/g, "$1_").toLowerCase().replace(/[\s-]+/g, "_");
}
