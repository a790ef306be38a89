/** Parsing the answer of a model about a chunk: the JSON in it, its validity and its confidence. See
 * docs/reason.md#model-answers.
 */

import { FRAME_EVENT_TYPES, type FrameEventType } from "../frames/frame_row.ts";
import { jsonValues, strictJson } from "./json_object.ts";
import { isObject, mendedBy, numberOf, unitOf, withNames } from "./mended_answer.ts";

/** Why a text is no answer; the part after `semantic_parse_failed:` in `semantic_error`. */
export type AnswerFault =
  | "empty_response"
  | "json_object_not_found"
  | "invalid_json"
  | "schema_mismatch"
  | "schema_too_complex";

/** The labels that replace the deterministic ones on every frame of a chunk. */
export interface ChunkOverlay {
  readonly eventType: FrameEventType;
  readonly objectLabel: string;
  readonly summary: string;
  readonly description: string;
  /** How certain the labels are, [0,1]. */
  readonly confidence: number;
}

/** An answer, read or not; `rawOutput` is the JSON of the model, null when none could be read. */
export type Answered<Value> =
  | ({ readonly ok: true; readonly rawOutput: unknown } & Value)
  | { readonly ok: false; readonly fault: AnswerFault; readonly rawOutput: unknown };

/** Says what an answer has to be. */
export interface AnswerCheck {
  readonly schema: Readonly<Record<string, unknown>>;
  /** The fault of a value, in one short line, or null. */
  fault(value: unknown): string | null;
}

/**
 * The longest answer in characters: longer than any of the requested number of tokens. It bounds the text
 * that is searched, checked with the schema of the caller and written to the timeline for every chunk.
 */
const ANSWER_CHARACTERS_MAX = 65_536;

/** Reads an answer by the built-in schema: the last object in the text that fits, whatever is around it. */
export function parseFrameAnswer(text: string): Answered<{ readonly overlay: ChunkOverlay }> {
  return answerIn(text, (value) => {
    const overlay = overlayOf(value);
    return overlay && { rawOutput: value, overlay };
  });
}

/**
 * Reads an answer by the schema of the caller: the whole text as JSON, or the last object or list in it that
 * fits, without an overlay. A text without any is kept as `{"raw": text}`, and so is the beginning of one
 * that is too long. What does not fit the schema is kept as it is.
 */
export function parseCustomAnswer(text: string, schema: AnswerCheck): Answered<object> {
  const read = answerIn(text, (value) => {
    if (schema.fault(value) === null) return { rawOutput: value };
    const mended = mendedBy(schema.schema, value);
    return schema.fault(mended) === null ? { rawOutput: mended } : null;
  });
  if (read.ok || read.fault === "schema_mismatch") return read;
  const whole = text.length > ANSWER_CHARACTERS_MAX ? undefined : strictJson(text);
  if (whole !== undefined) return { ok: false, fault: "schema_mismatch", rawOutput: whole };
  return unread(text, read.fault === "empty_response" ? read.fault : "invalid_json");
}

/** An answer of which no value is known. */
export function unread(text: string, fault: AnswerFault): Answered<object> {
  return { ok: false, fault, rawOutput: { raw: cutText(text, ANSWER_CHARACTERS_MAX) } };
}

/**
 * Reads the answer of a model that was asked for JSON; every such answer is read here. The result is what
 * `fits` makes of the last value in the text that fits: the value itself, or the one object in it. See
 * docs/reason.md#model-answers.
 */
export function answerIn<Value extends { readonly rawOutput: unknown }>(
  text: string,
  fits: (value: unknown) => Value | null,
): ({ readonly ok: true } & Value) | {
  readonly ok: false;
  readonly fault: AnswerFault;
  readonly rawOutput: unknown;
} {
  if (text.trim() === "") return { ok: false, fault: "empty_response", rawOutput: null };
  if (text.length > ANSWER_CHARACTERS_MAX) return { ok: false, fault: "invalid_json", rawOutput: null };
  const { values, isCut } = jsonValues(text);
  // What comes before a cut answer may be a draft of it.
  if (isCut) return { ok: false, fault: "json_object_not_found", rawOutput: null };
  for (const value of values.toReversed()) {
    const answer = answerWithin(value, fits, WRAPPERS_MAX);
    if (answer) return { ok: true, ...answer };
  }
  const told = values.findLast((value) => [value].flat().some(isObject));
  if (told !== undefined) return { ok: false, fault: "schema_mismatch", rawOutput: told };
  const opened = text.indexOf("{");
  const hasPair = opened >= 0 && text.indexOf("}", opened) > opened;
  return { ok: false, fault: hasPair ? "invalid_json" : "json_object_not_found", rawOutput: null };
}

