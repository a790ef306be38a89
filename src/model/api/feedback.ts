/** What feedback takes and answers: shapes. The rules about values are checked by the flow. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { count, positive, text } from "../events/payload_shapes.ts";
import { answer, pageCursorField, requestIdField, runIdField } from "./answer_fields.ts";
import { body, textWithin } from "../schemas/described_fields.ts";

export const FEEDBACK_BODY = body("FeedbackRequest", {
  rating: z.int().meta({ ...LIMITS.feedback.rating }),
  category: textWithin(
    LIMITS.feedback.categoryBytes,
    `Not blank, at most ${LIMITS.feedback.categoryBytes.maximum} bytes`,
  ),
  feedback: textWithin(
    { minimum: 0, maximum: LIMITS.feedback.textBytesMax },
    `At most ${LIMITS.feedback.textBytesMax} bytes`,
  ).nullish(),
});

export type FeedbackBody = z.infer<typeof FEEDBACK_BODY>;

const { minimum, maximum } = LIMITS.feedback.rating;

export const FEEDBACK_SUBMITTED = answer("FeedbackResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  feedback_id: positive,
  status: z.literal("submitted"),
  storage: z.literal("local_wal"),
  mirrored_to_database: z.boolean(),
}));

export const FEEDBACK = answer("Feedback", () => ({
  id: positive.describe("The sequence number of its event"),
  run_id: runIdField,
  session_id: z.string(),
  rating: z.int().min(minimum).max(maximum),
  category: text,
  feedback: z.string(),
  timestamp_micros: count.describe("When it was appended, epoch microseconds"),
  storage: z.literal("local_wal"),
}));

export const FEEDBACK_LIST = answer("FeedbackList", () => ({
  request_id: requestIdField,
  feedback: z.array(FEEDBACK()),
  storage: z.literal("local_wal"),
  next_cursor: pageCursorField,
}));
