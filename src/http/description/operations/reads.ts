/** TABLE of the operations that read events, markers and what models said, by method and path. */

import * as z from "zod";
import { EVENTS_READ, INTERACTIONS, MARKERS_READ, SIGNALS_READ } from "../../../model/api/answers/reads.ts";
import { FOUND, QUERIED } from "../../../model/api/answers/reads.ts";
import { QUERY_BODY } from "../../../model/api/reads.ts";
import { SEARCH_BODY } from "../../../model/api/search.ts";
import { count, positive } from "../../../model/events/payload_shapes.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { PAGE_QUERY } from "../parameters.ts";
import { answersJson, JSON_TYPE, jsonContent, type Operation } from "../operation.ts";

const INDEX = { description: "Only those of this `index_name`", schema: z.string() };

/** One message of the event stream, as a reader of server-sent events gives it. */
const SENT_EVENT = z.object({
  id: z.string().regex(/^\d+$/).describe("The sequence number of the event"),
  event: z.string().min(1).describe("The kind of the event"),
  data: z.string().describe("The event as JSON, see CloudEvent").meta({
    contentMediaType: "application/json",
  }),
});

export const READ_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/runs/:id/events": {
    id: "getEvents",
    tag: "events",
    query: {
      index: INDEX,
      from_seq: { description: "Only events from this sequence number on", schema: count },
      without_kind: {
        description: "Leaves this kind out, such as `frames_decoded`, whose signals are most of a run",
        schema: z.string(),
      },
      ...PAGE_QUERY,
    },
    headers: ["accept"],
    answers: {
      200: {
        description: "The events in their order, in the format that `accept` asks for",
        content: { [JSON_TYPE]: EVENTS_READ, "text/csv": "text", "application/x-ndjson": "text" },
      },
    },
    failures: [400, 404, 410, 422, 500, 503],
  },
  "GET /v1/runs/:id/events/stream": {
    id: "subscribeEvents",
    tag: "events",
    query: {
      after: { description: "Only events behind this sequence number", schema: count },
      kind: { description: "Only events of this kind", schema: z.string() },
      without_kind: { description: "Every kind but this one", schema: z.string() },
    },
    headers: ["last-event-id"],
    answers: {
      200: {
        description:
          "Server-sent events: `id` is the sequence number, `event` the kind, `data` a CloudEvent; " +
          "comments keep the connection alive",
        content: { "text/event-stream": SENT_EVENT },
      },
    },
    failures: [400, 404, 422, 500],
  },
  "GET /v1/runs/:id/markers": {
    id: "getMarkers",
    tag: "events",
    query: {
      status: { description: "Only markers of this status", schema: z.string() },
      event_type: {
        description:
          "Only markers of this type, or of one of several with commas between; `measured:` or `model:` before a type names its origin",
        schema: z.string(),
      },
      from_frame: { description: "Only markers that end at this frame or later", schema: count },
      to_frame: { description: "Only markers that start at this frame or earlier", schema: count },
      ...PAGE_QUERY,
    },
    headers: ["accept"],
    answers: {
      200: {
        description: "The markers of all passes, in the format that `accept` asks for",
        content: {
          [JSON_TYPE]: MARKERS_READ,
          ...{ "text/csv": "text", "application/x-ndjson": "text", "text/vtt": "text", "text/x-edl": "text" },
        },
      },
    },
    failures: [400, 404, 410, 422, 500, 503],
  },
  "GET /v1/runs/:id/signals": {
    id: "getSignals",
    tag: "events",
    query: {
      from_ms: { description: "Only frames from this media time on, milliseconds", schema: count },
      to_ms: { description: "Only frames up to this media time", schema: count },
      points: {
        description: `Bins at most; ${LIMITS.signals.pointsDefault} unless given`,
        schema: z.int().min(LIMITS.signals.points.minimum).max(LIMITS.signals.points.maximum),
      },
      source_seq: {
        description: "A `frames_decoded` event of the run; the latest unless given",
        schema: positive,
      },
    },
    answers: answersJson(SIGNALS_READ, "The signals in bins of equal media time"),
    failures: [400, 404, 422, 500, 503],
  },
  "GET /v1/runs/:id/interactions": {
    id: "getInteractions",
    tag: "search",
    query: { index: INDEX },
    answers: answersJson(INTERACTIONS, "What models said, in the order in which chunks were first written"),
    failures: [404, 422, 500],
  },
  "POST /v1/query": {
    id: "query",
    tag: "events",
    body: jsonContent(QUERY_BODY),
    answers: answersJson(QUERIED, "The events that match"),
    failures: [404, 410, 422, 500],
  },
  "POST /v1/search": {
    id: "search",
    tag: "search",
    body: jsonContent(SEARCH_BODY),
    answers: answersJson(FOUND, "The events whose text contains what was asked for"),
    failures: [404, 422, 500],
  },
};
