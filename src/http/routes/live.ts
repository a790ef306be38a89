/** Routes of live sources that the service pulls itself, and of their recordings; the routes of publishers are in whip.ts. */

import type { Viewer } from "../../flow/live/viewing/viewer.ts";
import { LIVE_SOURCE_BODY } from "../../model/api/live.ts";
import { ARM_BODY } from "../../model/api/sources.ts";
import { readJson } from "../body.ts";
import { parameter, type Route, type RouteCall, wholeNumber } from "../call.ts";
import { fileResponse } from "../file_response.ts";
import { COMMON_HEADERS, json, streamed } from "../reply.ts";

function armRoute(verb: "arm" | "disarm", summary: string): Route {
  return {
    method: "POST",
    path: `/v1/sources/:name/${verb}`,
    summary,
    handle: async (call) => {
      const body = await readJson(call, ARM_BODY);
      const order = { isArmed: verb === "arm", body };
      const look = call.armedSources.call(call.caller, parameter(call, "name"), order);
      return json({ request_id: call.caller.requestId, ...look });
    },
  };
}

export const LIVE_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/live",
    summary: "Opens a live source that the service pulls.",
    handle: async (call) => {
      const body = await readJson(call, LIVE_SOURCE_BODY);
      const runId = parameter(call, "id");
      const opened = await call.liveSources.open(call.caller, runId, body);
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
    summary: "Lists the caller's open live sessions, oldest first.",
    handle: ({ caller, liveLooks }) =>
      json({ request_id: caller.requestId, sessions: liveLooks.list(caller) }),
  },
  {
    method: "GET",
    path: "/v1/sources",
    summary: "Lists the named sources that the caller may use, with their state.",
    handle: async ({ caller, sourceLooks }) =>
      json({ request_id: caller.requestId, sources: await sourceLooks.list(caller) }),
  },
  armRoute("arm", "Arms an always-on camera until its schedule changes next, or for a time."),
  armRoute("disarm", "Disarms an always-on camera until its schedule changes next, or for a time."),
  {
    method: "GET",
    path: "/v1/runs/:id/live",
    summary: "Reads the open live session of a run, with its signals of the last minute.",
    handle: (call) => {
      const look = call.liveLooks.ofRun(
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
    summary: "Serves what the open live session of a run sees now, as a JPEG.",
    handle: async (call) => {
      const { jpeg } = await call.liveLooks.snapshot(call.caller, parameter(call, "id"));
      return new Response(jpeg, { headers: { ...COMMON_HEADERS, "content-type": "image/jpeg" } });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/live.mp4",
    summary: "Streams the video of the open live session of a run, as an endless MP4.",
    handle: async (call) => videoOf(await call.liveViews.ofRun(call.caller, parameter(call, "id"))),
  },
  {
    method: "GET",
    path: "/v1/sources/:name/live.mp4",
    summary: "Streams the video of a named source through all its runs, as an endless MP4.",
    handle: async (call) => videoOf(await call.liveViews.ofSource(call.caller, parameter(call, "name"))),
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id/live",
    summary: "Ends the live source of a run and completes the run.",
    handle: async (call) => {
      const runId = parameter(call, "id");
      const run = await call.liveSources.end(call.caller, runId);
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
    summary: "Lists the segments of a source's recording, oldest first.",
    handle: async (call) => {
      const source = parameter(call, "name");
      const [cursor, limit] = [call.request.query("cursor"), wholeNumber(call, "limit")];
      const listed = await call.recordings.list(call.caller, source, { ...rangeOf(call), cursor, limit });
      return json({ request_id: call.caller.requestId, source, ...listed });
    },
  },
  {
    method: "GET",
    path: "/v1/sources/:name/recordings/export",
    summary: "Serves the recording of a time range as one MP4.",
    handle: async (call) => {
      const exported = await call.recordings.export(call.caller, parameter(call, "name"), rangeOf(call));
      return streamed(ReadableStream.from(exported.bytes), "video/mp4", {
        "content-disposition": `attachment; filename="${exported.fileName}"`,
        "x-service-start-at-ms": String(exported.startMs),
      });
    },
  },
  {
    method: "GET",
    path: "/v1/sources/:name/recordings/:segment",
    summary: "Serves one segment of a source's recording, an MP4.",
    handle: async (call) => {
      const [source, segment] = [parameter(call, "name"), parameter(call, "segment")];
      return fileResponse(call.request.raw, await call.recordings.open(call.caller, source, segment));
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
