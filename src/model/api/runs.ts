/** What the run routes take and answer: shapes; the flow checks the rules. See docs/api/runs.md#runs. */

import * as z from "zod";
import { count, mode, text } from "../events/payload_shapes.ts";
import {
  answer,
  nextCursorField,
  requestIdField,
  runIdField,
  runStatus,
  timestamp,
} from "./answer_fields.ts";
import { body, modelId, runMode } from "../schemas/described_fields.ts";

export const CREATE_RUN_BODY = body("CreateRunRequest", {
  mode: runMode,
  model: modelId.nullish(),
});

export type CreateRunBody = z.infer<typeof CREATE_RUN_BODY>;

export const CREATED_RUN = answer("CreatedRun", () => ({
  run_id: runIdField,
  request_id: requestIdField,
  status: z.literal("pending"),
  mode,
  model: text.nullable().describe("The canonical id; null when none was given"),
}));

export const RUN = answer("Run", () => ({
  run_id: runIdField,
  status: runStatus,
  mode: z.string().describe("Empty for a run that a WHIP offer made"),
  model: z.string().describe("Empty when none was given"),
  source_uri: z.string().describe("Of the first source; empty before it"),
  source_name: z.string().optional().describe("The name that its upload had; absent for other sources"),
  on_hold: z.boolean().describe("Whether nothing of it may be deleted"),
  events_removed: z.boolean().describe("Whether retention removed its events"),
  created_at: timestamp,
  updated_at: timestamp.describe("Of the last event"),
}));

export const RUNS = answer("RunList", () => z.array(RUN()));

export const RUN_PAGE = answer(
  "RunPage",
  () => ({ request_id: requestIdField, runs: RUNS(), next_cursor: nextCursorField }),
);

export const DELETED_RUN = answer("DeletedRun", () => ({ request_id: requestIdField, run_id: runIdField }));

export const STOPPED_RUN = answer("StoppedRun", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  status: z.literal("cancelled"),
}));

export const HELD_RUN = answer(
  "HeldRun",
  () => ({ request_id: requestIdField, run_id: runIdField, on_hold: z.boolean() }),
);

export const KEPT_ALIVE = answer(
  "KeptAlive",
  () => ({ request_id: requestIdField, run_id: runIdField, state: runStatus }),
);

export const WORK_PROGRESS = answer("WorkProgress", () => ({
  work: z.enum(["ingest", "reason"]),
  frames: count.describe("Frames that were decoded"),
  pts_ms: count.describe("Media time of the last one"),
  end_ms: count.nullable().describe(
    "Media time at which the work ends, of the source or by `max_frames`; null where it is not known",
  ),
}));

export const RUN_STATE = answer("RunState", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  state: runStatus,
  progress: WORK_PROGRESS().nullable().describe(
    "How far a decode for the run is; null where none is under way",
  ),
}));
