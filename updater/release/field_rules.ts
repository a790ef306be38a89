/** Rules of fields of manifests and reports: each fault names the field, the rule and what was there. */

import { z } from "zod";
import { CliError } from "../../cli/failure.ts";

const SHOWN_CHARACTERS = 80;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** A field whose value passes `test`; `rule` completes "must be …". */
export function field<T>(rule: string, test: (value: unknown) => boolean): z.ZodType<T> {
  return z.custom<T>(test, {
    error: ({ input }) => input === undefined ? "is missing" : `must be ${rule}, got ${shown(input)}`,
  });
}

export function textField(rule: string, pattern: RegExp): z.ZodType<string> {
  return field<string>(rule, (value) => typeof value === "string" && pattern.test(value));
}

export function integerField(minimum: number): z.ZodType<number> {
  return field<number>(
    `an integer from ${minimum} to ${Number.MAX_SAFE_INTEGER}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= minimum,
  );
}

export function numberField(
  rule: string,
  minimum: number,
  maximum = Number.MAX_SAFE_INTEGER,
): z.ZodType<number> {
  return field<number>(
    rule,
    (value) => typeof value === "number" && value >= minimum && value <= maximum,
  );
}

/** The name of a release or of a group of devices: it is an argument of the hook and part of a file name. */
export const nameField: z.ZodType<string> = textField(
  "a name of 1 to 128 letters, digits, `.`, `_` and `-` that begins with a letter or a digit",
  NAME,
);

/** The name of a model, such as `detector` or `Qwen/Qwen3-VL-4B-Instruct`. */
export const modelField: z.ZodType<string> = textField(
  "a name of 1 to 256 letters, digits, `.`, `_`, `-`, `:` and `/` that begins with a letter or a digit",
  /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}$/,
);

/** The value of a JSON text that fits `schema`; `what` names the text in messages. */
export function readFields<T>(what: string, text: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CliError("invalid", `${what} is not JSON: ${(error as Error).message}`);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const faults = result.error.issues.flatMap((issue) => {
    const at = issue.path.map(String);
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => `${[...at, key].join(".")}: is not a field of it`);
    }
    const said = issue.code === "invalid_type" ? "must be an object" : issue.message;
    return [at.length === 0 ? said : `${at.join(".")}: ${said}`];
  });
  throw new CliError("invalid", `${what} is refused: ${faults.join("; ")}`);
}

/** A value as a message has it. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
