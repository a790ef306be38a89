/** Parsing the answer of a model about a chunk: the JSON in it, its validity and its confidence. See docs/reason.md#model-answers. */

import { FRAME_EVENT_TYPES, type FrameEventType } from "../frames/frame_row.ts";
import { firstJsonObject, jsonDepth, MAX_JSON_DEPTH } from "./json_object.ts";
import type { OutputSchema } from "./output_schema.ts";

/** Why a text is no answer; the part after `semantic_parse_failed:` in `semantic_error`. */
export type AnswerFault = "empty_response" | "json_object_not_found" | "invalid_json" | "schema_mismatch";

/** The labels that replace the deterministic ones on every frame of a chunk. */
export interface ChunkOverlay {
  readonly eventType: FrameEventType;
  readonly objectLabel: string;
  readonly summary: string;
  readonly description: string;
  /** [0,1]. */
  readonly confidence: number;
}

/** `rawOutput` is the JSON of the model, null when none could be read. */
export type Answered<Value> =
  | ({ readonly ok: true; readonly rawOutput: unknown } & Value)
  | { readonly ok: false; readonly fault: AnswerFault; readonly rawOutput: unknown };

/**
 * Longer than any answer of the requested number of tokens. It bounds the text that is searched, checked with the schema
 * of the caller and written to the timeline for every chunk.
 */
const ANSWER_CHARACTERS_MAX = 65_536;

/** An answer by the built-in schema: the first JSON object in the text, whatever is around it. */
export function parseFrameAnswer(text: string): Answered<{ readonly overlay: ChunkOverlay }> {
  const found = objectIn(text);
  if (!found.ok) return found;
  const overlay = overlayOf(found.rawOutput);
  return overlay
    ? { ok: true, rawOutput: found.rawOutput, overlay }
    : { ok: false, fault: "schema_mismatch", rawOutput: found.rawOutput };
}

/**
 * An answer by the schema of the caller: the whole text must be JSON, and there is no overlay. A text that is no JSON, or
 * is nested too deeply, is kept as `{"raw": text}`, and so is the beginning of a text that is too long. JSON that does
 * not match the schema is kept as it is.
 */
export function parseCustomAnswer(text: string, schema: Pick<OutputSchema, "fault">): Answered<object> {
  const asText = { raw: cutText(text, ANSWER_CHARACTERS_MAX) };
  if (text.trim() === "") return { ok: false, fault: "empty_response", rawOutput: asText };
  const value = text.length > ANSWER_CHARACTERS_MAX ? undefined : parsedJson(text);
  if (value === undefined || jsonDepth(value) > MAX_JSON_DEPTH) {
    return { ok: false, fault: "invalid_json", rawOutput: asText };
  }
  return schema.fault(value) === null
    ? { ok: true, rawOutput: value }
    : { ok: false, fault: "schema_mismatch", rawOutput: value };
}

/** Undefined when the text is no JSON. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The check of TIER_LABEL_ANSWER, the answer of the second pass when the caller gave a schema. */
export const TIER_LABEL: Pick<OutputSchema, "fault"> = {
  fault(value) {
    if (!isObject(value)) return "must be object";
    if (typeof value.event_type !== "string") return "/event_type must be string";
    if (!isUnit(value.confidence)) return "/confidence must be a number from 0 to 1";
    const texts = [value.description, value.reasoning];
    return texts.every((text) => text === undefined || typeof text === "string")
      ? null
      : "/description and /reasoning must be string";
  },
};

/** `confidence` of a text that is JSON as a whole, clamped to [0,1]; 0.5 for any other text. */
export function tierConfidence(text: string): number {
  const value = parsedJson(text);
  const confidence = isObject(value) ? value.confidence : undefined;
  if (typeof confidence !== "number" || !Number.isFinite(confidence)) return UNKNOWN_CONFIDENCE;
  return Math.min(1, Math.max(0, confidence));
}

const UNKNOWN_CONFIDENCE = 0.5;

/** Whether the confidence of the first answer is below the threshold. */
export function needsSecondPass(firstAnswer: string, threshold: number): boolean {
  return tierConfidence(firstAnswer) < threshold;
}

/** The first JSON object in the text of a model; none when the text is too long. */
export function objectIn(text: string): Answered<object> & { readonly rawOutput: unknown } {
  if (text.trim() === "") return { ok: false, fault: "empty_response", rawOutput: null };
  if (text.length > ANSWER_CHARACTERS_MAX) return { ok: false, fault: "invalid_json", rawOutput: null };
  const found = firstJsonObject(text);
  if (!found) {
    // A brace that is never closed means that the answer was cut off; a pair of braces means invalid JSON.
    const opened = text.indexOf("{");
    const hasPair = opened >= 0 && text.indexOf("}", opened) > opened;
    return { ok: false, fault: hasPair ? "invalid_json" : "json_object_not_found", rawOutput: null };
  }
  if (found.depth > MAX_JSON_DEPTH) return { ok: false, fault: "invalid_json", rawOutput: null };
  return { ok: true, rawOutput: JSON.parse(text.slice(found.start, found.end)) };
}

/** The beginning of a text of at most `maximum` UTF-16 units; a surrogate pair is never cut in two. */
export function cutText(text: string, maximum: number): string {
  if (text.length <= maximum) return text;
  return text.slice(0, maximum).replace(/[\uD800-\uDBFF]$/, "");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The longest summary that the published schema of rows allows. */
const TEXT_MAX = 5000;
const LABEL_MAX = 256;

function overlayOf(answer: unknown): ChunkOverlay | null {
  if (!isObject(answer)) return null;
  const { event_type, object_label, summary, description, confidence } = answer;
  if (typeof event_type !== "string" || typeof object_label !== "string") return null;
  if (typeof summary !== "string" || typeof description !== "string" || !isUnit(confidence)) return null;
  const eventType = event_type.trim().toLowerCase();
  return {
    eventType: FRAME_EVENT_TYPES.find((known) => known === eventType) ?? "context_observation",
    objectLabel: cutText(object_label.trim().toLowerCase().replaceAll(" ", "_"), LABEL_MAX) ||
      "frame_context",
    summary: cutText(summary.trim(), TEXT_MAX) || "The model gave no summary.",
    description: cutText(description.trim(), TEXT_MAX) || "The model gave no description.",
    confidence,
  };
}

function isUnit(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}
