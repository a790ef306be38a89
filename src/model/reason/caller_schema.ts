/** A JSON Schema of a caller as it came: plain JSON of bounded size and depth. What is made of it is made
 * where it can be ended.
 */

import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Answered } from "./answer.ts";
import { MAX_JSON_DEPTH } from "./json_object.ts";

/** A schema that compiled. */
export interface OutputSchema {
  /** The schema as the caller gave it; it is sent to the backend. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** Reads the answer of a model, as far as it fits the schema. Rejects with the reason of the signal. */
  read(answer: string, signal: AbortSignal): Promise<Answered<object>>;
}

/** A schema, or `fault`, which says why there is none. */
export type CheckedSchema =
  | { readonly ok: true; readonly outputSchema: OutputSchema }
  | { readonly ok: false; readonly fault: string };

/** Why a text is no schema of which a check can be made, in one short line. */
export class SchemaFault extends Error {}

/**
 * Finds the key `$async`, with which ajv makes a check return a promise, which would count as a success. JSON
 * Schema itself has only one key that starts with `$a`, which is `$anchor`.
 */
const ASYNC_KEY = /^\$a(?!nchor$)/;

/** A copy of the schema that is plain JSON within the limits. */
export function plainSchema(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SchemaFault("must be a JSON Schema object");
  }
  const schema = new PlainCopy().of(value, 1) as Record<string, unknown>;
  const bytes = utf8Length(JSON.stringify(schema));
  const maximum = LIMITS.reason.outputSchemaBytesMax;
  if (bytes > maximum) throw new SchemaFault(`must be at most ${maximum} bytes: got ${bytes}`);
  return schema;
}

class PlainCopy {
  #containers = 0;

  of(value: unknown, depth: number): unknown {
    if (typeof value === "bigint") return Number(value);
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_JSON_DEPTH) throw new SchemaFault(`must nest at most ${MAX_JSON_DEPTH} levels deep`);
    const maximum = LIMITS.reason.outputSchemaContainersMax;
    if (++this.#containers > maximum) {
      throw new SchemaFault(`must have at most ${maximum} arrays and objects`);
    }
    if (Array.isArray(value)) return value.map((item) => this.of(item, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        if (ASYNC_KEY.test(key) && item === true) throw new SchemaFault(`must not have the key ${key}`);
        return [key, this.of(item, depth + 1)];
      }),
    );
  }
}
