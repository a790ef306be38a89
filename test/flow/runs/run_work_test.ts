/** The work under way for a run ends with it, and leaves nothing behind. */

import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { RunEnded, RunWork } from "../../../src/flow/runs/run_work.ts";

Deno.test("the end of a run ends its work and no other, and a caller who leaves ends their own", () => {
  const work = new RunWork();
  const caller = new AbortController();
  using stopped = work.begin("run-a", NEVER_ABORTED);
  using left = work.begin("run-b", caller.signal);
  using goesOn = work.begin("run-b", NEVER_ABORTED);
  work.end("run-a");
  caller.abort("left");
  assert.deepEqual(
    [stopped, left, goesOn].map(({ signal }) => signal.aborted),
    [true, true, false],
  );
  assert.equal(stopped.signal.reason instanceof RunEnded, true);
  assert.equal(left.signal.reason, "left");
  using late = work.begin("run-b", caller.signal);
  assert.equal(late.signal.reason, "left");
});

Deno.test("work that is done keeps nothing of what listened to its end, though its caller's signal lives on", async () => {
  const work = new RunWork();
  const listeners: WeakRef<object>[] = [];
  const doOne = () => {
    using handle = work.begin("run-a", NEVER_ABORTED);
    const session = { offer: "v=0" };
    handle.signal.addEventListener("abort", () => void (session.offer = ""), { once: true });
    listeners.push(new WeakRef(session));
  };
  for (let count = 0; count < 20; count++) doOne();
  // What a WeakRef was made for lives until the end of the turn.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collectGarbage();
  assert.equal(listeners.filter((listener) => listener.deref() !== undefined).length, 0);
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}
