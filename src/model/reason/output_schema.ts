/** A JSON Schema of a caller, compiled with bounds on the time to compile it and to check with it. See docs/reason.md#output-schema. */

import {
  _,
  Ajv,
  type CodeKeywordDefinition,
  type KeywordCxt,
  type Options,
  type ValidateFunction,
} from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import refModule from "ajv/dist/vocabularies/core/ref.js";
import dynamicRefModule from "ajv/dist/vocabularies/dynamic/dynamicRef.js";
import { RE2JS } from "re2js";
import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../limits.ts";
import { MAX_JSON_DEPTH } from "./json_object.ts";

/** A schema that compiled. */
export interface OutputSchema {
  /** As the caller gave it; it is sent to the backend. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** The fault of a value, in one short line, or null. */
  fault(value: unknown): string | null;
}

/**
 * Draft 2020-12, or draft-07 when `$schema` names it or when only that fits. Formats are not checked, and references must
 * stay within the schema. `fault` of the result says why there is no schema.
 *
 * The compiler generates code from the schema, but never from its texts: ajv quotes every name and value. A schema could
 * still cost much time, which is prevented in three ways:
 *   - size and depth are bounded, and so is the code, as references are calls and are never copied into the code;
 *   - references alone can make a check exponential (anyOf of two references, each to an anyOf of two ...), so the
 *     references that one check follows are counted and bounded;
 *   - patterns are executed by RE2, which does not backtrack, and the sum of their programs is bounded.
 * Compiler, code and counters belong to the result and are freed with it.
 */
export function compileOutputSchema(value: unknown): CompiledSchema {
  try {
    return { ok: true, outputSchema: compiled(plainSchema(value)) };
  } catch (error) {
    if (error instanceof SchemaFault) return { ok: false, fault: error.message };
    throw error;
  }
}

export type CompiledSchema =
  | { readonly ok: true; readonly outputSchema: OutputSchema }
  | { readonly ok: false; readonly fault: string };

class SchemaFault extends Error {}

/** The other draft would not help. */
class TooComplex extends SchemaFault {}

const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";
const DRAFT_07 = "http://json-schema.org/draft-07/schema";

/** Longer faults, which may quote the schema, are cut. */
const FAULT_CHARACTERS_MAX = 200;

/** References that one check may follow: more than an answer of 1024 tokens has values. */
const STEPS_MAX = 20_000;

/** Instructions of all patterns of a schema together. */
const PATTERN_PROGRAM_MAX = 8_000;

