/** Request body of feedback: its shape. The rules about values are checked by the flow. */

import { z } from "zod";

export const FEEDBACK_BODY = z.strictObject({
  rating: z.int(),
  category: z.string(),
  feedback: z.string().nullish(),
});

export type FeedbackBody = z.infer<typeof FEEDBACK_BODY>;
