import assert from "node:assert/strict";
import { RunRegister } from "../../../src/model/runs/run_register.ts";

const TTL_MS = 1000;

/** A register; run `a1` belongs to principal `a`, and so on. */
function register() {
  const runs = new RunRegister();
  let seq = 0;
  const fold = (runId: string, kind: string, ptsMs: number) =>
    runs.fold(
      runs.entry(runId),
      ++seq,
      ptsMs,
      kind,
      kind === "run_created" ? { principal_key: runId[0] } : {},
    );
  const listed = (principal: string) => [...runs.runsOf(principal)].map((run) => run.runId).join(" ");
  return { runs, fold, listed };
}

Deno.test("runs are listed by creation time under their own principal", () => {
  const { runs, fold, listed } = register();
  fold("a1", "run_created", 10);
  fold("b1", "run_created", 11);
  fold("a2", "run_created", 30);
  fold("a3", "run_created", 20);
  fold("a4", "run_created", 30);
  fold("a0", "vlm", 5);
  assert.equal(listed("a"), "a1 a3 a2 a4");
  assert.equal(listed("b"), "b1");
  assert.equal(listed("c"), "");
  assert.equal(runs.run("a0"), undefined);
  assert.equal(runs.run("x"), undefined);
  fold("a3", "run_deleted", 31);
  assert.equal(listed("a"), "a1 a2 a4");
  assert.equal(runs.run("a3")?.deleted, true);
  for (const runId of ["a1", "a2", "a4"]) fold(runId, "run_deleted", 32);
  assert.equal(listed("a"), "");
});

Deno.test("a run counts as active until it is over, deleted or idle for too long", () => {
  const { runs, fold } = register();
  const check = (nowMs: number, count: number) => assert.equal(runs.activeCount("a", nowMs, TTL_MS), count);
  check(0, 0);
  for (const runId of ["a1", "a2", "a3", "a4"]) fold(runId, "run_created", 0);
  fold("b1", "run_created", 0);
  check(0, 4);
  fold("a1", "run_completed", 10);
  check(10, 3);
  fold("a2", "run_deleted", 10);
  check(10, 2);
  check(1000, 2);
  check(1001, 0);
  // Only an event brings a run back.
  fold("a3", "operator_feedback_submitted", 1500);
  check(1501, 1);
  fold("a1", "inference_completed", 1501);
  check(1501, 2);
  fold("a2", "vlm", 1501);
  check(1501, 2);
  check(2502, 0);
});

Deno.test("a clock that is set back brings expired runs back", () => {
  const { runs, fold } = register();
  fold("a1", "run_created", 0);
  assert.equal(runs.activeCount("a", 5000, TTL_MS), 0);
  assert.equal(runs.activeCount("a", 900, TTL_MS), 1);
  assert.equal(runs.activeCount("a", 5000, 10_000), 1);
  assert.equal(runs.activeCount("a", 5000, TTL_MS), 0);
});

Deno.test("what a principal has on hold is the size of those runs, whatever happens to them", () => {
  const runs = new RunRegister();
  const ids = ["a1", "a2", "a3", "b1"];
  const kinds = ["hold_placed", "hold_released", "vlm", "run_completed", "run_deleted", "events_removed"];
  for (let seq = 1; seq <= 400; seq++) {
    const run = runs.entry(ids[seq % 7 % 4]!);
    const kind = run.isCreated ? kinds[(seq * 7919 >> 2) % kinds.length]! : "run_created";
    runs.fold(run, seq, seq, kind, { principal_key: run.runId[0], through_seq: seq - 1 }, 10 + seq % 5);
    const adopted = new RunRegister();
    for (const each of runs.all()) adopted.adopt(each);
    for (const principal of ["a", "b"]) {
      const held = ids.map((runId) => runs.run(runId)).filter((each) =>
        each?.onHold && each.principalKey === principal
      );
      const bytes = held.reduce((sum, each) => sum + each!.logBytes, 0);
      assert.deepEqual(
        [runs.heldBytes(principal), adopted.heldBytes(principal)],
        [bytes, bytes],
        `${seq} ${kind}`,
      );
    }
  }
});
