/** Request body of a search: its shape. The rules about values are checked by the flow. */

import * as z from "zod";
import { body, textWithin } from "./described_fields.ts";
import { LIMITS } from "../limits.ts";

export const SEARCH_BODY = body("SearchRequest", {
  query: textWithin(
    LIMITS.search.queryBytes,
    `At most ${LIMITS.search.queryBytes.maximum} bytes when trimmed; any case and spelling in Unicode`,
  ),
  run_id: z.string().nullish(),
  limit: z.int().meta({ ...LIMITS.search.hits }).nullish().describe(
    `${LIMITS.search.hitsDefault} unless given`,
  ),
});

export type SearchBody = z.infer<typeof SEARCH_BODY>;
