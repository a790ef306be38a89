/** Routes that read events, markers and queries back from the timeline. */

import { QUERY_BODY } from "../../model/api/reads.ts";
import { readJson } from "../body.ts";
import { parameter, type Route, wholeNumber } from "../call.ts";
import { EVENT_FORMATS, eventsJson } from "../formats/event_formats.ts";
import { jsonList, listResponse, pageQuery } from "../formats/list_text.ts";
import { MARKER_FORMATS } from "../formats/marker_formats.ts";
import { json } from "../reply.ts";

export const READ_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/runs/:id/events",
    summary: "Reads the events of a run.",
    handle: (call) => {
      const runId = parameter(call, "id");
      const batches = call.reads.events(call.caller, runId, {
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
    summary: "Reads the markers of a run.",
    handle: (call) => {
      const runId = parameter(call, "id");
      const { request } = call;
      const batches = call.reads.markers(call.caller, runId, {
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
    summary: "Reads the signals of a decode in bins.",
    handle: async (call) => {
      const runId = parameter(call, "id");
      const { sourceSeq, sampleFps, lastPtsMs, bins } = await call.signals.bins(call.caller, runId, {
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
    summary: "Reads the events of a run by kind and from a sequence number on.",
    handle: async (call) => {
      const body = await readJson(call, QUERY_BODY);
      const batches = call.reads.query(call.caller, body);
      const query = { run_id: body.run_id, kind: body.kind ?? null, from_seq: body.from_seq ?? null };
      const head = `{"request_id":"${call.caller.requestId}","query":${JSON.stringify(query)},"matches":[`;
      return jsonList(call, eventsJson(head), batches);
    },
  },
];
