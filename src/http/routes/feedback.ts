/** Routes of operators' feedback. */

import type { FeedbackItem } from "../../flow/analysis/feedback.ts";
import { FEEDBACK_BODY, FEEDBACK_LIST, FEEDBACK_SUBMITTED } from "../../model/api/feedback.ts";
import { json } from "../answers/reply.ts";
import { jsonList, jsonTail, pageQuery } from "../formats/list_text.ts";
import { readJson } from "../requests/body.ts";
import { parameter } from "../route/call.ts";
import { answersJson, jsonContent, PAGE_QUERY, type Route } from "../route/route.ts";

export const FEEDBACK_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/feedback",
    id: "submitFeedback",
    tag: "feedback",
    summary: "Records an operator's rating of a run.",
    body: jsonContent(FEEDBACK_BODY),
    answers: answersJson(FEEDBACK_SUBMITTED, "The rating is committed"),
    failures: [404, 422, 500],
    once: { kinds: ["operator_feedback_submitted"] },
    handle: async (call) => {
      const runId = parameter(call, "id");
      const feedbackId = call.use.feedback.submit(
        call.caller,
        runId,
        await readJson(call, FEEDBACK_BODY),
      );
      return json({
        request_id: call.caller.requestId,
        run_id: runId,
        feedback_id: feedbackId,
        status: "submitted",
        storage: "local_wal",
        mirrored_to_database: await call.use.feedback.isMirrored(feedbackId),
      });
    },
  },
  {
    method: "GET",
    path: "/v1/feedback",
    id: "listFeedback",
    tag: "feedback",
    summary: "Lists the feedback on the caller's runs.",
    query: PAGE_QUERY,
    answers: answersJson(FEEDBACK_LIST, "The feedback on the caller's runs"),
    failures: [400, 422, 500, 503],
    handle: (call) => {
      const batches = call.use.feedback.list(call.caller, pageQuery(call));
      return jsonList<FeedbackItem>(call, {
        head: `{"request_id":"${call.caller.requestId}","feedback":[`,
        ...{ between: ",", tail: jsonTail(batches, `,"storage":"local_wal"`) },
        entry: (item) => JSON.stringify(item),
      }, batches);
    },
  },
];
