/** TABLE of the operations on runs, by method and path. */

import * as z from "zod";
import { CREATE_RUN_BODY } from "../../../model/api/runs.ts";
import {
  CREATED_RUN,
  DELETED_RUN,
  HELD_RUN,
  KEPT_ALIVE,
  RUN,
  RUN_PAGE,
  RUN_STATE,
  RUNS,
  STOPPED_RUN,
} from "../../../model/api/answers/runs.ts";
import { PAGE_QUERY } from "../parameters.ts";
import { answersJson, jsonContent, type Operation } from "../operation.ts";

export const RUN_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/runs": {
    id: "createRun",
    tag: "runs",
    body: jsonContent(CREATE_RUN_BODY),
    answers: answersJson(CREATED_RUN, "The new run"),
    failures: [409, 422, 500],
  },
  "GET /v1/runs": {
    id: "listRuns",
    tag: "runs",
    query: {
      ...PAGE_QUERY,
      order: {
        description: "`oldest` or `newest` first; the oldest unless given",
        schema: z.enum(["oldest", "newest"]),
      },
    },
    answers: answersJson(
      () => z.union([RUNS(), RUN_PAGE()]),
      "The caller's runs, without deleted ones: all in a list, or one page in an object where `limit` or `cursor` is given",
    ),
    failures: [400, 422, 500, 503],
  },
  "GET /v1/runs/:id": {
    id: "getRun",
    tag: "runs",
    answers: answersJson(RUN, "The run"),
    failures: [404, 422, 500],
  },
  "DELETE /v1/runs/:id": {
    id: "deleteRun",
    tag: "runs",
    answers: answersJson(DELETED_RUN, "The run is deleted, now or before"),
    failures: [404, 409, 422, 500],
  },
  "POST /v1/runs/:id/stop": {
    id: "stopRun",
    tag: "runs",
    answers: answersJson(STOPPED_RUN, "The run is stopped"),
    failures: [404, 409, 422, 500],
  },
  "POST /v1/runs/:id/keepalive": {
    id: "keepaliveRun",
    tag: "runs",
    answers: answersJson(KEPT_ALIVE, "The idle time of the run starts anew"),
    failures: [404, 409, 422, 500],
  },
  "POST /v1/runs/:id/hold": {
    id: "holdRun",
    tag: "runs",
    answers: answersJson(HELD_RUN, "The run is on hold, now or before"),
    failures: [404, 409, 422, 500],
  },
  "DELETE /v1/runs/:id/hold": {
    id: "releaseRun",
    tag: "runs",
    answers: answersJson(HELD_RUN, "The run is not on hold, now or before"),
    failures: [404, 422, 500],
  },
  "GET /v1/runs/:id/state": {
    id: "getRunState",
    tag: "runs",
    answers: answersJson(RUN_STATE, "The status of the run"),
    failures: [404, 422, 500],
  },
};
