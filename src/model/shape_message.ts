/** The messages of schema faults in plain words: "must be a text, got a number". */

import type { z } from "zod";

type SchemaIssue = Parameters<z.core.$ZodErrorMap>[0];

/**
 * The message of one fault, for `schema.safeParse(value, { error: shapeMessage })`. A schema's own message
 * goes before it.
 * `undefined` leaves the fault to the message of the library.
 */
export function shapeMessage(issue: SchemaIssue): string | undefined {
  const { input } = issue;
  if (input === undefined && (issue.code === "invalid_type" || issue.code === "invalid_value")) {
    return "is required";
  }
  switch (issue.code) {
    case "invalid_type":
      return `must be ${TYPES[issue.expected] ?? `of the type ${issue.expected}`}, got ${typeOf(input)}`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "too_small":
      return `must ${sizeOf(issue.origin)} at least ${issue.minimum}`;
    case "too_big":
      return `must ${sizeOf(issue.origin)} at most ${issue.maximum}`;
    case "unrecognized_keys":
      return `has the unknown field ${shownName(issue.keys[0]!)}`;
    default:
      return undefined;
  }
}

/** The name of a field that a caller has made up, in one line. */
export function shownName(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
}

const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "an integer",
  bigint: "an integer",
  boolean: "true or false",
  null: "null",
  array: "a list",
  tuple: "a list",
  object: "an object",
  record: "an object",
};

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "a text";
    case "number":
      if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : "inf";
      return Number.isInteger(value) ? "a number" : "a number with a fraction";
    case "bigint":
      return "an integer of more than 53 bits";
    case "boolean":
      return String(value);
    default:
      return "an object";
  }
}

/** The verb phrase for a bound on the size of a value. */
function sizeOf(origin: string): string {
  return origin === "string" || origin === "array" ? "have a length of" : "be";
}
