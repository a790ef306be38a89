/** Routes that read events, markers and queries back from the timeline. */

import type { LongEntry, TimelineEntry } from "../../flow/events/reads.ts";
import { QUERY_BODY } from "../../model/api/reads.ts";
import { readJson } from "../body.ts";
import { parameter, type Route, type RouteCall } from "../call.ts";
import { jsonChunks, Rejection } from "../reply.ts";

export const READ_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/runs/:id/events",
    summary: "Reads the events of a run.",
    handle: (call) => {
      const runId = parameter(call, "id");
      const batches = call.reads.events(call.caller, runId, call.request.query("index"));
      const head = `{"request_id":"${call.caller.requestId}","run_id":${JSON.stringify(runId)},"events":[`;
      return jsonChunks(eventsJson(head, batches));
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
        fromFrame: frameNumber(call, "from_frame"),
        toFrame: frameNumber(call, "to_frame"),
      });
      const head = `{"request_id":"${call.caller.requestId}","run_id":${JSON.stringify(runId)},"markers":[`;
      return jsonChunks(markersJson(head, batches));
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
      return jsonChunks(eventsJson(head, batches));
    },
  },
];

/** A chunk has at least so many characters, or is the last one. */
const CHUNK_CHARACTERS = 65_536;

async function* eventsJson(
  head: string,
  batches: AsyncIterable<readonly (TimelineEntry | LongEntry)[]>,
): AsyncIterable<string> {
  let text = head;
  let comma = "";
  for await (const batch of batches) {
    for (const stored of batch) {
      const { seq, ptsMs, kind } = stored;
      text += `${comma}{"seq":${seq},"pts_ms":${ptsMs},"kind":${JSON.stringify(kind)},"payload":`;
      comma = ",";
      if ("pieces" in stored) {
        yield text;
        yield* stored.pieces;
        text = "}";
      } else text += `${stored.payload}}`;
    }
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = "";
  }
  yield `${text}]}`;
}

/** Payloads are passed exactly as they were written: not parsed, so that no digit of a large number is lost. */
async function* markersJson(
  head: string,
  batches: AsyncIterable<readonly TimelineEntry[]>,
): AsyncIterable<string> {
  let text = head;
  let isFirst = true;
  for await (const batch of batches) {
    for (const { payload } of batch) {
      text += isFirst ? payload : `,${payload}`;
      isFirst = false;
    }
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = "";
  }
  yield `${text}]}`;
}

/** 400 as plain text for a value that does not parse. See docs/api.md#plain-rejections. */
function frameNumber(call: RouteCall, name: string): number | undefined {
  const text = call.request.query(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Rejection(400, `${name} must be a whole number from 0`);
  return Number(text);
}