/** How many objects and lists around the answer the model may have added: `{"observation": {…}}`, `[{…}]`. */
const WRAPPERS_MAX = 4;

/**
 * The answer in a value: itself, the last one in a list, or the only one in an object. A text that is JSON as
 * a whole counts as its value.
 */
function answerWithin<Value>(
  value: unknown,
  fits: (value: unknown) => Value | null,
  depth: number,
): Value | null {
  const own = fits(value);
  if (own || depth === 0) return own;
  if (typeof value === "string") {
    const read = isJsonText(value) ? strictJson(value) : undefined;
    return read === undefined ? null : answerWithin(read, fits, depth - 1);
  }
  if (typeof value !== "object" || value === null) return null;
  // A schema may admit the numbers and words of an answer that it does not admit as a whole.
  const inner = Object.values(value).filter((each) =>
    typeof each === "string" ? isJsonText(each) : typeof each === "object" && each !== null
  );
  const answers = inner.flatMap((each) => answerWithin(each, fits, depth - 1) ?? []);
  return Array.isArray(value) || answers.length === 1 ? answers.at(-1) ?? null : null;
}

function isJsonText(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** The answer of the second pass when the caller gave a schema. */
export const TIER_LABEL: AnswerCheck = {
  schema: {
    type: "object",
    properties: {
      event_type: { type: "string" },
      confidence: { type: "number", minimum: 0, maximum: 1 },
      description: { type: "string" },
      reasoning: { type: "string" },
    },
    required: ["event_type", "confidence"],
  },
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

/**
 * The confidence of an answer: `confidence` of the last object in the text that has one, limited to [0,1];
 * 0.5 for any other text.
 */
export function tierConfidence(text: string): number {
  const read = answerIn(text, (value) => {
    const said = isObject(value) ? withNames(value, ["confidence"]).confidence : null;
    const confidence = unitOf(said) ?? numberOf(said);
    return confidence === null ? null : { rawOutput: value, confidence };
  });
  return read.ok ? Math.min(1, Math.max(0, read.confidence)) : UNKNOWN_CONFIDENCE;
}

const UNKNOWN_CONFIDENCE = 0.5;

/** Whether the confidence of the first answer is below the threshold. */
export function needsSecondPass(firstAnswer: string, threshold: number): boolean {
  return tierConfidence(firstAnswer) < threshold;
}

/** The beginning of a text of at most `maximum` UTF-16 units; a surrogate pair is never cut in two. */
export function cutText(text: string, maximum: number): string {
  if (text.length <= maximum) return text;
  return text.slice(0, maximum).replace(/[\uD800-\uDBFF]$/, "");
}

/** The longest summary that the published schema of rows allows. */
const TEXT_MAX = 5000;
const LABEL_MAX = 256;

const FIELDS = ["event_type", "object_label", "summary", "description", "confidence"];

/**
 * A text of a form that was not filled in. Small models also take over the type of a field from the schema,
 * in the place of its value.
 */
const PLACEHOLDER = /^\s*(?:\.{3}|…|<[^<>]*>|string)\s*$/i;

/**
 * The labels of an answer. A text that is missing or null is a blank one. A form that was not filled in is no
 * answer.
 */
function overlayOf(answer: unknown): ChunkOverlay | null {
  if (!isObject(answer)) return null;
  const { event_type: type, ...said } = withNames(answer, FIELDS);
  const texts = [said.object_label, said.summary, said.description].map((text) => text ?? "");
  const confidence = unitOf(said.confidence);
  if (typeof type !== "string" || PLACEHOLDER.test(type) || confidence === null) return null;
  if (!texts.every((text) => typeof text === "string")) return null;
  if (texts.slice(1).every((text) => PLACEHOLDER.test(text))) return null;
  const [label, summary, description] = texts.map((text) => text.trim());
  const eventType = type.trim().toLowerCase();
  return {
    eventType: FRAME_EVENT_TYPES.find((known) => known === eventType) ?? "context_observation",
    objectLabel: cutText(label!.toLowerCase().replaceAll(" ", "_"), LABEL_MAX) || "frame_context",
    summary: cutText(summary!, TEXT_MAX) || "The model gave no summary.",
    description: cutText(description!, TEXT_MAX) || "The model gave no description.",
    confidence,
  };
}

function isUnit(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}
