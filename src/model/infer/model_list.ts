/** What a model server says of its models, and what follows from it. See docs/models.md#list. */

import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../../contract/limits.ts";
import { asciiLowerCase, canonicalModel } from "./catalog.ts";

export interface ModelList {
  /** The models as the server spells them, in its order, each once. Never empty. */
  readonly ids: readonly string[];
  /** Whether the list names all models: one that was cut off does not say what the server does not have. */
  readonly isComplete: boolean;
}

/**
 * The list in an answer to `GET /v1/models`. Null where the answer has none: an empty list, or another shape.
 * That means that the models of the server are not known, not that it has none.
 */
export function modelListOf(answer: unknown): ModelList | null {
  const entries = entriesOf(answer);
  const ids = new Set<string>();
  let isComplete = true;
  for (const entry of entries) {
    const id = idOf(entry);
    if (id === null || ids.size >= LIMITS.backend.modelsMax) isComplete = false;
    else ids.add(id);
    if (ids.size >= LIMITS.backend.modelsMax && !isComplete) break;
  }
  return ids.size === 0 ? null : { ids: [...ids], isComplete };
}

/**
 * The spelling in `list` of what `model` means: the id itself, in another case, by an alias, or without
 * `:latest`.
 */
export function spellingIn({ ids }: ModelList, model: string): string | undefined {
  if (ids.includes(model)) return model;
  const wanted = asciiLowerCase(model);
  const canonical = canonicalModel(model);
  return ids.find((id) => asciiLowerCase(id) === wanted) ??
    (canonical === undefined ? undefined : ids.find((id) => canonicalModel(id) === canonical)) ??
    ids.find((id) => asciiLowerCase(id) === `${wanted}:latest`);
}

/** Whether the server has the model; null where its list does not say. */
export function hasModel(list: ModelList | null, model: string): boolean | null {
  if (list === null) return null;
  if (spellingIn(list, model) !== undefined) return true;
  return list.isComplete ? false : null;
}

/**
 * Whether a model answers questions. Models that turn texts into numbers do not; they stand in the lists of
 * some servers.
 */
export function answersQuestions(id: string): boolean {
  return !/embed|rerank/i.test(id);
}

/** Says that a model is unknown: a sentence without full stop, for people. `has` is what the server has. */
export function unknownModelText(model: string, has: readonly string[]): string {
  return `The model server does not know the model ${model}; it has: ${namesText(has)}`;
}

/** The first few names, and how many more there are. */
export function namesText(ids: readonly string[]): string {
  const named = ids.slice(0, LIMITS.backend.modelsNamed);
  const more = ids.length - named.length;
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The entries of a list: `data` of OpenAI, `models` of others, or the bare list. */
function entriesOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  if (typeof answer !== "object" || answer === null) return [];
  const { data, models } = answer as { readonly data?: unknown; readonly models?: unknown };
  return Array.isArray(data) ? data : Array.isArray(models) ? models : [];
}

/** The id of an entry; null for one without an id that a caller could name. */
function idOf(entry: unknown): string | null {
  const { id, model, name } = typeof entry === "object" && entry !== null
    ? entry as Readonly<Record<string, unknown>>
    : { id: entry };
  const text = id ?? model ?? name;
  if (typeof text !== "string" || text === "" || text !== text.trim()) return null;
  // deno-lint-ignore no-control-regex -- control characters are searched for
  return utf8Length(text) > LIMITS.name.bytesMax || /[\x00-\x1f\x7f]/.test(text) ? null : text;
}
