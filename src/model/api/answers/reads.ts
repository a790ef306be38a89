/** Answers of the routes that read the timeline: their shapes. See docs/api.md#reading-events. */

import * as z from "zod";
import { count, jsonObject, jsonValue, open, positive, text } from "../../events/payload_shapes.ts";
import { STORED_MARKER } from "./analysis.ts";
import { answer, pageCursorField, requestIdField, runIdField } from "./answer_fields.ts";

/** The payload of each kind is described in `webhooks`; one that is no JSON object reads as `{ raw }`. */
export const TIMELINE_EVENT = answer("TimelineEvent", () => ({
  seq: positive.describe("Grows within one data directory; usable as a cursor"),
  pts_ms: count.describe("Wall-clock epoch milliseconds of the append, not media time"),
  kind: text,
  payload: jsonObject,
}));

export const EVENTS_READ = answer("EventsResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  events: z.array(TIMELINE_EVENT()),
  next_cursor: pageCursorField,
}));

export const MARKERS_READ = answer("MarkersResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  markers: z.array(STORED_MARKER()),
  next_cursor: pageCursorField,
}));

const bins = () =>
  open({
    min: z.array(z.number().nullable()),
    max: z.array(z.number().nullable()),
    mean: z.array(z.number().nullable()),
  });

/** All arrays are of one length. */
export const SIGNALS_READ = answer("SignalsResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  source_seq: positive.nullable().describe(
    "The `frames_decoded` event; null for a run that has decoded nothing",
  ),
  sample_fps: z.number().positive().nullable().describe(
    "Sampled frames a second of media time; null without a decode",
  ),
  last_pts_ms: count.nullable().describe(
    "Media time of the last frame of the whole decode, milliseconds; null without one",
  ),
  frames: count.describe("Frames of the range"),
  pts_ms: z.array(count).describe("Media time of the first frame of each bin that has frames, milliseconds"),
  counts: z.array(positive).describe("Frames of each bin"),
  signals: z.record(z.string(), bins()).describe(
    "By the name of the signal; null where no frame of a bin has it",
  ),
}));

export const QUERIED = answer("QueryResponse", () => ({
  request_id: requestIdField,
  query: open({ run_id: runIdField, kind: z.string().nullable(), from_seq: count.nullable() }),
  matches: z.array(TIMELINE_EVENT()),
}));

export const SEARCH_HIT = answer("SearchHit", () => ({
  seq: positive,
  run_id: runIdField,
  pts_ms: count.describe("Media time where the payload has one, else the time of the append; milliseconds"),
  kind: text,
  description: z.string(),
  index_name: z.string().nullable(),
  score: z.number().positive().max(1).describe(
    "How well the description matches the text; 1 where it is the text and nothing else",
  ),
  confidence: z.number().nullable().describe(
    "What the event says of its own certainty; null where it says nothing",
  ),
}));

export const FOUND = answer("SearchResponse", () => ({
  request_id: requestIdField,
  scanned: count.describe("Events of the runs that were searched"),
  total_hits: count.describe("Matches before the limit"),
  hits: z.array(SEARCH_HIT()).describe("In sequence order"),
}));

/** Beside these the fields of the model's own output, which go before them. */
export const INTERACTION = answer(
  "Interaction",
  () => ({ chunk_index: jsonValue, pts_start_ms: jsonValue, pts_end_ms: jsonValue }),
);

export const INTERACTIONS = answer(
  "InteractionsResponse",
  () => ({ run_id: runIdField, count, interactions: z.array(INTERACTION()) }),
);
