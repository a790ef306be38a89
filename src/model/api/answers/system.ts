/** Answers about the service itself, of uploads and of feedback, and the error envelope: their shapes. */

import { z } from "zod";
import { REFUSALS } from "../../../base/refusal.ts";
import { count, open, positive, text } from "../../events/payload_shapes.ts";
import { LIMITS } from "../../limits.ts";
import { requestIdField, runIdField } from "./answer_fields.ts";

export const HEALTH = open({ status: z.literal("ok") });

export const UPLOADED = open({ file_path: text.describe("A `source_uri`") });

const { minimum, maximum } = LIMITS.feedback.rating;

export const FEEDBACK_SUBMITTED = open({
  request_id: requestIdField,
  run_id: runIdField,
  feedback_id: positive,
  status: z.literal("submitted"),
  storage: z.literal("local_wal"),
  mirrored_to_database: z.boolean(),
});

export const FEEDBACK = open({
  id: positive.describe("The sequence number of its event"),
  run_id: runIdField,
  session_id: z.string(),
  rating: z.int().min(minimum).max(maximum),
  category: text,
  feedback: z.string(),
  timestamp_micros: count.describe("When it was appended, epoch microseconds"),
  storage: z.literal("local_wal"),
});

export const FEEDBACK_LIST = open({
  request_id: requestIdField,
  feedback: z.array(FEEDBACK),
  storage: z.literal("local_wal"),
});

/** See docs/api.md#errors. */
export const ERROR_ENVELOPE = open({
  error: open({
    code: z.enum([...new Set(Object.values(REFUSALS).map(({ code }) => code))]),
    message: text.describe("For people; it may change"),
    request_id: requestIdField,
    details: z.array(open({ field: z.string(), message: text })).describe(
      "The fields that break a rule; at most 64",
    ),
  }),
});
