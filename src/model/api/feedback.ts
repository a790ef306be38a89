/** Request body of feedback. A schema says the shape; the rules are checked in the flow. */

import { z } from "zod";

export const FEEDBACK_BODY = z.strictObject({
  rating: z.int(),
  category: z.string(),
  feedback: z.string().nullish(),
});

export type FeedbackBody = z.infer<typeof FEEDBACK_BODY>;
