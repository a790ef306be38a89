/** What a route is: one row, which is both served and described. */

// `@hono/zod-openapi` has the same idea and does not fit. It describes a bounded list as a list of anything,
// a constant as an `enum` and an exact integer as a text, so that it cannot make schemas/openapi.json. It
// reads a body before the handler does, without the bounds of body.ts and with doubles alone, and wants the
// shapes of all answers at the start. Loading it takes 30 ms, and it adds 2 µs to a request (2026-11-28).

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import type { WorkEvent } from "../../flow/idempotency.ts";
import type { EventKind } from "../../model/events/event_table.ts";
import { text } from "../../model/events/payload_shapes.ts";
import type { RouteCall } from "./call.ts";
import type { AnswerHeaderName, LazyShape, ParameterRow, RequestHeaderName } from "./parameters.ts";

/** The features of the service, which group the routes. */
export const TAGS = {
  runs: "The life of a run",
  ingest: "Recorded media become frames with signals",
  analyze: "Signals become rows and markers",
  reason: "A model describes a source, chunk by chunk",
  infer: "Single questions to a model, and the model catalog",
  live: "Live sessions: WebRTC publishers by WHIP, and sources that the service pulls",
  events: "Events and markers, once or as a stream",
  search: "What models said",
  webhooks: "Events sent to a receiver of yours",
  files: "Uploads, files, stored pictures and clips",
  triggers: "Trigger programs",
  policies: "Policy revisions of live sessions",
  feedback: "Ratings of operators",
  system: "The service itself",
} as const;

export type Tag = keyof typeof TAGS;

/** What a body or an answer is, by media type. */
export type Content = Readonly<Record<string, LazyShape | "text" | "binary">>;

export interface AnswerRow {
  readonly description: string;
  /** By media type; nothing for an answer without a body. */
  readonly content?: Content;
  readonly headers?: readonly AnswerHeaderName[];
}

/** The JSON object of an answer. */
export type AnswerFields = Readonly<Record<string, unknown>>;

/** What a route that takes idempotency keys tells about its work. See docs/api.md#idempotency-keys. */
export interface Once {
  /** The events that the work appends: after a crash, they tell whether it was done. */
  readonly kinds: readonly EventKind[];
  /** The answer of work whose answer a crash took, from an event of it and the id of the first request. */
  readonly rebuild?: (event: WorkEvent, requestId: string) => object;
  /** A field of the answer that is not kept, and its value when the answer is sent again. */
  readonly secret?: {
    readonly field: string;
    readonly derive: (call: RouteCall, answer: AnswerFields) => string;
  };
}

/** By status. */
export type Answers = Readonly<Record<number, AnswerRow>>;

/** A row of the route table: what a route does, and what it is called, takes and answers for its callers. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** A path with `:parameters`. */
  readonly path: string;
  /** The name of the method of a client. */
  readonly id: string;
  readonly tag: Tag;
  /** One sentence: what it does for the caller. The route table of the documentation is made of it. */
  readonly summary: string;
  /** By media type; nothing for a route that reads no body. */
  readonly body?: Content;
  readonly query?: Readonly<Record<string, ParameterRow>>;
  readonly headers?: readonly RequestHeaderName[];
  readonly answers: Answers;
  /** Statuses of the handler itself, beside those that every route has. */
  readonly failures: readonly number[];
  /** Whether its refusals are plain text, as those of WHIP are. */
  readonly refusesInText?: true;
  /** Who may call it; with a key unless given. */
  readonly access?: "open" | "metrics";
  /** Where the route takes idempotency keys. */
  readonly once?: Once;
  readonly handle: (call: RouteCall) => Response | Promise<Response>;
}

export const JSON_TYPE = "application/json";

/** Content that is JSON of this shape. */
export function jsonContent(schema: LazyShape): Content {
  return { [JSON_TYPE]: schema };
}

/** 200 with JSON. */
export function answersJson(schema: LazyShape, description: string): Answers {
  return { 200: { description, content: { [JSON_TYPE]: schema } } };
}

/**
 * A file of one of these types: whole, one range of it, or not again. See
 * docs/api/files.md#ranges-and-conditions.
 */
export function answersFile(...mediaTypes: readonly string[]): Answers {
  const content: Content = Object.fromEntries(mediaTypes.map((type) => [type, "binary"]));
  return {
    200: { description: "The whole file", content, headers: ["accept-ranges", "etag", "last-modified"] },
    206: { description: "One range of it", content, headers: ["content-range", "etag", "last-modified"] },
    304: { description: "The copy of the caller is current", headers: ["etag", "last-modified"] },
  };
}

/** The headers of a request for a file. */
export const FILE_HEADERS: readonly RequestHeaderName[] = [
  "range",
  "if-range",
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
];

/** The query of a list that comes in pages: whole without them, unless it says something else. */
export const PAGE_QUERY = {
  limit: {
    description:
      `Answers a page of so many entries at most; ${LIMITS.list.pageDefault} where only \`cursor\` is given`,
    schema: () => z.int().min(LIMITS.list.page.minimum).max(LIMITS.list.page.maximum),
  },
  cursor: { description: "`next_cursor` of the page before", schema: text },
} as const satisfies Readonly<Record<string, ParameterRow>>;
