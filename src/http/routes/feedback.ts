/** Routes of operators' feedback. */

import type { FeedbackItem } from "../../flow/feedback.ts";
import { FEEDBACK_BODY } from "../../model/api/feedback.ts";
import { readJson } from "../body.ts";
import { parameter, type Route } from "../call.ts";
import { json, jsonStream } from "../reply.ts";

export const FEEDBACK_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/feedback",
    summary: "Records an operator's rating of a run.",
    once: { kinds: ["operator_feedback_submitted"] },
    handle: async (call) => {
      const runId = parameter(call, "id");
      const feedbackId = call.feedback.submit(
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
        mirrored_to_database: await call.feedback.isMirrored(feedbackId),
      });
    },
  },
  {
    method: "GET",
    path: "/v1/feedback",
    summary: "Lists the feedback on the caller's runs.",
    handle: (call) => jsonStream(feedbackJson(call.caller.requestId, call.feedback.list(call.caller))),
  },
];

function* feedbackJson(requestId: string, batches: Iterable<readonly FeedbackItem[]>): Iterable<string> {
  yield `{"request_id":"${requestId}","feedback":[`;
  let isFirst = true;
  for (const batch of batches) {
    if (batch.length === 0) continue;
    yield (isFirst ? "" : ",") + batch.map((item) => JSON.stringify(item)).join(",");
    isFirst = false;
  }
  yield `],"storage":"local_wal"}`;
}