function compiled(schema: Record<string, unknown>): OutputSchema {
  const draft = schema.$schema;
  const name = typeof draft === "string" ? draft.replace(/#$/, "") : draft;
  if (name === DRAFT_07) return withCompiler(Ajv, schema);
  if (name === DRAFT_2020) return withCompiler(Ajv2020, schema);
  if (name !== undefined) throw new SchemaFault(`$schema must be ${DRAFT_2020} or ${DRAFT_07}`);
  try {
    return withCompiler(Ajv2020, schema);
  } catch (error) {
    if (error instanceof TooComplex) throw error;
    try {
      return withCompiler(Ajv, schema);
    } catch {
      throw error;
    }
  }
}

function withCompiler(Compiler: typeof Ajv | typeof Ajv2020, schema: Record<string, unknown>): OutputSchema {
  const steps = new Steps();
  let check: ValidateFunction;
  try {
    checkForm(Compiler, schema);
    const compiler = new Compiler(optionsOf(new Patterns()));
    countReferences(compiler, steps);
    check = compiler.compile(schema);
    // The generated code is parsed at its first call; code that nests too deeply fails here instead of later.
    steps.restart();
    check(null);
  } catch (error) {
    if (error instanceof TooComplex) throw error;
    if (error instanceof TooManySteps || error instanceof RangeError) {
      throw new TooComplex(`must be a JSON Schema that is less complex: ${error.message}`);
    }
    throw new SchemaFault(`must be a JSON Schema: ${shortened((error as Error).message)}`);
  }
  return {
    schema,
    fault(value) {
      steps.restart();
      try {
        if (check(value)) return null;
      } catch (error) {
        if (error instanceof TooManySteps) return error.message;
        if (error instanceof RangeError) return "the schema is too complex for this value";
        throw error;
      }
      const [first] = check.errors ?? [];
      return shortened(`${first?.instancePath ?? ""} ${first?.message ?? "does not fit"}`.trim());
    },
  };
}

/**
 * Throws where the schema does not have the form that its draft demands. The schema of schemas is compiled once for all,
 * as that takes longer than to compile most schemas; it keeps nothing of what it checks.
 */
function checkForm(Compiler: typeof Ajv | typeof Ajv2020, schema: Record<string, unknown>): void {
  let drafts = schemasOfSchemas.get(Compiler);
  if (!drafts) {
    schemasOfSchemas.set(
      Compiler,
      drafts = new Compiler({ strict: false, logger: false, validateFormats: false }),
    );
  }
  void drafts.validateSchema(schema, true);
}

const schemasOfSchemas = new Map<typeof Ajv | typeof Ajv2020, Ajv | Ajv2020>();

function optionsOf(patterns: Patterns): Options {
  return {
    strict: false,
    logger: false,
    meta: false,
    validateSchema: false,
    validateFormats: false,
    inlineRefs: false,
    ownProperties: true,
    code: {
      optimize: false,
      regExp: Object.assign((source: string) => patterns.compile(source), { code: "linear" }),
    },
  };
}

class TooManySteps extends Error {
  override readonly message = "too many references have to be followed";
}

/** Counts the references that one check follows. */
class Steps {
  #left = Infinity;

  restart(): void {
    this.#left = STEPS_MAX;
  }

  take(): void {
    this.#left -= 1;
    if (this.#left < 0) throw new TooManySteps();
  }
}

/** Makes every call of a reference take a step. */
function countReferences(compiler: Ajv | Ajv2020, steps: Steps): void {
  for (const definition of [definitionOf(refModule), definitionOf(dynamicRefModule)]) {
    const keyword = definition.keyword as string;
    if (!compiler.getKeyword(keyword)) continue;
    compiler.removeKeyword(keyword);
    compiler.addKeyword({
      ...definition,
      code(context: KeywordCxt) {
        const counter = context.gen.scopeValue("keyword", { key: steps, ref: () => steps.take() });
        context.gen.code(_`${counter}()`);
        definition.code(context);
      },
    });
  }
}

function definitionOf(module: unknown): CodeKeywordDefinition {
  return (module as { default: CodeKeywordDefinition }).default;
}

/** Compiles the patterns of one schema and bounds their total size. */
class Patterns {
  #programs = 0;

  compile(source: string): { test(text: string): boolean } {
    if (/\\k</.test(source)) throw new Error(`pattern ${shortened(source)} has a reference to a group`);
    const pattern = RE2JS.compile(RE2JS.translateRegExp(source));
    this.#programs += pattern.programSize();
    if (this.#programs > PATTERN_PROGRAM_MAX) {
      throw new TooComplex("must be a JSON Schema: its patterns are too large");
    }
    return Object.assign({ test: (text: string) => pattern.matcher(text).find() }, {
      toString: () => source,
    });
  }
}

/**
 * The key `$async` of ajv makes a check return a promise, which would count as a success. JSON Schema itself has only one
 * key that starts with `$a`, which is `$anchor`.
 */
const ASYNC_KEY = /^\$a(?!nchor$)/;

/** A copy that is plain JSON within the limits. */
function plainSchema(value: unknown): Record<string, unknown> {
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

function shortened(text: string): string {
  return text.length > FAULT_CHARACTERS_MAX ? `${text.slice(0, FAULT_CHARACTERS_MAX)}…` : text;
}
