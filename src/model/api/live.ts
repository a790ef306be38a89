/** Request bodies of live sessions: their shapes. The rules about values are in model/live/attach.ts. */

import { z } from "zod";
import { ATTACH } from "../live/attach.ts";

/** An empty or null prompt restores the built-in one; a body without one is at fault, as it may be a misspelt one. */
export const PROMPT_BODY = z.strictObject({
  prompt: z.string().nullable(),
  /** Any JSON value: one that is no object is refused with the name of the field. */
  output_schema: z.unknown().optional(),
});
export type PromptBody = z.infer<typeof PROMPT_BODY>;

/** A live source, with the fields of `x-attach-config`. */
export const LIVE_SOURCE_BODY = z.strictObject({ source_uri: z.string(), ...ATTACH.shape });
export type LiveSourceBody = z.infer<typeof LIVE_SOURCE_BODY>;
