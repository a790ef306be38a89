/** Reading request bodies: media type, size, JSON syntax (D4), then the shape that a schema says. */

import type { ZodType } from "zod";
import { deadline } from "../base/deadline.ts";
import { type FieldFault, refuse } from "../base/refusal.ts";
import { LIMITS } from "../model/limits.ts";
import { parseExactJson } from "../model/exact_json.ts";
import { Rejection } from "./reply.ts";

/** Ten thousand wrong samples are the same mistake: an answer must not be longer than the question. */
const FAULTS_MAX = 64;

/**
 * The body as `schema` says. 415, 413 and 400 are plain text; a wrong shape is 422 with each field, up to a
 * number that tells enough. Without `isExact` every number is a double, as long as it may be.
 */
export async function readJson<T>(
  request: Request,
  schema: ZodType<T>,
  { readMs = LIMITS.body.jsonReadMs, isExact = true }: { readMs?: number; isExact?: boolean } = {},
): Promise<T> {
  requireJson(request.headers.get("content-type"));
  const text = await readText(request, { limitBytes: LIMITS.body.jsonBytes, readMs });
  let value: unknown;
  try {
    value = isExact ? parseExactJson(text) : JSON.parse(text);
  } catch (error) {
    // The syntax is right: whoever walks thousands of levels runs out of stack.
    if (error instanceof RangeError) throw refuse.invalid("body", "is nested too deeply");
    throw new Rejection(400, `Malformed JSON: ${(error as Error).message}`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw refuse.invalidFields(parsed.error.issues.flatMap(faultsOf).slice(0, FAULTS_MAX));
  return parsed.data;
}

/** `application/json` or any `+json` type, with parameters or without. */
function requireJson(contentType: string | null): void {
  const essence = (contentType ?? "").replace(/;.*/s, "").trim().toLowerCase();
  if (essence === "application/json" || /^application\/[\w.-]+\+json$/.test(essence)) return;
  throw new Rejection(415, "Expected a body of content type application/json");
}

/** The whole body as strict UTF-8; gives up as soon as it is known to be too long, or late. */
export async function readText(
  request: Request,
  { limitBytes, readMs }: { limitBytes: number; readMs: number },
): Promise<string> {
  const declared = Number(request.headers.get("content-length"));
  if (declared > limitBytes) throw tooLarge(limitBytes);
  if (request.body === null) return "";
  const reader = request.body.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let length = 0;
  let isLate = false;
  using _deadline = deadline(readMs, () => {
    isLate = true;
    reader.cancel().catch(() => {});
  });
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      length += part.value.byteLength;
      if (length > limitBytes) throw tooLarge(limitBytes);
      text += decoder.decode(part.value, { stream: true });
    }
    if (!isLate) return text + decoder.decode();
  } catch (error) {
    reader.cancel().catch(() => {});
    if (error instanceof Rejection) throw error;
    if (!isLate) {
      throw new Rejection(
        400,
        error instanceof TypeError ? "The body is not UTF-8" : "The body was cut short",
      );
    }
  }
  throw new Rejection(408, `The body did not arrive within ${readMs} ms`);
}

function tooLarge(limitBytes: number): Rejection {
  return new Rejection(413, `The body is longer than ${limitBytes} bytes`);
}

type Issue = { code?: string; path: PropertyKey[]; message: string; keys?: string[] };

/** One fault a field; a frame's fault is told on `frames`, with the place in the message. */
function faultsOf(issue: Issue): FieldFault[] {
  const [first, ...rest] = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys!.map((key) =>
      first === undefined
        ? { field: key, message: "is not a field of this request" }
        : { field: first, message: `${placeOf(rest)} has the unknown field ${key}`.trim() }
    );
  }
  if (first === undefined) return [{ field: "body", message: issue.message }];
  if (rest.length === 0) return [{ field: first, message: issue.message }];
  const isIndexed = /^\d+$/.test(rest[0]!);
  return isIndexed
    ? [{ field: first, message: `${placeOf(rest)}: ${issue.message}` }]
    : [{ field: [first, ...rest].join("."), message: issue.message }];
}

/** `["3", "luma_mean"]` is `[3].luma_mean`. */
function placeOf(path: readonly string[]): string {
  return path.map((part) => /^\d+$/.test(part) ? `[${part}]` : `.${part}`).join("");
}
