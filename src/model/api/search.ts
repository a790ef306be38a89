/** Request body of a search: its shape. The rules about values are checked by the flow. */

import { z } from "zod";

export const SEARCH_BODY = z.strictObject({
  query: z.string(),
  run_id: z.string().nullish(),
  limit: z.int().nullish(),
});

export type SearchBody = z.infer<typeof SEARCH_BODY>;
