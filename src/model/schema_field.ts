/** A JSON Schema in a request field: an object of bounded size and depth, kept as plain JSON. */

import { utf8Length } from "../base/bytes.ts";
import type { FieldRules } from "./field_rules.ts";
import { LIMITS } from "../contract/limits.ts";
import { jsonDepth, MAX_JSON_DEPTH } from "./reason/json_object.ts";

/** The schema without bigints; undefined, with a fault on `field`, when it is no object or too deep. */
export function checkedSchema(
  field: string,
  schema: unknown,
  rules: FieldRules,
): Record<string, unknown> | undefined {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    rules.fault(field, "must be a JSON object");
    return undefined;
  }
  if (jsonDepth(schema) > MAX_JSON_DEPTH) {
    rules.fault(field, `must be nested at most ${MAX_JSON_DEPTH} levels deep`);
    return undefined;
  }
  const plain = withDoubles(schema) as Record<string, unknown>;
  const bytes = utf8Length(JSON.stringify(plain));
  const maximum = LIMITS.policy.outputSchemaBytesMax;
  if (bytes > maximum) rules.fault(field, `must be at most ${maximum} bytes: got ${bytes}`);
  return plain;
}

/**
 * The parser of request bodies makes a bigint of an integer beyond 2^53, and JSON.stringify refuses bigints. In a schema
 * such an integer is a bound that no answer of a model reaches, so a double is exact enough.
 */
function withDoubles(part: unknown): unknown {
  if (typeof part === "bigint") return Number(part);
  if (Array.isArray(part)) return part.map(withDoubles);
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, withDoubles(inner)]));
}
