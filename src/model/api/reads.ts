/** What the routes that read the timeline take and answer: shapes. See docs/api/reading.md#reading-events. */

import * as z from "zod";
import { count, jsonObject, open, positive, text } from "../events/payload_shapes.ts";
import { STORED_MARKER } from "./analysis.ts";
import { answer, pageCursorField, requestIdField, runIdField } from "./answer_fields.ts";
import { body } from "../schemas/described_fields.ts";

export const QUERY_BODY = body("QueryRequest", {
  run_id: z.string(),
  kind: z.string().nullish(),
  from_seq: z.int().nonnegative().nullish(),
});

export type QueryBody = z.infer<typeof QUERY_BODY>;

/** Which frames of which decode are wanted; the whole of the latest unless given. */
export interface DecodeRange {
  /** The first media time, milliseconds; this and the last one are included. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** The number of a `frames_decoded` event of the run; the latest unless given. */
  readonly sourceSeq?: number | undefined;
}

/** Which signals are wanted, and in how many bins. */
export interface SignalsQuery extends DecodeRange {
  readonly points?: number | undefined;
}

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
