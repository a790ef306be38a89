/** Request bodies of the run lifecycle. A schema says the shape; the rules are checked once the run is known. */

import { z } from "zod";

export const CREATE_RUN_BODY = z.strictObject({
  mode: z.string().nullish(),
  model: z.string().nullish(),
});

export type CreateRunBody = z.infer<typeof CREATE_RUN_BODY>;
