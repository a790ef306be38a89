/** Compiles the JSON Schema of a caller into a check with a budget. For a Worker, as both may take long. See
 * docs/reason.md#output-schema.
 */

import {
  _,
  Ajv,
  type CodeKeywordDefinition,
  type KeywordCxt,
  type Options,
  type ValidateFunction,
} from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import type { AnswerCheck } from "./answer.ts";
import { SchemaFault } from "./caller_schema.ts";

export interface CompiledSchema extends AnswerCheck {
  /** Makes the budget whole again. */
  restart(): void;
  /**
   * Checks a value; null where it fits. Throws {@link SchemaFault} where the checks since the restart cost
   * more than the budget.
   */
  fault(value: unknown): string | null;
}

/**
 * Draft 2020-12, or draft-07 when `$schema` names it or when only that fits. Formats are not checked, and
 * references must stay within the schema. Throws {@link SchemaFault}.
 *
 * The compiler generates code from the schema, but never from its texts: ajv quotes every name and value. How
 * long it takes is bounded by the size of the schema, as references are calls and are never copied into the
 * code. What a check costs is counted while it runs: `uniqueItems`, `contains`, lists of values, patterns and
 * references that branch all multiply, so no size bounds it. The same value always costs the same. Patterns
 * are executed by RE2, which does not backtrack, and the sum of their programs is bounded. Compiler, code and
 * counters belong to the result and are freed with it.
 */
