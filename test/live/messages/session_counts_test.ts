/** Counts between two reports of a session. */

import assert from "node:assert/strict";
import { SessionCounts } from "../../../src/live/messages/session_counts.ts";

Deno.test("a second in which nothing happened gives no report", () => {
  assert.equal(new SessionCounts().take(), null);
});

Deno.test("each count is reported once", () => {
  const counting = new SessionCounts();
  counting.add("framesDecoded", 3);
  counting.add("framesDecoded");
  counting.add("audioBytes", 120);
  counting.observeFrame(1_800.4, 300.6);
  const counts = counting.take()!;
  assert.deepEqual([counts.framesDecoded, counts.audioBytes, counts.framesDropped], [4, 120, 0]);
  assert.deepEqual([counts.decodeLatenciesUs, counts.gateLatenciesUs], [[1_800], [301]]);
  assert.equal(counting.take(), null);
});

Deno.test("latencies of more frames than a report takes are left out, and the frames still count", () => {
  const counting = new SessionCounts();
  for (let frame = 0; frame < 1_000; frame++) {
    counting.add("framesDecoded");
    counting.observeFrame(frame, 0);
  }
  const counts = counting.take()!;
  assert.deepEqual([counts.framesDecoded, counts.decodeLatenciesUs.length], [1_000, 512]);
});
