/** Routes that read events, markers and queries back from the timeline. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { EVENTS_READ, MARKERS_READ, QUERIED, QUERY_BODY, SIGNALS_READ } from "../../model/api/reads.ts";
import { count, positive } from "../../model/events/payload_shapes.ts";
import { json } from "../answers/reply.ts";
import { EVENT_FORMATS, eventsJson } from "../formats/event_formats.ts";
import { jsonList, listResponse, pageQuery } from "../formats/list_text.ts";
import { MARKER_FORMATS } from "../formats/marker_formats.ts";
import { readJson } from "../requests/body.ts";
import { parameter, wholeNumber } from "../route/call.ts";
import { answersJson, JSON_TYPE, jsonContent, PAGE_QUERY, type Route } from "../route/route.ts";

export const EVENT_INDEX = { description: "Only those of this `index_name`", schema: () => z.string() };

export const READ_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/runs/:id/events",
    id: "getEvents",
    tag: "events",
    summary: "Reads the events of a run.",
    query: {
      index: EVENT_INDEX,
      from_seq: { description: "Only events from this sequence number on", schema: count },
      without_kind: {
        description: "Leaves this kind out, such as `frames_decoded`, whose signals are most of a run",
        schema: () => z.string(),
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
    handle: (call) => {
      const runId = parameter(call, "id");
      const batches = call.use.reads.events(call.caller, runId, {
        index: call.request.query("index"),
        fromSeq: wholeNumber(call, "from_seq"),
        withoutKind: call.request.query("without_kind"),
        ...pageQuery(call),
      });
      return listResponse(call, { runId, formats: EVENT_FORMATS, batches });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/markers",
    id: "getMarkers",
    tag: "events",
    summary: "Reads the markers of a run.",
    query: {
      status: { description: "Only markers of this status", schema: () => z.string() },
      event_type: {
        description:
          "Only markers of this type, or of one of several with commas between; `measured:` or `model:` before a type names its origin",
        schema: () => z.string(),
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
    handle: (call) => {
      const runId = parameter(call, "id");
      const { request } = call;
      const batches = call.use.reads.markers(call.caller, runId, {
        status: request.query("status"),
        eventType: request.query("event_type"),
        fromFrame: wholeNumber(call, "from_frame"),
        toFrame: wholeNumber(call, "to_frame"),
        ...pageQuery(call),
      });
      return listResponse(call, { runId, formats: MARKER_FORMATS, batches });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/signals",
    id: "getSignals",
    tag: "events",
    summary: "Reads the signals of a decode in bins.",
    query: {
      from_ms: { description: "Only frames from this media time on, milliseconds", schema: count },
      to_ms: { description: "Only frames up to this media time", schema: count },
      points: {
        description: `Bins at most; ${LIMITS.signals.pointsDefault} unless given`,
        schema: () => z.int().min(LIMITS.signals.points.minimum).max(LIMITS.signals.points.maximum),
      },
      source_seq: {
        description: "A `frames_decoded` event of the run; the latest unless given",
        schema: positive,
      },
    },
    answers: answersJson(SIGNALS_READ, "The signals in bins of equal media time"),
    failures: [400, 404, 422, 500, 503],
    handle: async (call) => {
      const runId = parameter(call, "id");
      const { sourceSeq, sampleFps, lastPtsMs, bins } = await call.use.signals.bins(call.caller, runId, {
        fromMs: wholeNumber(call, "from_ms"),
        toMs: wholeNumber(call, "to_ms"),
        points: wholeNumber(call, "points"),
        sourceSeq: wholeNumber(call, "source_seq"),
      });
      const { frames, ptsMs: pts_ms, counts, signals } = bins;
      const head = { request_id: call.caller.requestId, run_id: runId, source_seq: sourceSeq };
      const whole = { sample_fps: sampleFps, last_pts_ms: lastPtsMs };
      return json({ ...head, ...whole, frames, pts_ms, counts, signals });
    },
  },
  {
    method: "POST",
    path: "/v1/query",
    id: "query",
    tag: "events",
    summary: "Reads the events of a run by kind and from a sequence number on.",
    body: jsonContent(QUERY_BODY),
    answers: answersJson(QUERIED, "The events that match"),
    failures: [404, 410, 422, 500],
    handle: async (call) => {
      const body = await readJson(call, QUERY_BODY);
      const batches = call.use.reads.query(call.caller, body);
      const query = { run_id: body.run_id, kind: body.kind ?? null, from_seq: body.from_seq ?? null };
      const head = `{"request_id":"${call.caller.requestId}","query":${JSON.stringify(query)},"matches":[`;
      return jsonList(call, eventsJson(head), batches);
    },
  },
];
