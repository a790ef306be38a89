/** `feedback submit` and `feedback list`. */

import type { Handler } from "../session.ts";

export const submitFeedback: Handler = async ({ client, out, signal }, [id], { rating, category, note }) => {
  const request = { rating, category, ...(note !== undefined && { feedback: note }) };
  const answer = await (await client()).submitFeedback(id!, request, { signal });
  out.record(
    answer,
    [["feedback_id", answer.feedback_id], ["run_id", answer.run_id], ["status", answer.status]],
    String(answer.feedback_id),
  );
};

export const listFeedback: Handler = async ({ client, out, signal }) => {
  const all = await (await client()).listFeedback({ signal });
  await out.list(
    all,
    [{ title: "ID", isRight: true }, { title: "RUN" }, { title: "RATING", isRight: true }, {
      title: "CATEGORY",
    }, {
      title: "NOTE",
    }],
    all.map(({ id, run_id, rating, category, feedback }) => [id, run_id, rating, category, feedback]),
    "no feedback",
  );
};
