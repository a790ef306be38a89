/** Reads request bodies: checks the content type, the size and the JSON syntax, then the shape against a
 * schema.
 */

import type { ZodType } from "zod";
import { freeMemory } from "../../base/bytes.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type FieldFault, refuse } from "../../contract/refusal.ts";
import type { Caller } from "../../flow/caller.ts";
import { shapeMessage } from "../../model/shape_message.ts";
import { hasLongInteger, parseExactJson } from "../../model/exact_json.ts";
import { jsonSizeFault } from "../../model/json_size.ts";
import { Rejection } from "../answers/reply.ts";
import type { ReceivedBodies } from "./received_body.ts";

/**
 * Most faults in one response: without it, many samples with the same mistake would make a response larger
 * than the request.
 */
const FAULTS_MAX = 64;

/** The part of a `RouteCall` that is needed to read its body. */
export interface BodyCall {
  readonly request: { readonly raw: Request };
  readonly caller: Pick<Caller, "principalKey">;
  readonly use: { readonly bodies: ReceivedBodies };
  /** See RouteCall. */
  readonly begin?: (text: string, body: unknown) => Promise<void>;
}

/**
 * The body, checked against `schema`. Where no field of it is required, no body at all is `{}`, whatever its
 * content type. 415, 413 and 400 are plain text (docs/api.md#plain-rejections); a wrong shape is 422 with a
 * detail for each field, at most {@link FAULTS_MAX}. With `isExact`, an integer that a double cannot hold is
 * a bigint; without it every number is a double. The answer to an idempotency key that was used before is
 * thrown.
 */
export async function readJson<T>(
  call: BodyCall,
  schema: ZodType<T>,
  { isExact = true }: { isExact?: boolean } = {},
): Promise<T> {
  const text = await jsonText(call, mayBeEmpty(schema));
  requireFewValues(text, isExact);
  let value: unknown;
  try {
    value = isExact ? parseExactJson(text) : JSON.parse(text);
  } catch (error) {
    // The syntax is right, but the parser ran out of stack in thousands of nested levels.
    if (error instanceof RangeError) throw refuse.invalid("body", "is nested too deeply");
    throw new Rejection(400, `Malformed JSON: ${(error as Error).message}`);
  }
  const parsed = schema.safeParse(value, { error: shapeMessage });
  if (!parsed.success) {
    throw refuse.invalidFields(
      parsed.error.issues.slice(0, FAULTS_MAX).flatMap(faultsOf).slice(0, FAULTS_MAX),
    );
  }
  await call.begin?.(text, parsed.data);
  return parsed.data;
}

/** Whether a body of this shape has no required field, so that a request may come without one. */
export function mayBeEmpty(schema: ZodType): boolean {
  return schema.safeParse({}).success;
}

async function jsonText(call: BodyCall, isOptional: boolean): Promise<string> {
  if (!isOptional) {
    requireJson(call);
    return await readText(call, LIMITS.body.jsonBytes);
  }
  // A body of another type is not read further than to its first byte.
  const limit = isJson(call) ? LIMITS.body.jsonBytes : 0;
  const text = await readText(call, limit).catch((error) => {
    if (error instanceof Rejection && error.status === 413) requireJson(call);
    throw error;
  });
  return text === "" ? "{}" : text;
}

function requireFewValues(text: string, isExact: boolean): void {
  const isLong = isExact && text.length > LIMITS.body.jsonValuesExactMax && hasLongInteger(text);
  const fault = jsonSizeFault(text, isLong ? LIMITS.body.jsonValuesExactMax : LIMITS.body.jsonValuesMax);
  if (fault !== null) throw refuse.invalid("body", fault);
}

/** `application/json` and every `+json` type, with parameters or without. */
function isJson({ request: { raw } }: BodyCall): boolean {
  const essence = (raw.headers.get("content-type") ?? "").replace(/;.*/s, "").trim().toLowerCase();
  return essence === "application/json" || /^application\/[\w.-]+\+json$/.test(essence);
}

function requireJson(call: BodyCall): void {
  if (isJson(call)) return;
  throw new Rejection(415, "Expected a body of content type application/json");
}

/** The whole body as strict UTF-8. Stops reading as soon as the body is too long, or late. */
export async function readText(
  { request: { raw }, caller, use }: BodyCall,
  bodyBytes: number,
): Promise<string> {
  using body = use.bodies.open(raw, caller.principalKey, { bodyBytes, isKept: true });
  const pieces: Uint8Array[] = [];
  try {
    for (let piece = await body.next(); piece !== null; piece = await body.next()) pieces.push(piece);
  } catch (error) {
    freeMemory(pieces); // what waits for the garbage collector would be as much again as what may be held
    throw error;
  }
  try {
    return textOf(pieces);
  } catch {
    throw new Rejection(400, "The body is not UTF-8");
  }
}

/** Most bodies are one piece, and need no decoder of their own. Throws a TypeError. */
function textOf(pieces: readonly Uint8Array[]): string {
  if (pieces.length <= 1) return STRICT_UTF8.decode(pieces[0]);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (const piece of pieces) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true });

type Issue = { code?: string; path: PropertyKey[]; message: string; keys?: string[] };

/**
 * The faults of one issue, each on a top-level field: a frame's fault is on `frames`, with its path in the
 * message.
 */
function faultsOf(issue: Issue): FieldFault[] {
  const [first, ...rest] = issue.path.map((part) => shortened(String(part)));
  if (issue.code === "unrecognized_keys") {
    return issue.keys!.slice(0, FAULTS_MAX).map(shortened).map((key) =>
      first === undefined
        ? { field: key, message: "is not a field of this request" }
        : { field: first, message: `${pathOf(rest)} has the unknown field ${key}`.trim() }
    );
  }
  if (first === undefined) return [{ field: "body", message: issue.message }];
  if (rest.length === 0) return [{ field: first, message: issue.message }];
  const isIndexed = /^\d+$/.test(rest[0]!);
  return isIndexed
    ? [{ field: first, message: `${pathOf(rest)}: ${issue.message}` }]
    : [{ field: [first, ...rest].join("."), message: issue.message }];
}

/** A name that the caller chose, for an error message. */
function shortened(key: string): string {
  return key.length > 80 ? `${key.slice(0, 80)}…` : key;
}

/** `["3", "luma_mean"]` becomes `[3].luma_mean`. */
function pathOf(path: readonly string[]): string {
  return path.map((part) => /^\d+$/.test(part) ? `[${part}]` : `.${part}`).join("");
}
