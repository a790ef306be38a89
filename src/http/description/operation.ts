/** How a route is described: what it takes and answers, from the schemas that read and write it. */

import type { ZodType } from "zod";
import type { AnswerHeaderName, RequestHeaderName } from "./parameters.ts";

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

/** A shape, or what makes it when the API is described. */
export type LazyShape = ZodType | (() => ZodType);

/** What a body or an answer is, by media type. */
export type Content = Readonly<Record<string, LazyShape | "text" | "binary">>;

export interface AnswerRow {
  readonly description: string;
  /** By media type; nothing for an answer without a body. */
  readonly content?: Content;
  readonly headers?: readonly AnswerHeaderName[];
}

export interface QueryParameter {
  readonly description: string;
  readonly schema: ZodType;
}

export interface Operation {
  /** The name of the method of a client. */
  readonly id: string;
  readonly tag: Tag;
  /** By media type; nothing for a route that reads no body. */
  readonly body?: Content;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly headers?: readonly RequestHeaderName[];
  /** By status. */
  readonly answers: Readonly<Record<number, AnswerRow>>;
  /** Statuses of the handler itself, beside those that every route has. */
  readonly failures: readonly number[];
  /** Whether its refusals are plain text, as those of WHIP are. */
  readonly refusesInText?: true;
  /** Who may call it; with a key unless given. */
  readonly access?: "open" | "metrics";
}

/** A request that was answered, as the examples of a route. */
export interface Example {
  /** Absent for a route without a JSON body. */
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

export const JSON_TYPE = "application/json";

/** The reference to a named schema. */
export function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

/** Content that is JSON of this shape. */
export function jsonContent(schema: LazyShape): Content {
  return { [JSON_TYPE]: schema };
}

/** 200 with JSON. */
export function answersJson(schema: LazyShape, description: string): Readonly<Record<number, AnswerRow>> {
  return { 200: { description, content: { [JSON_TYPE]: schema } } };
}

/** A file of one of these types: whole, one range of it, or not again. See docs/api.md#ranges-and-conditions. */
export function answersFile(...mediaTypes: readonly string[]): Readonly<Record<number, AnswerRow>> {
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
