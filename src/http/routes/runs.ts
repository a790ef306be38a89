/** Routes of the run lifecycle, interface 4.2. */

import { CREATE_RUN_BODY } from "../../model/api/runs.ts";
import { readJson } from "../body.ts";
import { parameter, type Route } from "../call.ts";
import { json } from "../reply.ts";

export const RUN_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs",
    handle: async ({ runs, caller, request }) =>
      json(runs.create(caller, await readJson(request.raw, CREATE_RUN_BODY))),
  },
  {
    method: "GET",
    path: "/v1/runs",
    handle: ({ runs, caller }) => json(runs.list(caller)),
  },
  {
    method: "GET",
    path: "/v1/runs/:id",
    handle: (call) => json(call.runs.read(call.caller, parameter(call, "id"))),
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id",
    handle: (call) => {
      const runId = parameter(call, "id");
      call.runs.delete(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/stop",
    handle: (call) => {
      const runId = parameter(call, "id");
      call.runs.stop(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, status: "cancelled" });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/keepalive",
    handle: (call) => {
      const runId = parameter(call, "id");
      call.runs.keepalive(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, state: "processing" });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/state",
    handle: (call) => {
      const runId = parameter(call, "id");
      const state = call.runs.state(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, state });
    },
  },
];
