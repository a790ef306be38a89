/** Routes of live sources that the service pulls itself, and of their recordings; the routes of publishers
 * are in whip.ts.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { Viewer } from "../../flow/live/viewing/viewer.ts";
import {
  CLOSED_LIVE_SOURCE,
  LIVE_SESSIONS,
  LIVE_SOURCE,
  LIVE_SOURCE_BODY,
  WATCHED_SESSION,
} from "../../model/api/live.ts";
import { ARM_BODY, ARMED_SOURCE, NAMED_SOURCES, RECORDED_SEGMENTS } from "../../model/api/sources.ts";
import { count, text } from "../../model/events/payload_shapes.ts";
import { fileResponse } from "../answers/file_response.ts";
import { COMMON_HEADERS, json, streamed } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { parameter, type RouteCall, wholeNumber } from "../route/call.ts";
import {
  answersFile,
  answersJson,
  FILE_HEADERS,
  jsonContent,
  PAGE_QUERY,
  type Route,
} from "../route/route.ts";

const LIVE_VIDEO = "Fragmented MP4, from a key frame on until the session ends or its codec changes";

const RECORDED_RANGE = {
  from: { description: "A time (RFC 3339) or epoch milliseconds: what ends later", schema: text },
  to: { description: "What begins earlier", schema: text },
};

function armRoute(verb: "arm" | "disarm", summary: string): Route {
  return {
    method: "POST",
    path: `/v1/sources/:name/${verb}`,
    id: `${verb}Source`,
    tag: "live",
    summary,
    body: jsonContent(ARM_BODY),
    answers: answersJson(ARMED_SOURCE, "How the camera is armed now"),
    failures: [404, 409, 422, 500, 503],
    handle: async (call) => {
      const body = await readJson(call, ARM_BODY);
      const order = { isArmed: verb === "arm", body };
      const look = call.use.armedSources.call(call.caller, parameter(call, "name"), order);
      return json({ request_id: call.caller.requestId, ...look });
    },
  };
}

export const LIVE_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/live",
    id: "openLiveSource",
    tag: "live",
    summary: "Opens a live source that the service pulls.",
    body: jsonContent(LIVE_SOURCE_BODY),
    answers: answersJson(LIVE_SOURCE, "The session that watches the source"),
    failures: [404, 409, 422, 500, 503],
    handle: async (call) => {
      const body = await readJson(call, LIVE_SOURCE_BODY);
      const runId = parameter(call, "id");
      const opened = await call.use.liveSources.open(call.caller, runId, body);
      return json({
        request_id: call.caller.requestId,
        run_id: runId,
        session_id: opened.sessionId,
        generation: opened.generation,
        source_uri: opened.sourceUri,
        status: "processing",
      });
    },
  },
  {
    method: "GET",
    path: "/v1/live",
    id: "listLiveSessions",
    tag: "live",
    summary: "Lists the caller's open live sessions, oldest first.",
    answers: answersJson(LIVE_SESSIONS, "The open sessions of the caller"),
    failures: [500],
    handle: ({ caller, use }) => json({ request_id: caller.requestId, sessions: use.liveLooks.list(caller) }),
  },
  {
    method: "GET",
    path: "/v1/sources",
    id: "listSources",
    tag: "live",
    summary: "Lists the named sources that the caller may use, with their state.",
    answers: answersJson(NAMED_SOURCES, "The named sources that the caller may use"),
    failures: [500],
    handle: async ({ caller, use }) =>
      json({ request_id: caller.requestId, sources: await use.sourceLooks.list(caller) }),
  },
  armRoute("arm", "Arms an always-on camera until its schedule changes next, or for a time."),
  armRoute("disarm", "Disarms an always-on camera until its schedule changes next, or for a time."),
  {
    method: "GET",
    path: "/v1/runs/:id/live",
    id: "getLiveSession",
    tag: "live",
    summary: "Reads the open live session of a run, with its signals of the last minute.",
    query: {
      after_ms: { description: "Only signals behind this media time, milliseconds", schema: count },
    },
    answers: answersJson(WATCHED_SESSION, "The open session of the run"),
    failures: [400, 404, 422, 500],
    handle: (call) => {
      const look = call.use.liveLooks.ofRun(
        call.caller,
        parameter(call, "id"),
        wholeNumber(call, "after_ms") ?? -1,
      );
      return json({ request_id: call.caller.requestId, ...look });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/snapshot.jpg",
    id: "getSnapshot",
    tag: "live",
    summary: "Serves what the open live session of a run sees now, as a JPEG.",
    answers: {
      200: { description: "A frame that came less than a second ago", content: { "image/jpeg": "binary" } },
    },
    failures: [404, 422, 500],
    handle: async (call) => {
      const { jpeg } = await call.use.liveLooks.snapshot(call.caller, parameter(call, "id"));
      return new Response(jpeg, { headers: { ...COMMON_HEADERS, "content-type": "image/jpeg" } });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/live.mp4",
    id: "watchLiveVideo",
    tag: "live",
    summary: "Streams the video of the open live session of a run, as an endless MP4.",
    answers: { 200: { description: LIVE_VIDEO, content: { "video/mp4": "binary" } } },
    failures: [404, 422, 500, 503],
    handle: async (call) => videoOf(await call.use.liveViews.ofRun(call.caller, parameter(call, "id"))),
  },
  {
    method: "GET",
    path: "/v1/sources/:name/live.mp4",
    id: "watchSourceVideo",
    tag: "live",
    summary: "Streams the video of a named source through all its runs, as an endless MP4.",
    answers: { 200: { description: LIVE_VIDEO, content: { "video/mp4": "binary" } } },
    failures: [404, 422, 500, 503],
    handle: async (call) => videoOf(await call.use.liveViews.ofSource(call.caller, parameter(call, "name"))),
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id/live",
    id: "closeLiveSource",
    tag: "live",
    summary: "Ends the live source of a run and completes the run.",
    answers: answersJson(CLOSED_LIVE_SOURCE, "The session is over"),
    failures: [404, 422, 500],
    handle: async (call) => {
      const runId = parameter(call, "id");
      const run = await call.use.liveSources.end(call.caller, runId);
      return json({
        request_id: call.caller.requestId,
        run_id: runId,
        session_id: run.sessionId,
        status: run.state,
      });
    },
  },
  {
    method: "GET",
    path: "/v1/sources/:name/recordings",
    id: "listRecordings",
    tag: "live",
    summary: "Lists the segments of a source's recording, oldest first.",
    query: {
      ...RECORDED_RANGE,
      ...PAGE_QUERY,
      limit: {
        ...PAGE_QUERY.limit,
        description: `How many segments at most; ${LIMITS.list.pageDefault} without it`,
      },
    },
    answers: answersJson(RECORDED_SEGMENTS, "Segments of the recording, oldest first"),
    failures: [400, 404, 422, 500],
    handle: async (call) => {
      const source = parameter(call, "name");
      const [cursor, limit] = [call.request.query("cursor"), wholeNumber(call, "limit")];
      const listed = await call.use.recordings.list(call.caller, source, { ...rangeOf(call), cursor, limit });
      return json({ request_id: call.caller.requestId, source, ...listed });
    },
  },
  {
    method: "GET",
    path: "/v1/sources/:name/recordings/export",
    id: "exportRecording",
    tag: "live",
    summary: "Serves the recording of a time range as one MP4.",
    query: RECORDED_RANGE,
    answers: {
      200: {
        description: "The range as one MP4, from the key frame at or before its begin on",
        content: { "video/mp4": "binary" },
        headers: ["content-disposition", "x-service-start-at-ms"],
      },
    },
    failures: [404, 422, 500],
    handle: async (call) => {
      const exported = await call.use.recordings.export(call.caller, parameter(call, "name"), rangeOf(call));
      return streamed(ReadableStream.from(exported.bytes), "video/mp4", {
        "content-disposition": `attachment; filename="${exported.fileName}"`,
        "x-service-start-at-ms": String(exported.startMs),
      });
    },
  },
  {
    method: "GET",
    path: "/v1/sources/:name/recordings/:segment",
    id: "getRecording",
    tag: "live",
    summary: "Serves one segment of a source's recording, an MP4.",
    headers: FILE_HEADERS,
    answers: answersFile("video/mp4"),
    failures: [404, 412, 416, 500],
    handle: async (call) => {
      const [source, segment] = [parameter(call, "name"), parameter(call, "segment")];
      return fileResponse(call.request.raw, await call.use.recordings.open(call.caller, source, segment));
    },
  },
];

/** With a high water mark of 0 nothing is queued here: the viewer's own queue has the bound. */
function videoOf(viewer: Viewer): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const bytes = await viewer.next();
      if (bytes) controller.enqueue(bytes);
      else controller.close();
    },
    cancel: () => viewer.leave(),
  }, { highWaterMark: 0 });
  return streamed(body, `video/mp4; codecs="${viewer.codecs}"`, { "x-accel-buffering": "no" });
}

function rangeOf({ request }: RouteCall) {
  return { from: request.query("from"), to: request.query("to") };
}
