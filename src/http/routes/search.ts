/** Routes of search and interactions. */

import { FOUND, INTERACTIONS, SEARCH_BODY } from "../../model/api/search.ts";
import { json } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { parameter } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";
import { EVENT_INDEX } from "./events.ts";

export const SEARCH_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/search",
    id: "search",
    tag: "search",
    summary: "Finds events whose description contains a text.",
    body: jsonContent(SEARCH_BODY),
    answers: answersJson(FOUND, "The events whose text contains what was asked for"),
    failures: [404, 422, 500],
    handle: async (call) => {
      const body = await readJson(call, SEARCH_BODY);
      return json({ request_id: call.caller.requestId, ...await call.use.search.run(call.caller, body) });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/interactions",
    id: "getInteractions",
    tag: "search",
    summary: "Reads what models said about a run, chunk by chunk.",
    query: { index: EVENT_INDEX },
    answers: answersJson(INTERACTIONS, "What models said, in the order in which chunks were first written"),
    failures: [404, 422, 500],
    handle: (call) => {
      const runId = parameter(call, "id");
      const interactions = call.use.interactions.list(call.caller, runId, call.request.query("index"));
      return json({ run_id: runId, count: interactions.length, interactions });
    },
  },
];
