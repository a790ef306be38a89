/** Routes of the run lifecycle. */

import * as z from "zod";
import { PageEntries } from "../../flow/list_page.ts";
import { type ListedRun, recreated } from "../../flow/runs/runs.ts";
import {
  CREATE_RUN_BODY,
  CREATED_RUN,
  DELETED_RUN,
  HELD_RUN,
  KEPT_ALIVE,
  RUN,
  RUN_PAGE,
  RUN_STATE,
  RUNS,
  STOPPED_RUN,
} from "../../model/api/runs.ts";
import { json } from "../answers/reply.ts";
import { jsonList, jsonTail, pageQuery } from "../formats/list_text.ts";
import { readJson } from "../requests/body.ts";
import { parameter, type RouteCall } from "../route/call.ts";
import { answersJson, jsonContent, PAGE_QUERY, type Route } from "../route/route.ts";

export const RUN_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs",
    id: "createRun",
    tag: "runs",
    summary: "Creates a run.",
    body: jsonContent(CREATE_RUN_BODY),
    answers: answersJson(CREATED_RUN, "The new run"),
    failures: [409, 422, 500],
    once: { kinds: ["run_created"], rebuild: recreated },
    handle: async (call) =>
      json(await call.use.runs.create(call.caller, await readJson(call, CREATE_RUN_BODY))),
  },
  {
    method: "GET",
    path: "/v1/runs",
    id: "listRuns",
    tag: "runs",
    summary: "Lists the caller's runs, oldest first.",
    query: {
      ...PAGE_QUERY,
      order: {
        description: "`oldest` or `newest` first; the oldest unless given",
        schema: () => z.enum(["oldest", "newest"]),
      },
    },
    answers: answersJson(
      () => z.union([RUNS(), RUN_PAGE()]),
      "The caller's runs, without deleted ones: all in a list, or one page in an object where `limit` or `cursor` is given",
    ),
    failures: [400, 422, 500, 503],
    handle: (call) => {
      const { caller, request } = call;
      const runs = call.use.runs.list(caller, { order: request.query("order"), ...pageQuery(call) });
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
    id: "getRun",
    tag: "runs",
    summary: "Reads one run.",
    answers: answersJson(RUN, "The run"),
    failures: [404, 422, 500],
    handle: (call) => json(call.use.runs.read(call.caller, parameter(call, "id"))),
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id",
    id: "deleteRun",
    tag: "runs",
    summary: "Deletes a run; from then on it reads as missing.",
    answers: answersJson(DELETED_RUN, "The run is deleted, now or before"),
    failures: [404, 409, 422, 500],
    handle: (call) => {
      const runId = parameter(call, "id");
      call.use.runs.delete(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/stop",
    id: "stopRun",
    tag: "runs",
    summary: "Stops a run and cancels the work under way for it.",
    answers: answersJson(STOPPED_RUN, "The run is stopped"),
    failures: [404, 409, 422, 500],
    handle: (call) => {
      const runId = parameter(call, "id");
      call.use.runs.stop(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, status: "cancelled" });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/keepalive",
    id: "keepaliveRun",
    tag: "runs",
    summary: "Refreshes the idle time of a run.",
    answers: answersJson(KEPT_ALIVE, "The idle time of the run starts anew"),
    failures: [404, 409, 422, 500],
    handle: (call) => {
      const runId = parameter(call, "id");
      call.use.runs.keepalive(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, state: "processing" });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/hold",
    id: "holdRun",
    tag: "runs",
    summary: "Holds a run: nothing of it is deleted.",
    answers: answersJson(HELD_RUN, "The run is on hold, now or before"),
    failures: [404, 409, 422, 500],
    handle: (call) => held(call, true),
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id/hold",
    id: "releaseRun",
    tag: "runs",
    summary: "Ends the hold of a run.",
    answers: answersJson(HELD_RUN, "The run is not on hold, now or before"),
    failures: [404, 422, 500],
    handle: (call) => held(call, false),
  },
  {
    method: "GET",
    path: "/v1/runs/:id/state",
    id: "getRunState",
    tag: "runs",
    summary: "Reads the status of a run, and how far a decode for it is.",
    answers: answersJson(RUN_STATE, "The status of the run"),
    failures: [404, 422, 500],
    handle: (call) => {
      const runId = parameter(call, "id");
      const state = call.use.runs.state(call.caller, runId);
      const progress = call.use.runs.progress(call.caller, runId);
      return json({ request_id: call.caller.requestId, run_id: runId, state, progress });
    },
  },
];

function held(call: RouteCall, isWanted: boolean): Response {
  const runId = parameter(call, "id");
  call.use.runs.hold(call.caller, runId, isWanted);
  return json({ request_id: call.caller.requestId, run_id: runId, on_hold: isWanted });
}
