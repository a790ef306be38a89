import assert from "node:assert/strict";
import type { Run, TimelineEvent } from "../../client/mod.ts";
import { historyOf } from "../../console/pages/run/history.ts";
import { stateText } from "../../console/pages/run/run_state.ts";

function completed(pass: Record<string, unknown>) {
  const events = [
    { seq: 1, kind: "analysis_generated", payload: pass },
    { seq: 2, kind: "run_completed", payload: {} },
  ] as unknown as TimelineEvent[];
  return stateText({ status: "completed" } as Run, historyOf(events));
}

Deno.test("the state of a run tells how many questions got no answer, and the first reason", () => {
  assert.equal(completed({ chunks_analyzed: 3 }).what, "The analysis is complete.");
  assert.equal(
    completed({ chunks_analyzed: 3, chunks_failed: 1, first_chunk_error: "deadline_missed" }).what,
    "The analysis is complete, but 1 of 3 questions got no answer: deadline missed.",
  );
});
