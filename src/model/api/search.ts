/** What search takes and answers, and what models said: shapes; the flow checks the rules. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { count, jsonValue, positive, text } from "../events/payload_shapes.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";
import { body, textWithin } from "../schemas/described_fields.ts";

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

export const SEARCH_HIT = answer("SearchHit", () => ({
  seq: positive,
  run_id: runIdField,
  pts_ms: count.describe("Media time where the payload has one, else the time of the append; milliseconds"),
  kind: text,
  description: z.string(),
  index_name: z.string().nullable(),
  score: z.number().positive().max(1).describe(
    "How well the description matches the text; 1 where it is the text and nothing else",
  ),
  confidence: z.number().nullable().describe(
    "What the event says of its own certainty; null where it says nothing",
  ),
}));

export const FOUND = answer("SearchResponse", () => ({
  request_id: requestIdField,
  scanned: count.describe("Events of the runs that were searched"),
  total_hits: count.describe("Matches before the limit"),
  hits: z.array(SEARCH_HIT()).describe("In sequence order"),
}));

/** Beside these the fields of the model's own output, which go before them. */
export const INTERACTION = answer(
  "Interaction",
  () => ({ chunk_index: jsonValue, pts_start_ms: jsonValue, pts_end_ms: jsonValue }),
);

export const INTERACTIONS = answer(
  "InteractionsResponse",
  () => ({ run_id: runIdField, count, interactions: z.array(INTERACTION()) }),
);
