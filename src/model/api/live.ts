/** Request bodies of live sessions. The schema says the shape; the rules are in model/live/attach.ts. Interface 4.11. */

import { z } from "zod";
import { ATTACH } from "../live/attach.ts";

/** An empty prompt goes back to the built-in one. */
export const PROMPT_BODY = z.strictObject({
  prompt: z.string().nullish(),
  /** Any JSON value here: what is no object is refused by name. */
  output_schema: z.unknown().optional(),
});
export type PromptBody = z.infer<typeof PROMPT_BODY>;

/** A live source, and what else a publisher would say in `x-attach-config`. */
export const LIVE_SOURCE_BODY = z.strictObject({ source_uri: z.string(), ...ATTACH.shape });
export type LiveSourceBody = z.infer<typeof LIVE_SOURCE_BODY>;
