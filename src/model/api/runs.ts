/** Request bodies of the run routes: their shapes. The rules about values are checked by the flow. */

import { z } from "zod";

export const CREATE_RUN_BODY = z.strictObject({
  mode: z.string().nullish(),
  model: z.string().nullish(),
});

export type CreateRunBody = z.infer<typeof CREATE_RUN_BODY>;
