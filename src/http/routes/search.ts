/** Routes of search and interactions. */

import { SEARCH_BODY } from "../../model/api/search.ts";
import { readJson } from "../body.ts";
import { parameter, type Route } from "../call.ts";
import { json } from "../reply.ts";

export const SEARCH_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/search",
    summary: "Finds events whose description contains a text.",
    handle: async (call) => {
      const body = await readJson(call, SEARCH_BODY);
      return json({ request_id: call.caller.requestId, ...await call.search.run(call.caller, body) });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/interactions",
    summary: "Reads what models said about a run, chunk by chunk.",
    handle: (call) => {
      const runId = parameter(call, "id");
      const interactions = call.interactions.list(call.caller, runId, call.request.query("index"));
      return json({ run_id: runId, count: interactions.length, interactions });
    },
  },
];
