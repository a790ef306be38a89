/** Credits: what a session may report before it is acknowledged. */

import assert from "node:assert/strict";
import type { Credit, SessionReport } from "../../../src/live/messages/messages.ts";
import { Outbox } from "../../../src/live/messages/outbox.ts";

/** How many of each kind can be taken in a row. */
function takeable(outbox: Outbox, kind: Credit): number {
  let taken = 0;
  while (outbox.take(kind)) taken++;
  return taken;
}

function outboxOf({ hasClips = false } = {}): { outbox: Outbox; sent: SessionReport[] } {
  const sent: SessionReport[] = [];
  return { outbox: new Outbox("sess-1", (report) => void sent.push(report), { hasClips }), sent };
}

for (
  const [kind, hasClips, bound] of [
    ["pictures", false, 32],
    ["pictures", true, 1],
    ["evidence", false, 8],
    ["audioWindows", false, 2],
  ] as const
) {
  Deno.test(`${bound} ${kind} are taken at most${hasClips ? " of clips" : ""}, and as many as are given back`, () => {
    const { outbox } = outboxOf({ hasClips });
    assert.equal(takeable(outbox, kind), bound);
    assert.equal(outbox.hasCredit(kind), false);
    outbox.giveBack(kind);
    assert.equal(takeable(outbox, kind), 1);
    outbox.giveBack(kind, 1_000);
    assert.equal(takeable(outbox, kind), bound, "more than were taken came back");
    outbox.giveBack(kind, -5);
    assert.equal(takeable(outbox, kind), 0, "a negative number gives nothing");
  });
}

Deno.test("the kinds have separate credits", () => {
  const { outbox } = outboxOf();
  takeable(outbox, "pictures");
  assert.ok(outbox.hasCredit("evidence") && outbox.hasCredit("audioWindows"));
});

Deno.test("every report carries the session's id", () => {
  const { outbox, sent } = outboxOf();
  outbox.send({ kind: "connected", tookMs: 5 });
  assert.deepEqual(sent, [{ kind: "connected", tookMs: 5, sessionId: "sess-1" }]);
});
