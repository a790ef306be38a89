import assert from "node:assert/strict";
import type { Caller } from "../../../src/flow/caller.ts";
import { Feedback } from "../../../src/flow/analysis/feedback.ts";
import { PUBLIC_PRINCIPAL } from "../../../src/model/identifiers.ts";
import { Bench } from "../../support/timeline.ts";

const RUN = `run-${"a".repeat(32)}`;
const CALLER: Caller = {
  principalKey: PUBLIC_PRINCIPAL,
  tenantId: null,
  requestId: "req-0",
  isOnLoopback: true,
  holdUntilAnswered: () => {},
  signal: new AbortController().signal,
};

Deno.test("a list is read in pieces whose memory is bounded, long texts one by one", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [{
    kind: "run_created",
    runId: RUN,
    payload: { principal_key: PUBLIC_PRINCIPAL },
  }]);
  const feedback = new Feedback(timeline, null);
  const texts = [
    ...Array.from({ length: 200 }, (_, index) => `short ${index}`),
    ...Array.from({ length: 5 }, (_, index) => String(index) + "\u0001".repeat(65_000)),
    "last",
  ];
  for (const text of texts) feedback.submit(CALLER, RUN, { rating: 3, category: "accuracy", feedback: text });
  const batches = await Array.fromAsync(feedback.list(CALLER));
  assert.deepEqual(batches.flat().map((item) => item.feedback), texts);
  // The first long text ends the second batch.
  assert.deepEqual(batches.map((batch) => batch.length), [128, 73, 1, 1, 1, 1, 1]);
});
