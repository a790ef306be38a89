/** Request bodies of the routes that read the timeline. */

import { z } from "zod";

export const QUERY_BODY = z.strictObject({
  run_id: z.string(),
  kind: z.string().nullish(),
  from_seq: z.int().nonnegative().nullish(),
});

export type QueryBody = z.infer<typeof QUERY_BODY>;
