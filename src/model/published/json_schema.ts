/** How a zod shape becomes a JSON Schema, draft 2020-12. */

import * as z from "zod";
import { itemsOf } from "../schemas/bounded_list.ts";
import { U64_END } from "../events/payload_shapes.ts";
import { exactNumber } from "../exact_json.ts";

/**
 * The options of a conversion; `schemaOf` makes the schema of the items of a bounded list, which zod does not
 * see.
 */
const optionsWith = (schemaOf: (shape: z.ZodType) => JsonSchema): z.core.ToJSONSchemaParams => ({
  target: "draft-2020-12",
  io: "input",
  // The only custom type, u64, has its schema as metadata; a test finds any other one without a schema.
  unrepresentable: "any",
  override: ({ zodSchema, jsonSchema }) => {
    // The parser makes a bigint of an integer beyond 2^53; on the wire it is an integer like any other.
    if (zodSchema._zod.def.type === "bigint") jsonSchema.type = "integer";
    const list = itemsOf(zodSchema);
    if (list) jsonSchema.items = schemaOf(list.item);
    if (list && Number.isFinite(list.maximum)) jsonSchema.maxItems = list.maximum;
    if (list && list.minimum > 0) jsonSchema.minItems = list.minimum;
    // An empty schema allows everything, like no schema.
    if (isEmptyObject(jsonSchema.additionalProperties)) delete jsonSchema.additionalProperties;
    delete jsonSchema.propertyNames;
    // The largest safe integer is a bound of this implementation and not of the format.
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  },
});

const OPTIONS = optionsWith((shape) => bare(jsonSchemaOf(shape)));

export type JsonSchema = Record<string, unknown>;

/** The schema of one shape, with everything that it refers to inside it. */
export function jsonSchemaOf(shape: z.ZodType): JsonSchema {
  return z.toJSONSchema(shape, OPTIONS) as JsonSchema;
}

/** The schemas of named shapes; where one contains another one of them, it refers to it as `refOf` says. */
export function namedJsonSchemas(
  shapes: Readonly<Record<string, z.ZodType>>,
  refOf: (name: string) => string,
): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [name, shape] of Object.entries(shapes)) registry.add(shape, { id: name });
  const options = optionsWith(itemOf);
  const { schemas } = z.toJSONSchema(registry, { ...options, uri: refOf });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, { $schema: _, $id: __, ...schema }]) => [name, schema as JsonSchema]),
  );

  /** A reference where the shape has a name; else its schema, with references to the named shapes in it. */
  function itemOf(shape: z.ZodType): JsonSchema {
    const name = registry.get(shape)?.id;
    if (name !== undefined) return { $ref: refOf(name) };
    const { $defs: _, ...schema } = z.toJSONSchema(shape, { ...options, metadata: registry });
    return bare(withRefs(schema, refOf) as JsonSchema);
  }
}

/** The references of a schema on its own, as `refOf` says. */
function withRefs(value: unknown, refOf: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => withRefs(item, refOf));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "$ref" ? refOf(String(inner).replace(/^#\/\$defs\//, "")) : withRefs(inner, refOf),
    ]),
  );
}

/** A schema without the name of the draft, for use inside another one. */
export function bare({ $schema: _, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/**
 * A published schema as the text of its file: two blanks of indent, every digit of 2^64-1, a final line
 * break.
 */
export function schemaText(schema: object): string {
  // A double cannot hold the largest unsigned 64-bit integer, so it is kept as 2^64 and written digit by
  // digit.
  const exact = exactNumber("18446744073709551615");
  return JSON.stringify(schema, (_key, value) => value === U64_END ? exact : value, 2) + "\n";
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