export function compileOutputSchema(schema: Record<string, unknown>): CompiledSchema {
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

/** The fault of a schema that the other draft would not accept either. */
class TooComplex extends SchemaFault {}

/** The fault of a check that cost more than the budget. */
class OutOfBudget extends TooComplex {
  constructor() {
    super("must be a JSON Schema that is less complex: a check with it costs too much");
  }
}

const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";
const DRAFT_07 = "http://json-schema.org/draft-07/schema";

/** The longest text of a fault in characters. Faults may quote the schema; longer ones are cut. */
const FAULT_CHARACTERS_MAX = 200;

/** The most instructions of all patterns of a schema together. */
const PATTERN_PROGRAM_MAX = 8_000;

function withCompiler(
  Compiler: typeof Ajv | typeof Ajv2020,
  schema: Record<string, unknown>,
): CompiledSchema {
  const budget = new CheckBudget();
  let check: ValidateFunction;
  try {
    checkForm(Compiler, schema);
    const compiler = new Compiler(optionsOf(new Patterns(budget)));
    countCosts(compiler, budget);
    check = compiler.compile(schema);
    // The generated code is parsed at its first call; code that nests too deeply fails here instead of later.
    budget.restart();
    check(null);
  } catch (error) {
    if (error instanceof TooComplex) throw error;
    if (error instanceof RangeError) {
      throw new TooComplex(`must be a JSON Schema that is less complex: ${error.message}`);
    }
    throw new SchemaFault(`must be a JSON Schema: ${shortened((error as Error).message)}`);
  }
  return {
    schema,
    restart: () => budget.restart(),
    fault(value) {
      try {
        if (check(value)) return null;
      } catch (error) {
        if (error instanceof RangeError) throw new OutOfBudget();
        throw error;
      }
      const [first] = check.errors ?? [];
      return shortened(`${first?.instancePath ?? ""} ${first?.message ?? "does not fit"}`.trim());
    },
  };
}

/**
 * Throws where the schema does not have the form that its draft demands. The schema of schemas is compiled
 * once for all, as that takes longer than to compile most schemas; it keeps nothing of what it checks.
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

/** What the checks of one answer may cost, in units of about 10 ns. */
const BUDGET = 10_000_000;

class CheckBudget {
  #left = BUDGET;

  restart(): void {
    this.#left = BUDGET;
  }

  take(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new OutOfBudget();
  }
}

/** What any keyword costs, with the error that it may report, whose memory is most of it. */
const KEYWORD_UNITS = 60;

/** What each part of a keyword costs; parts of which one has to fit may all report an error before. */
const PART_UNITS = 2;
const CHOICES = ["anyOf", "oneOf"];

/**
 * What each item, name or character of the value costs the keywords that look at all of them, beside what is
 * below them.
 */
const ENTRY_UNITS: Readonly<Record<string, number>> = {
  ...{ items: 1, prefixItems: 1, additionalItems: 1, unevaluatedItems: 1, contains: KEYWORD_UNITS },
  ...{
    additionalProperties: 15,
    patternProperties: 15,
    propertyNames: 15,
    minProperties: 15,
    maxProperties: 15,
  },
  // Each name is compared with all that the schema names.
  unevaluatedProperties: 100,
  ...{ minLength: 1, maxLength: 1 },
};

/** Keywords whose own values are gone through, to the bottom. */
const LISTS = ["enum", "const", "required", "dependentRequired", "dependencies"];

/** What one pair of values of a list costs that must differ. */
const PAIR_UNITS = 2;

/** Makes every keyword take from the budget what it costs before it is checked. */
function countCosts({ RULES }: Ajv | Ajv2020, budget: CheckBudget): void {
  const rules = [...RULES.rules, RULES.post].flatMap((group) => group.rules);
  const others = Object.values(RULES.all).filter((rule) => typeof rule === "object");
  for (const { keyword, definition } of new Set([...rules, ...others])) {
    if (!("code" in definition)) continue;
    const { code } = definition as CodeKeywordDefinition;
    Object.assign(definition, {
      code(context: KeywordCxt, type?: string) {
        const { gen, data, schema } = context;
        const cost = costOf(keyword, schema);
        const take = gen.scopeValue("keyword", { ref: (value: unknown) => budget.take(cost(value)) });
        gen.code(_`${take}(${data})`);
        code(context, type);
      },
    });
  }
}

function costOf(keyword: string, schema: unknown): (value: unknown) => number {
  if (keyword === "uniqueItems") {
    return (value) =>
      KEYWORD_UNITS + (schema && Array.isArray(value) ? PAIR_UNITS * value.length * partsOf(value) : 0);
  }
  const parts = LISTS.includes(keyword) ? partsOf(schema) : entriesOf(schema);
  const fixed = KEYWORD_UNITS + parts * (CHOICES.includes(keyword) ? KEYWORD_UNITS : PART_UNITS);
  // To compare two objects, the names of both are listed.
  const objects = keyword === "enum" || keyword === "const"
    ? [schema].flat().filter((each) => typeof each === "object").length
    : 0;
  const each = ENTRY_UNITS[keyword] ?? 10 * objects;
  return each === 0 ? () => fixed : (value) => fixed + each * entriesOf(value);
}

function entriesOf(value: unknown): number {
  if (typeof value === "string" || Array.isArray(value)) return value.length;
  return typeof value === "object" && value !== null ? Object.keys(value).length : 0;
}

/** How many values are in a value, itself included. */
function partsOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const each of Object.values(value)) count += partsOf(each);
  return count;
}

/** What one instruction of a pattern costs for one character. */
const STEP_UNITS = 2;

/** Compiles the patterns of one schema and bounds their total size. */
class Patterns {
  readonly #budget: CheckBudget;
  #programs = 0;

  constructor(budget: CheckBudget) {
    this.#budget = budget;
  }

  compile(source: string): { test(text: string): boolean } {
    if (/\\k</.test(source)) throw new Error(`pattern ${shortened(source)} has a reference to a group`);
    const pattern = RE2JS.compile(RE2JS.translateRegExp(source));
    const size = pattern.programSize();
    this.#programs += size;
    if (this.#programs > PATTERN_PROGRAM_MAX) {
      throw new TooComplex("must be a JSON Schema: its patterns are too large");
    }
    const test = (text: string) => {
      this.#budget.take(KEYWORD_UNITS + STEP_UNITS * size * (text.length + 1));
      return pattern.matcher(text).find();
    };
    return Object.assign({ test }, { toString: () => source });
  }
}

function shortened(text: string): string {
  return text.length > FAULT_CHARACTERS_MAX ? `${text.slice(0, FAULT_CHARACTERS_MAX)}…` : text;
}
