/** Formats of a list of markers: JSON, CSV, JSON lines, WebVTT and EDL. See docs/api/reading.md#formats. */

import type { TimelineEntry } from "../../flow/events/reads.ts";
import type { Marker } from "../../model/frames/marker.ts";
import { cell, csvLine, freeCell } from "./csv.ts";
import { edlHead, EdlShots } from "./edl.ts";
import { jsonTail, type ListFormats } from "./list_text.ts";
import { vttCue } from "./web_vtt.ts";

/** A marker as its event has it. */
type StoredMarker = Marker & { readonly index_name?: string; readonly session_id?: string };

/** The cells by the names of their columns, in order. */
const COLUMNS: Readonly<Record<keyof StoredMarker, (marker: StoredMarker) => string>> = {
  marker_id: (marker) => cell(marker.marker_id),
  run_id: (marker) => cell(marker.run_id),
  stream_id: (marker) => freeCell(marker.stream_id),
  event_type: (marker) => freeCell(marker.event_type),
  status: (marker) => cell(marker.status),
  start_frame: (marker) => cell(marker.start_frame),
  end_frame: (marker) => cell(marker.end_frame),
  start_pts_ms: (marker) => cell(marker.start_pts_ms),
  end_pts_ms: (marker) => cell(marker.end_pts_ms),
  confidence: (marker) => cell(marker.confidence),
  supersedes_marker_id: (marker) => cell(marker.supersedes_marker_id),
  index_name: (marker) => freeCell(marker.index_name ?? ""),
  session_id: (marker) => cell(marker.session_id),
  origin: (marker) => cell(marker.origin),
};

const CELLS = Object.values(COLUMNS);

const NOTHING_AROUND = { head: "", between: "", tail: "" } as const;

/** Payloads of JSON and JSON lines are not parsed, so that no digit of a large number is lost. */
export const MARKER_FORMATS: ListFormats<TimelineEntry> = [
  ["application/json", {
    contentType: "application/json",
    form: ({ caller }, runId, batches) => ({
      head: `{"request_id":"${caller.requestId}","run_id":${JSON.stringify(runId)},"markers":[`,
      ...{ between: ",", tail: jsonTail(batches) },
      entry: ({ payload }) => payload,
    }),
  }],
  ["text/csv", {
    contentType: "text/csv; charset=utf-8; header=present",
    form: () => ({
      ...NOTHING_AROUND,
      head: csvLine(Object.keys(COLUMNS)),
      entry: (stored) => {
        const marker = markerOf(stored);
        return csvLine(CELLS.map((text) => text(marker)));
      },
    }),
  }],
  ["application/x-ndjson", {
    contentType: "application/x-ndjson",
    form: () => ({ ...NOTHING_AROUND, entry: ({ payload }) => `${payload}\n` }),
  }],
  ["text/vtt", {
    contentType: "text/vtt; charset=utf-8",
    form: async (call, runId) => {
      const startMs = await call.use.reads.videoStartMs(call.caller, runId);
      return {
        ...NOTHING_AROUND,
        head: "WEBVTT\n",
        entry: (stored) => vttCue(markerOf(stored), stored.seq, startMs),
      };
    },
  }],
  ["text/x-edl", {
    contentType: "text/x-edl; charset=utf-8",
    form: async (call, runId) => {
      const fps = await call.use.reads.sourceFps(call.caller, runId);
      const shots = new EdlShots(fps, call.use.reads.filmName(call.caller, runId));
      return {
        ...NOTHING_AROUND,
        head: edlHead(runId),
        entry: (stored) => shots.add(markerOf(stored)),
        tail: () => shots.end(),
      };
    },
  }],
];

function markerOf({ payload }: TimelineEntry): StoredMarker {
  return JSON.parse(payload) as StoredMarker;
}
