/** Request body of feedback: its shape. The rules about values are checked by the flow. */

import * as z from "zod";
import { body, textWithin } from "./described_fields.ts";
import { LIMITS } from "../limits.ts";

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
