/** Answers of the routes of live sessions: their shapes. See docs/live.md#whip. */

import { z } from "zod";
import { jsonObject, open, positive, text } from "../../events/payload_shapes.ts";
import { requestIdField, runIdField, runStatus, sessionIdField } from "./answer_fields.ts";

export const LIVE_SOURCE = open({
  request_id: requestIdField,
  run_id: runIdField,
  session_id: sessionIdField,
  generation: positive,
  source_uri: text,
  status: z.literal("processing"),
});

export const CLOSED_LIVE_SOURCE = open({
  request_id: requestIdField,
  run_id: runIdField,
  session_id: sessionIdField,
  status: runStatus,
});

export const UPDATED_PROMPT = open({
  session_id: sessionIdField,
  prompt: z.string().nullable().describe("Null for the built-in one"),
  output_schema: jsonObject.nullable(),
});
