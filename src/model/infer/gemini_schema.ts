/** JSON Schema as Gemini accepts it: a subset of OpenAPI, with types in upper case. See
 * docs/models.md#gemini.
 */

type Schema = Readonly<Record<string, unknown>>;

/**
 * The schema in the form of `responseSchema`. Rules that Gemini does not know are left out. Null when the
 * rest does not describe the shape (a recursive schema, an object of unknown fields, more than one type at
 * once); the request then asks for JSON without a schema.
 */
export function geminiSchema(schema: Schema): Schema | null {
  try {
    return converted(schema, { root: schema, references: [], count: { nodes: 0, characters: 0 } });
  } catch (error) {
    if (error instanceof NotExpressible) return null;
    throw error;
  }
}

class NotExpressible extends Error {}

interface ConversionScope {
  readonly root: Schema;
  /** The references that are being resolved, innermost last. */
  readonly references: readonly string[];
  /**
   * Nodes of the whole schema and characters behind references so far, which are bounded because references
   * can expand to any number.
   */
  readonly count: { nodes: number; characters: number };
}

const NODES_MAX = 2_000;
const CHARACTERS_MAX = 262_144;

function converted(schema: unknown, scope: ConversionScope): Schema {
  if (!isObject(schema) || ++scope.count.nodes > NODES_MAX) throw new NotExpressible();
  if (typeof schema.$ref === "string") return converted(...referenced(schema.$ref, scope));
  const choices = schema.type === undefined ? schema.anyOf ?? schema.oneOf : undefined;
  const common = kept(schema, ["title", "description"]);
  if (Array.isArray(choices)) {
    const { isNullable, others } = withoutNull(choices);
    const nullable = isNullable ? { nullable: true } : {};
    if (others.length === 1) return { ...converted(others[0], scope), ...common, ...nullable };
    return { ...common, ...nullable, anyOf: others.map((choice) => converted(choice, scope)) };
  }
  const { type, isNullable } = typeOf(schema);
  return {
    type: type.toUpperCase(),
    ...common,
    ...(isNullable && { nullable: true }),
    ...details(type, schema, scope),
  };
}

/** The keywords that Gemini knows for each type. */
function details(type: string, schema: Schema, scope: ConversionScope): Schema {
  switch (type) {
    case "string": {
      const words = wordsOf(schema);
      const format = words
        ? { format: "enum", enum: words }
        : schema.format === "date-time" && kept(schema, ["format"]);
      return { ...format, ...kept(schema, ["minLength", "maxLength", "pattern"]) };
    }
    case "number":
    case "integer":
      return kept(schema, ["minimum", "maximum"]);
    case "boolean":
      return {};
    case "array":
      return { items: converted(schema.items, scope), ...kept(schema, ["minItems", "maxItems"]) };
    case "object": {
      const fields = isObject(schema.properties) ? Object.entries(schema.properties) : [];
      if (fields.length === 0) throw new NotExpressible();
      const names = new Set(fields.map(([name]) => name));
      const required = Array.isArray(schema.required) ? schema.required : [];
      return {
        properties: Object.fromEntries(fields.map(([name, field]) => [name, converted(field, scope)])),
        propertyOrdering: [...names],
        ...(required.length > 0 &&
          { required: required.filter((name) => names.has(name)) }),
      };
    }
    default:
      throw new NotExpressible();
  }
}

function typeOf(schema: Schema): { type: string; isNullable: boolean } {
  const { type } = schema;
  if (typeof type === "string") return { type, isNullable: schema.nullable === true };
  if (Array.isArray(type)) {
    const others = type.filter((name) => name !== "null");
    if (others.length === 1) return { type: others[0], isNullable: others.length < type.length };
  } else if (isObject(schema.properties)) {
    return { type: "object", isNullable: false };
  } else if (wordsOf(schema)) {
    return { type: "string", isNullable: false };
  }
  throw new NotExpressible();
}

/**
 * The choices of a schema. Gemini knows enums of strings only; others are left out, as the type alone is
 * still right.
 */
function wordsOf(schema: Schema): readonly string[] | undefined {
  const words = "const" in schema ? [schema.const] : schema.enum;
  const areWords = Array.isArray(words) && words.every((word) => typeof word === "string" && word !== "");
  return areWords && words.length > 0 ? words : undefined;
}

function withoutNull(choices: readonly unknown[]): { isNullable: boolean; others: readonly unknown[] } {
  const others = choices.filter((choice) => !(isObject(choice) && choice.type === "null"));
  return { isNullable: others.length < choices.length, others };
}

/**
 * The schema that a reference leads to. Only references inside the schema count, such as `#/$defs/moment`,
 * and none that leads to itself.
 */
function referenced(
  reference: string,
  { root, references, count }: ConversionScope,
): [unknown, ConversionScope] {
  if (!reference.startsWith("#/") || references.includes(reference)) throw new NotExpressible();
  const names = reference.slice(2).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  let target: unknown = root;
  for (const name of names) {
    target = isObject(target) && Object.hasOwn(target, name) ? target[name] : undefined;
  }
  count.characters += JSON.stringify(target)?.length ?? 0;
  if (count.characters > CHARACTERS_MAX) throw new NotExpressible();
  return [target, { root, references: [...references, reference], count }];
}

function kept(schema: Schema, names: readonly string[]): Schema {
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(schema, name)).map((name) => [name, schema[name]]),
  );
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
