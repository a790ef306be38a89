/** Request body of feedback: its shape. The rules about values are checked by the flow. */

import * as z from "zod";
import { LIMITS } from "../limits.ts";

export const FEEDBACK_BODY = z.strictObject({
  rating: z.int().meta({ ...LIMITS.feedback.rating }),
  category: z.string().describe(`Not blank, at most ${LIMITS.feedback.categoryBytes.maximum} bytes`),
  feedback: z.string().nullish().describe(`At most ${LIMITS.feedback.textBytesMax} bytes`),
});

export type FeedbackBody = z.infer<typeof FEEDBACK_BODY>;
