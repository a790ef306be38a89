/** Routes of live sources that the service pulls itself; the routes of publishers are in whip.ts. */

import { LIVE_SOURCE_BODY } from "../../model/api/live.ts";
import { readJson } from "../body.ts";
import { parameter, type Route } from "../call.ts";
import { json } from "../reply.ts";

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
];
