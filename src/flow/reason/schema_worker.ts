/** The schema Worker: compiles the schemas of callers and reads the answers of models with them. It may touch
 * nothing.
 */

import "../../base/worker_globals.ts";
import { type Answered, parseCustomAnswer, unread } from "../../model/reason/answer.ts";
import { SchemaFault } from "../../model/reason/caller_schema.ts";
import { type CompiledSchema, compileOutputSchema } from "../../model/reason/output_schema.ts";

/**
 * An order: compile this schema, which is JSON, unless that was done before, and read this answer with it if
 * there is one.
 */
export interface SchemaOrder {
  readonly schema: string;
  readonly answer: string | null;
}

/** For each order, what it gave: the fault of the schema, or what the answer says. */
export interface SchemaReport {
  readonly fault: string | null;
  /** Null where there is a fault, or no answer to read. */
  readonly answered: Answered<object> | null;
}

/** Schemas that are kept compiled; a call asks with the same one for each chunk. */
const KEPT_MAX = 4;

const scope = self as unknown as {
  onmessage: (event: MessageEvent<SchemaOrder>) => void;
  postMessage(report: SchemaReport): void;
};

/** The one that was asked for last is at the end. */
const kept = new Map<string, CompiledSchema>();

scope.onmessage = ({ data: { schema, answer } }) => {
  try {
    const check = compiled(schema);
    scope.postMessage({ fault: null, answered: answer === null ? null : read(answer, check) });
  } catch (error) {
    if (!(error instanceof SchemaFault)) throw error;
    scope.postMessage({ fault: error.message, answered: null });
  }
};

function compiled(schema: string): CompiledSchema {
  const check = kept.get(schema) ?? compileOutputSchema(JSON.parse(schema));
  kept.delete(schema);
  kept.set(schema, check);
  for (const [oldest] of kept) if (kept.size > KEPT_MAX) kept.delete(oldest);
  return check;
}

function read(answer: string, check: CompiledSchema): Answered<object> {
  try {
    check.restart();
    return parseCustomAnswer(answer, check);
  } catch (error) {
    if (error instanceof SchemaFault) return unread(answer, "schema_too_complex");
    throw error;
  }
}
