/** Routes of the run lifecycle. */

import { PageEntries } from "../../flow/list_page.ts";
import { type ListedRun, recreated } from "../../flow/runs/runs.ts";
import { CREATE_RUN_BODY } from "../../model/api/runs.ts";
import { readJson } from "../body.ts";
import { parameter, type Route } from "../call.ts";
import { jsonList, jsonTail, pageQuery } from "../formats/list_text.ts";
import { json } from "../reply.ts";

export const RUN_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs",
    summary: "Creates a run.",
    once: { kinds: ["run_created"], rebuild: recreated },
    handle: async (call) => json(await call.runs.create(call.caller, await readJson(call, CREATE_RUN_BODY))),
  },
  {
    method: "GET",
    path: "/v1/runs",
    summary: "Lists the caller's runs, oldest first.",
    handle: (call) => {
      const { caller, request } = call;
      const runs = call.runs.list(caller, { order: request.query("order"), ...pageQuery(call) });
      const around = runs instanceof PageEntries
        ? { head: `{"request_id":"${caller.requestId}","runs":[`, tail: jsonTail(runs) }
        : { head: "[", tail: "]" };
      return jsonList<ListedRun>(call, {
        ...{ ...around, between: "," },
        entry: ({ summary }) => JSON.stringify(summary),
      }, runs);
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id",
    summary: "Reads one run.",
    handle: (call) => json(call.runs.read(call.caller, parameter(call, "id"))),
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id",
    summary: "Deletes a run; from then on it reads as missing.",
    handle: (call) => {
      const runId = parameter(call, "id");
      call.runs.delete(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/stop",
    summary: "Stops a run and cancels the work under way for it.",
    handle: (call) => {
      const runId = parameter(call, "id");
      call.runs.stop(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, status: "cancelled" });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/keepalive",
    summary: "Refreshes the idle time of a run.",
    handle: (call) => {
      const runId = parameter(call, "id");
      call.runs.keepalive(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, state: "processing" });
    },
  },
  ...([["POST", true, "Holds a run: nothing of it is deleted."], [
    "DELETE",
    false,
    "Ends the hold of a run.",
  ]] as const)
    .map(([method, isWanted, summary]): Route => ({
      method,
      path: "/v1/runs/:id/hold",
      summary,
      handle: (call) => {
        const runId = parameter(call, "id");
        call.runs.hold(call.caller, runId, isWanted);
        return json({ request_id: call.caller.requestId, run_id: runId, on_hold: isWanted });
      },
    })),
  {
    method: "GET",
    path: "/v1/runs/:id/state",
    summary: "Reads the status of a run, and how far a decode for it is.",
    handle: (call) => {
      const runId = parameter(call, "id");
      const state = call.runs.state(call.caller, runId);
      const progress = call.runs.progress(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, state, progress });
    },
  },
];
