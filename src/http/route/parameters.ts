/** TABLES of the parameters that routes share: parts of paths, headers of requests, headers of answers. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { runIdField, sessionIdField, webhookIdField } from "../../model/api/answer_fields.ts";
import { count, sha256, text } from "../../model/events/payload_shapes.ts";
import { IDEMPOTENCY_KEY } from "../../model/idempotency_key.ts";

/** A shape, or what makes it when the API is described. */
export type LazyShape = z.ZodType | (() => z.ZodType);

/** What a part of a path, a query value or a header is. */
export interface ParameterRow {
  readonly description: string;
  readonly schema: LazyShape;
}

/** By the name behind the colon in the path of a route. */
export const PATH_PARAMETERS: Readonly<Record<string, ParameterRow>> = {
  id: { description: "Id of the run", schema: runIdField },
  webhook_id: { description: "Id of the webhook", schema: webhookIdField },
  seq: { description: "Sequence number of the event", schema: count },
  revision: { description: "Number of the policy revision", schema: count },
  sess: { description: "Id of the live session", schema: sessionIdField },
  filename: { description: "Bare name of a video file", schema: text },
  sha256: { description: "Hash of the content, lower-case hex", schema: sha256 },
  name: { description: "File name of the schema", schema: text },
  file: { description: "File name", schema: text },
  segment: { description: "Id of the segment", schema: text },
};

export const REQUEST_HEADERS = {
  accept: { description: "The format; the first of the answer's media types without it", schema: z.string() },
  "x-tenant-id": {
    description:
      "Recorded with a run and nothing else; needed on every route with a key where the operator says so",
    schema: z.string().max(LIMITS.name.bytesMax).regex(/^[ -~]*$/),
  },
  "x-attach-config": {
    description:
      "The configuration of the session: JSON in base64url without padding, with the fields of AttachConfig",
    schema: z.string().max(LIMITS.whip.attachHeaderBytesMax),
  },
  [IDEMPOTENCY_KEY]: {
    description: "The same key and body within 24 hours get the first answer again",
    schema: z.string().min(LIMITS.idempotency.keyCharacters.minimum).max(
      LIMITS.idempotency.keyCharacters.maximum,
    ).regex(/^[!-~]+$/),
  },
  "last-event-id": { description: "Resumes the stream behind this sequence number", schema: z.string() },
  range: { description: "One range of bytes, RFC 9110 section 14", schema: z.string() },
  "if-range": { description: "Answers the range only if the file is still this version", schema: z.string() },
  "if-match": { description: "The version that is meant; 412 for another one", schema: z.string() },
  "if-none-match": {
    description: "The version that the caller has; 304 if it is current",
    schema: z.string(),
  },
  "if-modified-since": { description: "304 if the file is no newer", schema: z.string() },
  "if-unmodified-since": { description: "412 if the file is newer", schema: z.string() },
} as const satisfies Readonly<Record<string, ParameterRow>>;

export type RequestHeaderName = keyof typeof REQUEST_HEADERS;

export const ANSWER_HEADERS = {
  "accept-ranges": { description: "`bytes`", schema: z.literal("bytes") },
  "content-range": { description: "The range that the body is; `bytes */<size>` with 416", schema: text },
  etag: { description: "The version", schema: text },
  "content-disposition": { description: "The file name of the export", schema: text },
  "x-service-start-at-ms": {
    description: "When the file begins, epoch milliseconds",
    schema: z.string().regex(/^\d+$/),
  },
  "last-modified": { description: "Of a file that can change", schema: text },
  "idempotency-replayed": {
    description: "Where the answer was given before, to the same idempotency key",
    schema: z.literal("true"),
  },
  location: { description: "Path of the live session", schema: text },
  "x-service-run-id": { description: "The run that the session writes to", schema: runIdField },
  link: {
    description: "STUN and TURN servers, RFC 9725 section 4.6, where some are configured",
    schema: text,
  },
  "retry-after": {
    description: "Seconds after which a retry may succeed",
    schema: z.string().regex(/^\d+$/),
  },
  /** `retry-after` of a 409, which has other reasons too. See docs/api.md#idempotency-keys. */
  "retry-after-of-key": {
    description:
      "Seconds; only where an earlier request with the same idempotency key is still being worked on",
    schema: z.string().regex(/^\d+$/),
  },
} as const satisfies Readonly<Record<string, ParameterRow>>;

export type AnswerHeaderName = keyof typeof ANSWER_HEADERS;

/** Headers that an answer may be without: what they tell is not there. */
export const OPTIONAL_HEADERS: ReadonlySet<AnswerHeaderName> = new Set([
  "last-modified",
  "link",
  "idempotency-replayed",
  "retry-after-of-key",
]);
